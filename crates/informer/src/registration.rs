//! Registrations: one handler or stream of events attached to an informer.

mod callback;
mod present_call;

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use informer_core::fan_out::{RegistrationId, RegistrationQueue, resync_period};
use tokio::sync::watch;
use tokio::time::Instant;

use present_call::PresentCall;

use crate::Error;
use crate::error::{Missing, NotSynced};
use crate::handler::HandlerOptions;
use crate::shared::{Shared, warning_if_unstarted};
use crate::status::{InformerState, RegistrationStatus, StopCause, wall_clock};
use crate::stopping::Stopping;

/// Events kept apart for one registration unless it says otherwise.
const DEFAULT_CAPACITY: usize = 1024;

/// A handle to one registration. Cloning is cheap; dropping it detaches the registration, which
/// lives on.
#[derive(Clone)]
pub struct Registration {
    inner: Arc<RegistrationInner>,
}

/// What [`Registration::remove`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// No callback runs, and none will.
    Removed,
    /// Called from inside the registration's own callback: the current call is the last.
    Finishing,
}

pub(crate) struct RegistrationInner {
    name: String,
    /// Where it was added.
    added_at: &'static Location<'static>,
    informer: String,
    reader: Reader,
    progress: watch::Sender<Progress>,
    removed: AtomicBool,
    panics: AtomicU64,
    call: PresentCall,
    /// When the informer's own time began.
    epoch: Instant,
    /// The period of its resyncs, if it has any.
    resync: Option<Duration>,
    /// What was not handled yet, merges of the queue, and whether it has synced.
    queue: Box<dyn Fn() -> (usize, u64, bool) + Send + Sync>,
    unregister: Box<dyn Fn() + Send + Sync>,
    /// What a deadline says of it.
    missing: Box<dyn Fn() -> Missing + Send + Sync>,
    /// Whether somebody has started the informer.
    is_started: Box<dyn Fn() -> bool + Send + Sync>,
    /// The informer stops.
    stopping: Stopping,
}

/// What takes events from the queue.
pub(crate) enum Reader {
    /// A stream: the task that polled it last.
    Stream(Arc<AtomicWaker>),
    /// A callback: wakes its thread, once the informer was started.
    Callback(OnceLock<Box<dyn Fn() + Send + Sync>>),
}

#[derive(Debug, Clone, Copy)]
struct Progress {
    synced: bool,
    stage: Stage,
}

/// How far a registration has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A stream, or a callback of an informer that was not started.
    Idle,
    /// A callback that may be called.
    Running,
    /// A callback that waits for the informer's end in its present call, which is the last.
    Finishing,
    /// Nothing will be called or yielded any more.
    Ended,
}

impl Stage {
    /// Whether those who stop the informer wait for the callback: from `inside` another, not for
    /// one that waits itself.
    fn is_waited_for(self, inside: bool) -> bool {
        match self {
            Self::Idle | Self::Ended => false,
            Self::Running => true,
            Self::Finishing => !inside,
        }
    }
}

