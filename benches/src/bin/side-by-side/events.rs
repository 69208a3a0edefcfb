//! Updates that come over HTTP to a synced informer: their CPU time, and how late they reach the handler.
//!
//! They are written into etcd by a process of its own, as the API server would have stored them. Each client is attached
//! alone, and is given one burst after another.

mod report;

use std::collections::HashMap;

use anyhow::{Context, Result};
use informer_benches::figures::{Initial, Kept, Wire};

use crate::Arguments;
use crate::cluster::Cluster;
use crate::etcd_writer::EtcdWriter;
use crate::programs::Programs;
use crate::runs::{Drain, Library, Run};

/// How many Pods the updates go round over.
const CHANGING: usize = 1000;

/// How fast updates are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rate {
    /// 500 a second, for ten seconds.
    Steady,
    /// As many as etcd takes, 250 at a time; the next ones when the client has handled the last. The API server ends a watch
    /// whose client, or whose encoder, is some hundreds of events behind.
    Flat,
}

/// One client that is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Attached {
    Run(Run),
    Drain(Drain),
}

/// What a client did with what was written at one rate. Times in microseconds.
#[derive(Default)]
struct Burst {
    written: usize,
    writing_us: u64,
    cpu_us: u64,
    wall_us: u64,
    /// `None` for a drain.
    seen: Option<usize>,
    latency: Option<Latency>,
    allocations: Option<usize>,
}

/// How late events were, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Latency {
    /// The median.
    p50: u64,
    /// What one in a hundred exceeds.
    p99: u64,
    max: u64,
}

/// What was measured, by rounds; `None` where a client failed.
#[derive(Default)]
pub(crate) struct Measured {
    bursts: HashMap<(Attached, Rate), Vec<Option<Burst>>>,
    /// Blocks allocated per event, counted in a run of its own.
    allocations: HashMap<Attached, f64>,
}

pub(crate) async fn measure(
    arguments: &Arguments,
    programs: &Programs,
    cluster: &Cluster,
) -> Result<Measured> {
    let etcd = cluster.etcd().context(
        "the section `events` writes into etcd: leave out --kubeconfig, so that it starts a cluster of its own, or tell etcd's URL with --etcd",
    )?;
    let session = Session { programs, cluster, etcd };
    let mut measured = Measured::default();
    let mut attached = attached(arguments);
    for round in 0..arguments.rounds {
        for client in &attached {
            let bursts = match session.bursts(*client, &Rate::ALL, false).await {
                Ok(bursts) => bursts.into_iter().map(Some).collect(),
                Err(error) => {
                    eprintln!("events {}/{}: {client}: FAILED: {error:#}", round + 1, arguments.rounds);
                    vec![None, None]
                }
            };
            for (rate, burst) in Rate::ALL.into_iter().zip(bursts) {
                if let Some(burst) = &burst {
                    eprintln!("events {}/{}: {client}, {rate}: {burst}", round + 1, arguments.rounds);
                }
                measured.bursts.entry((*client, rate)).or_default().push(burst);
            }
        }
        // There and back, so that nobody always comes after the same one.
        attached.reverse();
    }
    for client in attached.into_iter().filter(|client| client.counts()) {
        match session.bursts(client, &[Rate::Steady], true).await {
            Ok(bursts) => measured.allocations.extend(
                bursts.iter().filter_map(|burst| Some((client, burst.per_event(burst.allocations? as f64)))),
            ),
            Err(error) => eprintln!("events, counted: {client}: FAILED: {error:#}"),
        }
    }
    Ok(measured)
}

/// Everything that is attached, each drain behind the first client that has it.
fn attached(arguments: &Arguments) -> Vec<Attached> {
    let mut all = Vec::new();
    for run in runs().into_iter().filter(|run| arguments.wants(&run.to_string())) {
        all.push(Attached::Run(run));
        let drain = Attached::Drain(drain(run));
        if !all.contains(&drain) {
            all.push(drain);
        }
    }
    all
}

fn runs() -> [Run; 7] {
    let run = |library, kept, wire, initial| Run { library, kept, wire, stripped: false, initial };
    [
        ours(Library::Informer, Kept::Typed),
        ours(Library::Informer, Kept::Lazy),
        ours(Library::InformerStream, Kept::Typed),
        ours(Library::InformerStream, Kept::Lazy),
        run(Library::ClientGo, Kept::Typed, Wire::Protobuf, Initial::WatchList),
        run(Library::ClientGo, Kept::Typed, Wire::Json, Initial::WatchList),
        run(Library::KubeRuntime, Kept::Typed, Wire::Json, Initial::List),
    ]
}

fn ours(library: Library, kept: Kept) -> Run {
    Run { library, kept, wire: Wire::Protobuf, stripped: false, initial: Initial::WatchList }
}

/// A watch of the same bytes: how the first list came is all the same.
fn drain(run: Run) -> Drain {
    Drain { initial: Initial::WatchList, paged: false, ..run.drain() }
}

struct Session<'a> {
    programs: &'a Programs,
    cluster: &'a Cluster,
    etcd: &'a str,
}

