//! The parts of the report, each a process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::{by_label, events, growth, informers, listing, memory, relist, representations, writers};

/// What is measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Updates through the core, to one registration and to many
    Events,
    /// Updates through an informer, to one handler and to many
    Informers,
    /// Writing while others list
    Writers,
    /// Listing everything
    Listing,
    /// Listing by an indexed label
    ByLabel,
    /// Relists in which nothing has changed
    Relist,
    /// What an entry takes
    Memory,
    /// How costs grow with the number of objects
    Growth,
    /// Heap per object, of each representation; for the baseline
    Representations,
}

impl Part {
    /// Measures it in this process, and prints the figures.
    pub(crate) fn measure(self, quick: bool) -> Result<()> {
        match self {
            Self::Events => events::measure(quick),
            Self::Informers => return informers::measure(quick),
            Self::Writers => return writers::measure(quick),
            Self::Listing => listing::measure(quick),
            Self::ByLabel => by_label::measure(quick),
            Self::Relist => return relist::measure(quick),
            Self::Memory => memory::measure(quick),
            Self::Growth => growth::measure(quick),
            Self::Representations => return representations::measure(),
        }
        Ok(())
    }

    /// Measures it in a process of its own; what that prints.
    pub(crate) fn run(self, quick: bool) -> Result<String> {
        let name = self.to_possible_value().context("no part of the command line")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(quick.then_some("--quick")).args(["part", name.get_name()]);
        output(command)
    }

    /// Whether it is measured unless asked for.
    pub(crate) fn has_goals(self) -> bool {
        self != Self::Representations
    }

    /// What client-go does beside it.
    pub(crate) fn peer(self) -> Option<&'static str> {
        match self {
            Self::Informers => Some("events"),
            Self::Writers => Some("writers"),
            Self::ByLabel => Some("store"),
            Self::Memory => Some("memory"),
            _ => None,
        }
    }
}

/// client-go's side.
#[derive(Debug)]
pub(crate) struct Peer(PathBuf);

impl Peer {
    /// Builds it.
    pub(crate) fn build() -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/client-go-inproc");
        let mut build = Command::new("go");
        build.current_dir(&folder).args(["build", "-o", "bin/client-go-inproc", "."]);
        output(build).context("go build, of the peer client-go-inproc")?;
        Ok(Self(folder.join("bin/client-go-inproc")))
    }

    /// Measures a part.
    pub(crate) fn run(&self, part: &str, quick: bool) -> Result<String> {
        let mut command = Command::new(&self.0);
        command.arg(part).args(quick.then_some("--quick"));
        output(command)
    }
}

/// What the report begins with.
pub(crate) fn described(rounds: usize) -> String {
    let version = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments);
        output(command).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let day = version("date", &["-u", "+%F"]);
    let (rustc, go) = (version("rustc", &["--version"]), version("go", &["version"]));
    let (features, allocator) = match cfg!(feature = "mimalloc") {
        true => ("--features mimalloc ", "mimalloc"),
        false => ("", "glibc's allocator"),
    };
    format!(
        "Measured {day} by `cargo run --release -p informer-benches --bin in-process {features}-- --rounds {rounds} --write` on {cores} cores \
         that do other work as well; {rustc}, {allocator}; client-go v0.36.3, {go}. Times are CPU time, of the thread where one \
         does it all, else of the process; only writes per second are by the clock. Medians (ranges) of {rounds} rounds. \
         Where the time goes: [NOTES.md](NOTES.md).\n\n"
    )
}

fn output(mut command: Command) -> Result<String> {
    let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let done = done.with_context(|| format!("{command:?}"))?;
    ensure!(done.status.success(), "{command:?} failed: {}", done.status);
    Ok(String::from_utf8(done.stdout)?)
}
