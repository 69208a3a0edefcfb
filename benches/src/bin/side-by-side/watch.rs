//! Thousands of watches of `kubectl informer serve`, beside those of the kube-apiserver that it
//! relieves.
//!
//! One server is watched at a time. Pods are changed in etcd, as the API server would have stored
//! them, by a process of its own; another one holds the watches, the same for both servers.

mod agents;
mod bench;
mod deliveries;
mod findings;
mod generator;
mod latency;
mod memory;
mod nodes;
mod slow;
mod tls;
mod usage;

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use informer_benches::figures::Wire;

use crate::cluster::Cluster;

use bench::Bench;
pub(crate) use bench::allow_files;
pub(crate) use findings::Findings;
pub(crate) use tls::Tls;
pub(crate) use usage::Usage;

/// What is measured of watches.
#[derive(Debug, Args)]
#[group(id = "watch")]
pub(crate) struct Arguments {
    /// Only these parts of the section `watch`; may be repeated
    #[arg(long)]
    part: Vec<Part>,

    /// Only so many watches of all Pods, in the section `watch`; may be repeated
    #[arg(long, value_name = "COUNT")]
    watchers: Vec<usize>,

    /// What the watches of the section `watch` ask for
    #[arg(long, default_value = "protobuf")]
    wire: Wire,

    /// Speak HTTP/1.1 in the section `watch`, and not HTTP/2 as client-go does
    #[arg(long)]
    http1: bool,

    /// More arguments of `serve`, for the section `watch`; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    serve_flag: Vec<String>,
}

/// A part of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Opening watches of all Pods, and what events to them cost
    Deliveries,
    /// The cost of an event that only one of many watches selects
    Nodes,
    /// Resident memory of idle watches
    Memory,
    /// How late events are
    Latency,
    /// What agents cost the API server, with and without `serve` between
    Agents,
    /// Watches that are read slowly, and one that is not read
    Slow,
}

/// How much is measured.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    /// How many Pods there are, each on a node of its own.
    pub(crate) pods: usize,
    /// For watches of all Pods: their numbers, and the changes made while they are open.
    deliveries: Vec<Deliveries>,
    /// Watches of one node each: few and many.
    nodes: [usize; 2],
    /// Changes a second for them.
    node_rate: usize,
    /// How long they are idle, and how long there are changes.
    node_window: Duration,
    /// How long many of them are idle, for bookmarks.
    long_idle: Duration,
    /// Idle watches whose memory is looked at.
    idle: usize,
    /// How long latency is measured, and what agents cost.
    window: Duration,
    /// How many watches are read slowly.
    slow: usize,
    /// How long.
    slow_window: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Deliveries {
    watchers: usize,
    /// Changes one by one, and how many a second, so that each has been delivered before the next.
    events: usize,
    rate: usize,
    /// How many bursts of [`BURST`] changes.
    bursts: usize,
}

/// How many changes are in a burst.
const BURST: usize = 100;

/// Measures all of it; the table.
pub(crate) async fn measure(
    rounds: usize,
    sizes: &Sizes,
    arguments: &Arguments,
    cluster: Cluster,
) -> Result<String> {
    let mut sizes = sizes.clone();
    if !arguments.watchers.is_empty() {
        sizes.deliveries = arguments.watchers.iter().map(|&count| Deliveries::to(count)).collect();
    }
    let mut bench = Bench::new(cluster, sizes, arguments).await?;
    let mut findings = Findings::default();
    for round in 1..=rounds {
        for part in Part::value_variants() {
            if !arguments.part.is_empty() && !arguments.part.contains(part) {
                continue;
            }
            eprintln!("round {round}/{rounds}: {part:?}");
            // There and back, so that neither server always comes after the other.
            bench.is_turned = round % 2 == 0;
            let measured = match part {
                Part::Deliveries => deliveries::measure(&bench, &mut findings).await,
                Part::Nodes => nodes::measure(&bench, round == 1, &mut findings).await,
                Part::Memory => memory::measure(&bench, &mut findings).await,
                Part::Latency => latency::measure(&bench, &mut findings).await,
                Part::Agents => agents::measure(&bench, &mut findings).await,
                // It judges nothing.
                Part::Slow if round > 1 => continue,
                Part::Slow => slow::measure(&bench, &mut findings).await,
            };
            // What else is found is worth having.
            if let Err(error) = measured {
                eprintln!("round {round}/{rounds}: {part:?} FAILED: {error:#}");
            }
        }
    }
    Ok(findings.table())
}

impl Deliveries {
    /// At a pace at which either server is done before the next change.
    fn to(watchers: usize) -> Self {
        let rate = (10_000 / watchers.max(1)).clamp(1, 50);
        // More watches than that are not judged by bursts, which take minutes.
        let bursts = if watchers > 1_000 { 0 } else { (5_000 / watchers.max(1)).min(20) };
        Self { watchers, events: (6 * rate).max(30), rate, bursts }
    }
}

impl Sizes {
    /// What the table has, or less for a first look.
    pub(crate) fn new(quick: bool) -> Self {
        let seconds = Duration::from_secs;
        match quick {
            false => Self {
                pods: 5_000,
                deliveries: [50, 1_000, 5_000].map(Deliveries::to).to_vec(),
                nodes: [50, 5_000],
                node_rate: 200,
                node_window: seconds(10),
                long_idle: seconds(61),
                idle: 5_000,
                window: seconds(10),
                slow: 8_000,
                slow_window: seconds(90),
            },
            true => Self {
                pods: 500,
                deliveries: [50, 200].map(Deliveries::to).to_vec(),
                nodes: [50, 500],
                node_rate: 100,
                node_window: seconds(3),
                long_idle: seconds(3),
                idle: 200,
                window: seconds(3),
                slow: 500,
                slow_window: seconds(10),
            },
        }
    }
}

impl Arguments {
    /// Whether all of the table is measured, as it is kept.
    pub(crate) fn is_whole(&self) -> bool {
        self.part.is_empty()
            && self.watchers.is_empty()
            && self.serve_flag.is_empty()
            && !self.http1
            && self.wire == Wire::Protobuf
    }
}