impl Registration {
    /// Waits until the handler has returned from every object of its initial set (G19). Waiting
    /// before anyone has started the informer waits for that too, and says so in the log after 5 s
    /// (G22).
    ///
    /// # Errors
    /// If the registration is removed, or the informer stops, before that.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn synced(&self) -> Result<(), Error> {
        let mut progress = self.inner.progress.subscribe();
        let has_synced = async {
            tokio::select! {
                biased;
                reached = progress.wait_for(|progress| progress.synced || progress.stage == Stage::Ended) => {
                    reached.is_ok_and(|progress| progress.synced)
                }
                () = self.inner.stopping.cancelled() => self.has_synced(),
            }
        };
        if warning_if_unstarted(&self.inner.informer, || (self.inner.is_started)(), has_synced)
            .await
        {
            return Ok(());
        }
        if self.inner.is_removed() {
            return Err(Error::Removed);
        }
        let cause = self.inner.stopping.cause().unwrap_or(StopCause::Asked);
        Err(Error::Stopped { informer: self.inner.informer.clone(), cause })
    }

    /// [`synced`](Self::synced), for no longer than `deadline`.
    ///
    /// # Errors
    /// As `synced`, and [`Error::NotSynced`], which names the handler, the informer's state and its
    /// last error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn synced_within(&self, deadline: Duration) -> Result<(), Error> {
        tokio::time::timeout(deadline, self.synced()).await.unwrap_or_else(|_| {
            Err(Error::NotSynced(NotSynced { missing: vec![(self.inner.missing)()] }))
        })
    }

    /// Whether the handler has returned from every object of its initial set.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.inner.progress.borrow().synced
    }

    /// Removes the registration. When this returns [`Removal::Removed`], no callback runs or will
    /// run (G18). Events that were waiting are dropped. Removing again does nothing.
    ///
    /// # Cancel safety
    /// The registration is removed at the first poll; dropping the future only ends the wait for a
    /// callback that is running.
    pub async fn remove(&self) -> Removal {
        self.inner.remove();
        if self.inner.runs_here() {
            return Removal::Finishing;
        }
        self.inner.returned(false).await;
        Removal::Removed
    }

    /// Its name, queue and panics.
    #[must_use]
    pub fn status(&self) -> RegistrationStatus {
        self.inner.status()
    }

    pub(crate) fn inner(&self) -> &Arc<RegistrationInner> {
        &self.inner
    }
}

impl From<Arc<RegistrationInner>> for Registration {
    fn from(inner: Arc<RegistrationInner>) -> Self {
        Self { inner }
    }
}

impl RegistrationInner {
    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    /// Takes the registration out of the informer and ends its queue.
    pub(crate) fn remove(&self) {
        if !self.removed.swap(true, Ordering::AcqRel) {
            (self.unregister)();
        }
    }

    /// Whether there is a callback that has not ended.
    fn is_running(&self) -> bool {
        self.is_waited_for(false)
    }

    /// Whether those who stop the informer, `inside` a callback of it or not, wait for this
    /// callback.
    pub(crate) fn is_waited_for(&self, inside: bool) -> bool {
        self.progress.borrow().stage.is_waited_for(inside)
    }

    /// Waits until that is no longer so.
    pub(crate) async fn returned(&self, inside: bool) {
        let mut progress = self.progress.subscribe();
        // An error would mean that the sender is gone, and with it everything that could call.
        _ = progress.wait_for(|progress| !progress.stage.is_waited_for(inside)).await;
    }

    /// The callback's present call waits for the informer's end.
    pub(crate) fn finish(&self) {
        self.enter(Stage::Finishing);
    }

    pub(crate) fn is_callback(&self) -> bool {
        matches!(self.reader, Reader::Callback(_))
    }

