//! What the API server pays for agents that watch all Pods, with and without `serve` between.

use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use crate::rows::Limit;
use crate::serve::Server;

use super::bench::{Bench, SETTLE};
use super::findings::Findings;
use super::generator::Pace;
use super::usage::Usage;

const AGENTS: usize = 200;

const PER_SECOND: usize = 50;

/// How many Pods change in turn.
const CHANGING: usize = 1_000;

const QUIET: Duration = Duration::from_secs(3);

/// What the figures are for.
const MINUTE: f64 = 60.0;

pub(super) async fn measure(bench: &Bench, findings: &mut Findings) -> Result<()> {
    let servers = bench.servers().await?;
    let mut writer = bench.writer(CHANGING.min(bench.sizes.pods)).await?;
    let events = PER_SECOND * usize::try_from(bench.sizes.window.as_secs())?;
    let [ours, theirs] = [Server::Ours, Server::KubeApiserver].map(|it| servers.running(it));
    let what = |of: &str| format!("{PER_SECOND} changes/s, {of}, CPU seconds a minute");

    let (kube_apiserver, serve) = (Usage::start(theirs.pid)?, Usage::start(ours.pid)?);
    writer.write(events, PER_SECOND).await?;
    let (kube_apiserver, serve) = (kube_apiserver.spent()?, serve.spent()?);
    let without = what("no agent: the server itself");
    findings.add(&without, Limit::None, Server::Ours, serve.rate() * MINUTE);
    findings.add(&without, Limit::None, Server::KubeApiserver, kube_apiserver.rate() * MINUTE);

    for server in bench.turns() {
        let mut generator = bench.watchers(servers.running(server), Pace::Full)?;
        generator.open(AGENTS, &bench.version().await?).await?;
        sleep(SETTLE).await;
        generator.count().await?;
        let (kube_apiserver, serve) = (Usage::start(theirs.pid)?, Usage::start(ours.pid)?);
        writer.write(events, PER_SECOND).await?;
        let counts = generator.wait((events + 1) * AGENTS, QUIET).await?;
        let (kube_apiserver, serve) = (kube_apiserver.spent()?, serve.spent()?);
        let agents = what(&format!("{AGENTS} agents: kube-apiserver (ours: with `serve` between)"));
        findings.add(agents, Limit::None, server, kube_apiserver.rate() * MINUTE);
        if server == Server::Ours {
            let itself = what(&format!("{AGENTS} agents: `serve`"));
            findings.add(itself, Limit::None, server, serve.rate() * MINUTE);
        }
        let ended = format!("{AGENTS} agents: ended by the server");
        findings.add(ended, Limit::None, server, counts.ended as f64);
        generator.close().await?;
        sleep(SETTLE).await;
    }
    writer.end().await
}
