//! Handing jobs to threads. Model-checked by `tests/model.rs`, which has primitives of its own under `sync`.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::shared_work::{Needed, Runner, SharedWork, Watch};
use super::sync::{Condvar, Mutex, MutexGuard, sleep};

/// What a thread does at one go: the calls for everything that waits for one handler.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Starts a thread of this name; if it cannot, the body is dropped.
pub(crate) type Start = fn(String, Job) -> io::Result<()>;

/// How long jobs wait behind one that blocks, though it was quick so far: so long, or twice that; longer only if several
/// of those that wait block as well.
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
    /// The jobs that share threads.
    Share(Needed),
}

impl CallbackThreads {
    pub(crate) fn new(keep_alive: Duration, start: Start) -> Self {
        let state =
            State { orders: VecDeque::new(), shared: SharedWork::default(), idle: 0, alive: 0, started: 0 };
        Self { state: Mutex::new(state), wake: Condvar::new(), keep_alive, start }
    }

    /// Gives `job` to an idle thread, or to a new one; gives it back if none can be started.
    pub(crate) fn run(&'static self, job: Job) -> Result<(), (Job, io::Error)> {
        match self.give(self.state(), Order::Do(job)) {
            Err((Order::Do(job), error)) => Err((job, error)),
            _ => Ok(()),
        }
    }

    /// Gives `job`, which `took` that long when it was done last, to a thread that does others of the kind. If no thread
    /// can be started that might be needed, the job waits: [`see_to_it`](Self::see_to_it) later.
    pub(crate) fn run_quick(&'static self, job: Job, took: Duration) -> io::Result<()> {
        let mut state = self.state();
        let needed = state.shared.add(job, took);
        self.send_for(state, needed)
    }

    /// Sees that no quick job is left behind for want of a thread.
    pub(crate) fn see_to_it(&'static self) -> io::Result<()> {
        let mut state = self.state();
        let needed = state.shared.watch();
        self.send_for(state, needed)
    }

    fn send_for(&'static self, state: MutexGuard<'_, State>, needed: Option<Needed>) -> io::Result<()> {
        let Some(needed) = needed else { return Ok(()) };
        match self.give(state, Order::Share(needed)) {
            Err((Order::Share(needed), error)) => {
                self.state().shared.is_missing(&needed);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Gives `order` to an idle thread, or to a new one; gives it back if none can be started.
    fn give(&'static self, mut state: MutexGuard<'_, State>, order: Order) -> Result<(), (Order, io::Error)> {
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
        self.state().alive -= 1;
        let order = order.lock().unwrap_or_else(PoisonError::into_inner).take();
        order.map_or(Ok(()), |order| Err((order, error)))
    }

    /// What each thread does.
    fn work(&'static self, first: Option<Order>) {
        let mut order = first;
        loop {
            while let Some(this) = order {
                match this {
                    Order::Do(job) => call(job),
                    Order::Share(Needed::Runner(runner)) => self.run_waiting(runner),
                    Order::Share(Needed::Watch) => self.watch(),
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

    fn run_waiting(&self, mut runner: Runner) {
        loop {
            let next = self.state().shared.next(&mut runner);
            let Some(job) = next else { return };
            call(job);
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
                Watch::Send(runners) => {
                    drop(state);
                    for _ in 0..runners {
                        let mut state = self.state();
                        let runner = state.shared.runner();
                        if self.send_for(state, Some(Needed::Runner(runner))).is_err() {
                            // Whoever watches tries again.
                            break;
                        }
                    }
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
