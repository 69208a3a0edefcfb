//! The thread that calls a registration's handler.
//!
//! ```text
//! fan-out ──push──► queue ──take──► thread ──► handler
//!    └──────────────wake───────────────┘
//! ```
//!
//! Each registration has a thread of its own. The fan-out wakes it after each change of its queue:
//! the first wake-up with work starts the thread, later ones unpark it. The thread takes events
//! until the queue is empty, and parks.
//!
//! A callback may block for ever. So it runs neither on the runtime's workers nor on its blocking
//! threads: those are 512 for everybody, and a runtime that is dropped waits for them. Neither does
//! the process wait for these threads.

use std::cell::OnceCell;
use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, Thread};
use std::time::Duration;

use informer_core::Event;
use informer_core::fan_out::{RegistrationQueue, Taken, Unshared};
use informer_core::ingest::Phase;

use super::{Reader, Registration, RegistrationInner, Stage};
use crate::handler::EventHandler;
use crate::shared::{Owner, Shared};
use crate::status::count;

/// Events taken from the queue at a time.
const BATCH: usize = 64;

/// Delay before another try when the system gives no thread.
const THREAD_RETRY: Duration = Duration::from_secs(1);

thread_local! {
    /// The registration that this thread belongs to.
    static OWN: OnceCell<Arc<RegistrationInner>> = const { OnceCell::new() };
}

/// Starts a thread of this name. Tests replace it by one that fails.
type Start = fn(String, Box<dyn FnOnce() + Send>) -> io::Result<Thread>;

/// A handler, and what its thread needs to call it.
struct Callback<T> {
    handler: Box<dyn EventHandler<T>>,
    queue: RegistrationQueue<T>,
    shared: Arc<Shared<T>>,
    inner: Arc<RegistrationInner>,
    _ending: Ending,
    /// Keeps a standalone informer running (G24).
    _owner: Option<Arc<Owner>>,
}

/// Ends the registration when its handler is gone, whatever dropped it.
struct Ending(Arc<RegistrationInner>);

/// The thread of one registration.
struct CallbackThread<T> {
    state: Mutex<State<T>>,
    start: Start,
}

enum State<T> {
    /// There has been no work yet.
    NotStarted(Callback<T>),
    /// The system gave no thread; [`try_again`] has the callback.
    Retrying,
    /// Never taken back: unparking a thread that has ended does nothing.
    Started(Thread),
}

impl<T: Send + Sync + 'static> Shared<T> {
    /// Has `handler` called from now on. `owner` keeps a standalone informer running (G24).
    pub(crate) fn drive(
        self: &Arc<Self>,
        registration: &Registration,
        queue: RegistrationQueue<T>,
        handler: Box<dyn EventHandler<T>>,
        owner: Option<Arc<Owner>>,
    ) {
        let inner = Arc::clone(registration.inner());
        let ending = Ending(Arc::clone(&inner));
        let shared = Arc::clone(self);
        drive(
            Callback { handler, queue, shared, inner, _ending: ending, _owner: owner },
            start_thread,
        );
    }
}

fn drive<T: Send + Sync + 'static>(callback: Callback<T>, start: Start) {
    let inner = Arc::clone(&callback.inner);
    inner.enter(Stage::Running);
    let thread = Arc::new(CallbackThread { state: Mutex::new(State::NotStarted(callback)), start });
    if let Reader::Callback(wake) = &inner.reader {
        _ = wake.set(Box::new(move || thread.wake()));
    }
    // For what came before this line.
    inner.wake();
}

impl RegistrationInner {
    /// Whether this is the thread of its callback.
    pub(crate) fn runs_here(&self) -> bool {
        OWN.with(|own| own.get().is_some_and(|own| std::ptr::eq(&**own, self)))
    }
}

