//! Watches that are read slowly, and one that is not read at all: our memory, and the others.

use std::time::Duration;

use anyhow::{Context, Result};
use informer_benches::client::watches::Counts;
use informer_benches::resident::Resident;
use tokio::time::{interval, sleep};

use crate::etcd_writer::EtcdWriter;
use crate::rows::Limit;
use crate::serve::Server;

use super::bench::{Bench, SETTLE};
use super::findings::Findings;
use super::generator::{Generator, Pace};
use super::usage::Usage;

/// Those that are read at once.
const OTHERS: usize = 50;

const PER_SECOND: usize = 100;

/// How many Pods change in turn.
const CHANGING: usize = 1_000;

/// Four kilobytes a second each.
const SLOW: Pace = Pace::Slow { piece: 4 << 10, pause: Duration::from_secs(1) };

const QUIET: Duration = Duration::from_secs(5);

const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn measure(bench: &Bench, findings: &mut Findings) -> Result<()> {
    let servers = bench.servers().await?;
    let running = servers.running(Server::Ours);
    let slowly = bench.sizes.slow;
    let mut writer = bench.writer(CHANGING.min(bench.sizes.pods)).await?;
    let mut found = |what: &str, value| {
        let what = format!("{slowly} slow watches, one unread: {what}");
        findings.add(what, Limit::None, Server::Ours, value);
    };
    let megabytes = |bytes: usize| bytes as f64 / 1e6;

    let mut others = bench.watchers(running, Pace::Timed)?;
    others.open(OTHERS, &bench.version().await?).await?;
    sleep(SETTLE).await;
    others.count().await?;
    let (_, alone, _) = change(bench.sizes.window, running.pid, &mut writer, &mut others).await?;
    let before = Resident::of_other(running.pid)?.now;

    let mut slow = bench.watchers(running, SLOW)?;
    let mut unread = bench.watchers(running, Pace::Never)?;
    let took = slow.open(slowly, &bench.version().await?).await?;
    unread.open(1, &bench.version().await?).await?;
    sleep(SETTLE).await;
    let idle = Resident::of_other(running.pid)?.now;
    others.count().await?;
    let (resident, beside, busy) =
        change(bench.sizes.slow_window, running.pid, &mut writer, &mut others).await?;

    found("opened after, s", took.as_secs_f64());
    let [p50, p99] = late(&alone)?;
    found("p50 latency of 50 others before, ms", p50);
    found("p99 latency of 50 others before, ms", p99);
    let [p50, p99] = late(&beside)?;
    found("p50 latency of 50 others beside, ms", p50);
    found("p99 latency of 50 others beside, ms", p99);
    found("others ended", beside.ended as f64);
    found("resident before, MB", megabytes(before));
    found("resident once opened, MB", megabytes(idle));
    found("resident at most, MB", megabytes(resident.iter().copied().max().unwrap_or_default()));
    let half = &resident[resident.len() / 2..];
    found(
        "resident at most in the first half, MB",
        megabytes(resident[..resident.len() / 2].iter().copied().max().unwrap_or_default()),
    );
    found(
        "resident at most in the second half, MB",
        megabytes(half.iter().copied().max().unwrap_or_default()),
    );
    found("resident at last, MB", megabytes(resident.last().copied().unwrap_or_default()));
    found("busy processors, %", busy * 100.0);

    for (name, generator) in [("slow", &mut slow), ("unread", &mut unread)] {
        generator.hurry().await?;
        let counts = generator.wait(usize::MAX, QUIET).await?;
        found(&format!("{name} ones that were ended"), counts.ended as f64);
        found(&format!("{name} ones that were ended by an error event"), counts.refused as f64);
    }
    slow.close().await?;
    unread.close().await?;
    others.close().await?;
    writer.end().await
}

/// Changes Pods for a while: our memory meanwhile, what the others got, and how busy it was.
async fn change(
    window: Duration,
    pid: u32,
    writer: &mut EtcdWriter,
    others: &mut Generator,
) -> Result<(Vec<usize>, Counts, f64)> {
    let events = PER_SECOND * usize::try_from(window.as_secs())?;
    let usage = Usage::start(pid)?;
    let mut resident = Vec::new();
    let mut looks = interval(LOOK);
    let mut changes = std::pin::pin!(writer.write(events, PER_SECOND));
    loop {
        tokio::select! {
            written = &mut changes => break written?,
            _ = looks.tick() => resident.push(Resident::of_other(pid)?.now),
        }
    }
    let busy = usage.spent()?.busy;
    let counts = others.wait((events + 1) * OTHERS, QUIET).await?;
    resident.push(Resident::of_other(pid)?.now);
    Ok((resident, counts, busy))
}

/// The median latency and that of a hundredth, ms.
fn late(counts: &Counts) -> Result<[f64; 2]> {
    let late = counts.late_us.context("no event says when it was sent")?;
    Ok(late.map(|micros| micros as f64 / 1e3))
}
