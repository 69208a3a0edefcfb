//! Everything there is, and time: what is due next happens next.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use informer_core::fan_out::RegistrationQueue;
use informer_core::ingest::Ingest;
use informer_core::reflector::{Failure, ReflectorConfig};
use informer_core::{Pipeline, ResourceVersion};

use crate::content::Content;
use crate::coverage::Coverage;
use crate::driver::{Delivery, Obj, ObjDecoder, Open, Store};
use crate::plan::{Config, Fault, Plan, Refusal, WatchesGo};
use crate::readers::Handler;
use crate::refreshes::Refreshes;
use crate::requests::Ledger;
use crate::server::Server;
use crate::wire;

pub(crate) struct World {
    pub(crate) config: Config,
    seed: u64,
    rng: Rng,
    pub(crate) now: Duration,
    trace: Option<RefCell<Vec<String>>>,
    pub(crate) coverage: Coverage,
    // The server's side.
    pub(crate) server: Server,
    pub(crate) armed: Vec<Fault>,
    pub(crate) outage: Option<(Refusal, Duration)>,
    pub(crate) close_loop: Option<Duration>,
    pub(crate) watches_go: Option<(WatchesGo, Duration)>,
    // The informer's side.
    pub(crate) ingest: Ingest<ObjDecoder, Store>,
    /// A list is being staged, by what was reported.
    pub(crate) staging: bool,
    pub(crate) open: Option<Open>,
    pub(crate) probe: Option<(Duration, Result<ResourceVersion, Failure>)>,
    pub(crate) discovery: Option<(Duration, Result<bool, Failure>)>,
    pub(crate) request: u64,
    pub(crate) open_streaming: bool,
    delivered: Duration,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) removed: Vec<Handler>,
    pub(crate) registered: usize,
    // What is known of it.
    pub(crate) ledger: Ledger,
    pub(crate) content: Content,
    pub(crate) refreshes: Refreshes,
    pub(crate) requests: u64,
    rounds: u64,
}

/// Who has something to do.
#[derive(Clone, Copy)]
enum Who {
    Server,
    Wire,
    Probe,
    Discovery,
    Clock,
    Sink,
    Handler(usize),
}

impl World {
    pub(crate) fn new(plan: &Plan, traced: bool) -> Self {
        let config = plan.config.clone();
        let reflector = ReflectorConfig {
            page_size: config.page_size,
            page_relists: config.page_relists,
            streaming_lists: config.streaming_lists,
            strict: config.strict,
            queue_capacity: config.queue,
            seed: plan.seed,
            ..ReflectorConfig::default()
        };
        let mut pipeline = Pipeline::new();
        let content = Content::new(pipeline.reader());
        let (spy, reader) = (Arc::clone(&content.spy), content.reader.clone());
        let own: Arc<OnceLock<RegistrationQueue<Obj>>> = Arc::default();
        let queue = Arc::clone(&own);
        let (_, spied) = pipeline.register(Duration::ZERO, usize::MAX, None, move || {
            let Some(queue) = queue.get() else { return };
            let mut events = Vec::new();
            loop {
                let batch = queue.lock().take(16);
                if batch.is_empty() {
                    break;
                }
                events.extend_from_slice(&batch);
            }
            spy.lock().unwrap_or_else(PoisonError::into_inner).woken(events, &reader.snapshot());
        });
        _ = own.set(spied);
        let batch = config.sink_batch;
        let delivery = Delivery::default();
        let store = Store { pipeline, batch, refreshes: 0, notes: Vec::new(), delivery };
        let mut world = Self {
            seed: plan.seed,
            rng: Rng::with_seed(plan.seed ^ 0x5EED),
            now: Duration::ZERO,
            trace: traced.then(RefCell::default),
            coverage: Coverage::default(),
            server: Server::new(config.settings, config.objects),
            armed: Vec::new(),
            outage: None,
            close_loop: None,
            watches_go: None,
            ingest: Ingest::new(reflector, ObjDecoder, store),
            staging: false,
            open: None,
            probe: None,
            discovery: None,
            request: 0,
            open_streaming: false,
            delivered: Duration::ZERO,
            handlers: Vec::new(),
            removed: Vec::new(),
            registered: 0,
            ledger: Ledger::default(),
            content,
            refreshes: Refreshes::default(),
            requests: 0,
            rounds: 0,
            config,
        };
        for handler in world.config.handlers.clone() {
            world.register(handler);
        }
        if world.config.index {
            world.add_index();
        }
        world
    }

    pub(crate) fn cover(&mut self, what: &'static str) {
        self.coverage.note(what);
    }

