//! How much memory the process occupies, as the kernel sees it.

use std::fs;

use anyhow::{Context, Result};

/// Resident memory of a process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// Now (`VmRSS`).
    pub now: usize,
    /// At most, since the process began (`VmHWM`).
    pub peak: usize,
}

impl Resident {
    /// Reads `/proc/self/status`.
    ///
    /// # Errors
    /// Where there is no such file: on anything but Linux.
    pub fn read() -> Result<Self> {
        Self::at("/proc/self/status")
    }

    /// Reads the same of another process.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if there is no such process.
    pub fn of_other(pid: u32) -> Result<Self> {
        Self::at(&format!("/proc/{pid}/status"))
    }

    fn at(path: &str) -> Result<Self> {
        let status = fs::read_to_string(path).context("resident memory is read on Linux only")?;
        Ok(Self { now: field(&status, "VmRSS:")?, peak: field(&status, "VmHWM:")? })
    }
}

fn field(status: &str, name: &str) -> Result<usize> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kibibytes
        .map(|kibibytes| kibibytes * 1024)
        .with_context(|| format!("/proc/self/status has no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_kibibytes() {
        let status = "Name:\theap\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(field(status, "VmRSS:").unwrap(), 1 << 20);
        assert!(field(status, "VmSwap:").is_err());
    }
}
