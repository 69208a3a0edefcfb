//! How much memory a synced informer takes, and how much more on the way there.
//!
//! The API server runs in another process, and each informer in one of its own, so that neither the server's
//! memory nor another informer's is counted.
//!
//! ```text
//! cargo run --release -p informer-benches --bin heap                       a table
//! cargo run --release -p informer-benches --bin heap -- --check            the limits, for CI
//! cargo run --release -p informer-benches --bin heap --features mimalloc   with another allocator
//! ```

mod report;
mod server;

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use informer_benches::client::{Client, Target};
use informer_benches::figures::{Figures, Initial, Kept, Wire};
use informer_benches::load;
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

    /// Fail where a limit is exceeded; measures only what has limits
    #[arg(long)]
    check: bool,

    /// Measure against the API server of this kubeconfig, which has the Pods; without relists
    #[arg(long)]
    kubeconfig: Option<PathBuf>,

    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Write the Pods to the API server of a kubeconfig
    Load { kubeconfig: PathBuf },
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
        Some(Role::Load { kubeconfig }) => {
            load::load(&Target::Kubeconfig(kubeconfig).client().await?, arguments.objects).await
        }
        Some(Role::Serve { objects }) => server::serve(objects).await,
        Some(Role::Client(client)) => client.run().await,
        None => orchestrate(&arguments).await,
    }
}

async fn orchestrate(arguments: &Arguments) -> Result<()> {
    let (mut server, target) = match &arguments.kubeconfig {
        Some(path) => (None, Target::Kubeconfig(path.clone())),
        None => {
            let server = Server::spawn(arguments.objects).await?;
            let target = Target::Url(server.url.clone());
            (Some(server), target)
        }
    };
    let changed = arguments.objects / 100;
    let mut measured = Vec::new();
    for (kept, wire) in representations(arguments.check) {
        for initial in Initial::value_variants() {
            let phases = measure(server.as_mut(), &target, (kept, wire, *initial), changed).await?;
            measured.push(Measured { kept, wire, initial: *initial, phases });
        }
    }
    print!("{}", report::table(&measured));
    let violations: Vec<String> = measured
        .iter()
        .flat_map(|measured| report::violations(measured, arguments.objects, changed))
        .collect();
    ensure!(!arguments.check || violations.is_empty(), "limits are exceeded:\n{}", violations.join("\n"));
    Ok(())
}

/// How objects are kept, and how they come; all of them, or those that have limits of their own.
fn representations(limited: bool) -> Vec<(Kept, Wire)> {
    let decoded: &[Kept] = match limited {
        true => &[Kept::Typed, Kept::Metadata],
        false => &[Kept::Typed, Kept::Metadata, Kept::TenFields, Kept::Dynamic],
    };
    let kept_as_bytes: &[Kept] = match limited {
        true => &[Kept::Lazy],
        false => &[Kept::Lazy, Kept::LazyMetadata, Kept::LazyDynamic],
    };
    let both = decoded.iter().flat_map(|kept| [(*kept, Wire::Protobuf), (*kept, Wire::Json)]);
    both.chain(kept_as_bytes.iter().map(|kept| (*kept, Wire::Protobuf))).collect()
}

/// Runs one informer in a process of its own.
async fn measure(
    server: Option<&mut Server>,
    target: &Target,
    (kept, wire, initial): (Kept, Wire, Initial),
    changed: usize,
) -> Result<Vec<Figures>> {
    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    let mut process = Command::new(std::env::current_exe()?)
        .args(["sync", &name(kept.to_possible_value()), &name(initial.to_possible_value())])
        .args([&target.argument()?, "--counted", "--wire", &name(wire.to_possible_value())])
        .args(server.is_some().then_some("--relist"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(process.stdout.take().context("no pipe")?).lines();
    let mut phases = Vec::new();
    if let Some(line) = lines.next_line().await? {
        phases.push(serde_json::from_str(&line)?);
        if let Some(server) = server {
            server.force_relist(changed).await?;
            let line = lines.next_line().await?.context("the informer ended before its relist")?;
            phases.push(serde_json::from_str(&line)?);
        }
    }
    let status = process.wait().await?;
    ensure!(status.success() && !phases.is_empty(), "the informer's process failed: {status}");
    Ok(phases)
}
