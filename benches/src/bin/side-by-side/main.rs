//! Our informer beside client-go's and kube-runtime's, and `kubectl informer serve` beside
//! kube-apiserver: memory, CPU time and latency, as ratios.
//!
//! Each client runs in a process of its own, one at a time, against the same kube-apiserver with
//! the same Pods; the rounds go through all of them in turn. So do those of the servers. Prints the
//! tables of `RESULTS.md`.
//!
//! ```text
//! cargo run --profile shipped -p informer-benches --bin side-by-side --features mimalloc -- --write
//! cargo run --release -p informer-benches --bin side-by-side -- --rounds 1 --objects 2000
//! cargo run --release -p informer-benches --bin side-by-side -- --section events --section inside
//! cargo run --profile shipped -p informer-benches --bin side-by-side -- --section serve --write
//! cargo run --profile shipped -p informer-benches --bin side-by-side -- --section watch --write
//! cargo run --profile shipped -p informer-benches --bin side-by-side -- --section callers --write
//! cargo run --release -p informer-benches --bin side-by-side -- --section watch --quick --rounds 1
//! ```

mod callers;
mod cluster;
mod etcd_writer;
mod events;
mod inside;
mod lists;
mod load;
mod numbers;
mod programs;
mod recordings;
mod results_file;
mod rows;
mod runs;
mod serve;
mod versions;
mod warm;
mod watch;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use informer_benches::client::{Client, Target};
use informer_testkit::generate::Generator;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};

use cluster::Cluster;
use events::Events;
use inside::Inside;
use lists::Lists;
use programs::Programs;
use runs::Conditions;

/// Measures clients side by side.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often everything is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,

    /// How many Pods there are
    #[arg(long, default_value_t = 20_000)]
    objects: usize,

    /// Only these sections; may be repeated
    #[arg(long)]
    section: Vec<Section>,

    /// Less of the sections `inside`, `watch` and `callers`, for a first look
    #[arg(long)]
    quick: bool,

    /// Put the tables into benches/RESULTS.md, besides printing them
    #[arg(long)]
    write: bool,

    #[command(flatten)]
    watch: watch::Arguments,

    #[command(subcommand)]
    client: Option<Client>,
}

/// A part of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// CPU time and resident memory of a first list
    Sync,
    /// CPU time of a first list behind the socket
    Replay,
    /// Heap, in a first list and a relist
    Memory,
    /// CPU time and latency of updates
    Events,
    /// Reads, handlers and relists without a server
    Inside,
    /// Lists of `kubectl informer serve`, beside kube-apiserver's
    Serve,
    /// Thousands of its watches, beside kube-apiserver's
    Watch,
    /// What its reviews cost kube-apiserver
    Callers,
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
    let of_servers = [[Section::Serve], [Section::Watch], [Section::Callers]];
    let is_of_servers = of_servers.iter().any(|it| arguments.section == it);
    let is_whole = (arguments.section.is_empty() || is_of_servers)
        && !arguments.quick
        && arguments.watch.is_whole();
    ensure!(
        !arguments.write || is_whole,
        "only whole tables are kept: leave out --quick, --part, and --section but for that of servers"
    );
    if !is_of_servers {
        keep(arguments, results_file::CLIENTS, &clients(arguments).await?)?;
    }
    if arguments.has(Section::Serve) {
        keep(arguments, results_file::SERVERS, &servers(arguments).await?)?;
    }
    if arguments.has(Section::Watch) {
        keep(arguments, results_file::WATCHES, &watches(arguments).await?)?;
    }
    if arguments.has(Section::Callers) {
        keep(arguments, results_file::CALLERS, &callers(arguments).await?)?;
    }
    Ok(())
}

fn keep(arguments: &Arguments, name: &str, report: &str) -> Result<()> {
    print!("{report}");
    if arguments.write {
        results_file::write(name, report)?;
    }
    Ok(())
}

