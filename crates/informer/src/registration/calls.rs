//! Calling a registration's handler.

use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use informer_core::Event;
use informer_core::fan_out::SharedQueue;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::resting::Resting;
use super::{Registration, RegistrationInner};
use crate::callback_threads::{self, BUDGET, Missing};
use crate::handler::EventHandler;
use crate::shared::{Owner, Shared};
use crate::status::count;

/// Events taken from the queue at a time.
const BATCH: usize = 64;

/// How long to wait for a thread when the system gives none.
const THREAD_RETRY: Duration = Duration::from_secs(1);

/// What a handler took is halved each time that it is quicker, from no more than this.
const FORGOTTEN: Duration = Duration::from_millis(2);

thread_local! {
    /// The registration whose callback runs on this thread.
    static RUNNING: RefCell<Option<Arc<RegistrationInner>>> = const { RefCell::new(None) };
}

/// A handler, and whoever waits for its end. Only who has it may call it.
struct Held<T> {
    handler: Box<dyn EventHandler<T>>,
    /// How long the calls took, the last time that there were any.
    took: Duration,
    ending: Ending,
    /// Tells the registration's task.
    dropped: oneshot::Sender<()>,
}

/// Ends the registration when its handler is gone.
struct Ending(Arc<RegistrationInner>);

/// One registration's handler: woken by the queue, it goes to a thread that may block, and stays there until the queue is
/// empty, or others who share the thread have waited for long enough.
struct Lane<T: Send + Sync + 'static> {
    shared: Arc<Shared<T>>,
    inner: Arc<RegistrationInner>,
    queue: SharedQueue<T>,
    /// The handler, while nobody calls it.
    resting: Resting<Held<T>>,
    /// Whether the registration's task is gone.
    is_closed: AtomicBool,
    /// Wakes this lane, for as long as the registration's task keeps it.
    waker: Waker,
}

struct WakeLane<T: Send + Sync + 'static>(Weak<Lane<T>>);

/// What the registration's task has of its lane; also when the runtime drops the task.
struct Closing<T: Send + Sync + 'static> {
    lane: Arc<Lane<T>>,
    /// Whether the task came to its end.
    is_done: bool,
}

/// Counts the task that waits for a handler's end among the informer's tasks, until it ends.
struct Tracked(Arc<RegistrationInner>);

impl<T: Send + Sync + 'static> Shared<T> {
    /// Has `handler` called for what comes. `owner` keeps a standalone informer running (G24).
    pub(crate) fn drive(
        self: &Arc<Self>,
        registration: &Registration,
        queue: SharedQueue<T>,
        handler: Box<dyn EventHandler<T>>,
        owner: Option<Arc<Owner>>,
    ) {
        let inner = registration.inner();
        inner.phase.send_modify(|phase| phase.running = true);
        *inner.tracked.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.tasks.token());
        let (sender, dropped) = oneshot::channel();
        // It has yet to show that it is quick.
        let took = Duration::MAX;
        let held = Held { handler, took, ending: Ending(Arc::clone(inner)), dropped: sender };
        let (lane, tracked) = (Lane::new(self, inner, queue), Tracked(Arc::clone(inner)));
        if let Some(held) = lane.rest(held) {
            lane.hand_over(held);
        }
        // Made here, for a task that is never polled.
        let closing = Closing { lane, is_done: false };
        let task = async move {
            let _tracked = tracked;
            closing.ended(dropped).await;
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

impl<T: Send + Sync + 'static> Lane<T> {
    fn new(shared: &Arc<Shared<T>>, inner: &Arc<RegistrationInner>, queue: SharedQueue<T>) -> Arc<Self> {
        Arc::new_cyclic(|lane| Self {
            shared: Arc::clone(shared),
            inner: Arc::clone(inner),
            queue,
            resting: Resting::new(),
            is_closed: AtomicBool::new(false),
            waker: Waker::from(Arc::new(WakeLane(Weak::clone(lane)))),
        })
    }

    /// Whether nothing is called any more.
    fn is_over(&self) -> bool {
        self.inner.is_removed()
            || self.shared.is_stopping()
            || self.is_closed.load(Ordering::Acquire)
            || self.queue.lock().is_over()
    }

    /// Leaves the handler to the next wake-up; gives it back if there is something to do already.
    fn rest(&self, held: Held<T>) -> Option<Held<T>> {
        let is_work = || self.is_over() || !self.queue.lock().is_empty();
        self.resting.leave(held, &self.inner.signal, &self.waker, is_work)
    }

    /// Has the handler called, if nobody does.
    fn wake(self: &Arc<Self>) {
        if let Some(held) = self.resting.take() {
            self.hand_over(held);
        }
    }

    /// Gives the handler to a thread.
    fn hand_over(self: &Arc<Self>, held: Held<T>) {
        let (lane, took) = (Arc::clone(self), held.took);
        let _runtime = self.shared.runtime.enter();
        let job = Box::new(move || lane.work(held));
        if let Err((missing, error)) = callback_threads::run(&self.shared.runtime, job, took) {
            self.shared.runtime.spawn(try_again(Arc::clone(&self.shared), missing, error));
        }
    }

    /// Calls the handler until there is nothing to do; or has another thread do the rest, where others wait for this one.
    fn work(self: &Arc<Self>, mut held: Held<T>) {
        let _runtime = self.shared.runtime.enter();
        let before = RUNNING.replace(Some(Arc::clone(&self.inner)));
        let (began, shares_thread) = (Instant::now(), held.took <= BUDGET);
        loop {
            let is_done = self.call(&mut *held.handler, || shares_thread && began.elapsed() > BUDGET);
            // A single slow time is remembered for a while.
            held.took = began.elapsed().max(held.took.min(FORGOTTEN) / 2);
            if self.is_over() {
                self.drop_here(held);
                break;
            }
            if !is_done {
                self.hand_over(held);
                break;
            }
            let Some(back) = self.rest(held) else { break };
            held = back;
        }
        RUNNING.set(before);
    }

    /// Calls the handler until the queue is empty, or it `is_enough` after some events. Says whether the queue was empty.
    fn call(&self, handler: &mut dyn EventHandler<T>, is_enough: impl Fn() -> bool) -> bool {
        loop {
            let events = self.queue.lock().take(BATCH);
            self.inner.publish_synced();
            if events.is_empty() {
                return true;
            }
            for event in events.iter() {
                if self.inner.is_removed() || self.shared.is_stopping() {
                    return true;
                }
                call_one(&self.shared, &self.inner, handler, event);
            }
            if is_enough() {
                return false;
            }
        }
    }

    /// Its drop is the user's code as well and may block or panic.
    fn drop_here(&self, held: Held<T>) {
        let Held { handler, took: _, ending, dropped } = held;
        if catch_unwind(AssertUnwindSafe(|| drop(handler))).is_err() {
            let RegistrationInner { name, added_at, .. } = &*self.inner;
            self.shared
                .report("handler", format!("{name} panicked when it was dropped (added at {added_at})"));
        }
        // The registration has ended before its task says so.
        drop(ending);
        drop(dropped);
    }
}

