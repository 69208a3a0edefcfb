//! Everything is listed again, and nothing has changed.

use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};
use informer_tests::fixtures::pod;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;

use crate::page::Outcome;
use crate::peer::Report;
use crate::stage::{Pair, Stage};

const NAMESPACE: &str = "relist";

pub(crate) async fn run(stage: &Stage, count: usize) -> Result<Outcome> {
    stage.namespace(NAMESPACE).await?;
    stage.namespace("elsewhere").await?;
    stream::iter(0..count)
        .map(Ok)
        .try_for_each_concurrent(16, |number| create(stage, NAMESPACE, format!("pod-{number}")))
        .await?;
    let (mut peers, _proxies) = stage.behind_proxies(NAMESPACE, &["--quiet"]).await?;
    let all = |report: &Report| report.synced && report.added == count as u64;
    let before = peers.until("both handlers have seen every Pod", all).await?;
    // The versions that both hold become older than what the server remembers.
    for number in 0..3 {
        create(stage, "elsewhere", format!("pod-{number}")).await?;
    }
    stage.cluster.forget_history().await?;
    create(stage, NAMESPACE, "after".to_owned()).await?;
    peers
        .until("both handlers have seen the new Pod", |report| report.added == count as u64 + 1)
        .await?;
    let after = peers.until_quiet().await?;
    drop(peers);

    let told = Pair {
        client_go: since(&before.client_go, &after.client_go),
        informer: since(&before.informer, &after.informer),
    };
    let row = |name: &str, of: fn(&Report) -> u64| {
        (name.to_owned(), told.as_ref().map(|r| of(r).to_string()))
    };
    let mut outcome = Outcome::new(&format!("A relist of {count} Pods, unchanged"));
    outcome.say(&format!(
        "Both are synced with {count} Pods. etcd is compacted and the API server restarted, so that both \
         watches end and their version is Expired: both list everything again. One Pod is created after the \
         restart. What the handlers were called with since:",
    ));
    outcome.table(
        "calls",
        &[
            row("added (the new Pod)", |r| r.added),
            row("updated: same UID, same version", |r| r.updated_unchanged),
            row("updated otherwise", |r| r.updated - r.updated_unchanged),
            row("deleted", |r| r.deleted),
        ],
    );
    outcome.promise("a relist delivers what changed and nothing else", {
        let Report { added, updated, deleted, .. } = told.informer;
        (added, updated, deleted) == (1, 0, 0)
    });
    outcome.promise("it was given everything again", told.informer.unchanged == count as u64);
    outcome.expect(
        "one `OnUpdate` for each object",
        told.client_go.updated_unchanged == count as u64 && told.client_go.added == 1,
    );
    outcome.say(
        "*For a controller's author:* with client-go every relist enqueues every object (here after a restart of the API \
         server), also where no resync \
         was asked for; the usual defence is to compare versions in every `OnUpdate`. Here a relist costs \
         what changed. If you want everything again periodically, ask for a resync: its updates say so.",
    );
    Ok(outcome)
}

async fn create(stage: &Stage, namespace: &str, name: String) -> Result<()> {
    let pods = Api::<Pod>::namespaced(stage.direct.clone(), namespace);
    pods.create(&PostParams::default(), &pod(namespace, &name, &[("app", "web")])).await?;
    Ok(())
}

fn since(before: &Report, after: &Report) -> Report {
    Report {
        added: after.added - before.added,
        updated: after.updated - before.updated,
        updated_unchanged: after.updated_unchanged - before.updated_unchanged,
        deleted: after.deleted - before.deleted,
        unchanged: after.unchanged - before.unchanged,
        ..after.clone()
    }
}
