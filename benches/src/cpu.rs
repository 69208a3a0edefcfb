//! CPU time, which other work on the machine leaves alone.

use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use rustix::time::{ClockId, clock_gettime};

/// CPU time of all threads of the process so far, user and system.
#[must_use]
pub fn of_process() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// CPU time of this thread so far, user and system.
#[must_use]
pub fn of_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// CPU time of another process so far, user and system, also of threads that have ended.
///
/// # Errors
/// If there is no such process.
pub fn of_other(pid: u32) -> Result<Duration> {
    let unreadable = || format!("the CPU time of process {pid} cannot be read");
    let clock = clock_getcpuclockid(Pid::from_raw(pid.try_into()?)).with_context(unreadable)?;
    Ok(nix::time::clock_gettime(clock).with_context(unreadable)?.into())
}

/// The CPU time that this thread takes for `work`, and what comes out of it.
pub fn spent<O>(work: impl FnOnce() -> O) -> (Duration, O) {
    let before = of_thread();
    let outcome = work();
    (of_thread().saturating_sub(before), outcome)
}

/// Microseconds for each of so many things.
#[must_use]
pub fn micros_each(time: Duration, things: usize) -> f64 {
    time.as_secs_f64() * 1e6 / things.max(1) as f64
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_thread_is_time_of_its_process() {
        let process = of_process();
        let (spent, ()) = spent(|| while of_thread() < Duration::from_millis(2) {});
        assert!(of_process() - process >= spent.min(Duration::from_millis(1)));
        assert!((micros_each(Duration::from_millis(3), 1000) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_process_has_the_same_time_for_others() {
        let before = of_process();
        let other = of_other(std::process::id()).unwrap();
        assert!(before <= other && other <= of_process());
        assert!(of_other(u32::MAX).is_err());
    }
}