async fn clients(arguments: &Arguments) -> Result<String> {
    let has = |section| arguments.has(section);
    let rounds = arguments.rounds;
    let programs = Programs::build().await?;
    let conditions: Vec<Conditions> = [
        (Section::Sync, Conditions::Server),
        (Section::Replay, Conditions::Recording),
        (Section::Memory, Conditions::Counted),
    ]
    .into_iter()
    .filter_map(|(section, conditions)| has(section).then_some(conditions))
    .collect();
    let mut described = versions::describe(arguments, &programs).await?;
    let (mut lists, mut events) = (Lists::default(), Events::default());
    if !conditions.is_empty() || has(Section::Events) {
        let mut cluster = Cluster::start().await?;
        described.push_str(&versions::of_server(&cluster).await?);
        load_pods(&cluster.target(), &Generator::default(), arguments.objects).await?;
        lists = lists::measure(rounds, &conditions, &programs, &mut cluster).await?;
        if has(Section::Events) {
            events = events::measure(rounds, &programs, &cluster).await?;
        }
    }
    // The server has ended, which would take its share of the processors.
    let inside = match has(Section::Inside) {
        true => inside::measure(rounds, arguments.quick, &programs).await?,
        false => Inside::default(),
    };
    Ok(format!("{described}.\n\n{}", rows::table(&lists, &events, &inside)))
}

async fn servers(arguments: &Arguments) -> Result<String> {
    let mut described =
        versions::describe_ours(arguments.objects, arguments.rounds, &["hyper"], "mimalloc")
            .await?;
    let cluster = Cluster::start().await?;
    described.push_str(&versions::of_server(&cluster).await?);
    load_pods(&cluster.target(), &Generator::default(), arguments.objects).await?;
    let served = serve::measure(arguments.rounds, arguments.objects, &cluster).await?;
    Ok(format!("{described}.\n\n{}", rows::of_servers(&served)))
}

async fn watches(arguments: &Arguments) -> Result<String> {
    let sizes = watch::Sizes::new(arguments.quick);
    let crates = ["hyper", "rustls"];
    let mut described =
        versions::describe_ours(sizes.pods, arguments.rounds, &crates, "mimalloc").await?;
    let cluster = Cluster::start().await?;
    described.push_str(&versions::of_server(&cluster).await?);
    // Each on a node of its own.
    let generator = Generator { pods_per_node: 1, ..Generator::default() };
    load_pods(&cluster.target(), &generator, sizes.pods).await?;
    let table = watch::measure(arguments.rounds, &sizes, &arguments.watch, cluster).await?;
    Ok(format!("{described}.\n\n{table}"))
}

async fn callers(arguments: &Arguments) -> Result<String> {
    let sizes = callers::Sizes::new(arguments.quick);
    let crates = ["hyper", "rustls"];
    let mut described =
        versions::describe_ours(sizes.pods, arguments.rounds, &crates, "mimalloc").await?;
    let cluster = Cluster::start().await?;
    described.push_str(&versions::of_server(&cluster).await?);
    load_pods(&cluster.target(), &Generator::default(), sizes.pods).await?;
    let table = callers::measure(arguments.rounds, sizes, &cluster).await?;
    Ok(format!("{described}.\n\n{table}"))
}

impl Arguments {
    fn has(&self, section: Section) -> bool {
        self.section.is_empty() || self.section.contains(&section)
    }
}

/// Writes the Pods.
async fn load_pods(target: &Target, generator: &Generator, objects: usize) -> Result<()> {
    eprintln!("writing {objects} Pods, about a minute for 20,000");
    let client = target.client().await?;
    load::load(&client, generator, objects).await?;
    let page = Api::<Pod>::all(client).list_metadata(&ListParams::default().limit(1)).await?;
    let found = page.items.len() + page.metadata.remaining_item_count.unwrap_or_default() as usize;
    ensure!(found == objects, "the server has {found} Pods instead of {objects}");
    Ok(())
}
