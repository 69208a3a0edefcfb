//! Handing jobs to threads. Model-checked by `tests/model.rs`, which has primitives of its own under `sync`.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::shared_work::{Era, Needed, SharedWork, Watch};
use super::sync::{Condvar, Mutex, MutexGuard, sleep};

/// What a thread does at one go: the calls for everything that waits for one handler.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Starts a thread of this name; if it cannot, the body is dropped.
pub(crate) type Start = fn(String, Job) -> io::Result<()>;

/// How long jobs wait behind one that blocks, though it was quick so far; up to twice that.
const TICK: Duration = Duration::from_millis(1);

/// Threads, as many as there are jobs at a time that do not share one.
pub(crate) struct CallbackThreads {
    state: Mutex<State>,
    /// An order waits.
    pub(super) wake: Condvar,
    keep_alive: Duration,
    start: Start,
}

pub(super) struct State {
    /// Never more than there are idle threads, or one would wait for a job that blocks.
    pub(super) orders: VecDeque<Order>,
    pub(super) shared: SharedWork,
    /// Threads that wait for an order; each of them takes one if there is one.
    pub(super) idle: usize,
    pub(super) alive: usize,
    /// How many threads there were so far, to name them.
    pub(super) started: u64,
}

/// What a thread is needed for.
pub(super) enum Order {
    /// A job that has the thread for itself.
    Do(Job),
    /// To do the jobs that share threads.
    Run(Era),
    /// To see that those jobs are not left behind.
    Watch,
}

impl CallbackThreads {
    pub(crate) fn new(keep_alive: Duration, start: Start) -> Self {
        let state =
            State { orders: VecDeque::new(), shared: SharedWork::default(), idle: 0, alive: 0, started: 0 };
        Self { state: Mutex::new(state), wake: Condvar::new(), keep_alive, start }
    }

    /// Gives `job` to an idle thread, or to a new one; gives it back if none can be started.
    pub(crate) fn run(&'static self, job: Job) -> Result<(), (Job, io::Error)> {
        self.give(self.state(), Order::Do(job))
    }

    /// Gives `job`, which `took` that long when it was done last, to a thread that does others of the kind. If there is
    /// none and none can be started, gives it back, with others that waited for the same thread.
    pub(crate) fn run_quick(&'static self, job: Job, took: Duration) -> Result<(), (Job, io::Error)> {
        let mut state = self.state();
        match state.shared.add(job, took) {
            Some(Needed::Runner(era)) => self.give(state, Order::Run(era)),
            Some(Needed::Watch) => self.give(state, Order::Watch),
            None => Ok(()),
        }
    }

    /// Gives `order` to an idle thread, or to a new one; gives back what cannot be done for want of a thread.
    fn give(&'static self, mut state: MutexGuard<'_, State>, order: Order) -> Result<(), (Job, io::Error)> {
        if state.idle > state.orders.len() {
            state.orders.push_back(order);
            drop(state);
            self.wake.notify_one();
            return Ok(());
        }
        state.started += 1;
        state.alive += 1;
        let name = format!("informer-callback-{}", state.started);
        drop(state);
        // Nobody but the new thread takes it: were it to wait with the others and another thread took it, that one's
        // own order would be without a thread when this one is not started.
        let order = Arc::new(Mutex::new(Some(order)));
        let taken = Arc::clone(&order);
        let body = move || {
            let first = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.work(first);
        };
        let Err(error) = (self.start)(name, Box::new(body)) else { return Ok(()) };
        let mut state = self.state();
        state.alive -= 1;
        let job = match order.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(Order::Do(job)) => Some(job),
            Some(Order::Run(era)) => state.shared.has_no_runner(era),
            Some(Order::Watch) => {
                state.shared.is_not_watched();
                None
            }
            None => None,
        };
        job.map_or(Ok(()), |job| Err((job, error)))
    }

    /// What each thread does.
    fn work(&'static self, first: Option<Order>) {
        let mut order = first;
        loop {
            while let Some(this) = order {
                match this {
                    Order::Do(job) => call(job),
                    Order::Run(era) => self.run_waiting(era),
                    Order::Watch => self.watch(),
                }
                order = self.state().orders.pop_front();
            }
            let mut state = self.state();
            state.idle += 1;
            let wait = self.wake.wait_timeout_while(state, self.keep_alive, |state| state.orders.is_empty());
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
            order = state.orders.pop_front();
            if order.is_none() {
                state.alive -= 1;
                return;
            }
        }
    }

    fn run_waiting(&self, era: Era) {
        let mut done = None;
        loop {
            let next = self.state().shared.next(era, done);
            let Some((job, took)) = next else { return };
            call(job);
            done = Some(took);
        }
    }

    fn watch(&'static self) {
        let mut seen = self.state().shared.seen();
        loop {
            sleep(TICK);
            let mut state = self.state();
            match state.shared.look(&mut seen) {
                Watch::GoOn => {}
                Watch::End => return,
                Watch::TakeOver(era) => {
                    // That there is no thread to watch the next time is not worth stopping for.
                    _ = self.give(state, Order::Watch);
                    return self.run_waiting(era);
                }
            }
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn call(job: Job) {
    // Handlers' panics are caught where they are called; this is for what else is the user's, such as the drop of a
    // handler.
    _ = catch_unwind(AssertUnwindSafe(job));
}
