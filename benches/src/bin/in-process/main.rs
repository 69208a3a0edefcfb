//! Reads, handlers and relists without a socket, and what the store takes.
//!
//! An API server in memory answers the client, so that what is measured is everything behind the
//! socket. Each part runs in a process of its own and prints figures, a name and a number each;
//! `side-by-side` puts them beside client-go's.
//!
//! ```text
//! cargo run --release -p informer-benches --bin in-process                 everything
//! cargo run --release -p informer-benches --bin in-process -- by-label     one part
//! cargo run --release -p informer-benches --bin in-process -- --check      memory and allocations, for CI
//! cargo run --release -p informer-benches --bin in-process -- --rebase     writes what --check compares with
//! ```

mod baseline;
mod by_label;
mod handlers;
mod relist;
mod server;
mod store;

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};

/// Measures what happens behind the socket.
#[derive(Debug, Parser)]
struct Arguments {
    /// Only this part, in this process
    part: Option<Part>,

    /// Less of everything, for a first look
    #[arg(long)]
    quick: bool,

    /// Only compare memory and allocations with benches/baseline.json, and fail where any is more
    /// than a tenth above
    #[arg(long)]
    check: bool,

    /// Only write benches/baseline.json anew
    #[arg(long)]
    rebase: bool,
}

/// What is measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// A hundred objects of a million by an indexed label
    ByLabel,
    /// CPU time of updates with a hundred handlers
    Handlers,
    /// Handler calls in a relist in which nothing has changed
    Relist,
    /// What an entry of the store takes, and allocations of an event; for the baseline
    Baseline,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match arguments.part {
        Some(part) => part.measure(arguments.quick),
        None if arguments.rebase => baseline::write(),
        None if arguments.check => baseline::check(),
        None => Part::value_variants()
            .iter()
            .try_for_each(|part| part.run(arguments.quick).map(|figures| print!("{figures}"))),
    }
}

impl Part {
    /// Measures it in this process, and prints the figures.
    fn measure(self, quick: bool) -> Result<()> {
        match self {
            Self::ByLabel => by_label::measure(quick),
            Self::Handlers => handlers::measure(quick),
            Self::Relist => relist::measure(),
            Self::Baseline => {
                store::measure()?;
                handlers::count_allocations()
            }
        }
    }

    /// Measures it in a process of its own; what that prints.
    fn run(self, quick: bool) -> Result<String> {
        let name = self.to_possible_value().context("no part of the command line")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(quick.then_some("--quick")).arg(name.get_name()).stdin(Stdio::null());
        let done = command.stderr(Stdio::inherit()).output()?;
        ensure!(done.status.success(), "{command:?} failed: {}", done.status);
        Ok(String::from_utf8(done.stdout)?)
    }
}

/// Prints a figure.
fn print(name: &str, value: f64) {
    println!("{name} {value}");
}
