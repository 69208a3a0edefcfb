//! What tests ask the server without an informer, and how they wait.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use anyhow::{Context, bail};
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

/// Keeps a paused clock from moving by itself while this lives: for what handlers' threads do,
/// which takes real time.
#[derive(Debug)]
pub struct HeldClock(#[expect(dead_code, reason = "its drop tells")] Sender<()>);

/// Holds the clock: a paused one does not wait for handlers' threads, but for the runtime's
/// blocking ones.
#[must_use]
pub fn hold_clock() -> HeldClock {
    // Not for ever, so that a wait for what does not come times out.
    hold_clock_for(Duration::from_secs(60))
}

/// As [`hold_clock`], for no longer than that.
#[must_use]
pub fn hold_clock_for(longest: Duration) -> HeldClock {
    let (held, is_held) = channel();
    tokio::task::spawn_blocking(move || is_held.recv_timeout(longest));
    HeldClock(held)
}

/// The collection as the server has it this moment: for each object, by `namespace/name` (or
/// `name`), its UID and version. One unpaged LIST at version `""`, past every cache.
///
/// `path` is that of a list, such as `/api/v1/pods` or
/// `/apis/apps/v1/namespaces/default/deployments?labelSelector=app%3Dweb`.
///
/// # Errors
///
/// When the server refuses, or the answer is not a list.
pub async fn raw_list(
    client: &Client,
    path: &str,
) -> anyhow::Result<BTreeMap<String, (String, String)>> {
    let list = list(client, path).await?;
    let items = list.items.into_iter().map(|Item { metadata }| {
        let key = match metadata.namespace {
            Some(namespace) => format!("{namespace}/{}", metadata.name),
            None => metadata.name,
        };
        (key, (metadata.uid, metadata.resource_version))
    });
    Ok(items.collect())
}

/// The version that the server gives a LIST at version `""` of this path now.
///
/// # Errors
///
/// As [`raw_list`].
pub async fn current_version(client: &Client, path: &str) -> anyhow::Result<String> {
    Ok(list(client, path).await?.metadata.resource_version)
}

/// The first frame that a watch of this path from `version` brings, or `None` if there is none for
/// a second. A refusal is brought as the ERROR frame it would have been.
///
/// # Errors
///
/// When the connection breaks, or a frame is not JSON.
pub async fn first_watch_frame(
    client: &Client,
    path: &str,
    version: &str,
) -> anyhow::Result<Option<serde_json::Value>> {
    let separator = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{separator}watch=1&resourceVersion={version}&timeoutSeconds=1");
    let answer = client.send(Request::get(&path).body(Body::empty())?).await?;
    let refused = !answer.status().is_success();
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
        if !refused && bytes.contains(&b'\n') {
            break;
        }
    }
    if refused {
        let status: serde_json::Value = serde_json::from_slice(&bytes)?;
        return Ok(Some(serde_json::json!({ "type": "ERROR", "object": status })));
    }
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(line)?))
}

/// Waits until `condition` holds.
///
/// # Panics
///
/// When it does not within `deadline`; the text says `what` was waited for.
pub async fn eventually(what: &str, deadline: Duration, mut condition: impl FnMut() -> bool) {
    let check = async || if condition() { Ok(()) } else { bail!("it does not hold") };
    if let Err(error) = eventually_ok(what, deadline, check).await {
        panic!("{error:#}");
    }
}

/// Waits until `attempt` succeeds, and returns its value.
///
/// # Errors
///
/// When it does not within `deadline`: `what` was waited for, and the last error.
pub async fn eventually_ok<T>(
    what: &str,
    deadline: Duration,
    mut attempt: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let end = Instant::now() + deadline;
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() >= end => {
                return Err(error).with_context(|| format!("not within {deadline:?}: {what}"));
            }
            // Polling: what is waited for lives in another process or behind a plain function.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Waits until both sides are equal, and shows what differs if they never are: the usual end of a
/// convergence test, with the store on the left and [`raw_list`] on the right.
///
/// # Panics
///
/// When they are not equal within `deadline`, or the server refuses to list.
pub async fn eventually_equal<K, V>(
    what: &str,
    deadline: Duration,
    mut left: impl FnMut() -> BTreeMap<K, V>,
    mut right: impl AsyncFnMut() -> anyhow::Result<BTreeMap<K, V>>,
) where
    K: Ord + fmt::Debug,
    V: PartialEq + fmt::Debug,
{
    let compare = async || {
        let (left, right) = (left(), right().await?);
        if left == right { Ok(()) } else { bail!("{}", differences(&left, &right)) }
    };
    if let Err(error) = eventually_ok(what, deadline, compare).await {
        panic!("{error:#}");
    }
}

/// What differs between two collections, in words, the first 20 keys of it.
#[must_use]
pub fn differences<K: Ord + fmt::Debug, V: PartialEq + fmt::Debug>(
    left: &BTreeMap<K, V>,
    right: &BTreeMap<K, V>,
) -> String {
    let missing = right
        .iter()
        .filter(|(key, _)| !left.contains_key(key))
        .map(|(key, value)| format!("- {key:?} {value:?}"));
    let others = left.iter().filter_map(|(key, value)| match right.get(key) {
        None => Some(format!("+ {key:?} {value:?}")),
        Some(expected) if expected != value => {
            Some(format!("~ {key:?} {value:?}, not {expected:?}"))
        }
        Some(_) => None,
    });
    let lines: Vec<_> = missing.chain(others).collect();
    let shown = lines.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    format!(
        "{} differences (- missing, + too much, ~ other value), among them:\n{shown}",
        lines.len()
    )
}

async fn list(client: &Client, path: &str) -> anyhow::Result<List> {
    let request = Request::get(path).body(Vec::new())?;
    client.request(request).await.with_context(|| format!("GET {path}"))
}

#[derive(Deserialize)]
struct List {
    metadata: ListMetadata,
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemMetadata {
    namespace: Option<String>,
    name: String,
    uid: String,
    resource_version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "not within 5s: the sun is green: it does not hold")]
    async fn waiting_for_what_never_comes_says_what_it_was() {
        eventually("the sun is green", Duration::from_secs(5), || false).await;
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_condition() {
        let mut polls = 0;
        let third = || {
            polls += 1;
            polls == 3
        };
        eventually("the third poll", Duration::from_secs(5), third).await;
        assert_eq!(polls, 3);
    }

    #[test]
    fn differences_name_the_side() {
        let left = BTreeMap::from([("a", 1), ("b", 2)]);
        let right = BTreeMap::from([("b", 3), ("c", 4)]);
        let text = differences(&left, &right);
        assert!(text.starts_with("3 differences"), "{text}");
        assert!(text.ends_with("- \"c\" 4\n+ \"a\" 1\n~ \"b\" 2, not 3"), "{text}");
    }
}
