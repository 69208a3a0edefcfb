//! Calling a registration's handler.

use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use informer_core::Event;
use informer_core::fan_out::SharedQueue;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::{Registration, RegistrationInner};
use crate::callback_threads;
use crate::handler::EventHandler;
use crate::shared::{Owner, Shared};
use crate::status::count;

/// Events taken from the queue at a time.
const BATCH: usize = 64;

/// How long to wait for a thread when the system gives none.
const THREAD_RETRY: Duration = Duration::from_secs(1);

thread_local! {
    /// The registration whose callback runs on this thread.
    static RUNNING: RefCell<Option<Arc<RegistrationInner>>> = const { RefCell::new(None) };
}

/// Ends the registration when the last of those who may call its handler is gone.
struct Ending(Arc<RegistrationInner>);

/// A handler that is not being called. Its drop is the user's code as well and may block, so it is dropped where it is
/// called; also when the runtime drops the task.
struct Resting<T: Send + Sync + 'static> {
    handler: Option<Box<dyn EventHandler<T>>>,
    shared: Arc<Shared<T>>,
    ending: Arc<Ending>,
}

/// Counts the task that drives a registration among the informer's tasks, until it ends.
struct Tracked(Arc<RegistrationInner>);

impl<T: Send + Sync + 'static> Shared<T> {
    /// Starts the task that calls `handler`. `owner` keeps a standalone informer running (G24).
    pub(crate) fn drive(
        self: &Arc<Self>,
        registration: &Registration,
        queue: SharedQueue<T>,
        handler: Box<dyn EventHandler<T>>,
        owner: Option<Arc<Owner>>,
    ) {
        let (shared, inner) = (Arc::clone(self), registration.inner());
        inner.phase.send_modify(|phase| phase.running = true);
        *inner.tracked.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.tasks.token());
        let (ending, tracked) = (Arc::new(Ending(Arc::clone(inner))), Tracked(Arc::clone(inner)));
        let task = async move {
            let _tracked = tracked;
            drive(&shared, ending, queue, handler).await;
            drop(owner);
        };
        self.runtime.spawn(task);
    }
}

impl RegistrationInner {
    /// Whether its callback runs on this thread.
    pub(super) fn runs_here(&self) -> bool {
        RUNNING.with_borrow(|running| running.as_ref().is_some_and(|running| std::ptr::eq(&**running, self)))
    }
}

/// If a callback of the informer with these `tasks` runs on this thread, counts it as one of those that `finish`, so
/// that who waits for the tasks does not wait for itself. Says whether one does.
pub(crate) fn leave_running_callback(tasks: &TaskTracker, finishing: &TaskTracker) -> bool {
    RUNNING.with_borrow(|running| {
        let Some(inner) = running else { return false };
        let mut tracked = inner.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(token) = &*tracked else { return false };
        let is_of = |tracker| TaskTracker::ptr_eq(token.task_tracker(), tracker);
        if is_of(tasks) {
            *tracked = Some(finishing.token());
            return true;
        }
        is_of(finishing)
    })
}

/// Waits for events and calls the handler on a thread that may block, one hop for all that is waiting.
async fn drive<T: Send + Sync + 'static>(
    shared: &Arc<Shared<T>>,
    ending: Arc<Ending>,
    queue: SharedQueue<T>,
    handler: Box<dyn EventHandler<T>>,
) {
    let mut resting =
        Resting { handler: Some(handler), shared: Arc::clone(shared), ending: Arc::clone(&ending) };
    loop {
        let ready = poll_fn(|context| {
            ending.0.signal.poll(context, || {
                let queue = queue.lock();
                (queue.is_over() || !queue.is_empty()).then_some(())
            })
        });
        tokio::select! {
            () = ready => {}
            () = shared.stopping.cancelled() => break,
        }
        if queue.lock().is_over() {
            break;
        }
        let Some(mut handler) = resting.handler.take() else { return };
        let (sender, returned) = oneshot::channel();
        let (shared_there, ending_there, queue_there) =
            (Arc::clone(shared), Arc::clone(&ending), queue.clone());
        let calls = move || {
            let _runtime = shared_there.runtime.enter();
            call(&shared_there, &ending_there.0, &queue_there, &mut *handler);
            // Without the task, the handler is dropped here, before the registration ends.
            drop(sender.send(handler));
            drop(ending_there);
        };
        let hop = async {
            let mut calls: callback_threads::Job = Box::new(calls);
            while let Err((not_run, error)) = callback_threads::run(&shared.runtime, calls) {
                calls = not_run;
                shared.report("handler", format!("no thread can be started to call handlers: {error}"));
                tokio::time::sleep(THREAD_RETRY).await;
            }
            returned.await
        };
        resting.handler = tokio::select! {
            returned = hop => match returned {
                Ok(handler) => Some(handler),
                // The runtime is shutting down.
                Err(_) => return,
            },
            () = shared.abandoning.cancelled() => return,
        };
    }
    if let Some(dropped) = resting.drop_on_a_thread() {
        tokio::select! {
            _ = dropped => {}
            () = shared.abandoning.cancelled() => {}
        }
    }
}

impl<T: Send + Sync + 'static> Resting<T> {
    /// Ends when the handler is dropped.
    fn drop_on_a_thread(&mut self) -> Option<oneshot::Receiver<()>> {
        let handler = self.handler.take()?;
        let (sender, dropped) = oneshot::channel::<()>();
        let (shared, ending) = (Arc::clone(&self.shared), Arc::clone(&self.ending));
        let job = move || {
            let _runtime = shared.runtime.enter();
            let before = RUNNING.replace(Some(Arc::clone(&ending.0)));
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(handler))) {
                let message = informer_core::panic_message(&*panic);
                shared
                    .report("handler", format!("{} panicked when it was dropped: {message}", ending.0.name));
            }
            RUNNING.set(before);
            drop((ending, sender));
        };
        if let Err((job, _)) = callback_threads::run(&self.shared.runtime, Box::new(job)) {
            // There is no better place.
            job();
        }
        Some(dropped)
    }
}

impl<T: Send + Sync + 'static> Drop for Resting<T> {
    fn drop(&mut self) {
        drop(self.drop_on_a_thread());
    }
}

/// Calls the handler until the queue is empty.
fn call<T: Send + Sync + 'static>(
    shared: &Shared<T>,
    inner: &Arc<RegistrationInner>,
    queue: &SharedQueue<T>,
    handler: &mut dyn EventHandler<T>,
) {
    let before = RUNNING.replace(Some(Arc::clone(inner)));
    let mut batch: Vec<Event<T>> = Vec::with_capacity(BATCH);
    'calls: loop {
        queue.lock().pop_batch(BATCH, &mut batch);
        inner.publish_synced();
        if batch.is_empty() {
            break;
        }
        for event in batch.drain(..) {
            if inner.is_removed() || shared.is_stopping() {
                break 'calls;
            }
            call_one(shared, inner, handler, &event);
        }
    }
    RUNNING.set(before);
}

fn call_one<T: Send + Sync + 'static>(
    shared: &Shared<T>,
    inner: &RegistrationInner,
    handler: &mut dyn EventHandler<T>,
    event: &Event<T>,
) {
    // The handler's own state is its own business, as its documentation says.
    let outcome = catch_unwind(AssertUnwindSafe(|| handler.on_event(event)));
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

impl Drop for Tracked {
    fn drop(&mut self) {
        self.0.tracked.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
