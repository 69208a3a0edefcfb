//! Updates that come over HTTP to a synced informer: their CPU time, and how late they reach the
//! handler.
//!
//! They are written into etcd by a process of its own, as the API server would have stored them.
//! Each client is attached alone.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use informer_benches::client::Target;
use informer_benches::events::EventFigures;
use informer_benches::figures::{Figures, Initial};

use crate::cluster::Cluster;
use crate::etcd_writer::EtcdWriter;
use crate::programs::Programs;
use crate::runs::{Run, Runs};

/// How many Pods the updates go round over.
const CHANGING: usize = 1_000;

/// How many updates there are.
const EVENTS: usize = 5_000;

const PER_SECOND: usize = 500;

/// What was measured, by rounds; `None` where a client failed.
#[derive(Default)]
pub(crate) struct Events(HashMap<Run, Vec<Option<Measured>>>);

struct Measured {
    /// Per event, µs.
    cpu: f64,
    /// The median latency, ms.
    p50: f64,
}

pub(crate) async fn measure(
    rounds: usize,
    programs: &Programs,
    cluster: &Cluster,
) -> Result<Events> {
    let Runs { typed, lazy, client_go, kube_runtime, .. } = Runs::of(Initial::WatchList);
    let mut runs = [typed, lazy, client_go, kube_runtime];
    let mut events = Events::default();
    for round in 0..rounds {
        for run in runs {
            let what = format!("round {}/{rounds}: {run} (events)", round + 1);
            let measured = match attached(run, programs, cluster.etcd(), &cluster.target()).await {
                Ok(measured) => {
                    let Measured { cpu, p50 } = measured;
                    eprintln!("{what}: {cpu:.1} µs of CPU per event, p50 {p50:.2} ms");
                    Some(measured)
                }
                Err(error) => {
                    eprintln!("{what}: FAILED: {error:#}");
                    None
                }
            };
            events.0.entry(run).or_default().push(measured);
        }
        // There and back, so that no client always comes after the same one.
        runs.reverse();
    }
    Ok(events)
}

async fn attached(run: Run, programs: &Programs, etcd: &str, target: &Target) -> Result<Measured> {
    let mut writer = EtcdWriter::start(&programs.etcd_writer, etcd, CHANGING).await?;
    let mut running = programs.events(run, target)?;
    let _at_rest: Figures = running.next().await.context("the first list")?;
    writer.write(EVENTS, PER_SECOND).await?;
    let EventFigures { cpu_us, mut latencies } = running.next().await?;
    running.end().await?;
    writer.end().await?;
    let seen = latencies.len();
    ensure!(seen == EVENTS, "the handler was told of {seen} updates of {EVENTS}");
    latencies.sort_unstable();
    Ok(Measured { cpu: cpu_us as f64 / EVENTS as f64, p50: latencies[seen / 2] as f64 / 1e3 })
}

impl Events {
    /// CPU time per event, µs.
    pub(crate) fn cpu(&self, run: Run) -> Vec<Option<f64>> {
        self.each(run, |measured| measured.cpu)
    }

    /// The median latency from the put into etcd to the call of the handler, ms.
    pub(crate) fn p50(&self, run: Run) -> Vec<Option<f64>> {
        self.each(run, |measured| measured.p50)
    }

    fn each(&self, run: Run, value: impl Fn(&Measured) -> f64) -> Vec<Option<f64>> {
        let rounds = self.0.get(&run).map_or(&[][..], Vec::as_slice);
        rounds.iter().map(|measured| measured.as_ref().map(&value)).collect()
    }
}
