//! Watches of the Pods of one node each: an event is wanted by one of them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use tokio::time::sleep;

use crate::etcd_writer::EtcdWriter;
use crate::rows::Limit;
use crate::serve::{Running, Server};

use super::bench::{Bench, SETTLE};
use super::findings::Findings;
use super::generator::{ALL_PODS, Generator, Pace};
use super::usage::Usage;

/// How long nothing is delivered until it is believed that nothing more will be.
const QUIET: Duration = Duration::from_secs(3);

/// By how much the cost of an event may grow.
const GROWTH: f64 = 1.3;

pub(super) async fn measure(bench: &Bench, long: bool, findings: &mut Findings) -> Result<()> {
    let servers = bench.servers().await?;
    let [few, many] = bench.sizes.nodes;
    // These change, and have watches in both cases.
    let mut writer = bench.writer(few).await?;
    let paths = paths(bench).await?;
    for server in bench.turns() {
        let nodes = Nodes { bench, server, running: servers.running(server), paths: &paths };
        let at_few = nodes.measure(few, false, &mut writer, findings).await?;
        let at_many = nodes.measure(many, long, &mut writer, findings).await?;
        let what = format!("an event at {many} watches over one at {few}");
        findings.add(what, Limit::Figure(GROWTH), server, at_many / at_few);
    }
    writer.end().await
}

struct Nodes<'a> {
    bench: &'a Bench,
    server: Server,
    running: &'a Running,
    paths: &'a [String],
}

impl Nodes<'_> {
    /// CPU time of an event, µs.
    async fn measure(
        &self,
        watchers: usize,
        long: bool,
        writer: &mut EtcdWriter,
        findings: &mut Findings,
    ) -> Result<f64> {
        let (bench, pid) = (self.bench, self.running.pid);
        let window = bench.sizes.node_window;
        let mut found = |what: &str, value| {
            let what = format!("{watchers} watches of one node each: {what}");
            findings.add(what, Limit::None, self.server, value);
        };
        let mut generator =
            Generator::start(&self.running.target, bench.asked, Pace::Full, self.paths)?;
        generator.open(watchers, &bench.version().await?).await?;
        sleep(SETTLE).await;
        generator.count().await?;

        let idle = Usage::start(pid)?;
        sleep(window).await;
        let idle = idle.spent()?;
        let while_idle = generator.count().await?;

        let events = bench.sizes.node_rate * usize::try_from(window.as_secs())?;
        let usage = Usage::start(pid)?;
        writer.write(events, bench.sizes.node_rate).await?;
        let counts = generator.wait(events, QUIET).await?;
        let spent = usage.spent()?;
        let each = spent.micros_over(idle.rate()) / events as f64;
        found("an event without idle cost, CPU, µs", each);
        let got = counts.changes;
        ensure!(got >= events as u64 || counts.ended > 0, "{got} of {events} deliveries have come");
        found("idle, CPU, ms a second", idle.rate() * 1e3);
        found("bookmarks while idle", while_idle.bookmarks as f64);
        found("bookmarks during events", counts.bookmarks as f64);
        if long {
            let usage = Usage::start(pid)?;
            sleep(bench.sizes.long_idle).await;
            let (spent, counts) = (usage.spent()?, generator.count().await?);
            found("a minute with bookmarks, CPU, ms a second", spent.rate() * 1e3);
            found("bookmarks in that minute", counts.bookmarks as f64);
        }
        found("ended by the server", counts.ended as f64);
        generator.close().await?;
        sleep(SETTLE).await;
        Ok(each)
    }
}

/// A path for each node, in the order in which a list has their Pods.
async fn paths(bench: &Bench) -> Result<Vec<String>> {
    let pods = Api::<Pod>::all(bench.cluster.target().client().await?);
    let list = pods.list(&ListParams::default()).await?;
    let nodes = list.items.into_iter().filter_map(|pod| pod.spec?.node_name);
    let paths: Vec<String> =
        nodes.map(|node| format!("{ALL_PODS}&fieldSelector=spec.nodeName%3D{node}")).collect();
    paths.first().context("no Pod is on a node")?;
    Ok(paths)
}
