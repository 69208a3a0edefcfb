//! Events to all watches of all Pods.

use std::time::Duration;

use anyhow::{Result, ensure};
use informer_benches::client::watches::Counts;
use tokio::time::sleep;

use crate::etcd_writer::EtcdWriter;
use crate::rows::Limit;
use crate::serve::{Running, Server};

use super::bench::{Bench, SETTLE, idle_rate};
use super::findings::Findings;
use super::generator::{Generator, Pace};
use super::usage::Usage;
use super::{BURST, Deliveries};

/// How many Pods change in turn.
const CHANGING: usize = 1_000;

/// How many changes come before those that are measured: Go sends smaller TLS records until a
/// connection has had 128 KiB.
const WARM_UP: usize = 25;

/// How long nothing is delivered until it is believed that nothing more will be.
const QUIET: Duration = Duration::from_secs(3);

/// How long a burst takes with no watch to tell of its end.
const BURST_TAKES: Duration = Duration::from_millis(500);

/// The most that a delivery may cost over kube-apiserver's.
const ONE_BY_ONE: f64 = 1.0 / 5.0;
const IN_BURSTS: f64 = 1.0 / 10.0;

/// What a server does anyway.
struct Anyway {
    /// Processors.
    idle: f64,
    /// CPU time of a change that no watch wants, µs: one by one, and in bursts.
    change: f64,
    change_in_burst: f64,
}

pub(super) async fn measure(bench: &Bench, findings: &mut Findings) -> Result<()> {
    let servers = bench.servers().await?;
    let mut writer = bench.writer(CHANGING.min(bench.sizes.pods)).await?;
    for server in bench.turns() {
        let running = servers.running(server);
        let anyway = anyway(running, &mut writer, &bench.sizes.deliveries).await?;
        findings.add("a change that no watch wants: CPU, µs", Limit::None, server, anyway.change);
        for &deliveries in &bench.sizes.deliveries {
            let all = All { bench, server, running, deliveries, anyway: &anyway };
            all.measure(&mut writer, findings).await?;
        }
    }
    writer.end().await
}

async fn anyway(running: &Running, writer: &mut EtcdWriter, all: &[Deliveries]) -> Result<Anyway> {
    let Some(&Deliveries { events, rate, bursts, .. }) = all.first() else {
        return Ok(Anyway { idle: 0.0, change: 0.0, change_in_burst: 0.0 });
    };
    // The first changes after a while take longer.
    writer.write(events, rate).await?;
    sleep(SETTLE).await;
    let idle = idle_rate(running, SETTLE).await?;
    let usage = Usage::start(running.pid)?;
    writer.write(events, rate).await?;
    sleep(BURST_TAKES).await;
    let change = usage.spent()?.micros_over(idle) / (events + 1) as f64;
    let usage = Usage::start(running.pid)?;
    for _ in 0..bursts {
        writer.write(BURST, 0).await?;
        sleep(BURST_TAKES).await;
    }
    let changes = (bursts * (BURST + 1)).max(1);
    let change_in_burst = usage.spent()?.micros_over(idle) / changes as f64;
    Ok(Anyway { idle, change, change_in_burst })
}

/// So many watches of one server.
struct All<'a> {
    bench: &'a Bench,
    server: Server,
    running: &'a Running,
    deliveries: Deliveries,
    anyway: &'a Anyway,
}

impl All<'_> {
    async fn measure(&self, writer: &mut EtcdWriter, findings: &mut Findings) -> Result<()> {
        let Deliveries { watchers, events, rate, bursts } = self.deliveries;
        let mut generator = self.bench.watchers(self.running, Pace::Full)?;
        let opening = Usage::start(self.running.pid)?;
        let took = generator.open(watchers, &self.bench.version().await?).await?;
        let per_watch = opening.spent()?.cpu.as_secs_f64() * 1e6 / watchers as f64;
        sleep(SETTLE).await;
        writer.write(WARM_UP, rate).await?;
        generator.wait((WARM_UP + 1) * watchers, QUIET).await?;

        let mut found = |what: &str, limit, value| {
            findings.add(format!("{watchers} watches: {what}"), limit, self.server, value);
        };
        found("all opened after, s", Limit::None, took.as_secs_f64());
        found("opening one, CPU, µs", Limit::None, per_watch);

        let usage = Usage::start(self.running.pid)?;
        writer.write(events, rate).await?;
        let counts = generator.wait((events + 1) * watchers, QUIET).await?;
        let spent = usage.spent()?;
        let anyway = self.anyway.change * (events + 1) as f64;
        let each = (spent.micros_over(self.anyway.idle) - anyway) / counts.changes as f64;
        found("one by one, CPU of a delivery, µs", Limit::Ratio(ONE_BY_ONE), each);
        found("one by one, busy processors, %", Limit::None, spent.busy * 100.0);
        found("bytes of a delivery", Limit::None, counts.bytes as f64 / counts.changes as f64);
        complete(&counts, events + 1, watchers)?;
        if bursts > 0 {
            let usage = Usage::start(self.running.pid)?;
            let counts = self.bursts(writer, &mut generator).await?;
            let spent = usage.spent()?;
            let changes = bursts * (BURST + 1);
            let anyway = self.anyway.change_in_burst * changes as f64;
            let each = (spent.micros_over(self.anyway.idle) - anyway) / counts.changes as f64;
            found("in bursts, CPU of a delivery, µs", Limit::Ratio(IN_BURSTS), each);
            complete(&counts, changes, watchers)?;
            found(
                "in bursts, time of one, ms",
                Limit::None,
                spent.wall.as_secs_f64() * 1e3 / bursts as f64,
            );
        }
        let counts = generator.count().await?;
        found("ended by the server", Limit::None, counts.ended as f64);
        generator.close().await
    }

    async fn bursts(&self, writer: &mut EtcdWriter, generator: &mut Generator) -> Result<Counts> {
        let Deliveries { watchers, bursts, .. } = self.deliveries;
        let mut all = Counts { open: watchers, ..Counts::default() };
        for _ in 0..bursts {
            writer.write(BURST, 0).await?;
            let counts = generator.wait((BURST + 1) * all.open, QUIET).await?;
            all = Counts {
                changes: all.changes + counts.changes,
                bookmarks: all.bookmarks + counts.bookmarks,
                bytes: all.bytes + counts.bytes,
                ..counts
            };
        }
        Ok(all)
    }
}

/// Only watches that were ended may have missed something.
fn complete(counts: &Counts, changes: usize, watchers: usize) -> Result<()> {
    let (got, all) = (counts.changes, (changes * watchers) as u64);
    if got < all {
        eprintln!("    {got} of {all} deliveries; {} watches were ended", counts.ended);
    }
    ensure!(got >= all || counts.ended > 0, "{got} of {all} deliveries have come");
    Ok(())
}
