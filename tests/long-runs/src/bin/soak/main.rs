//! The soak: informers of every representation against a busy real API server that is killed again
//! and again, for as long as you like. At every quiet point their stores, and what their handlers
//! were given, are what the server lists; memory, tasks, threads and files stay what they were.
//!
//! ```text
//! INFORMER_REAL_CLUSTER=1 cargo run --release -p informer-long-runs --bin soak -- --for 45m --report soak.md
//! ```
//!
//! Exits with 1 where anything differs, a history is illegal, or something grows.

mod burst;
mod child;
mod collection;
mod copies;
mod history;
mod informers;
mod late;
mod objects;
mod process;
mod protocol;
mod record;
mod report;
mod run;
mod schedule;
mod told;
mod trend;
mod writer;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
// Counts what the informers hold, apart from what the allocator keeps of what they gave back.
use informer_benches::HEAP;

/// Lets informers follow a busy cluster whose API server is killed, and watches what they hold.
#[derive(Debug, Parser)]
struct Arguments {
    /// How long, such as 45m or 90s
    #[arg(long = "for", default_value = "45m", value_parser = duration)]
    duration: Duration,

    /// Writes per second through the API
    #[arg(long, default_value_t = 100)]
    writes: u32,

    /// How often the API server is killed and started again
    #[arg(long, default_value = "3m", value_parser = duration)]
    restart_every: Duration,

    /// How often objects are written straight into etcd, as fast as it takes them
    #[arg(long, default_value = "2m", value_parser = duration)]
    burst_every: Duration,

    /// How often etcd is compacted; every second time the API server is restarted too
    #[arg(long, default_value = "5m", value_parser = duration)]
    compact_every: Duration,

    /// How long is written between two quiet points
    #[arg(long, default_value = "70s", value_parser = duration)]
    quiet_every: Duration,

    /// What is random comes from it
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Where the report goes, in Markdown; stdout has it in any case
    #[arg(long)]
    report: Option<PathBuf>,

    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Be the process of the informers
    #[command(hide = true)]
    Informers { kubeconfig: PathBuf },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match &arguments.role {
        Some(Role::Informers { kubeconfig }) => informers::run(kubeconfig).await,
        None => run::run(&arguments).await,
    }
}

/// A number with `s`, `m` or `h` behind it.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("write a whole number and s, m or h, such as 90s".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| format!("{number:?} is no whole number"))?;
    Ok(Duration::from_secs(number * seconds))
}