    /// Writes down what happens, if anybody wants to know.
    pub(crate) fn trace(&self, what: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            let line = format!("{:>12.3} {}", self.now.as_secs_f64(), what());
            trace.borrow_mut().push(line);
        }
    }

    pub(crate) fn take_trace(&mut self) -> Vec<String> {
        self.trace.take().map(RefCell::into_inner).unwrap_or_default()
    }

    pub(crate) fn connection_seed(&self) -> u64 {
        self.seed.wrapping_mul(0x9E37_79B9).wrapping_add(self.request)
    }

    /// Lets everything happen that is due until `end`.
    pub(crate) fn run_until(&mut self, end: Duration) {
        self.settle();
        while let Some((at, who)) = self.next().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            self.rounds += 1;
            assert!(self.rounds < 200_000, "G28: far too much happens");
            self.happen(who);
            self.settle();
        }
        self.now = self.now.max(end);
        self.settle();
    }

    /// What is due first; of several things at one time, any.
    fn next(&mut self) -> Option<(Duration, Who)> {
        let full = self.ingest.is_full();
        let mut due = vec![
            (self.next_of_server(), Who::Server),
            (self.next_incoming().filter(|_| !full), Who::Wire),
            (self.probe.as_ref().map(|(at, _)| *at), Who::Probe),
            (self.discovery.as_ref().map(|(at, _)| *at), Who::Discovery),
            (Some(self.ingest.deadline()), Who::Clock),
            ((self.ingest.queued() > 0).then_some(self.delivered), Who::Sink),
        ];
        for (which, handler) in self.handlers.iter().enumerate() {
            due.push((handler.next_at(self.now), Who::Handler(which)));
        }
        let now = self.now;
        let due = due.into_iter().filter_map(|(at, who)| Some((at?.max(now), who)));
        let mut first: Option<(Duration, Who)> = None;
        let mut ties = 1;
        for (at, who) in due {
            match first {
                Some((earliest, _)) if earliest < at => {}
                Some((earliest, _)) if earliest == at => {
                    ties += 1;
                    if self.rng.u8(0..ties) == 0 {
                        first = Some((at, who));
                    }
                }
                _ => (first, ties) = (Some((at, who)), 1),
            }
        }
        first
    }

    fn happen(&mut self, who: Who) {
        match who {
            Who::Server => self.serve(),
            Who::Wire => self.incoming(),
            Who::Probe => {
                let Some((_, answer)) = self.probe.take() else { return };
                self.probe_answered(&answer);
                self.ingest.probed(self.now, answer);
                self.reported();
            }
            Who::Discovery => {
                let Some((_, answer)) = self.discovery.take() else { return };
                self.discovered(&answer);
                self.ingest.discovered(self.now, answer);
                self.reported();
            }
            Who::Clock | Who::Sink => {}
            Who::Handler(which) => {
                self.handlers[which].step(self.now, &self.server, &mut self.coverage);
            }
        }
    }

    /// What the server does of itself.
    fn serve(&mut self) {
        let now = self.now;
        if self.outage.is_some_and(|(_, until)| until <= now) {
            self.outage = None;
        }
        if self.close_loop.is_some_and(|until| until <= now) {
            self.close_loop = None;
        }
        let (version, settings) = (self.server.version(), self.server.settings);
        let Some(open) = self.open.as_mut().filter(|open| !open.connection.ended) else { return };
        let Some(watch) = &mut open.connection.watch else { return };
        if watch.expires <= now {
            watch.expires = Duration::MAX;
            if settings.ends_watches {
                open.connection.send(now, wire::Arriving::End);
            }
        } else if watch.next_bookmark <= now {
            watch.next_bookmark = now + Duration::from_secs(60);
            if settings.bookmarks && watch.position <= version {
                let frame = wire::bookmark(self.config.media_type, version, false);
                open.connection.send_bytes(now, &frame);
            }
        }
    }

    fn next_of_server(&self) -> Option<Duration> {
        let open = self.open.as_ref().filter(|open| !open.connection.ended);
        let watch = open.and_then(|open| open.connection.watch.as_ref());
        let own = watch.map(|watch| watch.expires.min(watch.next_bookmark));
        [own, self.outage.map(|(_, until)| until), self.close_loop].into_iter().flatten().min()
    }

    /// Does what is asked for, delivers, and checks everything.
    pub(crate) fn settle(&mut self) {
        self.act();
        if self.ingest.queued() > 0 && self.delivered <= self.now {
            self.deliver();
            if self.ingest.queued() > 0 {
                self.delivered = self.now + Duration::from_millis(5);
            }
        }
        self.check_state();
        self.handlers.iter().for_each(Handler::check);
        if self.rounds.is_multiple_of(64) {
            self.content.check_kept();
        }
    }
}