    /// Called after each change of the queue.
    fn wake(&self) {
        match &self.reader {
            Reader::Stream(task) => task.wake(),
            Reader::Callback(wake) => {
                if let Some(wake) = wake.get() {
                    wake();
                }
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn status(&self) -> RegistrationStatus {
        let (depth, merged, has_synced) = (self.queue)();
        RegistrationStatus {
            name: self.name.clone(),
            added_at: self.added_at,
            running_since: self.call.since().map(|since| wall_clock(since, self.epoch.elapsed())),
            depth,
            merged,
            resync: self.resync,
            panics: self.panics.load(Ordering::Relaxed),
            has_synced,
        }
    }

    /// Tells those who wait that the initial set was handled, once it was.
    pub(crate) fn publish_synced(&self) {
        if !self.progress.borrow().synced && (self.queue)().2 {
            self.progress.send_modify(|progress| progress.synced = true);
        }
    }

    /// The stream is gone.
    pub(crate) fn end(&self) {
        self.enter(Stage::Ended);
    }

    fn enter(&self, stage: Stage) {
        self.progress.send_modify(|progress| progress.stage = stage);
    }
}

impl<T: Send + Sync + 'static> Shared<T> {
    /// Adds a registration to the pipeline; whoever takes from the queue drives it.
    #[track_caller]
    pub(crate) fn register(
        self: &Arc<Self>,
        options: &HandlerOptions,
        default_resync: Option<Duration>,
        reader: Reader,
    ) -> Result<(Registration, RegistrationQueue<T>), Error> {
        if self.is_stopping() {
            return Err(self.stopped());
        }
        let wake_target: Arc<OnceLock<Weak<RegistrationInner>>> = Arc::default();
        let target = Arc::clone(&wake_target);
        let wake = move || {
            if let Some(inner) = target.get().and_then(Weak::upgrade) {
                inner.publish_synced();
                inner.wake();
            }
        };
        let capacity = options.capacity.unwrap_or(DEFAULT_CAPACITY);
        let resync = options.resync.or(default_resync).and_then(resync_period);
        let (id, queue) = self.pipeline().register(self.now(), capacity, resync, wake);
        let inner = Arc::new(self.registration_inner(id, &queue, options, resync, reader));
        if resync.is_some() {
            self.rescheduled.notify_one();
        }
        // Whatever came before this line is in the queue, where the first look finds it.
        _ = wake_target.set(Arc::downgrade(&inner));
        inner.publish_synced();
        self.registrations().push(Arc::clone(&inner));
        Ok((Registration { inner }, queue))
    }

    #[track_caller]
    fn registration_inner(
        self: &Arc<Self>,
        id: RegistrationId,
        queue: &RegistrationQueue<T>,
        options: &HandlerOptions,
        resync: Option<Duration>,
        reader: Reader,
    ) -> RegistrationInner {
        let (looked_at, shared) = (queue.clone(), Arc::downgrade(self));
        let number = self.registered.fetch_add(1, Ordering::Relaxed) + 1;
        let kind = match reader {
            Reader::Callback(_) => "handler",
            Reader::Stream(_) => "stream",
        };
        let name = options.name.clone().unwrap_or_else(|| format!("{kind} {number}"));
        let (waited_for, informer, handler) =
            (Arc::downgrade(self), self.name.clone(), name.clone());
        let stopping = self.stopping.clone();
        let started = Arc::downgrade(self);
        RegistrationInner {
            name,
            added_at: Location::caller(),
            informer: self.name.clone(),
            missing: Box::new(move || match waited_for.upgrade() {
                Some(shared) => shared.missing(Some(&handler)),
                None => Missing {
                    informer: informer.clone(),
                    handler: Some(handler.clone()),
                    state: InformerState::Stopped {
                        cause: stopping.cause().unwrap_or(StopCause::Asked),
                    }
                    .to_string(),
                    last_error: None,
                },
            }),
            reader,
            is_started: Box::new(move || {
                started.upgrade().is_none_or(|shared| shared.live.borrow().is_started())
            }),
            progress: watch::Sender::new(Progress { synced: false, stage: Stage::Idle }),
            removed: AtomicBool::new(false),
            panics: AtomicU64::new(0),
            call: PresentCall::default(),
            epoch: self.epoch,
            resync,
            queue: Box::new(move || {
                let queue = looked_at.lock();
                (queue.depth() + queue.in_hand(), queue.merged(), queue.has_synced())
            }),
            unregister: Box::new(move || {
                let Some(shared) = shared.upgrade() else { return };
                shared.pipeline().unregister(id);
                // One whose callback still runs is named if it does not return.
                let is_left = |it: &Arc<RegistrationInner>| !it.is_removed() || it.is_running();
                shared.registrations().retain(is_left);
            }),
            stopping: self.stopping.clone(),
        }
    }
}

/// As logs name it: `printer (added at src/main.rs:12:10)`.
impl fmt::Display for RegistrationInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (added at {})", self.name, self.added_at)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.status()).finish()
    }
}
