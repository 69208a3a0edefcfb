//! How late events are, from the put into etcd to the process that watches.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::sleep;

use crate::rows::Limit;

use super::bench::{Bench, SETTLE};
use super::findings::Findings;
use super::generator::Pace;
use super::usage::Usage;

const WATCHERS: usize = 50;

const PER_SECOND: usize = 200;

/// How many Pods change in turn.
const CHANGING: usize = 1_000;

/// The most over a watch of kube-apiserver.
const MOST: f64 = 2.0;

const QUIET: Duration = Duration::from_secs(3);

pub(super) async fn measure(bench: &Bench, findings: &mut Findings) -> Result<()> {
    let servers = bench.servers().await?;
    let mut writer = bench.writer(CHANGING.min(bench.sizes.pods)).await?;
    let events = PER_SECOND * usize::try_from(bench.sizes.window.as_secs())?;
    for server in bench.turns() {
        let running = servers.running(server);
        let mut generator = bench.watchers(running, Pace::Timed)?;
        generator.open(WATCHERS, &bench.version().await?).await?;
        sleep(SETTLE).await;
        generator.count().await?;
        let usage = Usage::start(running.pid)?;
        writer.write(events, PER_SECOND).await?;
        let busy = usage.spent()?.busy;
        let counts = generator.wait((events + 1) * WATCHERS, QUIET).await?;
        let [p50, p99] = counts.late_us.context("no event says when it was sent")?;
        let mut found = |what: &str, limit, value| {
            let what = format!("{WATCHERS} watches, {PER_SECOND} changes/s: {what}");
            findings.add(what, limit, server, value);
        };
        found("p50 latency, ms", Limit::Ratio(MOST), p50 as f64 / 1e3);
        found("p99 latency, ms", Limit::Ratio(MOST), p99 as f64 / 1e3);
        found("busy processors, %", Limit::None, busy * 100.0);
        found("ended by the server", Limit::None, counts.ended as f64);
        generator.close().await?;
    }
    writer.end().await
}
