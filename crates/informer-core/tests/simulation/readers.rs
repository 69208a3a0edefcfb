//! Handlers: each takes its events at its own pace, and checks what it is told (G3, G5, G6, G8, G16
//! to G19).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use informer_core::fan_out::{RegistrationId, RegistrationQueue};
use informer_core::store::Snapshot;
use informer_core::{Deleted, Event, FinalState, ObjectKey, Uid, UpdateReason};

use crate::coverage::Coverage;
use crate::driver::Obj;
use crate::plan::{HandlerPlan, Speed};
use crate::server::{NAMES, Server};

/// Events taken at a time.
const BATCH: usize = 4;

/// No resyncs come more often (G8).
const LEAST_RESYNC: Duration = Duration::from_secs(1);

pub(crate) struct Handler {
    pub(crate) id: RegistrationId,
    pub(crate) queue: RegistrationQueue<Obj>,
    pub(crate) plan: HandlerPlan,
    pub(crate) number: usize,
    woken: Arc<AtomicBool>,
    batch: VecDeque<Event<Obj>>,
    /// When the call that runs returns.
    returns: Option<Duration>,
    /// No call returns before this.
    pub(crate) blocked: Duration,
    pub(crate) view: BTreeMap<ObjectKey, Arc<Obj>>,
    /// The initial set, but for what was handled or has gone.
    initial: Option<BTreeMap<ObjectKey, Uid>>,
    begun: Duration,
    synced: bool,
    /// It was told of something that does not belong to the initial set.
    goes_on: bool,
    /// How often the server's history was replaced.
    epoch: u64,
    resyncs: BTreeMap<ObjectKey, u64>,
}

impl Handler {
    pub(crate) fn new(
        number: usize,
        plan: HandlerPlan,
        (id, queue): (RegistrationId, RegistrationQueue<Obj>),
        woken: Arc<AtomicBool>,
    ) -> Self {
        Self {
            id,
            queue,
            plan,
            number,
            woken,
            batch: VecDeque::new(),
            returns: None,
            blocked: Duration::ZERO,
            view: BTreeMap::new(),
            initial: None,
            begun: Duration::ZERO,
            synced: false,
            goes_on: false,
            epoch: 0,
            resyncs: BTreeMap::new(),
        }
    }

    /// The initial set is what the store holds now.
    pub(crate) fn begin(&mut self, now: Duration, store: &Snapshot<Obj>) {
        assert!(self.initial.is_none(), "G17: a second initial set");
        self.begun = now;
        self.initial =
            Some(store.iter().map(|entry| (entry.key.clone(), entry.record.uid.clone())).collect());
    }

    /// What has gone from the store counts as handled.
    pub(crate) fn published(&mut self, store: &Snapshot<Obj>) {
        self.epoch = store.epoch();
        if let Some(initial) = &mut self.initial {
            initial.retain(|key, uid| store.get(key).is_some_and(|record| record.uid == *uid));
        }
    }

    /// When it has something to do. It looks at its queue only when it was woken.
    pub(crate) fn next_at(&self, now: Duration) -> Option<Duration> {
        match self.returns {
            Some(at) => Some(at.max(self.blocked)),
            None => self.woken.load(Ordering::Relaxed).then_some(now),
        }
    }

    /// Nothing holds it up any more.
    pub(crate) fn release(&mut self, now: Duration) {
        self.blocked = Duration::ZERO;
        self.plan.speed = Speed::Prompt;
        if let Some(returns) = &mut self.returns {
            *returns = now.min(*returns);
        }
    }

    /// The running call returns, and the next one is made.
    pub(crate) fn step(&mut self, now: Duration, server: &Server, coverage: &mut Coverage) {
        if self.returns.take().is_some() {
            let handled = self.batch.pop_front().expect("a call is for an event");
            if let (Event::Added { key, initial: true, .. }, Some(initial)) =
                (&handled, &mut self.initial)
            {
                initial.remove(key);
            }
        } else {
            self.woken.store(false, Ordering::Relaxed);
        }
        if self.batch.is_empty() {
            let mut queue = self.queue.lock();
            let batch = queue.take(BATCH).to_vec();
            assert!(batch.len() <= BATCH, "G16: {} events at a time", batch.len());
            let (synced, empty) = (queue.has_synced(), queue.is_empty());
            drop(queue);
            assert!(
                !synced || !batch.iter().any(Event::is_initial),
                "G19: synced before it was handled"
            );
            assert!(!batch.is_empty() || empty, "G15: there is something, and it is not given");
            self.batch = batch.into();
            self.check_synced(synced);
        }
        let Some(event) = self.batch.front().cloned() else { return };
        self.told(now, event, server, coverage);
        self.returns = Some(match self.plan.speed {
            Speed::Prompt => now,
            Speed::Slow => now + Duration::from_millis(700),
            Speed::Never => Duration::MAX,
        });
    }

