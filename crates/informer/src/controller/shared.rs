//! What the parts of a controller share, and what it says of itself.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use informer_core::ObjectKey;
use tokio::sync::watch;

use super::meter::Meter;
use super::metrics::ControllerMetrics;
use super::own_writes::{OwnWrites, OwnWritesMetrics};
use super::source::Source;
use super::status::{ControllerPhase, ControllerStatus};
use crate::workqueue::WorkQueue;

/// Shared by the builder, the running controller and its handles.
pub(crate) struct Shared {
    setup: OnceLock<Setup>,
    pub(super) meter: Meter,
    pub(super) phase: watch::Sender<Phase>,
    /// Empty once the controller has ended: whoever keeps a handle keeps no informer running.
    sources: Mutex<Vec<Arc<dyn Source>>>,
    own_writes: Mutex<Remembered>,
}

/// What was written; none any more once the controller has ended, for the same reason.
#[derive(Default)]
struct Remembered {
    own_writes: Option<Arc<OwnWrites>>,
    last: OwnWritesMetrics,
}

/// What is known when the controller runs.
struct Setup {
    name: String,
    queue: WorkQueue<ObjectKey>,
    concurrency: usize,
}

/// How far a controller has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    NotStarted,
    Syncing,
    Standby,
    Running,
    ShuttingDown,
    Ended,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            setup: OnceLock::new(),
            meter: Meter::default(),
            phase: watch::Sender::new(Phase::NotStarted),
            sources: Mutex::new(Vec::new()),
            own_writes: Mutex::default(),
        }
    }

    pub(super) fn set_up(
        &self,
        queue: WorkQueue<ObjectKey>,
        concurrency: usize,
        sources: Vec<Arc<dyn Source>>,
        own_writes: Arc<OwnWrites>,
    ) {
        let name = queue.name().to_owned();
        let is_first = self.setup.set(Setup { name, queue, concurrency }).is_ok();
        debug_assert!(is_first, "a controller runs once");
        *self.sources() = sources;
        self.remembered().own_writes = Some(own_writes);
    }

    /// Empty before the run.
    pub(crate) fn name(&self) -> &str {
        self.setup.get().map_or("", |setup| &setup.name)
    }

    /// # Panics
    /// Before the run.
    pub(super) fn queue(&self) -> &WorkQueue<ObjectKey> {
        &self.setup.get().expect("a controller has a queue from its run on").queue
    }

    pub(super) fn queue_if_any(&self) -> Option<&WorkQueue<ObjectKey>> {
        self.setup.get().map(|setup| &setup.queue)
    }

    pub(super) fn concurrency(&self) -> usize {
        self.setup.get().map_or(0, |setup| setup.concurrency)
    }

    pub(super) fn sources(&self) -> MutexGuard<'_, Vec<Arc<dyn Source>>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn metrics(&self) -> ControllerMetrics {
        let own_writes = {
            let remembered = self.remembered();
            remembered.own_writes.as_ref().map_or(remembered.last, |it| it.metrics())
        };
        ControllerMetrics { own_writes, ..self.meter.metrics(self.concurrency()) }
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.own_writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> ControllerStatus {
        let sources = self.sources().clone();
        let informers: Vec<_> = sources.iter().map(|source| source.status()).collect();
        let phase = match *self.phase.borrow() {
            Phase::NotStarted => ControllerPhase::NotStarted,
            Phase::Syncing => {
                let unsynced = sources.iter().filter(|it| !it.is_synced());
                let waiting_for = unsynced.map(|it| it.missing().to_string()).collect();
                ControllerPhase::WaitingForInformers { waiting_for }
            }
            Phase::Standby => ControllerPhase::Standby,
            Phase::Running => ControllerPhase::Running,
            Phase::ShuttingDown => ControllerPhase::ShuttingDown,
            Phase::Ended => ControllerPhase::Ended,
        };
        let queue = self.queue_if_any().map(WorkQueue::metrics).unwrap_or_default();
        ControllerStatus {
            name: self.name().to_owned(),
            is_ready: matches!(phase, ControllerPhase::Running | ControllerPhase::Standby),
            is_healthy: !matches!(phase, ControllerPhase::Ended),
            phase,
            queued: queue.depth,
            queued_low: queue.depth_low,
            max_concurrent_reconciles: self.concurrency(),
            running: self.meter.running(),
            waiting_for_own_writes: self.meter.waiting(),
            recent_errors: self.meter.recent_errors(),
            informers,
        }
    }
}

/// Ends the controller when its run does, also when that is dropped.
pub(super) struct Ending(pub(super) Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.queue().shutdown();
        self.0.sources().clear();
        let mut remembered = self.0.remembered();
        if let Some(own_writes) = remembered.own_writes.take() {
            remembered.last = own_writes.metrics();
        }
        drop(remembered);
        self.0.phase.send_replace(Phase::Ended);
    }
}
