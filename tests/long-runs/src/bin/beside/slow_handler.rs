//! A handler blocks while objects change.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use futures_util::{StreamExt, TryStreamExt, stream};
use informer_testkit::generate::Generator;
use informer_tests::fixtures::pod;
use informer_tests::helpers::raw_list;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::page::{Outcome, mebibytes};
use crate::peer::Report;
use crate::stage::{Pair, Stage};

const NAMESPACE: &str = "slow-handler";
const PODS: usize = 20;

/// Events that a handler keeps apart by default (G16).
const CAPACITY: usize = 1024;

pub(crate) async fn run(stage: &Stage, updates: usize) -> Result<Outcome> {
    stage.namespace(NAMESPACE).await?;
    let pods = Api::<Pod>::namespaced(stage.direct.clone(), NAMESPACE);
    let mut names = Vec::new();
    for json in (Generator { namespaces: 1, ..Generator::default() }).pods(PODS) {
        names.push(create_realistic(&pods, &json).await?);
    }
    let (mut peers, _proxies) = stage.behind_proxies(NAMESPACE, &["--quiet", "--block"]).await?;
    let mut reports = vec![peers.until("both have every Pod", |r| r.added == PODS as u64).await?];
    for half in 1..=2 {
        change(&pods, &names, half, updates / 2 / PODS).await?;
        // Comes after all the changes, so whoever stores it has stored them.
        pods.create(&PostParams::default(), &pod(NAMESPACE, &format!("end-{half}"), &[])).await?;
        reports.push(peers.until("both have stored all", |r| r.stored == PODS + half).await?);
    }
    peers.client_go.release().await?;
    peers.informer.release().await?;
    let current = versions(stage).await?;
    peers.until("both have handled the last Pod", |r| r.added == (PODS + 2) as u64).await?;
    let end = peers.until_quiet().await?;
    let right = Pair {
        client_go: peers.client_go.handled().await? == current,
        informer: peers.informer.handled().await? == current,
    };
    drop(peers);
    Ok(outcome(&reports, &end, &right, updates / 2 / PODS * PODS))
}

fn outcome(
    reports: &[Pair<Report>],
    end: &Pair<Report>,
    right: &Pair<bool>,
    half: usize,
) -> Outcome {
    let mut outcome = Outcome::new("A handler that blocks");
    outcome.say(&format!(
        "{PODS} Pods of realistic size. The handler blocks in its first update while {half}, then {half} \
         more updates happen, and is let go then. Memory is after a collection, as growth since both were \
         synced:",
    ));
    let [synced, first, second] = reports else { return outcome };
    let grown = |now: &Pair<Report>, of: fn(&Report) -> usize| Pair {
        client_go: mebibytes(of(&now.client_go).saturating_sub(of(&synced.client_go))),
        informer: mebibytes(of(&now.informer).saturating_sub(of(&synced.informer))),
    };
    let heap = |r: &Report| r.heap_bytes;
    let waiting =
        |r: &Report| Pair { client_go: "not told".to_owned(), informer: r.waiting.to_string() };
    let text = |of: fn(&Report) -> u64| end.as_ref().map(|r| of(r).to_string());
    let rows = [
        (format!("heap after {half} updates"), grown(first, heap)),
        (format!("heap after {} updates", 2 * half), grown(second, heap)),
        (
            format!("resident memory after {} updates", 2 * half),
            grown(second, |r| r.resident_bytes),
        ),
        (format!("events waiting after {half} updates"), waiting(&first.informer)),
        (format!("events waiting after {} updates", 2 * half), waiting(&second.informer)),
        ("updates handled in the end".to_owned(), text(|r| r.updated)),
        (
            "the handler's last state of each Pod is the server's".to_owned(),
            right.as_ref().map(|right| if *right { "yes" } else { "no" }.to_owned()),
        ),
    ];
    outcome.table("", &rows);
    // The handler takes up to 64 events at a time.
    let bound = CAPACITY + PODS + 2 + 64;
    outcome.promise(
        &format!("at most {bound} events wait or are in hand, however many updates there are"),
        first.informer.waiting <= bound && second.informer.waiting <= bound,
    );
    outcome.promise("the handler is given the final state", right.informer);
    outcome.promise(
        "what is handled in the end is what was waiting and what was in hand",
        end.informer.updated as usize <= bound,
    );
    outcome.expect(
        "every single update is kept and delivered",
        end.client_go.updated == 2 * half as u64,
    );
    outcome.say(
        "*For a controller's author:* with client-go a stuck handler is a memory leak without a gauge, and \
         when it goes on it works through every state of the past. Here a registration keeps 1024 events \
         apart, then merges by key, so memory does not depend on how many updates there were, and the newest \
         state is never lost. Depth and merges are in `registration.status()`.",
    );
    outcome
}

async fn create_realistic(pods: &Api<Pod>, json: &str) -> Result<String> {
    let mut pod: Pod = serde_json::from_str(json)?;
    let meta = &mut pod.metadata;
    (meta.uid, meta.resource_version, meta.managed_fields) = (None, None, None);
    meta.namespace = Some(NAMESPACE.to_owned());
    pod.status = None;
    let created = pods.create(&PostParams::default(), &pod).await?;
    created.metadata.name.context("a created Pod has a name")
}

/// Changes each Pod so many times.
async fn change(pods: &Api<Pod>, names: &[String], half: usize, times: usize) -> Result<()> {
    let all = (0..times).flat_map(|time| names.iter().map(move |name| (time, name)));
    stream::iter(all)
        .map(Ok)
        .try_for_each_concurrent(8, |(time, name)| async move {
            let patch =
                json!({ "metadata": { "annotations": { "change": format!("{half}-{time}") } } });
            pods.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            Ok(())
        })
        .await
}

async fn versions(stage: &Stage) -> Result<BTreeMap<String, String>> {
    let list = raw_list(&stage.direct, &format!("/api/v1/namespaces/{NAMESPACE}/pods")).await?;
    Ok(list.into_iter().map(|(key, (_, version))| (key, version)).collect())
}
