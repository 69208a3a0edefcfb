//! The threads that call handlers.
//!
//! A callback may block, for ever even. So it runs neither on the runtime's workers nor on its blocking threads: of
//! those there are 512 for everybody, and a runtime that is dropped waits for them, which would keep a program from
//! ending. These threads belong to the process, are started when all others are busy, and end when they were idle for
//! a while; the process does not wait for them.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

/// How long an idle thread waits for more to do.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

static THREADS: CallbackThreads = CallbackThreads::new(KEEP_ALIVE, start_thread);

/// What a thread does at one go: the calls for everything that waits for one handler.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Runs `job` on a thread that may block; gives it back if there is no thread and none can be started. Called on
/// `runtime`.
///
/// A paused clock (tokio's `test-util`) moves on by itself while the runtime has nothing to do, but not while its own
/// blocking threads are busy. There callbacks run on those, or time would run away from them.
pub(crate) fn run(runtime: &Handle, job: Job) -> Result<(), (Job, io::Error)> {
    if is_clock_real() {
        return THREADS.run(job);
    }
    drop(runtime.spawn_blocking(job));
    Ok(())
}

/// Whether the runtime's clock is the system's: it never was paused.
fn is_clock_real() -> bool {
    let before = std::time::Instant::now();
    let now = Instant::now().into_std();
    before <= now && now <= std::time::Instant::now()
}

struct CallbackThreads {
    state: Mutex<State>,
    /// A job waits.
    wake: Condvar,
    keep_alive: Duration,
    start: Start,
}

type Start = fn(thread::Builder, Job) -> io::Result<()>;

struct State {
    /// With a number each, in their order.
    waiting: VecDeque<(u64, Job)>,
    jobs: u64,
    /// Threads that wait for a job; each of them takes one if there is one.
    idle: usize,
    alive: usize,
    /// How many threads there were so far, to name them.
    started: u64,
}

impl CallbackThreads {
    const fn new(keep_alive: Duration, start: Start) -> Self {
        let state = State { waiting: VecDeque::new(), jobs: 0, idle: 0, alive: 0, started: 0 };
        Self { state: Mutex::new(state), wake: Condvar::new(), keep_alive, start }
    }

    fn run(&'static self, job: Job) -> Result<(), (Job, io::Error)> {
        let mut state = self.state();
        let number = state.jobs;
        state.jobs += 1;
        state.waiting.push_back((number, job));
        if state.idle >= state.waiting.len() {
            drop(state);
            self.wake.notify_one();
            return Ok(());
        }
        state.started += 1;
        state.alive += 1;
        let builder = thread::Builder::new().name(format!("informer-callback-{}", state.started));
        drop(state);
        let Err(error) = (self.start)(builder, Box::new(|| self.work())) else { return Ok(()) };
        let mut state = self.state();
        state.alive -= 1;
        // A thread that became free may have taken it meanwhile.
        match state.waiting.iter().position(|(waiting, _)| *waiting == number) {
            Some(at) => state.waiting.remove(at).map_or(Ok(()), |(_, job)| Err((job, error))),
            None => Ok(()),
        }
    }

    /// What each thread does.
    fn work(&self) {
        let mut state = self.state();
        loop {
            while let Some((_, job)) = state.waiting.pop_front() {
                drop(state);
                // Handlers' panics are caught where they are called; this is for what else is the user's, such as
                // the drop of a handler.
                _ = catch_unwind(AssertUnwindSafe(job));
                state = self.state();
            }
            state.idle += 1;
            let wait = self.wake.wait_timeout_while(state, self.keep_alive, |state| state.waiting.is_empty());
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
            state.idle -= 1;
            if state.waiting.is_empty() {
                state.alive -= 1;
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start_thread(builder: thread::Builder, body: Job) -> io::Result<()> {
    builder.spawn(body).map(drop)
}

#[cfg(test)]
mod tests;
