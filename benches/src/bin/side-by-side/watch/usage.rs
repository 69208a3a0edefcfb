//! CPU time of a server over a while, and of the machine.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use informer_benches::cpu;

/// A stop watch for the CPU time of a process.
pub(crate) struct Usage {
    pid: u32,
    began: Instant,
    cpu: Duration,
    machine: [u64; 2],
}

/// What went by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    /// Of all processors, the part that was not idle.
    pub(crate) busy: f64,
}

impl Usage {
    pub(crate) fn start(pid: u32) -> Result<Self> {
        Ok(Self { pid, began: Instant::now(), cpu: cpu::of_other(pid)?, machine: machine()? })
    }

    /// Since the start.
    pub(crate) fn spent(&self) -> Result<Spent> {
        let cpu = cpu::of_other(self.pid)?.saturating_sub(self.cpu);
        let [busy, all] = machine()?;
        let [busy, all] = [busy - self.machine[0], all - self.machine[1]];
        Ok(Spent { wall: self.began.elapsed(), cpu, busy: busy as f64 / all.max(1) as f64 })
    }
}

impl Spent {
    /// CPU time over wall time: so many processors.
    pub(crate) fn rate(&self) -> f64 {
        self.cpu.as_secs_f64() / self.wall.as_secs_f64()
    }

    /// CPU time in microseconds, without what the process takes anyway.
    pub(crate) fn micros_over(&self, idle_rate: f64) -> f64 {
        (self.cpu.as_secs_f64() - idle_rate * self.wall.as_secs_f64()) * 1e6
    }
}

/// Time of all processors so far: that of work, and all.
fn machine() -> Result<[u64; 2]> {
    let stat = fs::read_to_string("/proc/stat")?;
    of_all(&stat).context("/proc/stat has no line of all processors")
}

fn of_all(stat: &str) -> Option<[u64; 2]> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    let times: Vec<u64> = line.split_ascii_whitespace().take(8).flat_map(str::parse).collect();
    let all: u64 = times.iter().sum();
    Some([all - times.get(3)? - times.get(4)?, all])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_processors_are_not_busy() {
        let stat = "cpu  10 1 20 400 50 0 3 2 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(of_all(stat), Some([36, 486]));
        assert_eq!(of_all("intr 1"), None);
    }

    #[test]
    fn what_a_process_takes_anyway_is_subtracted() {
        let spent = Spent { wall: Duration::from_secs(10), cpu: Duration::from_secs(3), busy: 0.0 };
        assert!((spent.rate() - 0.3).abs() < 1e-9);
        assert!((spent.micros_over(0.1) - 2e6).abs() < 1e-3);
    }
}
