//! One informer in a process of its own, measured from the inside.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt;
use informer::{InformerOptions, InformerState, Resource, SharedInformer, SharedInformerFactory};
use informer_benches::resident::Resident;
use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;

use crate::HEAP;
use crate::report::{Figures, Initial, Kept, Phase};

/// Ten fields of a Pod, which is what a controller may need.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only kept")]
struct TenFields {
    metadata: Metadata,
    spec: Spec,
    status: Option<PodStatus>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only kept")]
struct Metadata {
    name: Box<str>,
    namespace: Box<str>,
    #[serde(default)]
    labels: std::collections::BTreeMap<Box<str>, Box<str>>,
    creation_timestamp: Option<Box<str>>,
    deletion_timestamp: Option<Box<str>>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only kept")]
struct Spec {
    node_name: Option<Box<str>>,
    service_account_name: Option<Box<str>>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only kept")]
struct PodStatus {
    phase: Option<Box<str>>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
    start_time: Option<Box<str>>,
}

/// Syncs one informer and prints the figures, once for the first list and, if `relist`, once for the relist
/// that somebody forces on it after that.
pub(crate) async fn run(client: kube::Client, kept: Kept, initial: Initial, relist: bool) -> Result<()> {
    let factory = SharedInformerFactory::builder(client).build();
    match kept {
        Kept::Typed => measure(&factory, relist, || factory.informer_with::<Pod>(options(initial))).await,
        Kept::Metadata => measure(&factory, relist, || factory.metadata::<Pod>(options(initial))).await,
        Kept::TenFields => {
            let pods = Resource::of::<Pod>();
            measure(&factory, relist, || factory.informer_as::<TenFields>(pods, options(initial))).await
        }
        Kept::Dynamic => {
            let pods = Resource::of::<Pod>();
            measure(&factory, relist, || factory.informer_as::<DynamicObject>(pods, options(initial))).await
        }
    }
}

/// The first list in one piece, or streamed.
fn options<T>(initial: Initial) -> InformerOptions<T> {
    InformerOptions::new().page_size(None).streaming_lists(initial == Initial::WatchList)
}

async fn measure<T: Send + Sync + 'static>(
    factory: &SharedInformerFactory,
    relist: bool,
    informer: impl FnOnce() -> Result<SharedInformer<T>, informer::Error>,
) -> Result<()> {
    let empty = HEAP.live();
    HEAP.reset();
    let informer = informer()?;
    factory.start();
    informer.synced_within(Duration::from_secs(300)).await?;
    let first = figures(&informer, Phase::First, empty, 0).await?;
    let seen = first.decoded;
    print(&first)?;
    if relist {
        print(&figures(&informer, Phase::Relist, empty, seen).await?)?;
    }
    Ok(())
}

/// Waits for a list of the phase and the watch after it, and measures.
async fn figures<T: Send + Sync + 'static>(
    informer: &SharedInformer<T>,
    phase: Phase,
    empty: usize,
    seen: u64,
) -> Result<Figures> {
    let mut changes = informer.status_changes();
    let status = loop {
        let status = tokio::time::timeout(Duration::from_secs(300), changes.next()).await;
        let status = status.context("no progress for 5 minutes")?.context("the informer stopped")?;
        let counters = status.counters;
        let listed = counters.decoded + counters.unchanged - seen;
        if matches!(status.state, InformerState::Watching { .. }) && listed >= status.objects as u64 {
            break status;
        }
        if matches!(status.state, InformerState::Stopped | InformerState::Degraded { .. }) {
            bail!("the informer does not sync: {:?}", status.recent_errors);
        }
    };
    drop(changes);
    let settled = settle().await;
    let resident = Resident::read()?;
    let counters = status.counters;
    ensure!(counters.undecodable == 0, "undecodable: {:?}", status.stale);
    Ok(Figures {
        phase,
        objects: status.objects,
        bytes: counters.bytes,
        decoded: counters.decoded - seen,
        unchanged: counters.unchanged,
        settled: settled.saturating_sub(empty),
        over: HEAP.peak().saturating_sub(settled),
        calls: HEAP.calls(),
        resident: resident.now,
        resident_peak: resident.peak,
    })
}

/// What is allocated once nothing moves any more.
async fn settle() -> usize {
    let (mut live, mut same) = (HEAP.live(), 0);
    while same < 10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = HEAP.live();
        same = if now == live { same + 1 } else { 0 };
        live = now;
    }
    live
}

fn print(figures: &Figures) -> Result<()> {
    let line = serde_json::to_string(figures)?;
    // From here on the high-water mark is that of the next phase.
    HEAP.reset();
    println!("{line}");
    Ok(())
}
