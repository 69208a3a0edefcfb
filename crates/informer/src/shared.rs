//! What all handles of one informer share, and who keeps it alive.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use informer_core::ingest::Phase;
use informer_core::reflector::Failure;
use informer_core::store::{IndexFault, Reader};
use informer_core::{ObserverFault, Pipeline};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Missing, unnamed};
use crate::registration::RegistrationInner;
use crate::status::{Live, Meter, Reached, RegistrationStatus, Status, StopCause, count};
use crate::stopping::Stopping;
use crate::{Error, Resource, Scope};

/// How long a wait goes on before it is said in the log that nobody has started the informer.
pub(crate) const WARN_UNSTARTED: Duration = Duration::from_secs(5);

/// The state of an informer. Its tasks hold this; that alone does not keep it running ([`Owner`]
/// does).
pub(crate) struct Shared<T> {
    /// For people: `pods.v1 in namespace default`.
    pub(crate) name: String,
    pub(crate) resource: Resource,
    pub(crate) scope: Scope,
    /// Locked by the informer's task for one batch at a time, and for a moment by whoever registers
    /// or adds an index; never across a wait, never by readers. User code that runs under it: index
    /// functions, and `Drop` where a change drops the last reference to an object or a handler.
    pipeline: Mutex<Pipeline<T>>,
    pub(crate) reader: Reader<T>,
    pub(crate) live: watch::Sender<Live>,
    pub(crate) reached: watch::Sender<Reached>,
    pub(crate) meter: Meter,
    /// How many streams of status changes there are.
    pub(crate) status_readers: AtomicUsize,
    registrations: Mutex<Vec<Arc<RegistrationInner>>>,
    /// How many registrations there were so far, to name them.
    pub(crate) registered: AtomicUsize,
    /// How many refreshes were requested so far.
    pub(crate) refreshes: AtomicU64,
    /// Wakes the informer's task when a registration brings a resync, or a refresh is requested.
    pub(crate) rescheduled: Notify,
    /// When the informer's own time began.
    pub(crate) epoch: Instant,
    pub(crate) stopping: Stopping,
    /// The deadline of a stop has passed: nobody waits for callbacks any longer.
    abandoning: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) runtime: Handle,
    /// Whether the server has streaming lists of this resource: shared by all informers of it in a
    /// factory.
    pub(crate) learn_streaming_lists: Option<Arc<AtomicBool>>,
}

/// Keeps an informer running: its last drop stops it. Held by handles, listers, streams, and the
/// callbacks of a standalone informer (G24).
pub(crate) struct Owner {
    stopping: Stopping,
    pending: Mutex<Pending>,
}

/// What `start` starts.
struct Pending {
    started: bool,
    driver: Option<BoxFuture<'static, ()>>,
    callbacks: Vec<StartCallback>,
}

/// Has a callback called from now on.
pub(crate) type StartCallback = Box<dyn FnOnce(&Arc<Owner>) + Send>;

impl<T> Shared<T> {
    pub(crate) fn new(resource: Resource, scope: Scope, runtime: Handle) -> Self {
        let pipeline = Pipeline::new();
        Self {
            name: format!("{resource} in {scope}"),
            resource,
            scope,
            reader: pipeline.reader(),
            pipeline: Mutex::new(pipeline),
            live: watch::Sender::new(Live::new()),
            reached: watch::Sender::new(Reached::new()),
            meter: Meter::default(),
            status_readers: AtomicUsize::new(0),
            registrations: Mutex::new(Vec::new()),
            registered: AtomicUsize::new(0),
            refreshes: AtomicU64::new(0),
            rescheduled: Notify::new(),
            epoch: Instant::now(),
            stopping: Stopping::default(),
            abandoning: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime,
            learn_streaming_lists: None,
        }
    }

    /// Requests a refresh, and returns its number.
    pub(crate) fn request_refresh(&self) -> u64 {
        let number = self.refreshes.fetch_add(1, Ordering::AcqRel) + 1;
        self.rescheduled.notify_one();
        number
    }

