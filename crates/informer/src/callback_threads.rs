//! The threads that call handlers.
//!
//! A callback may block, for ever even. So it runs neither on the runtime's workers nor on its blocking threads: of
//! those there are 512 for everybody, and a runtime that is dropped waits for them, which would keep a program from
//! ending. These threads belong to the process, are started when all others are busy, and end when they were idle for
//! a while; the process does not wait for them. Handlers that return at once share one ([`shared_work`]).

mod hand_over;
mod shared_work;

use std::io;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use hand_over::CallbackThreads;
pub(crate) use hand_over::Job;
pub(crate) use shared_work::BUDGET;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// How long an idle thread waits for more to do.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

static THREADS: LazyLock<CallbackThreads> = LazyLock::new(|| CallbackThreads::new(KEEP_ALIVE, start_thread));

/// The primitives that [`hand_over`] is made of.
mod sync {
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(super) use std::thread::sleep;
}

/// What could not be done for want of a thread.
pub(crate) enum Missing {
    /// This job, which comes back.
    Job(Job),
    /// To see that a quick job is not left behind where it waits.
    Watch,
}

/// Runs `job` on a thread that may block. What took no more than the [`BUDGET`] the last time shares a thread. Called on
/// `runtime`. If there is no thread and none can be started, says what to [`try_again`].
///
/// A paused clock (tokio's `test-util`) moves on by itself while the runtime has nothing to do, but not while its own
/// blocking threads are busy. There callbacks run on those, or time would run away from them.
pub(crate) fn run(runtime: &Handle, job: Job, took: Duration) -> Result<(), (Missing, io::Error)> {
    if !is_clock_real() {
        drop(runtime.spawn_blocking(job));
        return Ok(());
    }
    match took <= BUDGET {
        true => THREADS.run_quick(job, took).map_err(|error| (Missing::Watch, error)),
        false => try_again(Missing::Job(job)),
    }
}

/// [`run`], once more.
pub(crate) fn try_again(missing: Missing) -> Result<(), (Missing, io::Error)> {
    match missing {
        Missing::Job(job) => THREADS.run(job).map_err(|(job, error)| (Missing::Job(job), error)),
        Missing::Watch => THREADS.see_to_it().map_err(|error| (Missing::Watch, error)),
    }
}

/// Whether the runtime's clock is the system's: it never was paused.
fn is_clock_real() -> bool {
    let before = std::time::Instant::now();
    let now = Instant::now().into_std();
    before <= now && now <= std::time::Instant::now()
}

fn start_thread(name: String, body: Job) -> io::Result<()> {
    thread::Builder::new().name(name).spawn(body).map(drop)
}

#[cfg(test)]
mod tests;