    fn check_synced(&mut self, synced: bool) {
        assert!(synced || !self.synced, "G19: no longer synced");
        self.synced = synced;
        let Some(initial) = &self.initial else {
            assert!(!synced, "G19: synced before the first list");
            return;
        };
        assert!(!synced || initial.is_empty(), "G19: synced, but for {initial:?}");
        assert!(synced || !self.batch.is_empty(), "G19: all was handled, and it is not synced");
    }

    /// What can be checked at any moment.
    pub(crate) fn check(&self) {
        let queue = self.queue.lock();
        let (depth, synced) = (queue.depth(), queue.has_synced());
        drop(queue);
        // One per key of an initial set or a resync, and above the capacity a delete and an add of
        // each.
        let most = self.plan.capacity + 3 * usize::from(NAMES);
        assert!(depth <= most, "G16: {depth} events wait, of {most}");
        if synced {
            let initial = self.initial.as_ref().expect("G19: synced before the first list");
            assert!(initial.is_empty(), "G19: synced, but for {initial:?}");
        }
    }

    fn told(&mut self, now: Duration, event: Event<Obj>, server: &Server, coverage: &mut Coverage) {
        assert!(event.object().transformed, "G33: {event:?}");
        assert!(
            !event.is_initial() || !self.goes_on,
            "G17: {event:?} comes after one that is not initial"
        );
        self.goes_on |= !event.is_initial();
        match event {
            Event::Added { key, object, initial } => {
                assert!(!initial || !self.synced, "G19: {key} is initial although all was synced");
                assert!(self.view.insert(key, object).is_none(), "G3: added twice");
                coverage.note(if initial { "event: added, initial" } else { "event: added" });
            }
            Event::Updated { key, old, new, reason } => {
                let given = self
                    .view
                    .insert(key.clone(), Arc::clone(&new))
                    .expect("G3: updated before added");
                assert!(Arc::ptr_eq(&given, &old), "G3: old is not what was last given");
                assert_eq!(server.uid_of(old.stamp), server.uid_of(new.stamp), "G5: {key}");
                if reason == UpdateReason::Change {
                    // After another history, equal versions are not trusted (G26). A watch from the
                    // first of several pages repeats what later pages had: back to an older state
                    // and to the same again, which may be merged.
                    let decoded_again = !Arc::ptr_eq(&old, &new);
                    let may_repeat = decoded_again && (self.epoch > 0 || server.has_moved_pages);
                    assert!(old.stamp != new.stamp || may_repeat, "G7: {key} has not changed");
                    coverage.note("event: updated");
                } else {
                    assert!(Arc::ptr_eq(&old, &new), "G8: a resync that changes {key}");
                    self.resynced(now, key);
                    coverage.note("event: resync");
                }
            }
            Event::Deleted(Deleted { key, old, last, final_state }) => {
                let given = self.view.remove(&key).expect("G3: deleted before added");
                assert!(
                    Arc::ptr_eq(&given, &old),
                    "G3: old of a delete is not what was last given"
                );
                assert_eq!(server.uid_of(old.stamp), server.uid_of(last.stamp), "G5: {key}");
                let is_final = server.final_stamps.contains(&last.stamp);
                assert_eq!(final_state == FinalState::Known, is_final, "G6: {key} {final_state:?}");
                coverage.note(if is_final {
                    "event: deleted"
                } else {
                    "event: deleted, final state unknown"
                });
            }
        }
    }

    fn resynced(&mut self, now: Duration, key: ObjectKey) {
        let period =
            self.plan.resync.expect("G8: a resync that was not asked for").max(LEAST_RESYNC);
        let times = self.resyncs.entry(key).or_default();
        *times += 1;
        let due = now.saturating_sub(self.begun).as_millis() / period.as_millis();
        assert!(u128::from(*times) <= due, "G8: {times} resyncs, {due} were due");
    }

    /// What has not changed for a while was shown again, to whoever asked (G8).
    pub(crate) fn check_resyncs(&self, before: &BTreeMap<ObjectKey, Arc<Obj>>) {
        let same = |(key, object): &(&ObjectKey, &Arc<Obj>)| {
            self.view.get(*key).is_some_and(|now| Arc::ptr_eq(now, object))
        };
        for (key, _) in before.iter().filter(same).filter(|_| self.plan.resync.is_some()) {
            assert!(self.resyncs.contains_key(key), "G8: {key} was never shown again");
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.returns.is_none() && !self.woken.load(Ordering::Relaxed)
    }

    /// Nothing is delivered any more (G18).
    pub(crate) fn check_removed(&self) {
        let mut queue = self.queue.lock();
        assert!(queue.is_over() && queue.is_empty() && queue.depth() == 0, "G18: it is not over");
        assert!(queue.take(BATCH).is_empty(), "G18: told after it was removed");
    }
}