    /// The informer's own time.
    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    pub(crate) fn pipeline(&self) -> MutexGuard<'_, Pipeline<T>> {
        // A poisoned pipeline is used on. Panics of index functions are caught under the lock. One
        // of a `Drop` in the informer's own task ends the informer, and its queues still have to be
        // ended; one in `unregister` comes after the registration was removed.
        self.pipeline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn registrations(&self) -> MutexGuard<'_, Vec<Arc<RegistrationInner>>> {
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stopped(&self) -> Error {
        let cause = self.stopping.cause().unwrap_or(StopCause::Asked);
        Error::Stopped { informer: self.name.clone(), cause }
    }

    /// Whether it stops though nobody wanted that, which those who wait must hear of even if it was
    /// synced.
    pub(crate) fn has_failed(&self) -> bool {
        self.stopping.cause().is_some_and(|cause| cause != StopCause::Asked)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Makes an error part of the state; with nobody reading the status, failing lists are logged
    /// too.
    pub(crate) fn report(&self, phase: Phase, message: String) {
        self.report_failure(phase, message, None);
    }

    /// As [`report`](Self::report), of a request that failed.
    pub(crate) fn report_failure(&self, phase: Phase, message: String, failure: Option<Failure>) {
        count(&self.meter.errors, 1);
        if self.status_readers.load(Ordering::Relaxed) == 0 && phase == Phase::List {
            tracing::warn!(informer = %self.name, "{}", unnamed(&message, &self.name));
        } else {
            tracing::debug!(informer = %self.name, %phase, "{}", unnamed(&message, &self.name));
        }
        self.live.send_modify(|live| live.error(phase, message, failure));
    }

    pub(crate) fn report_faults(&self, faults: Vec<IndexFault>) {
        for IndexFault { index, made_at, key } in faults {
            let message =
                format!("index {index} panicked on {key}, which it leaves out (made at {made_at})");
            self.report(Phase::Index, message);
        }
    }

    pub(crate) fn report_observer_faults(&self, faults: Vec<ObserverFault>) {
        for ObserverFault { added_at } in faults {
            let message = format!(
                "an observer of publications panicked and was removed (added at {added_at})"
            );
            self.report(Phase::Observer, message);
        }
    }

    pub(crate) fn status(&self) -> Status {
        let registrations: Vec<RegistrationStatus> = self
            .registrations()
            .iter()
            .filter(|it| !it.is_removed())
            .map(|it| it.status())
            .collect();
        let objects = self.reader.snapshot().len();
        let reached = self.reached.borrow().clone();
        let live = self.live.borrow();
        Status {
            resource: self.resource.to_string(),
            scope: self.scope.to_string(),
            state: live.informer_state(self.now()),
            objects,
            version: reached.version,
            has_synced: reached.has_synced,
            counters: self.meter.read(),
            recent_errors: live.recent_errors.iter().cloned().collect(),
            undecodable: live.stale.len() + live.unreadable,
            unreadable: live.unreadable,
            stale: live.stale_objects(),
            registrations,
        }
    }

    /// What a deadline says of this informer.
    pub(crate) fn missing(&self, handler: Option<&str>) -> Missing {
        let live = self.live.borrow();
        Missing {
            informer: self.name.clone(),
            handler: handler.map(str::to_owned),
            state: live.informer_state(self.now()).to_string(),
            last_error: live.last_error(),
        }
    }

    /// Ends the informer's part in all registrations; by the end of its task, or for want of one.
    fn finish(&self) {
        self.pipeline().finish();
        let cause = self.stopping.cause().unwrap_or(StopCause::Asked);
        self.live.send_modify(|live| live.stopped = Some(cause));
        self.reached.send_modify(|reached| reached.stopped = true);
    }

    /// One of its tasks is dropped before its end: nobody but a runtime that ends does that, unless
    /// the informer stops.
    pub(crate) fn runtime_ended(&self) {
        if self.stopping.cancel(StopCause::RuntimeEnded) {
            self.report(
                Phase::Runtime,
                format!("{} stops: {}", self.name, StopCause::RuntimeEnded),
            );
        }
    }

    /// Stops everything and waits for the tasks; callbacks that are still running after `deadline`
    /// are left behind. The callback that calls this, if one of the informer's own does, is not
    /// waited for.
    pub(crate) async fn stop(&self, deadline: Duration) {
        self.stopping.cancel(StopCause::Asked);
        let inside = self.finish_own_callback();
        self.tasks.close();
        if tokio::time::timeout(deadline, self.ended(inside)).await.is_err() {
            let left: Vec<_> = self.waited_for(inside).iter().map(ToString::to_string).collect();
            let left = left.join(", ");
            tracing::warn!(informer = %self.name, "callbacks still run after the deadline of {deadline:?} and are left behind: {left}");
            self.abandoning.cancel();
            self.ended(inside).await;
        }
        if !self.reached.borrow().stopped {
            // It was never started, so no task could say so.
            self.finish();
        }
    }

    /// If this is the thread of one of its callbacks, the present call is the last, and is not
    /// waited for by those who stop the informer inside a callback, itself the first of them. Says
    /// whether it is.
    fn finish_own_callback(&self) -> bool {
        let registrations = self.registrations();
        let own = registrations.iter().find(|it| it.runs_here());
        own.inspect(|own| own.finish()).is_some()
    }

    /// Waits until the tasks have ended, and the callbacks, unless they are abandoned.
    async fn ended(&self, inside: bool) {
        self.tasks.wait().await;
        let callbacks_returned = async {
            for callback in self.waited_for(inside) {
                callback.returned(inside).await;
            }
        };
        tokio::select! {
            () = callbacks_returned => {}
            () = self.abandoning.cancelled() => {}
        }
    }

    /// The callbacks that [`ended`](Self::ended) waits for.
    fn waited_for(&self, inside: bool) -> Vec<Arc<RegistrationInner>> {
        self.registrations().iter().filter(|it| it.is_waited_for(inside)).cloned().collect()
    }

    /// Whether it was stopped and nothing of it runs any more, but for callbacks that were left
    /// behind.
    pub(crate) fn has_ended(&self) -> bool {
        let callbacks_ended =
            || self.abandoning.is_cancelled() || self.waited_for(false).is_empty();
        self.is_stopping() && self.tasks.is_empty() && callbacks_ended()
    }
}

/// Waits, and says in the log after 5 s if nobody has started what is waited for (G22).
pub(crate) async fn warning_if_unstarted<O>(
    informer: &str,
    is_started: impl FnOnce() -> bool,
    wait: impl Future<Output = O>,
) -> O {
    let mut wait = std::pin::pin!(wait);
    tokio::select! {
        biased;
        done = &mut wait => done,
        () = tokio::time::sleep(WARN_UNSTARTED) => {
            if !is_started() {
                tracing::warn!(%informer, "waiting for an informer that nobody has started: call `start()`");
            }
            wait.await
        }
    }
}

impl Owner {
    pub(crate) fn new(stopping: Stopping, driver: BoxFuture<'static, ()>) -> Self {
        let pending = Pending { started: false, driver: Some(driver), callbacks: Vec::new() };
        Self { stopping, pending: Mutex::new(pending) }
    }

    /// Runs what waits for the start; later calls do nothing.
    pub(crate) fn start(self: &Arc<Self>, tasks: &TaskTracker, runtime: &Handle) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.started = true;
        let driver = pending.driver.take();
        let callbacks = std::mem::take(&mut pending.callbacks);
        drop(pending);
        if let Some(driver) = driver.filter(|_| !self.stopping.is_cancelled()) {
            tasks.spawn_on(driver, runtime);
        }
        for callback in callbacks {
            callback(self);
        }
    }

    /// Runs `callback` now if the informer was started, else when it is.
    pub(crate) fn when_started(self: &Arc<Self>, callback: StartCallback) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if !pending.started {
            pending.callbacks.push(callback);
            return;
        }
        drop(pending);
        callback(self);
    }

    pub(crate) fn is_started(&self) -> bool {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).started
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.stopping.cancel(StopCause::Asked);
    }
}

/// Finishes the informer when its task is dropped, whoever does that.
pub(crate) struct Finishing<T>(pub(crate) Arc<Shared<T>>);

impl<T> Drop for Finishing<T> {
    fn drop(&mut self) {
        self.0.runtime_ended();
        self.0.finish();
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}
