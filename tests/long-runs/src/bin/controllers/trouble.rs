//! What controllers do when something goes wrong.

use std::time::Duration;

use anyhow::{Context, Result};
use informer_peer_controllers::{Set, SetSpec};
use informer_tests::fixtures::create_namespace;
use informer_tests::relay::now_in_micros;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use crate::Arguments;
use crate::page::Table;
use crate::peer::{Library, Peer};
use crate::stage::Stage;

/// How long something may take before it is said not to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many Sets there are, and how many of them change.
const SETS: usize = 50;
const CHANGED: usize = 20;

/// How long connections are refused.
const GAP: Duration = Duration::from_secs(5);

/// How often connections are refused.
const ROUNDS: usize = 5;

/// How long all leases are.
const LEASE: Duration = Duration::from_secs(15);

/// A controller, and the rows of its column.
struct Column {
    library: Library,
    namespace: String,
    peer: Peer,
    cells: Vec<(String, String)>,
}

pub(crate) async fn run(stage: &Stage, arguments: &Arguments) -> Result<String> {
    let is_plain = |library: &&Library| **library != Library::ControllerRuntimeConsistent;
    let libraries: Vec<_> = arguments.library.iter().filter(is_plain).copied().collect();
    let mut columns = Vec::new();
    for &library in &libraries {
        let namespace = format!("trouble-{}", library.agent());
        let peer = stage.controller(library, &namespace, &[]).await?;
        columns.push(Column { library, namespace, peer, cells: Vec::new() });
    }
    installed_late(stage, &mut columns).await?;
    cut(stage, &mut columns).await?;
    recreated(stage, &mut columns).await?;
    swallowed(stage, &mut columns).await?;
    for column in &mut columns {
        leadership(stage, column).await?;
    }
    let mut table = Table::new(libraries.iter().map(|library| library.title()));
    let names: Vec<_> = columns[0].cells.iter().map(|(name, _)| name.clone()).collect();
    for name in names {
        let cell = |column: &Column| {
            let mut cells = column.cells.iter();
            let cell = cells.find(|(row, _)| *row == name);
            cell.map_or_else(|| "—".to_owned(), |(_, cell)| cell.clone())
        };
        table.row(&name, columns.iter().map(cell));
    }
    Ok(table.markdown("Trouble"))
}

impl Column {
    fn say(&mut self, name: &str, cell: impl Into<String>) {
        let cell = cell.into();
        eprintln!("controllers: {}: {name}: {cell}", self.library.title());
        self.cells.push((name.to_owned(), cell));
    }

    fn say_after(&mut self, name: &str, after: Option<Duration>) {
        self.say(name, after.map_or_else(|| format!("not in {} s", PATIENCE.as_secs()), seconds));
    }

