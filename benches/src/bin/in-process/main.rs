//! What happens inside the process: from the decoder's output to a handler or a reader, and what the store takes.
//!
//! No sockets: objects come from memory. Each part is measured in a process of its own, so that no part sees another's
//! heap, and the rounds go through all parts in turn; client-go's store and informers run in the same rounds. Prints
//! Markdown: the goals that we have set ourselves, and all that was measured.
//!
//! ```text
//! cargo run --release -p informer-benches --bin in-process                    everything; needs Go
//! cargo run --release -p informer-benches --bin in-process -- --write        and puts it into RESULTS.md
//! cargo run --release -p informer-benches --bin in-process -- --quick --rounds 1 --only relist
//! cargo run --release -p informer-benches --bin in-process -- --check        memory and allocations, for CI
//! cargo run --release -p informer-benches --bin in-process -- --rebase       writes what --check compares with
//! ```
//!
//! A part is a module that measures and prints figures, each with a name; goals are read off the figures of all rounds.

mod baseline;
mod by_label;
mod events;
mod figures;
mod goals;
mod growth;
mod informers;
mod listing;
mod memory;
mod memory_source;
mod objects;
mod parts;
mod relist;
mod representations;
mod writers;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use informer_benches::results_file;

use parts::{Part, Peer};

/// Measures what happens inside the process.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often everything is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,

    /// Only these parts; may be repeated
    #[arg(long)]
    only: Vec<Part>,

    /// Less of everything, for a first look
    #[arg(long)]
    quick: bool,

    /// Put the report into benches/RESULTS.md, besides printing it
    #[arg(long)]
    write: bool,

    /// Only compare memory and allocations with benches/baseline.json, and fail where any is more than a tenth above
    #[arg(long)]
    check: bool,

    /// Only write benches/baseline.json anew
    #[arg(long)]
    rebase: bool,

    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Be the process of one part
    #[command(hide = true)]
    Part { part: Part },
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Role::Part { part }) = arguments.role {
        return part.measure(arguments.quick);
    }
    if arguments.rebase {
        return baseline::write();
    }
    if arguments.check {
        return baseline::check();
    }
    let report = measure(&arguments)?;
    print!("{report}");
    if arguments.write {
        ensure!(
            arguments.only.is_empty() && !arguments.quick,
            "only whole reports are kept: leave out --only and --quick"
        );
        results_file::write("in-process", &report)?;
    }
    Ok(())
}

fn measure(arguments: &Arguments) -> Result<String> {
    let wanted = |part: &&Part| match arguments.only.is_empty() {
        true => part.has_goals(),
        false => arguments.only.contains(part),
    };
    let wanted: Vec<&Part> = Part::value_variants().iter().filter(wanted).collect();
    let peer = match wanted.iter().any(|part| part.peer().is_some()) {
        true => Some(Peer::build()?),
        false => None,
    };
    let mut figures = figures::Rounds::default();
    for round in 1..=arguments.rounds {
        for part in &wanted {
            eprintln!("round {round} of {}: {part:?}", arguments.rounds);
            figures.read(&part.run(arguments.quick)?)?;
            if let (Some(peer), Some(of)) = (&peer, part.peer()) {
                figures.read(&peer.run(of, arguments.quick)?)?;
            }
        }
    }
    Ok(format!("{}{}{}", parts::described(arguments.rounds), goals::table(&figures), figures.table()))
}
