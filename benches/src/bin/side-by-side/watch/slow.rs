//! Watches that are read slowly, and one that is not read at all: our memory, and the others.

use std::time::Duration;

use anyhow::{Result, ensure};
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

const PER_SECOND: usize = 10;

/// How many Pods change in turn.
const CHANGING: usize = 1_000;

/// Four kilobytes a second each.
const SLOW: Pace = Pace::Slow { piece: 4 << 10, pause: Duration::from_secs(1) };

const QUIET: Duration = Duration::from_secs(5);

/// How often the latency of the others is told.
const SLICE: Duration = Duration::from_secs(5);

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
    let alone = change(SLICE * 2, running.pid, &mut writer, &mut others).await?;
    let before = Resident::of_other(running.pid)?.now;

    let mut slow = bench.watchers(running, SLOW)?;
    let mut unread = bench.watchers(running, Pace::Never)?;
    let took = slow.open(slowly, &bench.version().await?).await?;
    unread.open(1, &bench.version().await?).await?;
    sleep(SETTLE).await;
    let idle = Resident::of_other(running.pid)?.now;
    others.count().await?;
    let beside = change(bench.sizes.slow_window, running.pid, &mut writer, &mut others).await?;

    found("opened after, s", took.as_secs_f64());
    for (when, changed) in [("before", &alone), ("beside", &beside)] {
        for (at, name) in ["p50", "p99"].into_iter().enumerate() {
            let mut late: Vec<f64> = changed.late.iter().map(|late| late[at]).collect();
            eprintln!("    {name} {when}, by slices, ms: {late:.1?}");
            late.sort_by(f64::total_cmp);
            let name = format!("{name} latency of {OTHERS} others {when}");
            found(&format!("{name}, ms"), late[late.len() / 2]);
            let most = late.last().copied().unwrap_or_default();
            found(&format!("{name}, in the worst five seconds, ms"), most);
        }
    }
    eprintln!("    resident, each half a second, MB: {:.0?}", beside.resident);
    let most = |resident: &[f64]| resident.iter().copied().fold(0.0, f64::max);
    let (early, later) = beside.resident.split_at(beside.resident.len() / 2);
    found("others that were ended", beside.ended as f64);
    found("resident before, MB", megabytes(before));
    found("resident once opened, MB", megabytes(idle));
    found("resident at most in the first half, MB", most(early));
    found("resident at most in the second half, MB", most(later));
    found("resident at last, MB", later.last().copied().unwrap_or_default());
    found("busy processors, %", beside.busy * 100.0);

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

/// What was seen while Pods changed.
struct Changed {
    /// Our memory, each [`LOOK`], in megabytes.
    resident: Vec<f64>,
    /// The median latency of the others and that of a hundredth, each [`SLICE`], in milliseconds.
    late: Vec<[f64; 2]>,
    /// Of the others.
    ended: usize,
    busy: f64,
}

/// Changes Pods for a while.
async fn change(
    window: Duration,
    pid: u32,
    writer: &mut EtcdWriter,
    others: &mut Generator,
) -> Result<Changed> {
    let events = PER_SECOND * usize::try_from(window.as_secs())?;
    let usage = Usage::start(pid)?;
    let (mut resident, mut late, mut ended) = (Vec::new(), Vec::new(), 0);
    let (mut looks, mut slices) = (interval(LOOK), interval(SLICE));
    slices.tick().await;
    let mut changes = std::pin::pin!(writer.write(events, PER_SECOND));
    loop {
        tokio::select! {
            written = &mut changes => break written?,
            _ = looks.tick() => resident.push(Resident::of_other(pid)?.now as f64 / 1e6),
            _ = slices.tick() => {
                let counts = others.count().await?;
                ended = counts.ended;
                // What is later than a slice is in a later one.
                late.extend(counts.late_us.map(|slice| slice.map(|micros| micros as f64 / 1e3)));
            }
        }
    }
    let busy = usage.spent()?.busy;
    others.wait(usize::MAX, QUIET / 5).await?;
    ensure!(!late.is_empty(), "it was too short");
    Ok(Changed { resident, late, ended, busy })
}
