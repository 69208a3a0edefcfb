//! When watches send what, and how they end.

mod support;

use std::time::Duration;

use http::HeaderMap;
use k8s_serve::{Body, Change, Resource, Route, Status};
use serde_json::{Value, json};
use support::{End, Fixed, Lines, Plain};
use tokio::time::Instant;

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn object(name: &str, version: u64, app: &str) -> Plain {
    Plain::json(&json!({ "metadata": {
        "name": name, "namespace": "default", "resourceVersion": version.to_string(),
        "labels": { "app": app },
    } }))
}

/// One object, and no changes.
fn silent() -> Fixed {
    let resource =
        Resource { namespaced: true, ..Resource::new("", "v1", "configmaps", "ConfigMap") };
    Fixed { end: None, ..Fixed::new(resource, vec![object("a", 3, "web")]) }
}

async fn watch(backend: Fixed, query: &str) -> Lines<Body> {
    let side = backend.read();
    let query = format!("watch=1&{query}");
    let response = side.respond(&Route::parse(PATH), &query, &HeaderMap::new()).await;
    assert_eq!(response.status(), 200);
    Lines::new(response.into_body())
}

async fn all(mut lines: Lines<Body>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(event) = lines.short().await {
        all.push(event);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_once_a_minute_and_shortly_before_the_end() {
    let start = Instant::now();
    let query = "resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=150";
    let mut lines = watch(silent(), query).await;
    let mut times = Vec::new();
    while let Some(event) = lines.short().await {
        assert_eq!(event, "BOOKMARK @7");
        times.push(start.elapsed().as_secs());
    }
    assert_eq!(times, [60, 120, 148]);
    assert_eq!(start.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_no_bookmarks_gets_none() {
    let start = Instant::now();
    assert_eq!(all(watch(silent(), "resourceVersion=7&timeoutSeconds=150").await).await, [""; 0]);
    assert_eq!(start.elapsed().as_secs(), 150);
    assert_eq!(all(watch(silent(), "timeoutSeconds=1").await).await, ["ADDED a@3"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_timeout_ends_as_well() {
    let start = Instant::now();
    assert_eq!(all(watch(silent(), "resourceVersion=7").await).await, [""; 0]);
    assert_eq!(start.elapsed(), Duration::from_secs(1800));
}

#[tokio::test]
async fn nothing_is_sent_after_the_end() {
    let change = Change { version: 8, before: None, after: Some(object("b", 8, "web")) };
    let backend = Fixed { changes: vec![change], ..silent() };
    for query in ["timeoutSeconds=-1", "resourceVersion=7&timeoutSeconds=-1"] {
        assert_eq!(all(watch(backend.clone(), query).await).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_watch_that_cannot_go_on_says_so_in_the_last_event() {
    let refused = Status::new(403, "Forbidden", "no longer");
    for (end, code, reason) in
        [(End::Expired, 410, "Expired"), (End::Refused(refused), 403, "Forbidden")]
    {
        let mut lines = watch(Fixed { end: Some(end), ..silent() }, "resourceVersion=7").await;
        let event: Value = serde_json::from_str(&lines.line().await.unwrap()).unwrap();
        let status = &event["object"];
        assert_eq!(
            (&event["type"], &status["code"], &status["reason"]),
            (&json!("ERROR"), &json!(code), &json!(reason))
        );
        assert_eq!(lines.line().await, None);
    }
    let closed = Fixed { end: Some(End::Closed), ..silent() };
    assert_eq!(all(watch(closed, "resourceVersion=7").await).await, [""; 0]);
}

#[tokio::test]
async fn changes_do_not_keep_a_watch_open_that_is_refused() {
    let change = Change { version: 8, before: None, after: Some(object("b", 8, "web")) };
    let end = Some(End::Refused(Status::new(403, "Forbidden", "no longer")));
    let backend = Fixed { changes: vec![change], end, ..silent() };
    let mut lines = watch(backend, "resourceVersion=7").await;
    let event: Value = serde_json::from_str(&lines.line().await.unwrap()).unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(lines.line().await, None);
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let (web, other) = (object("a", 8, "web"), object("a", 9, "other"));
    let back = object("a", 10, "web");
    let changes = vec![
        Change { version: 8, before: None, after: Some(web.clone()) },
        Change { version: 9, before: Some(web), after: Some(other.clone()) },
        Change { version: 10, before: Some(other.clone()), after: Some(back.clone()) },
        Change { version: 11, before: Some(back), after: None },
    ];
    let backend = Fixed { changes, end: Some(End::Closed), ..silent() };
    let events = |query: &'static str| {
        let backend = backend.clone();
        async move { all(watch(backend, &format!("resourceVersion=7&{query}")).await).await }
    };
    // What leaves is sent as it last was, at the version at which it left.
    assert_eq!(
        events("labelSelector=app%3Dweb").await,
        ["ADDED a@8", "DELETED a@9", "ADDED a@10", "DELETED a@11"]
    );
    assert_eq!(events("labelSelector=app%3Dother").await, ["ADDED a@9", "DELETED a@10"]);
    assert_eq!(events("fieldSelector=metadata.name%3Db").await, [""; 0]);
    assert_eq!(events("").await, ["ADDED a@8", "MODIFIED a@9", "MODIFIED a@10", "DELETED a@11"]);
}

/// `kubectl get -w NAME` swallows the first event, so it must come.
#[tokio::test(start_paused = true)]
async fn a_watch_of_one_name_from_version_0_begins_with_the_object() {
    let query = "resourceVersion=0&fieldSelector=metadata.name%3Da&timeoutSeconds=1";
    assert_eq!(all(watch(silent(), query).await).await, ["ADDED a@3"]);
    let query = "resourceVersion=0&fieldSelector=metadata.name%3Db&timeoutSeconds=1";
    assert_eq!(all(watch(silent(), query).await).await, [""; 0]);
}
