//! Our informer beside client-go's and kube-runtime's: memory and CPU time, on a real kube-apiserver.
//!
//! Each client runs in a process of its own, one at a time, against the same server with the same Pods; the rounds go
//! through all of them in turn. Prints Markdown: what each one took, and the goals that we have set ourselves.
//!
//! ```text
//! cargo run --release -p informer-benches --bin side-by-side                      everything; needs Go
//! cargo run --release -p informer-benches --bin side-by-side -- --write           and puts it into RESULTS.md
//! cargo run --profile shipped -p informer-benches --bin side-by-side --features mimalloc    linked as what is shipped
//! cargo run --release -p informer-benches --bin side-by-side -- --rounds 1 --objects 2000 --only typed --section sync
//! cargo run --release -p informer-benches --bin side-by-side -- --objects 2000 --section events
//! ```
//!
//! A section of the report is a module that measures, then writes what it has measured; the goals are read off all of
//! them.

mod cluster;
mod etcd_writer;
mod events;
mod goals;
mod memory;
mod programs;
mod replay;
mod runs;
mod samples;
mod sync;
mod versions;
mod warm;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use informer_benches::client::{Client, Target};
use informer_benches::{load, numbers, results_file};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};

use cluster::Cluster;
use programs::{Programs, profile};

/// Measures clients side by side.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often everything is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,

    /// How many Pods there are
    #[arg(long, default_value_t = 20_000)]
    objects: usize,

    /// Only clients whose name has this in it, such as `client-go` or `typed, protobuf`; may be repeated
    #[arg(long)]
    only: Vec<String>,

    /// Only these sections; may be repeated
    #[arg(long)]
    section: Vec<Section>,

    /// A server to measure against, which is left as it is, but for the Pods; without relists
    #[arg(long)]
    kubeconfig: Option<PathBuf>,

    /// The URL of that server's etcd, which the section `events` writes Pods into
    #[arg(long, requires = "kubeconfig")]
    etcd: Option<String>,

    /// Put the report into benches/RESULTS.md, besides printing it
    #[arg(long)]
    write: bool,

    #[command(subcommand)]
    client: Option<Client>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// CPU time and resident memory of a first list
    Sync,
    /// CPU time behind the socket
    Replay,
    /// Requested heap, in a first list and a relist
    Memory,
    /// CPU time and latency of updates; in a cluster of its own, or with --etcd
    Events,
}

impl Arguments {
    fn has(&self, section: Section) -> bool {
        self.section.is_empty() || self.section.contains(&section)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = Arguments::parse();
    match arguments.client.take() {
        Some(client) => client.run().await,
        None => measure(&arguments).await,
    }
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let programs = Programs::build().await?;
    let mut cluster = match &arguments.kubeconfig {
        Some(path) => Cluster::existing(path.clone(), arguments.etcd.clone()),
        None => Cluster::start().await?,
    };
    load_pods(&cluster.target(), arguments.objects).await?;
    let samples = samples::fetch(&cluster.target()).await?;

    let mut report = versions::describe(arguments, &cluster, &programs).await?;
    report.push_str(&samples.table());
    let sync = match arguments.has(Section::Sync) {
        true => sync::measure(arguments, &programs, &cluster).await?,
        false => sync::Measured::default(),
    };
    let replay = match arguments.has(Section::Replay) {
        true => replay::measure(arguments, &programs, &samples).await?,
        false => replay::Measured::default(),
    };
    let memory = match arguments.has(Section::Memory) {
        true => memory::measure(arguments, &programs, &mut cluster).await?,
        false => memory::Measured::default(),
    };
    let events = match arguments.has(Section::Events) {
        true if cluster.etcd().is_none() && arguments.section.is_empty() => {
            eprintln!("the section `events` is left out: it needs a cluster of its own, or --etcd");
            events::Measured::default()
        }
        true => events::measure(arguments, &programs, &cluster).await?,
        false => events::Measured::default(),
    };
    report.push_str(&goals::table(&samples, &sync, &replay, &memory));
    report.push_str(&sync.table());
    report.push_str(&replay.table());
    report.push_str(&memory.table(&sync));
    report.push_str(&events.table());
    print!("{report}");
    if arguments.write {
        // There is one for each allocator, and one for what is shipped.
        let allocator = if cfg!(feature = "mimalloc") { "mimalloc" } else { "the system's allocator" };
        let shipped = if profile(&std::env::current_exe()?) == "shipped" { ", shipped" } else { "" };
        results_file::write(&format!("side-by-side, {allocator}{shipped}"), &report)?;
    }
    Ok(())
}

/// Writes the Pods unless they are there.
async fn load_pods(target: &Target, objects: usize) -> Result<()> {
    let client = target.client().await?;
    let pods = Api::<Pod>::all(client.clone());
    let count = async || -> Result<usize> {
        let page = pods.list_metadata(&ListParams::default().limit(1)).await?;
        Ok(page.items.len() + page.metadata.remaining_item_count.unwrap_or_default() as usize)
    };
    if count().await? < objects {
        eprintln!("writing {objects} Pods, about a minute for 20,000");
        load::load(&client, objects).await?;
    }
    let found = count().await?;
    ensure!(found == objects, "the server has {found} Pods instead of {objects}");
    Ok(())
}
