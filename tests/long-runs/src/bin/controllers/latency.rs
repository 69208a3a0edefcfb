//! Time from a change to the reconcile that sees it, without trouble.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use informer_tests::relay::now_in_micros;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use crate::Arguments;
use crate::page::{Table, millis, percentile};
use crate::peer::{Peer, Said};
use crate::stage::Stage;

/// How many Sets each controller has.
const SETS: usize = 50;

/// How long a change may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a controller has for the writes that follow, before the next is measured.
const PAUSE: Duration = Duration::from_millis(40);

pub(crate) async fn run(stage: &Stage, arguments: &Arguments) -> Result<String> {
    let mut peers = Vec::new();
    for &library in &arguments.library {
        let namespace = format!("latency-{}", library.agent());
        stage.sets(&namespace, SETS, 1).await?;
        let peer = stage.controller(library, &namespace, &[]).await?;
        if let Err(wrong) = stage.settled(&namespace, PATIENCE).await? {
            bail!("{}: {wrong} Sets do not get their first children", library.title());
        }
        peers.push((library, namespace, peer, Vec::new()));
    }
    let mut random = fastrand::Rng::with_seed(arguments.seed);
    // The first rounds are not counted.
    let warm = SETS.min(arguments.rounds);
    for round in 0..warm + arguments.rounds {
        random.shuffle(&mut peers);
        for (_, namespace, peer, took) in &mut peers {
            let micros = change(stage, namespace, peer, round).await?;
            if round >= warm {
                took.push(micros);
            }
            sleep(PAUSE).await;
        }
    }
    peers.sort_by_key(|(library, ..)| *library);
    let mut table = Table::new(peers.iter().map(|(library, ..)| library.title()));
    for (_, _, _, took) in &mut peers {
        took.sort_unstable();
    }
    for part in [50, 99] {
        let cells = peers.iter().map(|(_, _, _, took)| millis(percentile(took, part)));
        table.row(format!("p{part}"), cells);
    }
    let medians = peers.iter().map(|(_, _, _, took)| percentile(took, 50) as f64);
    let ours = percentile(&peers[0].3, 50) as f64;
    table.row(
        "p50 of the first column over this one",
        medians.map(|p50| format!("{:.2}", ours / p50)),
    );
    Ok(table.markdown("From a change to its reconcile"))
}

/// Changes one Set; how long until a reconcile sees it, in microseconds.
async fn change(stage: &Stage, namespace: &str, peer: &Peer, round: usize) -> Result<u64> {
    let name = format!("set-{}", round % SETS);
    let replicas = 1 + (round / SETS + 1) % 2;
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    let known = peer.said().reconciles.len();
    let sent = now_in_micros();
    let set = stage.api(namespace).patch(&name, &PatchParams::default(), &patch).await?;
    let generation = set.metadata.generation.context("a Set has a generation")?;
    let mut at = None;
    let sees = |said: &Said| {
        let mut later = said.reconciles[known..].iter();
        at = later
            .find(|it| it.name == name && it.generation >= generation)
            .map(|reconcile| reconcile.at);
        at.is_some()
    };
    let seen = peer.until(PATIENCE, sees).await;
    seen.context("a change is not reconciled")?;
    Ok(at.context("it was seen")?.saturating_sub(sent))
}
