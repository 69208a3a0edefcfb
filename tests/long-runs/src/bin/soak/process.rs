//! What the kernel says of a process.

use std::fs;

use anyhow::Context;

/// Memory in bytes, and how many threads and open files there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    /// Resident: all pages that are in memory.
    pub(crate) resident: usize,
    /// Resident and anonymous: what was allocated, without the program's text, which the kernel
    /// takes away and brings back as it likes.
    pub(crate) anonymous: usize,
    /// Proportional: of shared pages only the process's part.
    pub(crate) proportional: usize,
    pub(crate) threads: usize,
    pub(crate) files: usize,
}

impl Process {
    /// Reads `/proc` of a process of this user.
    ///
    /// # Errors
    ///
    /// When it is gone, or on anything but Linux.
    pub(crate) fn read(id: u32) -> anyhow::Result<Self> {
        let folder = format!("/proc/{id}");
        let status = fs::read_to_string(format!("{folder}/status"))
            .context("memory is read on Linux only")?;
        let memory = fs::read_to_string(format!("{folder}/smaps_rollup"))?;
        Ok(Self {
            resident: field(&status, "VmRSS:")? * 1024,
            anonymous: field(&status, "RssAnon:")? * 1024,
            proportional: field(&memory, "Pss:")? * 1024,
            threads: field(&status, "Threads:")?,
            files: fs::read_dir(format!("{folder}/fd"))?.count(),
        })
    }
}

/// The machine, in words.
pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let value = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|line| line.trim_start_matches([' ', '\t', ':']).to_owned()).unwrap_or_default()
    };
    let (processors, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let memory =
        value(&memory, "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0) / (1 << 20);
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!(
        "{cores} cores ({}), {memory} GiB, Linux {}",
        value(&processors, "model name"),
        read("/proc/sys/kernel/osrelease").trim()
    )
}

fn field(text: &str, name: &str) -> anyhow::Result<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("/proc has no {name}"))
}
