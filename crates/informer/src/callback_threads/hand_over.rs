//! Handing jobs to threads. Model-checked by `tests/model.rs`, which has primitives of its own under `sync`.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::sync::{Condvar, Mutex, MutexGuard};

/// What a thread does at one go: the calls for everything that waits for one handler.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Starts a thread of this name; if it cannot, the body is dropped.
pub(crate) type Start = fn(String, Job) -> io::Result<()>;

/// Threads, as many as there are jobs at a time.
pub(crate) struct CallbackThreads {
    state: Mutex<State>,
    /// A job waits.
    pub(super) wake: Condvar,
    keep_alive: Duration,
    start: Start,
}

pub(super) struct State {
    /// Never more than there are idle threads, or one would wait for a job that blocks.
    pub(super) waiting: VecDeque<Job>,
    /// Threads that wait for a job; each of them takes one if there is one.
    pub(super) idle: usize,
    pub(super) alive: usize,
    /// How many threads there were so far, to name them.
    pub(super) started: u64,
}

impl CallbackThreads {
    pub(crate) fn new(keep_alive: Duration, start: Start) -> Self {
        let state = State { waiting: VecDeque::new(), idle: 0, alive: 0, started: 0 };
        Self { state: Mutex::new(state), wake: Condvar::new(), keep_alive, start }
    }

    /// Gives `job` to an idle thread, or to a new one; gives it back if none can be started.
    pub(crate) fn run(&'static self, job: Job) -> Result<(), (Job, io::Error)> {
        let mut state = self.state();
        if state.idle > state.waiting.len() {
            state.waiting.push_back(job);
            drop(state);
            self.wake.notify_one();
            return Ok(());
        }
        state.started += 1;
        state.alive += 1;
        let name = format!("informer-callback-{}", state.started);
        drop(state);
        // Nobody but the new thread takes it: were it to wait with the others and another thread took it, that one's
        // own job would be without a thread when this one is not started.
        let job = Arc::new(Mutex::new(Some(job)));
        let taken = Arc::clone(&job);
        let body = move || {
            let first = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.work(first);
        };
        let Err(error) = (self.start)(name, Box::new(body)) else { return Ok(()) };
        self.state().alive -= 1;
        let job = job.lock().unwrap_or_else(PoisonError::into_inner).take();
        job.map_or(Ok(()), |job| Err((job, error)))
    }

    /// What each thread does.
    fn work(&self, first: Option<Job>) {
        let mut job = first;
        loop {
            while let Some(this) = job {
                // Handlers' panics are caught where they are called; this is for what else is the user's, such as
                // the drop of a handler.
                _ = catch_unwind(AssertUnwindSafe(this));
                job = self.state().waiting.pop_front();
            }
            let mut state = self.state();
            state.idle += 1;
            let wait = self.wake.wait_timeout_while(state, self.keep_alive, |state| state.waiting.is_empty());
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
            job = state.waiting.pop_front();
            if job.is_none() {
                state.alive -= 1;
                return;
            }
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