    fn counts(&self) -> (usize, usize) {
        let said = self.peer.said();
        (said.reconciles.len(), said.failed.len())
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The definition of Sets comes ten seconds after the controllers.
async fn installed_late(stage: &Stage, columns: &mut [Column]) -> Result<()> {
    sleep(Duration::from_secs(10)).await;
    let (began, since) = (Instant::now(), now_in_micros());
    stage.install().await?;
    for column in columns.iter() {
        stage.sets(&column.namespace, SETS, 1).await?;
    }
    for column in columns {
        const ROW: &str = "definition installed late: until the first reconcile";
        if column.peer.has_ended() {
            column.say(ROW, "the process has ended");
            column.peer = stage.controller(column.library, &column.namespace, &[]).await?;
            continue;
        }
        let most = PATIENCE.saturating_sub(began.elapsed());
        column.peer.until(most, |said| !said.reconciles.is_empty()).await;
        let first = column.peer.said().reconciles.first().map(|reconcile| reconcile.at);
        let after = first.map(|at| Duration::from_micros(at.saturating_sub(since)));
        if after.is_none() && column.peer.has_ended() {
            column.say(ROW, "the process ends");
            column.peer = stage.controller(column.library, &column.namespace, &[]).await?;
        } else {
            column.say_after(ROW, after);
        }
    }
    Ok(())
}

/// Changes while connections are refused.
async fn cut(stage: &Stage, columns: &mut [Column]) -> Result<()> {
    let mut all = vec![Vec::new(); columns.len()];
    let mut counts = vec![(0, 0); columns.len()];
    for round in 0..ROUNDS {
        fresh(stage, columns).await?;
        let before: Vec<_> = columns.iter().map(Column::counts).collect();
        stage.proxy.refuse().await;
        let began = Instant::now();
        let patch = Patch::Merge(json!({ "spec": { "replicas": 1 + (round + 1) % 2 } }));
        for column in columns.iter() {
            let sets = stage.api(&column.namespace);
            for number in 0..CHANGED {
                let name = format!("set-{number}");
                sets.patch(&name, &PatchParams::default(), &patch).await?;
            }
        }
        sleep_until(began + GAP).await;
        stage.proxy.accept().await;
        for (all, after) in all.iter_mut().zip(until_settled(stage, columns).await) {
            all.push(after);
        }
        sleep(Duration::from_secs(2)).await;
        for ((column, counts), before) in columns.iter().zip(&mut counts).zip(before) {
            let now = column.counts();
            *counts = (counts.0 + now.0 - before.0, counts.1 + now.1 - before.1);
        }
    }
    for ((column, mut all), (reconciles, failed)) in columns.iter_mut().zip(all).zip(counts) {
        // Those that were not seen come last.
        all.sort_by_key(|after| after.unwrap_or(Duration::MAX));
        let gap = GAP.as_secs();
        let name = format!("connections refused for {gap} s: until all is right, median");
        column.say_after(&name, all[ROUNDS / 2]);
        column.say_after("… at most", all[ROUNDS - 1]);
        let per_change = reconciles as f64 / (ROUNDS * CHANGED) as f64;
        column.say("… reconciles per change", format!("{per_change:.1}"));
        column.say("… failed reconciles", failed.to_string());
    }
    Ok(())
}

/// Starts the controllers again, so that what happened before does not count.
async fn fresh(stage: &Stage, columns: &mut [Column]) -> Result<()> {
    for column in columns.iter_mut() {
        column.peer = stage.controller(column.library, &column.namespace, &[]).await?;
    }
    for column in columns.iter() {
        _ = stage.settled(&column.namespace, PATIENCE).await?;
    }
    // A watch that breaks in its first second is another thing.
    sleep(Duration::from_secs(3)).await;
    Ok(())
}

/// A Set is deleted and created again while connections are refused.
async fn recreated(stage: &Stage, columns: &mut [Column]) -> Result<()> {
    fresh(stage, columns).await?;
    stage.proxy.refuse().await;
    let mut uids = Vec::new();
    for column in columns.iter() {
        let sets = stage.api(&column.namespace);
        sets.delete("set-0", &DeleteParams::default()).await?;
        let set = Set::new("set-0", SetSpec { replicas: 3 });
        let set = sets.create(&PostParams::default(), &set).await?;
        uids.push(set.uid().context("a Set has a UID")?);
    }
    sleep(GAP).await;
    stage.proxy.accept().await;
    let after = until_settled(stage, columns).await;
    for ((column, after), uid) in columns.iter_mut().zip(after).zip(uids) {
        let reconciles = column.peer.said().reconciles.iter().filter(|it| it.uid == uid).count();
        column.say_after("a Set deleted and created again in a gap: until all is right", after);
        column.say("… reconciles of the new one", reconciles.to_string());
    }
    Ok(())
}

/// Deletes children while connections are refused, then compacts the history, so that the
/// deletions are only visible in a new list.
async fn swallowed(stage: &Stage, columns: &mut [Column]) -> Result<()> {
    fresh(stage, columns).await?;
    let before: Vec<_> = columns.iter().map(Column::counts).collect();
    stage.proxy.refuse().await;
    for column in columns.iter() {
        let children = Api::<ConfigMap>::namespaced(stage.direct.clone(), &column.namespace);
        for child in children.list(&ListParams::default()).await?.items.iter().rev().take(10) {
            children.delete(&child.name_any(), &DeleteParams::default()).await?;
        }
    }
    stage.cluster.forget_history().await?;
    stage.proxy.accept().await;
    let after = until_settled(stage, columns).await;
    sleep(Duration::from_secs(5)).await;
    for ((column, after), (reconciles, failed)) in columns.iter_mut().zip(after).zip(before) {
        let now = column.counts();
        column.say_after(
            "10 children deleted in a gap that the server forgot: until all is right",
            after,
        );
        column.say("… reconciles then", (now.0 - reconciles).to_string());
        column.say("… failed reconciles then", (now.1 - failed).to_string());
    }
    Ok(())
}

/// When the children of each column are right, at the same time for all.
async fn until_settled(stage: &Stage, columns: &[Column]) -> Vec<Option<Duration>> {
    let began = Instant::now();
    let mut after = vec![None; columns.len()];
    while after.contains(&None) && began.elapsed() < PATIENCE {
        for (column, after) in columns.iter().zip(&mut after) {
            // After a restart of the server a request may fail.
            let wrong = stage.wrong(&column.namespace).await;
            if after.is_none() && wrong.is_ok_and(|wrong| wrong.is_empty()) {
                *after = Some(began.elapsed());
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    after
}

/// The process is stopped beyond its lease, which another takes and lets run out.
async fn leadership(stage: &Stage, column: &mut Column) -> Result<()> {
    const ROW: &str = "stopped until another leads, then continued: the process";
    if column.library == Library::KubeRuntime {
        column.say(ROW, "has no leader election");
        return Ok(());
    }
    let namespace = format!("leader-{}", column.library.agent());
    create_namespace(&stage.direct, &namespace).await?;
    stage.sets(&namespace, SETS, 1).await?;
    let more = ["--lease".to_owned(), "one".to_owned()];
    column.peer = stage.controller(column.library, &namespace, &more).await?;
    _ = stage.settled(&namespace, PATIENCE).await?;
    sleep(Duration::from_secs(3)).await;
    column.peer.signal("STOP").await?;
    sleep(LEASE + Duration::from_secs(1)).await;
    let leases = Api::<Lease>::namespaced(stage.direct.clone(), &namespace);
    let taken = json!({ "spec": {
        "holderIdentity": "another", "leaseDurationSeconds": LEASE.as_secs(),
        "renewTime": MicroTime(Timestamp::now()), "leaseTransitions": 1,
    } });
    leases.patch("one", &PatchParams::default(), &Patch::Merge(taken)).await?;
    let patch = Patch::Merge(json!({ "spec": { "replicas": 2 } }));
    for number in 0..CHANGED {
        let name = format!("set-{number}");
        stage.api(&namespace).patch(&name, &PatchParams::default(), &patch).await?;
    }
    let writes = stage.relay.writes(column.library.agent()).len();
    column.peer.signal("CONT").await?;
    let began = Instant::now();
    let (mut ended, mut settled) = (None, None);
    let (mut while_another_leads, mut leads_again) = (0, false);
    while began.elapsed() < PATIENCE && ended.is_none() && !(leads_again && settled.is_some()) {
        let holder = leases.get("one").await?.spec.and_then(|spec| spec.holder_identity);
        leads_again = holder.as_deref() != Some("another");
        if !leads_again {
            let all = stage.relay.writes(column.library.agent());
            let others = all[writes..].iter().filter(|write| write.resource != "leases");
            while_another_leads = others.count();
        }
        if column.peer.has_ended() {
            ended = Some(began.elapsed());
        }
        if settled.is_none() && stage.wrong(&namespace).await?.is_empty() {
            settled = Some(began.elapsed());
        }
        sleep(Duration::from_millis(20)).await;
    }
    column.say(ROW, if ended.is_some() { "ends" } else { "goes on, and waits" });
    column.say("… writes while another leads", while_another_leads.to_string());
    match (ended, settled) {
        (Some(_), None) => column.say("… until all is right", "when it is started again"),
        (_, settled) => column.say_after("… until all is right", settled),
    }
    Ok(())
}