impl<T: Send + Sync + 'static> CallbackThread<T> {
    /// Called after each change of the queue.
    fn wake(self: &Arc<Self>) {
        let mut state = self.state();
        match mem::replace(&mut *state, State::Retrying) {
            State::NotStarted(callback) if callback.has_work() => match self.start(callback) {
                Ok(thread) => *state = State::Started(thread),
                Err((callback, error)) => {
                    // A runtime that has ended drops the future at once, and the handler with it.
                    drop(state);
                    let runtime = callback.shared.runtime.clone();
                    runtime.spawn(try_again(Arc::clone(self), callback, error));
                }
            },
            State::Started(thread) => {
                thread.unpark();
                *state = State::Started(thread);
            }
            unchanged => *state = unchanged,
        }
    }

    /// Gives `callback` to a new thread; gives it back if none can be started.
    fn start(&self, callback: Callback<T>) -> Result<Thread, (Callback<T>, io::Error)> {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let name = format!("informer-callback-{}", STARTED.fetch_add(1, Ordering::Relaxed) + 1);
        // A body that captured the callback would drop it when no thread can be started.
        let (give, take) = mpsc::channel::<Callback<T>>();
        let body = move || {
            if let Ok(callback) = take.recv() {
                callback.run();
            }
        };
        match (self.start)(name, Box::new(body)) {
            Ok(thread) => {
                _ = give.send(callback);
                Ok(thread)
            }
            Err(error) => Err((callback, error)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // No user code runs under the lock: what drops the handler has released it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start_thread(name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<Thread> {
    thread::Builder::new().name(name).spawn(body).map(|handle| handle.thread().clone())
}

/// Waits for the system to give a thread.
async fn try_again<T: Send + Sync + 'static>(
    thread: Arc<CallbackThread<T>>,
    mut callback: Callback<T>,
    mut error: io::Error,
) {
    let shared = Arc::clone(&callback.shared);
    loop {
        shared
            .report(Phase::Handler, format!("no thread can be started to call handlers: {error}"));
        let is_stopping = tokio::select! {
            () = tokio::time::sleep(THREAD_RETRY) => false,
            () = shared.stopping.cancelled() => true,
        };
        let mut state = thread.state();
        match thread.start(callback) {
            Ok(started) => {
                *state = State::Started(started);
                return;
            }
            Err(again) => (callback, error) = again,
        }
        drop(state);
        if is_stopping {
            // What is left is the handler's drop, and there is no better place.
            return callback.end();
        }
    }
}

impl<T: Send + Sync + 'static> Callback<T> {
    /// The body of the thread.
    fn run(mut self) {
        let runtime = self.shared.runtime.clone();
        let _entered = runtime.enter();
        OWN.with(|own| _ = own.set(Arc::clone(&self.inner)));
        while !self.is_cut_short() {
            let events = self.queue.lock().take(BATCH);
            self.inner.publish_synced();
            if events.is_empty() {
                if self.queue.lock().is_over() {
                    break;
                }
                // Returns at once if there was a wake-up since the last time.
                thread::park();
                continue;
            }
            for event in events.iter() {
                if self.is_cut_short() {
                    break;
                }
                self.call(event);
            }
            self.release(events);
        }
        self.end();
    }

    fn call(&mut self, event: &Event<T>) {
        self.inner.call.begin(self.shared.now());
        let panicked = panics(|| self.handler.on_event(event));
        self.inner.call.end();
        if panicked {
            self.panicked(&format!("on {}", event.key()));
        }
    }

    /// Drops events, and objects of which these were the last references: one at a time, for a
    /// second panic while the first unwinds would end the process.
    fn release(&self, events: Taken<T>) {
        let Unshared { events, snapshot } = events.into_unshared();
        for event in events {
            let (key, objects) = match event {
                Event::Added { key, object, .. } => (key, [Some(object), None]),
                Event::Updated { key, old, new, .. } => (key, [Some(old), Some(new)]),
                Event::Deleted(gone) => (gone.key, [Some(gone.old), Some(gone.last)]),
            };
            for object in objects {
                if panics(|| drop(object)) {
                    self.panicked(&format!("when it dropped {key}"));
                }
            }
        }
        if panics(|| drop(snapshot)) {
            self.panicked("when it dropped a snapshot");
        }
    }

    /// Drops the handler, then all else.
    fn end(self) {
        let Self { handler, ref inner, ref shared, .. } = self;
        if panics(|| drop(handler)) {
            report_panic(shared, inner, "when it was dropped");
        }
    }

    fn panicked(&self, when: &str) {
        report_panic(&self.shared, &self.inner, when);
    }

    /// Whether there is something to do for a thread: to call the handler, or to drop it.
    fn has_work(&self) -> bool {
        let queue = self.queue.lock();
        !queue.is_empty() || queue.is_over() || self.is_cut_short()
    }

    /// Whether nothing is called any more, whatever is left in the queue.
    fn is_cut_short(&self) -> bool {
        self.inner.is_removed() || self.shared.is_stopping()
    }
}

/// Counts a panic, and reports it without its text, which may quote the object (G34).
fn report_panic<T>(shared: &Shared<T>, inner: &RegistrationInner, when: &str) {
    inner.panics.fetch_add(1, Ordering::Relaxed);
    count(&shared.meter.handler_panics, 1);
    let RegistrationInner { name, added_at, .. } = inner;
    shared.report(Phase::Handler, format!("{name} panicked {when} (added at {added_at})"));
}

/// Whether `call` panics.
fn panics(call: impl FnOnce()) -> bool {
    let Err(payload) = catch_unwind(AssertUnwindSafe(call)) else { return false };
    // What it panicked with is the user's as well; a second such value is leaked.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
    true
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.enter(Stage::Ended);
    }
}

#[cfg(test)]
mod tests;
