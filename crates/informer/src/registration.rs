//! Registrations: one handler or stream of events attached to an informer.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use informer_core::Event;
use informer_core::fan_out::{RegistrationId, SharedQueue};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::error::{Missing, NotSynced};
use crate::handler::{EventHandler, HandlerOptions};
use crate::shared::{Owner, Shared};
use crate::status::{InformerState, RegistrationStatus, count};

/// Events kept apart for one registration unless it says otherwise.
const DEFAULT_CAPACITY: usize = 1024;

/// Events taken from the queue at a time.
const BATCH: usize = 64;

thread_local! {
    /// The registration whose callback runs on this thread.
    static RUNNING: Cell<*const RegistrationInner> = const { Cell::new(std::ptr::null()) };
}

/// A handle to one registration. Cloning is cheap; dropping it detaches the registration, which lives on.
#[derive(Clone)]
pub struct Registration {
    inner: Arc<RegistrationInner>,
}

/// What [`Registration::remove`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// No callback runs, and none will.
    Removed,
    /// Called from inside the registration's own callback: the current call is the last.
    Finishing,
}

pub(crate) struct RegistrationInner {
    name: String,
    informer: String,
    /// Wakes whoever takes events from the queue.
    pub(crate) waker: AtomicWaker,
    phase: watch::Sender<Phase>,
    removed: AtomicBool,
    panics: AtomicU64,
    /// Depth and merges of the queue, and whether it has synced.
    queue: Box<dyn Fn() -> (usize, u64, bool) + Send + Sync>,
    unregister: Box<dyn Fn() + Send + Sync>,
    is_callback: bool,
    /// What a deadline says of it.
    missing: Box<dyn Fn() -> Missing + Send + Sync>,
    /// The informer stops.
    stopping: CancellationToken,
}

/// Ends the registration when the last of those who may call its handler is gone.
struct Ending(Arc<RegistrationInner>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Phase {
    synced: bool,
    /// A task calls the handler.
    running: bool,
    /// Nothing will be called or yielded any more.
    ended: bool,
}

impl Registration {
    /// Waits until the handler has returned from every object of its initial set (G19).
    ///
    /// # Errors
    /// If the registration is removed, or the informer stops, before that.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn synced(&self) -> Result<(), Error> {
        let mut phase = self.inner.phase.subscribe();
        let has_synced = tokio::select! {
            biased;
            reached = phase.wait_for(|phase| phase.synced || phase.ended) => {
                reached.is_ok_and(|phase| phase.synced)
            }
            () = self.inner.stopping.cancelled() => self.has_synced(),
        };
        if has_synced {
            return Ok(());
        }
        if self.inner.is_removed() {
            return Err(Error::Removed);
        }
        Err(Error::Stopped { informer: self.inner.informer.clone() })
    }

    /// [`synced`](Self::synced), for no longer than `deadline`.
    ///
    /// # Errors
    /// As `synced`, and [`Error::NotSynced`], which names the handler, the informer's state and its last error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn synced_within(&self, deadline: Duration) -> Result<(), Error> {
        tokio::time::timeout(deadline, self.synced())
            .await
            .unwrap_or_else(|_| Err(Error::NotSynced(NotSynced { missing: vec![(self.inner.missing)()] })))
    }

    /// Whether the handler has returned from every object of its initial set.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.inner.phase.borrow().synced
    }

    /// Removes the registration. When this returns [`Removal::Removed`], no callback runs or will run (G18).
    /// Events that were waiting are dropped. Removing again does nothing.
    ///
    /// # Cancel safety
    /// The registration is removed at the first poll; dropping the future only ends the wait for a callback
    /// that is running.
    pub async fn remove(&self) -> Removal {
        self.inner.remove();
        if RUNNING.get() == Arc::as_ptr(&self.inner) {
            return Removal::Finishing;
        }
        let mut phase = self.inner.phase.subscribe();
        // An error would mean that the sender is gone, and with it everything that could call.
        _ = phase.wait_for(|phase| phase.ended || !phase.running).await;
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

    pub(crate) fn is_callback(&self) -> bool {
        self.is_callback
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn status(&self) -> RegistrationStatus {
        let (depth, merged, has_synced) = (self.queue)();
        RegistrationStatus {
            name: self.name.clone(),
            depth,
            merged,
            panics: self.panics.load(Ordering::Relaxed),
            has_synced,
        }
    }

    /// Tells those who wait that the initial set was handled, once it was.
    pub(crate) fn publish_synced(&self) {
        if !self.phase.borrow().synced && (self.queue)().2 {
            self.phase.send_modify(|phase| phase.synced = true);
        }
    }

    pub(crate) fn end(&self) {
        self.phase.send_modify(|phase| phase.ended = true);
    }
}

impl<T: Send + Sync + 'static> Shared<T> {
    /// Adds a registration to the pipeline; whoever takes from the queue drives it.
    pub(crate) fn register(
        self: &Arc<Self>,
        options: &HandlerOptions,
        default_resync: Option<Duration>,
        is_callback: bool,
    ) -> Result<(Registration, SharedQueue<T>), Error> {
        if self.is_stopping() {
            return Err(self.stopped());
        }
        let wake_target: Arc<std::sync::OnceLock<Weak<RegistrationInner>>> = Arc::default();
        let target = Arc::clone(&wake_target);
        let wake = move || {
            if let Some(inner) = target.get().and_then(Weak::upgrade) {
                inner.publish_synced();
                inner.waker.wake();
            }
        };
        let capacity = options.capacity.unwrap_or(DEFAULT_CAPACITY);
        let resync = options.resync.or(default_resync);
        let (id, queue) = self.pipeline().register(self.now(), capacity, resync, wake);
        let inner = Arc::new(self.registration_inner(id, &queue, options, is_callback));
        if resync.is_some() {
            self.rescheduled.notify_one();
        }
        // Whatever came before this line is in the queue, where the first look finds it.
        _ = wake_target.set(Arc::downgrade(&inner));
        inner.publish_synced();
        self.registrations().push(Arc::clone(&inner));
        Ok((Registration { inner }, queue))
    }

    fn registration_inner(
        self: &Arc<Self>,
        id: RegistrationId,
        queue: &SharedQueue<T>,
        options: &HandlerOptions,
        is_callback: bool,
    ) -> RegistrationInner {
        let (looked_at, shared) = (queue.clone(), Arc::downgrade(self));
        let number = self.registered.fetch_add(1, Ordering::Relaxed) + 1;
        let kind = if is_callback { "handler" } else { "stream" };
        let name = options.name.clone().unwrap_or_else(|| format!("{kind} {number}"));
        let (waited_for, informer, handler) = (Arc::downgrade(self), self.name.clone(), name.clone());
        RegistrationInner {
            name,
            informer: self.name.clone(),
            missing: Box::new(move || match waited_for.upgrade() {
                Some(shared) => shared.missing(Some(&handler)),
                None => Missing {
                    informer: informer.clone(),
                    handler: Some(handler.clone()),
                    state: InformerState::Stopped.to_string(),
                    last_error: None,
                },
            }),
            waker: AtomicWaker::new(),
            phase: watch::Sender::new(Phase::default()),
            removed: AtomicBool::new(false),
            panics: AtomicU64::new(0),
            queue: Box::new(move || {
                let queue = looked_at.lock();
                (queue.depth(), queue.merged(), queue.has_synced())
            }),
            unregister: Box::new(move || {
                let Some(shared) = shared.upgrade() else { return };
                shared.pipeline().unregister(id);
                shared.registrations().retain(|registration| !registration.is_removed());
            }),
            is_callback,
            stopping: self.stopping.clone(),
        }
    }

    /// Starts the task that calls `handler`. `owner` keeps a standalone informer running (G24).
    pub(crate) fn drive(
        self: &Arc<Self>,
        registration: &Registration,
        queue: SharedQueue<T>,
        handler: Box<dyn EventHandler<T>>,
        owner: Option<Arc<Owner>>,
    ) {
        let shared = Arc::clone(self);
        registration.inner.phase.send_modify(|phase| phase.running = true);
        let ending = Arc::new(Ending(Arc::clone(&registration.inner)));
        let task = async move {
            drive(&shared, ending, queue, handler).await;
            drop(owner);
        };
        self.tasks.spawn_on(task, &self.runtime);
    }
}

