//! The steps of a plan, as they happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use informer_core::reflector::{Failure, FailureKind};

use crate::content;
use crate::plan::{Action, Fault, HandlerPlan, Step, Write};
use crate::readers::Handler;
use crate::requests::Current;
use crate::server::Good;
use crate::wire;
use crate::world::World;

impl World {
    /// Plays one step of the plan, when its time has come.
    pub(crate) fn step(&mut self, step: &Step) {
        self.run_until(self.now + step.after);
        self.trace(|| format!("● {:?}", step.action));
        self.cover(step.action.name());
        self.perform(&step.action);
        self.settle();
    }

    fn perform(&mut self, action: &Action) {
        let limit = self.write_limit();
        match action {
            Action::Write { name, write } => self.write(*name, *write),
            Action::Burst(writes) => {
                writes.iter().for_each(|(name, write)| self.write(*name, *write))
            }
            Action::Elsewhere(count) => _ = self.server.elsewhere(*count, limit),
            Action::Fault(fault) => self.strike(*fault),
            Action::Outage(refusal, lasts) => {
                self.cover(refusal.name());
                self.outage = Some((*refusal, self.now + *lasts));
                self.cut();
            }
            Action::Watches(goes, lasts) => {
                self.watches_go = Some((*goes, self.now + *lasts));
                if self.ledger.current == Current::Watch {
                    self.cut();
                }
            }
            Action::Compact { keep } => self.server.compact(*keep),
            Action::Restore { back, redo } => self.restore(*back, *redo),
            Action::RemoveResource { seen } => {
                if !self.server.removed && limit == u64::MAX {
                    self.server.remove_resource();
                    if *seen {
                        self.catch_up();
                    }
                    self.close();
                }
            }
            Action::ReturnResource => self.return_resource(),
            Action::Set(settings) => self.server.settings = *settings,
            Action::Leap(by) => self.now += *by,
            Action::AddHandler(plan) => self.register(plan.clone()),
            Action::RemoveHandler(which) => self.remove(usize::from(*which)),
            Action::Block(which, lasts) => {
                let until = self.now + *lasts;
                if let Some(handler) = self.handlers.get_mut(usize::from(*which)) {
                    handler.blocked = handler.blocked.max(until);
                }
            }
            Action::AddIndex => self.add_index(),
            Action::KeepSnapshot => self.content.keep(),
            Action::Refresh => self.request_refresh(),
        }
    }

    /// A restored server that has reached the informer's version again cannot be told from the one
    /// before, so it must not, until the informer knows.
    fn write_limit(&self) -> u64 {
        let held = self.ingest.last_sync_resource_version();
        let unknown = self.ledger.lineage + 1 < self.server.lineages.len();
        if unknown && !held.is_unset() { content::number(held) } else { u64::MAX }
    }

    pub(crate) fn write(&mut self, name: u8, write: Write) {
        if self.server.write(name, write, self.write_limit()) {
            self.cover(write.name());
            self.catch_up();
        }
    }

    fn catch_up(&mut self) {
        if let Some(mut open) = self.open.take() {
            if !open.connection.ended {
                self.send_changes(&mut open.connection);
            }
            self.open = Some(open);
        }
    }

    pub(crate) fn return_resource(&mut self) {
        if self.server.return_resource() {
            self.refreshes.absent = Some(self.now);
        }
    }

    /// The server goes away as a process does: what is open breaks.
    fn cut(&mut self) {
        let now = self.now;
        if let Some(open) = &mut self.open {
            open.connection.cut(now);
        }
        if let Some((at, answer)) = &mut self.probe {
            (*at, *answer) = (now, Err(Failure::new(FailureKind::Transport, "connection reset")));
        }
    }

    fn close(&mut self) {
        let now = self.now;
        if let Some(open) = &mut self.open {
            open.connection.send(now, wire::Arriving::End);
            self.ledger.flawed = true;
        }
    }

    fn restore(&mut self, back: u64, redo: bool) {
        // Nobody can find out that what a later page had is not so any more.
        if content::number(self.ingest.last_sync_resource_version()) < self.ledger.pages_until {
            return;
        }
        let before = self.server.lineages.len();
        if !self.server.restore(back) {
            return;
        }
        self.cover("history replaced");
        self.ledger.pages_until = 0;
        let known = self.ledger.lineage + 2 == self.server.lineages.len();
        let held = self.ingest.last_sync_resource_version();
        if held.is_unset() || known && content::number(held) <= self.server.version() {
            // It has seen nothing of what is gone.
            self.ledger.lineage += usize::from(known);
        }
        self.cut();
        if redo {
            let base = self.server.version();
            let lost = self.server.lineages[before - 1].since(base).to_vec();
            lost.iter().for_each(|change| self.write(change.state.name, Write::Put(Good::Yes)));
        }
    }

    pub(crate) fn strike(&mut self, fault: Fault) {
        self.cover(fault.name());
        if let Fault::Refuse(refusal) | Fault::ErrorEvent(refusal) = fault {
            self.cover(refusal.name());
        }
        match (fault, self.open.take()) {
            (Fault::CloseLoop, open) => {
                self.close_loop = Some(self.now + Duration::from_secs(30));
                self.open = open;
                self.close();
            }
            (fault, Some(mut open)) if !matches!(fault, Fault::Refuse(_)) => {
                self.damage(&mut open.connection, fault);
                self.open = Some(open);
            }
            (fault, open) => {
                self.armed.push(fault);
                self.open = open;
            }
        }
    }

    pub(crate) fn register(&mut self, plan: HandlerPlan) {
        let woken = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&woken);
        let wake = move || flag.store(true, Ordering::Relaxed);
        let registered =
            self.ingest.sink.pipeline.register(self.now, plan.capacity, plan.resync, wake);
        self.registered += 1;
        let mut handler = Handler::new(self.registered, plan, registered, woken);
        if self.content.synced {
            handler.begin(self.now, &self.content.reader.snapshot());
        }
        self.handlers.push(handler);
    }

    fn remove(&mut self, which: usize) {
        if which < self.handlers.len() {
            let handler = self.handlers.remove(which);
            assert!(self.ingest.sink.pipeline.unregister(handler.id), "G18: it was not there");
            handler.check_removed();
            self.removed.push(handler);
        }
    }

    pub(crate) fn add_index(&mut self) {
        let number = self.content.indexes.len();
        if number == 3 {
            return;
        }
        let index = content::index(number);
        let older = self.content.reader.snapshot();
        self.ingest.sink.pipeline.build_index(&index, usize::MAX).expect("G11: its name is new");
        for fault in self.ingest.sink.pipeline.take_faults() {
            assert_eq!(fault.index, "fragile", "G11");
        }
        assert!(older.by_index(&index, "0").is_err(), "G11: an older snapshot has the index");
        self.content.indexes.push(index);
        self.check_indexes(&self.content.reader.snapshot());
    }
}
