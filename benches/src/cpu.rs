//! CPU time, which other work on the machine leaves alone.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
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

/// CPU time of another process so far, user and system, in hundredths of a second.
///
/// # Errors
/// Where there is no `/proc`, or no such process.
pub fn of_other(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
        .with_context(|| format!("the CPU time of process {pid} cannot be read"))?;
    ticks(&stat)
        .map(|ticks| Duration::from_millis(1000 / TICKS_PER_SECOND * ticks))
        .with_context(|| format!("/proc/{pid}/stat has no CPU time"))
}

/// Linux has the same unit for all programs, whatever its own clock.
const TICKS_PER_SECOND: u64 = 100;

/// User and system time. The name before them is in parentheses and may have any characters.
fn ticks(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let (user, system) = (fields.next()?, fields.next()?);
    Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
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
    fn ticks_are_those_of_user_and_system() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 0 1 2 3 4 150 50 9 9 20 0 1 0 5 6 7\n";
        assert_eq!(ticks(stat), Some(200));
        assert_eq!(ticks("7 (a) S 1"), None);
    }
}
