//! Five controllers over the same Pods, in one process.

use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::{TryStreamExt, stream};
use informer_tests::fixtures::{create_namespace, pod};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use tokio::time::sleep;

use crate::Arguments;
use crate::page::Table;
use crate::peer::Library;
use crate::stage::Stage;

const NAMESPACE: &str = "five";

/// How long five controllers have for their first reconciles.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often each is measured.
const ROUNDS: usize = 3;

pub(crate) async fn run(stage: &Stage, arguments: &Arguments) -> Result<String> {
    create_namespace(&stage.direct, NAMESPACE).await?;
    let pods = Api::<Pod>::namespaced(stage.direct.clone(), NAMESPACE);
    stream::iter((0..arguments.pods).map(Ok))
        .try_for_each_concurrent(8, |number| {
            let labels = [("app", "web"), ("tier", "front")];
            let pod = pod(NAMESPACE, &format!("pod-{number}"), &labels);
            let pods = &pods;
            async move { pods.create(&PostParams::default(), &pod).await.map(drop) }
        })
        .await?;
    // The experiment changes nothing for those that do not write.
    let is_plain = |library: &&Library| **library != Library::ControllerRuntimeConsistent;
    let libraries: Vec<_> = arguments.library.iter().filter(is_plain).copied().collect();
    let mut measured = vec![Vec::new(); libraries.len()];
    for _ in 0..ROUNDS {
        for (&library, measured) in libraries.iter().zip(&mut measured) {
            measured.push(measure(stage, library, arguments.pods).await?);
        }
    }
    let mut table = Table::new(libraries.iter().map(|library| library.title()));
    let middle = |of: fn(&Figures) -> u64| {
        let middle = |all: &Vec<Figures>| {
            let mut all: Vec<_> = all.iter().map(of).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        measured.iter().map(middle).collect::<Vec<_>>()
    };
    table.row("watches opened", middle(|figures| figures.watches));
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let resident = middle(|figures| figures.resident).into_iter().map(mebibytes);
    table.row("resident memory", resident);
    Ok(table.markdown(&format!("Five controllers over {} Pods", arguments.pods)))
}

#[derive(Debug, Clone)]
struct Figures {
    watches: u64,
    resident: u64,
}

async fn measure(stage: &Stage, library: Library, pods: usize) -> Result<Figures> {
    let before = stage.relay.counts(library.agent()).watches;
    let more = ["--five".to_owned(), pods.to_string()];
    let peer = stage.controller(library, NAMESPACE, &more).await?;
    if peer.until(PATIENCE, |said| said.five.is_some()).await.is_none() {
        bail!("{}: five controllers do not see every Pod", library.title());
    }
    // What is freed after the last reconcile is freed by now.
    sleep(Duration::from_secs(3)).await;
    let watches = stage.relay.counts(library.agent()).watches - before;
    let resident = peer.resident()? as u64;
    peer.stop().await?;
    Ok(Figures { watches: watches as u64, resident })
}
