//! The bookmark that ends a streaming list never comes.

use std::time::{Duration, Instant};

use anyhow::Result;
use informer_tests::fixtures::pod;
use informer_tests::reverse_proxy::{Asked, WatchFault};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use tokio::time::sleep;

use crate::page::Outcome;
use crate::peer::Report;
use crate::stage::{Pair, Stage};

const NAMESPACE: &str = "missing-bookmark";

/// How long both are looked at.
const WINDOW: Duration = Duration::from_secs(60);

pub(crate) async fn run(stage: &Stage) -> Result<Outcome> {
    stage.namespace(NAMESPACE).await?;
    let pods = Api::<Pod>::namespaced(stage.direct.clone(), NAMESPACE);
    for name in ["one", "two", "three"] {
        pods.create(&PostParams::default(), &pod(NAMESPACE, name, &[])).await?;
    }
    let fault = WatchFault::DropInitialEventsEnd;
    let (mut peers, proxies) = stage.behind_reverse_proxies(NAMESPACE, fault, &["--quiet"]).await?;
    let start = Instant::now();
    let mut synced: Pair<Option<Duration>> = Pair::both(None);
    let mut late = false;
    let end = loop {
        let reports = peers.reports().await?;
        let note = |at: &mut Option<Duration>, report: &Report| {
            if report.synced {
                at.get_or_insert_with(|| start.elapsed());
            }
        };
        note(&mut synced.client_go, &reports.client_go);
        note(&mut synced.informer, &reports.informer);
        if start.elapsed() >= WINDOW {
            break reports;
        }
        if !late && start.elapsed() >= WINDOW / 2 {
            late = true;
            pods.create(&PostParams::default(), &pod(NAMESPACE, "late", &[])).await?;
        }
        sleep(Duration::from_millis(500)).await;
    };
    drop(peers);
    let requests = proxies.as_ref().map(|proxy| {
        let requests = proxy.requests();
        let count = |kind| requests.iter().filter(|(_, asked)| *asked == kind).count();
        (count(Asked::StreamingList), count(Asked::List), count(Asked::Watch))
    });
    Ok(outcome(&synced, &end, &requests))
}

fn outcome(
    synced: &Pair<Option<Duration>>,
    end: &Pair<Report>,
    requests: &Pair<(usize, usize, usize)>,
) -> Outcome {
    let mut outcome = Outcome::new("A streaming list without its end");
    outcome.say(&format!(
        "A proxy takes the bookmark with `k8s.io/initial-events-end` out of the stream, as servers, proxies \
         and fakes do that do not know streaming lists. Three Pods exist; a fourth is created after {} s. \
         After {} s:",
        WINDOW.as_secs() / 2,
        WINDOW.as_secs(),
    ));
    let after = |at: &Option<Duration>| {
        at.map_or_else(|| "no".to_owned(), |at| format!("yes, after {:.0} s", at.as_secs_f64()))
    };
    let rows = [
        ("synced".to_owned(), synced.as_ref().map(after)),
        ("objects in the store".to_owned(), end.as_ref().map(|r| r.stored.to_string())),
        ("adds delivered".to_owned(), end.as_ref().map(|r| r.added.to_string())),
        (
            "requests".to_owned(),
            requests.as_ref().map(|(streaming, lists, watches)| {
                format!("streaming lists {streaming}, lists {lists}, watches {watches}")
            }),
        ),
        ("what it says".to_owned(), end.as_ref().map(said)),
    ];
    outcome.table("", &rows);
    outcome.promise("it falls back to LIST and is synced", synced.informer.is_some());
    outcome
        .promise("it delivers all four Pods", end.informer.added == 4 && end.informer.stored == 4);
    outcome.expect(
        "it waits without end, and says so every 10 s",
        synced.client_go.is_none() && end.client_go.stored == 0 && !end.client_go.said.is_empty(),
    );
    outcome.say(
        "*For a controller's author:* with client-go such a server means that the controller never starts, \
         and only its log tells why; the way out is to switch `WatchListClient` off. Here an informer whose \
         streaming list is silent for 10 s lists instead.",
    );
    outcome
}

/// The last thing said, and how many there were.
fn said(report: &Report) -> String {
    match report.said.last() {
        None => "nothing".to_owned(),
        Some(last) => {
            let last: String = last.replace(['|', '\n'], " ").chars().take(200).collect();
            format!("{} times, the last: {last}", report.said.len())
        }
    }
}