impl Session<'_> {
    /// Attaches a client and gives it what each rate has.
    async fn bursts(&self, client: Attached, rates: &[Rate], counted: bool) -> Result<Vec<Burst>> {
        let target = self.cluster.target();
        let bursts = rates.iter().map(|rate| rate.bursts()).sum();
        let mut writer = EtcdWriter::start(self.programs, self.etcd, CHANGING).await?;
        let mut running = match client {
            Attached::Run(run) => self.programs.start_events(run, &target, bursts, counted)?,
            Attached::Drain(drain) => self.programs.start_events_drain(drain, &target, bursts, counted)?,
        };
        running.next().await.context("the first list")?;
        let mut measured = Vec::new();
        for rate in rates {
            let (mut sum, mut latencies) = (Burst::default(), Vec::new());
            for _ in 0..rate.bursts() {
                let written = writer.write(rate.events(), rate.per_second()).await?;
                let figures = running.next_events().await?;
                sum.written += written.written;
                sum.writing_us += written.wall_us;
                sum.cpu_us += figures.cpu_us;
                sum.wall_us += figures.wall_us;
                sum.allocations =
                    figures.allocations.map(|count| count + sum.allocations.unwrap_or_default());
                latencies.extend(figures.latencies.into_iter().flatten());
            }
            sum.seen = matches!(client, Attached::Run(_)).then_some(latencies.len());
            sum.latency = Latency::of(&mut latencies);
            measured.push(sum);
        }
        running.end().await?;
        writer.end().await?;
        Ok(measured)
    }
}

impl Rate {
    const ALL: [Self; 2] = [Self::Steady, Self::Flat];

    fn bursts(self) -> usize {
        match self {
            Self::Steady => 1,
            Self::Flat => 40,
        }
    }

    /// In each burst.
    fn events(self) -> usize {
        match self {
            Self::Steady => 5_000,
            Self::Flat => 250,
        }
    }

    /// 0 is without a limit.
    fn per_second(self) -> usize {
        match self {
            Self::Steady => 500,
            Self::Flat => 0,
        }
    }
}

impl Attached {
    /// Whether it can count its allocations.
    fn counts(self) -> bool {
        match self {
            Self::Run(run) => run.library != Library::ClientGo,
            Self::Drain(drain) => drain.client == crate::runs::HttpClient::Rust,
        }
    }
}

impl Burst {
    /// Over what was written, whether or not the client was given all of it one by one.
    fn per_event(&self, value: f64) -> f64 {
        value / self.written.max(1) as f64
    }

    fn cpu(&self) -> f64 {
        self.per_event(self.cpu_us as f64)
    }

    fn not_seen(&self) -> Option<usize> {
        Some(self.written.saturating_sub(self.seen?))
    }

    fn arrived_per_second(&self) -> f64 {
        per_second(self.written, self.wall_us)
    }
}

impl Latency {
    fn of(latencies: &mut [u64]) -> Option<Self> {
        latencies.sort_unstable();
        let at = |percent: usize| latencies.get((latencies.len() * percent / 100).min(latencies.len() - 1));
        let max = *latencies.last()?;
        Some(Self { p50: *at(50)?, p99: *at(99)?, max })
    }
}

fn per_second(events: usize, micros: u64) -> f64 {
    events as f64 / (micros.max(1) as f64 / 1e6)
}

impl Measured {
    fn of(&self, attached: Attached, rate: Rate) -> &[Option<Burst>] {
        self.bursts.get(&(attached, rate)).map_or(&[], Vec::as_slice)
    }

    fn each(
        &self,
        attached: Attached,
        rate: Rate,
        value: impl Fn(&Burst) -> Option<f64>,
    ) -> Vec<Option<f64>> {
        self.of(attached, rate).iter().map(|burst| value(burst.as_ref()?)).collect()
    }

    /// CPU time per event, µs.
    fn cpu(&self, attached: Attached, rate: Rate) -> Vec<Option<f64>> {
        self.each(attached, rate, |burst| Some(burst.cpu()))
    }

    /// That beyond its drain's.
    fn net(&self, run: Run, rate: Rate) -> Vec<Option<f64>> {
        let own = self.cpu(Attached::Run(run), rate);
        let drained = self.cpu(Attached::Drain(drain(run)), rate);
        own.into_iter().zip(drained).map(|(own, drained)| Some(own? - drained?)).collect()
    }

    fn latency(&self, run: Run, rate: Rate, of: fn(Latency) -> u64) -> Vec<Option<f64>> {
        self.each(Attached::Run(run), rate, |burst| Some(of(burst.latency?) as f64))
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Steady => "500/s",
            Self::Flat => "flat out",
        })
    }
}

/// Without the way of its first list, which is not measured here.
impl std::fmt::Display for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Self::Run(run) => run.to_string(),
            Self::Drain(drain) => drain.to_string(),
        };
        f.write_str(name.rsplit_once(", ").map_or(name.as_str(), |(name, _)| name))
    }
}

impl std::fmt::Display for Burst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let written = per_second(self.written, self.writing_us);
        write!(f, "{:.1} µs of CPU per event, written at {written:.0}/s", self.cpu())?;
        if let Some(Latency { p50, p99, max }) = self.latency {
            write!(f, ", p50 {p50} µs, p99 {p99}, most {max}")?;
        }
        match self.not_seen() {
            Some(missing) if missing > 0 => write!(f, ", {missing} not seen"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_ranked() {
        let mut latencies: Vec<u64> = (1..=200).rev().collect();
        assert_eq!(Latency::of(&mut latencies), Some(Latency { p50: 101, p99: 199, max: 200 }));
        assert_eq!(Latency::of(&mut [7]), Some(Latency { p50: 7, p99: 7, max: 7 }));
        assert_eq!(Latency::of(&mut []), None);
    }

    #[test]
    fn names_tell_everything_apart() {
        let names: std::collections::HashSet<String> = runs()
            .into_iter()
            .flat_map(|run| [Attached::Run(run).to_string(), Attached::Drain(drain(run)).to_string()])
            .collect();
        // Those of ours share a drain.
        assert_eq!(names.len(), 7 + 4);
    }
}
