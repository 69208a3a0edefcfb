//! A Pod is deleted, and created again under its name, while nobody watches.

use std::time::Duration;

use anyhow::{Context, Result};
use informer_tests::fixtures::pod;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use tokio::time::sleep;

use crate::page::{Outcome, Uids};
use crate::peer::{Call, Line};
use crate::stage::{Pair, Stage, until};

const NAME: &str = "web";

pub(crate) async fn run(stage: &Stage) -> Result<Outcome> {
    let mut outcome = Outcome::new("A Pod deleted and created again while nobody watched");
    outcome.say(
        "Connections are broken and refused, Pod `web` is deleted and created again, connections are \
         accepted. Where the server still has the history, both resume their watch and see what happened:",
    );
    let (calls, uids) = gap(stage, "recreate-resumed", false).await?;
    outcome.table("the watch resumes", &rows(&calls));
    let expected = [added(&uids.0, true), deleted(&uids.0, false), added(&uids.1, false)];
    outcome.promise(
        "a resumed watch brings Deleted (Known), then Added",
        shape(&calls.informer) == expected,
    );
    outcome.expect(
        "`OnDelete`, then `OnAdd`, as the watch brings them",
        shape(&calls.client_go) == expected,
    );

    outcome.say(
        "The same, but the server has forgotten the history meanwhile (compaction and restart), so that both list \
         again:",
    );
    let (calls, uids) = gap(stage, "recreate-listed", true).await?;
    outcome.table("a relist", &rows(&calls));
    let expected = [added(&uids.0, true), deleted(&uids.0, true), added(&uids.1, false)];
    outcome.promise(
        "a relist brings Deleted (Unknown), then Added",
        shape(&calls.informer) == expected,
    );
    let folded = [added(&uids.0, true), Shape::Updated(uids.0.clone(), uids.1.clone())];
    outcome.expect("one `OnUpdate` from the old UID to the new", shape(&calls.client_go) == folded);

    outcome.say(
        "*For a controller's author:* with client-go an update may be a death and a birth (after any relist, \
         which also follows a watch that broke in its first second), so whatever is kept by name has to \
         compare UIDs in every `OnUpdate`. Here `Updated` is always one and the same object; the one that \
         went is told as `Deleted` with its last known state, before the new one is `Added`.",
    );
    Ok(outcome)
}

/// What both handlers were told, and the two UIDs.
async fn gap(
    stage: &Stage,
    namespace: &str,
    forget: bool,
) -> Result<(Pair<Vec<Line>>, (String, String))> {
    stage.namespace(namespace).await?;
    let pods = Api::<Pod>::namespaced(stage.direct.clone(), namespace);
    let before = create(&pods, namespace).await?;
    let (peers, proxies) = stage.behind_proxies(namespace, &[]).await?;
    let last = |uid: &str| {
        let has = |calls: &[Line]| match calls.last() {
            Some(Line::Added(call) | Line::Updated(call)) => call.uid == uid,
            _ => false,
        };
        has(&peers.client_go.calls()) && has(&peers.informer.calls())
    };
    until("both see the first Pod", || std::future::ready(Ok(last(&before)))).await?;
    // client-go takes a watch that ended in its first second, without an event, for a failed one,
    // and lists again.
    sleep(Duration::from_secs(2)).await;
    proxies.refuse().await;
    pods.delete(NAME, &DeleteParams::default().grace_period(0)).await?;
    let after = create(&pods, namespace).await?;
    if forget {
        stage.cluster.forget_history().await?;
    }
    proxies.accept().await;
    until("both see the second Pod", || std::future::ready(Ok(last(&after)))).await?;
    Ok((peers.as_ref().map(|peer| peer.calls()), (before, after)))
}

async fn create(pods: &Api<Pod>, namespace: &str) -> Result<String> {
    let created = pods.create(&PostParams::default(), &pod(namespace, NAME, &[])).await?;
    created.metadata.uid.context("a created Pod has a UID")
}

fn rows(calls: &Pair<Vec<Line>>) -> Vec<(String, Pair<String>)> {
    let (mut theirs, mut ours) = (Uids::default(), Uids::default());
    let cell = |lines: &[Line], at: usize, words: &mut dyn FnMut(&Line) -> String| {
        lines.get(at).map_or_else(String::new, words)
    };
    let count = calls.client_go.len().max(calls.informer.len());
    let row = |at: usize| {
        let pair = Pair {
            client_go: cell(&calls.client_go, at, &mut |line| theirs.of_client_go(line)),
            informer: cell(&calls.informer, at, &mut |line| ours.of_informer(line)),
        };
        (if at == 0 { "before".to_owned() } else { "after".to_owned() }, pair)
    };
    (0..count).map(row).collect()
}

/// A call without its versions.
#[derive(Debug, PartialEq, Eq)]
enum Shape {
    Added { uid: String, initial: bool },
    Updated(String, String),
    Deleted { uid: String, unknown: bool },
    Other,
}

fn added(uid: &str, initial: bool) -> Shape {
    Shape::Added { uid: uid.to_owned(), initial }
}

fn deleted(uid: &str, unknown: bool) -> Shape {
    Shape::Deleted { uid: uid.to_owned(), unknown }
}

/// Calls, but for updates of one and the same object: a Pod may change on its way out.
fn shape(lines: &[Line]) -> Vec<Shape> {
    let shape = |line: &Line| match line.clone() {
        Line::Added(Call { uid, initial, .. }) => Shape::Added { uid, initial },
        Line::Updated(Call { uid, from_uid, .. }) => Shape::Updated(from_uid, uid),
        Line::Deleted(Call { uid, final_state_unknown, .. }) => {
            Shape::Deleted { uid, unknown: final_state_unknown }
        }
        _ => Shape::Other,
    };
    lines
        .iter()
        .map(shape)
        .filter(|shape| !matches!(shape, Shape::Updated(from, to) if from == to))
        .collect()
}
