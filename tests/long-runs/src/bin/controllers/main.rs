//! The same small controller on this library, on kube-runtime and on controller-runtime, before one
//! API server, behind one relay: what each does, as the Markdown of `docs/controllers-compared.md`.
//!
//! ```text
//! cargo run -p informer-long-runs --bin controllers                      everything
//! cargo run -p informer-long-runs --bin controllers -- churn --seconds 20 --sets 20
//! ```
//!
//! Needs Go, for the peer in `benches/peers/controller-runtime` and for the API server. Exits with 1
//! if one of our reconciles acted on a stale copy, or created a child twice.

mod churn;
mod five;
mod judge;
mod latency;
mod lines;
mod page;
mod peer;
mod stage;
mod trouble;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use peer::Library;
use stage::Stage;

/// Puts controllers side by side.
#[derive(Debug, Parser)]
struct Arguments {
    /// Which sections; all of them if none is named
    #[arg(value_enum)]
    sections: Vec<Section>,

    /// Only these libraries; may be repeated
    #[arg(long)]
    library: Vec<Library>,

    /// How many Sets are changed
    #[arg(long, default_value_t = 500)]
    sets: usize,

    /// How many changes a second
    #[arg(long, default_value_t = 20)]
    rate: u32,

    /// How long, in seconds
    #[arg(long, default_value_t = 300)]
    seconds: u64,

    /// Where chance begins
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How many Pods five controllers have
    #[arg(long, default_value_t = 5_000)]
    pods: usize,

    /// How often each controller's latency is taken
    #[arg(long, default_value_t = 300)]
    rounds: usize,

    /// Another build of our controller, such as one with a planted bug
    #[arg(long)]
    informer: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Lines of code
    Lines,
    /// Watches cut, objects recreated, a definition installed late, leadership lost
    Trouble,
    /// Many changes behind slow watches and lost answers
    Churn,
    /// Five controllers in a process
    Five,
    /// Time from a change to its reconcile
    Latency,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::parse();
    if arguments.sections.is_empty() {
        arguments.sections = Section::value_variants().to_vec();
    }
    if arguments.library.is_empty() {
        arguments.library = Library::value_variants().to_vec();
    }
    let has = |section| arguments.sections.contains(&section);
    if has(Section::Lines) {
        print!("{}", lines::run());
    }
    if arguments.sections == [Section::Lines] {
        return Ok(ExitCode::SUCCESS);
    }
    let stage = Stage::start(&arguments).await?;
    println!("{}", page::versions(&stage));
    // First, while the definition is not installed.
    if has(Section::Trouble) {
        print!("{}", trouble::run(&stage, &arguments).await?);
    }
    stage.install().await?;
    let mut broken = Vec::new();
    if has(Section::Churn) {
        let churn = churn::run(&stage, &arguments).await?;
        print!("{}", churn.markdown());
        broken = churn.broken();
    }
    if has(Section::Five) {
        print!("{}", five::run(&stage, &arguments).await?);
    }
    if has(Section::Latency) {
        print!("{}", latency::run(&stage, &arguments).await?);
    }
    for promise in &broken {
        eprintln!("controllers: broken: {promise}");
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
