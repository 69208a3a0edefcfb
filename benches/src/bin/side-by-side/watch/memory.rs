//! Resident memory of watches that get nothing.

use std::time::Duration;

use anyhow::Result;
use informer_benches::resident::Resident;
use tokio::time::sleep;

use crate::rows::Limit;

use super::bench::Bench;
use super::findings::Findings;
use super::generator::Pace;

/// The most that a watch may take over kube-apiserver's.
const MOST: f64 = 1.0 / 4.0;

/// How long until a server has given back what opening the watches took.
const SETTLE: Duration = Duration::from_secs(20);

pub(super) async fn measure(bench: &Bench, findings: &mut Findings) -> Result<()> {
    // New servers without Pods: what one had for other things would serve watches, too.
    let empty = bench.with_empty_cluster().await?;
    let (bench, servers) = (&empty, empty.servers().await?);
    let watchers = bench.sizes.idle;
    for server in bench.turns() {
        let running = servers.running(server);
        sleep(SETTLE).await;
        let before = Resident::of_other(running.pid)?.now;
        let mut generator = bench.watchers(running, Pace::Full)?;
        generator.open(watchers, &bench.version().await?).await?;
        sleep(SETTLE).await;
        let after = Resident::of_other(running.pid)?.now;
        let each = (after as f64 - before as f64) / 1024.0 / watchers as f64;
        let mut found = |what: &str, limit, value| {
            findings.add(format!("{watchers} idle watches: {what}"), limit, server, value);
        };
        found("memory of one, KiB", Limit::Ratio(MOST), each);
        found("resident before, MB", Limit::None, before as f64 / 1e6);
        let counts = generator.count().await?;
        found("ended by the server", Limit::None, counts.ended as f64);
        generator.close().await?;
    }
    Ok(())
}