impl<T: Send + Sync + 'static> Closing<T> {
    /// Ends when the handler is dropped; or left behind, if it does not return from a call.
    async fn ended(mut self, mut dropped: oneshot::Receiver<()>) {
        let shared = &self.lane.shared;
        let is_dropped = tokio::select! {
            _ = &mut dropped => true,
            () = shared.stopping.cancelled() => false,
        };
        if !is_dropped {
            self.lane.wake();
            tokio::select! {
                _ = dropped => {}
                () = shared.abandoning.cancelled() => {}
            }
        }
        self.is_done = true;
    }
}

impl<T: Send + Sync + 'static> Drop for Closing<T> {
    fn drop(&mut self) {
        if !self.is_done {
            self.lane.shared.runtime_ended();
        }
        self.lane.is_closed.store(true, Ordering::Release);
        self.lane.wake();
    }
}

impl<T: Send + Sync + 'static> Wake for WakeLane<T> {
    fn wake(self: Arc<Self>) {
        if let Some(lane) = self.0.upgrade() {
            lane.wake();
        }
    }
}

/// Waits for the system to give a thread.
async fn try_again<T>(shared: Arc<Shared<T>>, missing: Missing, error: io::Error) {
    let (mut missing, mut error) = (missing, error);
    loop {
        shared.report("handler", format!("no thread can be started to call handlers: {error}"));
        let is_stopping = tokio::select! {
            () = tokio::time::sleep(THREAD_RETRY) => false,
            () = shared.stopping.cancelled(), if matches!(missing, Missing::Job(_)) => true,
        };
        match callback_threads::try_again(missing) {
            Ok(()) => return,
            // What is left is the handler's drop, and there is no better place.
            Err((Missing::Job(job), _)) if is_stopping => return job(),
            Err(again) => (missing, error) = again,
        }
    }
}

fn call_one<T: Send + Sync + 'static>(
    shared: &Shared<T>,
    inner: &RegistrationInner,
    handler: &mut dyn EventHandler<T>,
    event: &Event<T>,
) {
    inner.call.begin(shared.now());
    // The handler's own state is its own business, as its documentation says.
    let outcome = catch_unwind(AssertUnwindSafe(|| handler.on_event(event)));
    inner.call.end();
    if outcome.is_err() {
        inner.panics.fetch_add(1, Ordering::Relaxed);
        count(&shared.meter.handler_panics, 1);
        // Not the text of the panic, which may quote the object (G34).
        let RegistrationInner { name, added_at, .. } = inner;
        shared.report("handler", format!("{name} panicked on {} (added at {added_at})", event.key()));
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
