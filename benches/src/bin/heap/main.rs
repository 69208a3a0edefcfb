//! How much memory a synced informer takes, and how much more on the way there.
//!
//! The API server runs in another process, and each informer in one of its own, so that neither the
//! server's memory nor another informer's is counted.
//!
//! ```text
//! cargo run --release -p informer-benches --bin heap                  a table
//! cargo run --release -p informer-benches --bin heap -- --check       fails where a limit is exceeded, for CI
//! ```

mod report;
mod server;

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use informer_benches::client::Client;
use informer_benches::figures::{Figures, Initial, Kept, Wire};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use report::Measured;
use server::Server;

/// Measures the memory of informers.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many Pods there are
    #[arg(long, default_value_t = 20_000)]
    objects: usize,

    /// Fail where a limit is exceeded
    #[arg(long)]
    check: bool,

    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Be the API server
    #[command(hide = true)]
    Serve { objects: usize },
    #[command(flatten)]
    Client(Client),
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match arguments.role {
        Some(Role::Serve { objects }) => server::serve(objects).await,
        Some(Role::Client(client)) => client.run().await,
        None => orchestrate(&arguments).await,
    }
}

/// How objects are kept, and how they come.
const REPRESENTATIONS: [(Kept, Wire); 5] = [
    (Kept::Typed, Wire::Protobuf),
    (Kept::Typed, Wire::Json),
    (Kept::Metadata, Wire::Protobuf),
    (Kept::Metadata, Wire::Json),
    (Kept::Lazy, Wire::Protobuf),
];

async fn orchestrate(arguments: &Arguments) -> Result<()> {
    let mut server = Server::spawn(arguments.objects).await?;
    let changed = arguments.objects / 100;
    let mut measured = Vec::new();
    for (kept, wire) in REPRESENTATIONS {
        for initial in Initial::value_variants() {
            let phases = measure(&mut server, (kept, wire, *initial), changed).await?;
            measured.push(Measured { kept, wire, initial: *initial, phases });
        }
    }
    print!("{}", report::table(&measured));
    let violations: Vec<String> = measured
        .iter()
        .flat_map(|measured| report::violations(measured, arguments.objects, changed))
        .collect();
    ensure!(
        !arguments.check || violations.is_empty(),
        "limits are exceeded:\n{}",
        violations.join("\n")
    );
    Ok(())
}

/// Runs one informer in a process of its own: its first list, then a relist.
async fn measure(
    server: &mut Server,
    (kept, wire, initial): (Kept, Wire, Initial),
    changed: usize,
) -> Result<[Figures; 2]> {
    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    let mut process = Command::new(std::env::current_exe()?)
        .args(["sync", &name(kept.to_possible_value()), &name(initial.to_possible_value())])
        .args([&name(wire.to_possible_value()), &server.url, "--counted"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(process.stdout.take().context("no pipe")?).lines();
    let mut next = async || -> Result<Figures> {
        let line = lines.next_line().await?.context("the informer ended early")?;
        Ok(serde_json::from_str(&line)?)
    };
    let first = next().await?;
    server.force_relist(changed).await?;
    let relist = next().await?;
    let status = process.wait().await?;
    ensure!(status.success(), "the informer's process failed: {status}");
    Ok([first, relist])
}