/// Waits for events and calls the handler on a thread that may block, one hop for all that is waiting.
async fn drive<T: Send + Sync + 'static>(
    shared: &Arc<Shared<T>>,
    ending: Arc<Ending>,
    queue: SharedQueue<T>,
    mut handler: Box<dyn EventHandler<T>>,
) {
    let inner = &ending.0;
    loop {
        let ready = poll_fn(|context| {
            inner.waker.register(context.waker());
            let queue = queue.lock();
            if queue.is_over() || !queue.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        });
        tokio::select! {
            () = ready => {}
            () = shared.stopping.cancelled() => return,
        }
        if queue.lock().is_over() {
            return;
        }
        let (shared_there, ending_there, queue_there) =
            (Arc::clone(shared), Arc::clone(&ending), queue.clone());
        let calls = shared.runtime.spawn_blocking(move || {
            call(&shared_there, &ending_there.0, &queue_there, &mut *handler);
            handler
        });
        handler = tokio::select! {
            returned = calls => match returned {
                Ok(handler) => handler,
                // The runtime is shutting down.
                Err(_) => return,
            },
            () = shared.abandoning.cancelled() => return,
        };
    }
}

/// Calls the handler until the queue is empty.
fn call<T: Send + Sync + 'static>(
    shared: &Shared<T>,
    inner: &RegistrationInner,
    queue: &SharedQueue<T>,
    handler: &mut dyn EventHandler<T>,
) {
    let mut batch: Vec<Event<T>> = Vec::with_capacity(BATCH);
    loop {
        queue.lock().pop_batch(BATCH, &mut batch);
        inner.publish_synced();
        if batch.is_empty() {
            return;
        }
        for event in batch.drain(..) {
            if inner.is_removed() || shared.is_stopping() {
                return;
            }
            call_one(shared, inner, handler, &event);
        }
    }
}

fn call_one<T: Send + Sync + 'static>(
    shared: &Shared<T>,
    inner: &RegistrationInner,
    handler: &mut dyn EventHandler<T>,
    event: &Event<T>,
) {
    let before = RUNNING.replace(inner);
    // The handler's own state is its own business, as its documentation says.
    let outcome = catch_unwind(AssertUnwindSafe(|| handler.on_event(event)));
    RUNNING.set(before);
    if let Err(panic) = outcome {
        inner.panics.fetch_add(1, Ordering::Relaxed);
        count(&shared.meter.handler_panics, 1);
        let message = informer_core::panic_message(&*panic);
        shared.report("handler", format!("{} panicked on {}: {message}", inner.name, event.key()));
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.status()).finish()
    }
}
