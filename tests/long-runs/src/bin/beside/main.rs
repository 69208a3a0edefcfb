//! client-go and this library before the same API server, in the same trouble at the same moment:
//! what each tells its handler, side by side, as the Markdown of `docs/beside-client-go.md`.
//!
//! ```text
//! cargo run --release -p informer-long-runs --bin beside                      all scenarios
//! cargo run --release -p informer-long-runs --bin beside -- recreate relist   some of them
//! ```
//!
//! Needs Go, for the peer in `benches/peers/client-go` and for the API server in
//! `tests/real-cluster`. Each side is a process of its own that speaks the lines of [`peer`]. Exits
//! with 1 if this library's history is not what it promises; what client-go does is shown as it
//! comes, with a note where it is not what was expected.

mod clean_close;
mod missing_bookmark;
mod ours;
mod page;
mod peer;
mod recreate;
mod relist;
mod slow_handler;
mod stage;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use informer_benches::HEAP;

use page::Outcome;
use stage::Stage;

/// Puts client-go's informers and these side by side.
#[derive(Debug, Parser)]
struct Arguments {
    /// Which scenarios; all of them if none is named
    #[arg(value_enum)]
    scenarios: Vec<Scenario>,

    /// How many Pods are listed again
    #[arg(long, default_value_t = 20_000)]
    pods: usize,

    /// How many updates a blocked handler does not take
    #[arg(long, default_value_t = 6_000)]
    updates: usize,

    /// How long requests are counted while watches are closed, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// A Pod is deleted and created again while nobody watches
    Recreate,
    /// Everything is listed again, unchanged
    Relist,
    /// Each watch is closed cleanly at once
    CleanClose,
    /// A handler blocks
    SlowHandler,
    /// The end of a streaming list never comes
    MissingBookmark,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    if std::env::args().nth(1).as_deref() == Some(peer::HISTORY) {
        return ours::run(&ours::Arguments::parse_from(std::env::args().skip(1))).await;
    }
    let mut arguments = Arguments::parse();
    if arguments.scenarios.is_empty() {
        arguments.scenarios = Scenario::value_variants().to_vec();
    }
    let stage = Stage::start().await?;
    print!("{}", page::head(&stage.versions));
    let mut broken = Vec::new();
    for scenario in &arguments.scenarios {
        eprintln!("beside: {scenario:?}");
        let outcome = run(&stage, *scenario, &arguments).await?;
        print!("\n{}", outcome.markdown());
        broken.extend(outcome.broken);
    }
    for promise in &broken {
        eprintln!("beside: broken: {promise}");
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn run(stage: &Stage, scenario: Scenario, arguments: &Arguments) -> Result<Outcome> {
    match scenario {
        Scenario::Recreate => recreate::run(stage).await,
        Scenario::Relist => relist::run(stage, arguments.pods).await,
        Scenario::CleanClose => clean_close::run(stage, arguments.seconds).await,
        Scenario::SlowHandler => slow_handler::run(stage, arguments.updates).await,
        Scenario::MissingBookmark => missing_bookmark::run(stage).await,
    }
}
