//! What callers see of the status page.

use tokio::io::{AsyncBufReadExt, BufReader};

use super::super::status_page::Lines;
use super::*;
use crate::access::Access;

fn watch_pods(namespace: &str) -> Value {
    json!({"verb": "watch", "version": "v1", "resource": "pods", "namespace": namespace})
}

fn get_path(path: &str) -> Value {
    json!({"verb": "get", "path": path})
}

const BROWSER: (&str, &str) = ("accept", "text/html,*/*;q=0.8");

impl Controlled {
    async fn changes(&self, query: &str) -> Lines {
        let mut asked = request(Method::GET, "localhost", &format!("/ui/changes?{query}"));
        let bearer = "Bearer alice-token".parse().unwrap();
        asked.headers_mut().insert("authorization", bearer);
        let response = self.router().oneshot(asked).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Lines::of(response.into_body())
    }
}

#[tokio::test]
async fn a_browser_without_credentials_is_told_what_to_do() {
    let it = Controlled::start().await;
    let answer = it.with("/", &[BROWSER]).await;
    assert_eq!(answer.code, StatusCode::UNAUTHORIZED);
    assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
    assert!(answer.headers.contains_key("content-security-policy"));
    assert!(answer.text.contains("kubectl --server"), "{}", answer.text);
    assert!(!answer.text.contains("<script"), "{}", answer.text);
    for path in ["/ui/page/main.js", "/ui/style.css", "/ui/collections", "/ui/changes"] {
        it.with(path, &[BROWSER]).await.refusal(401, "Unauthorized");
    }
}

#[tokio::test]
async fn the_page_and_its_parts_need_the_right_to_open_it() {
    let it = Controlled::start().await;
    let token = ("authorization", "Bearer alice-token");
    let refused = it.with("/", &[BROWSER, token]).await;
    assert_eq!(refused.code, StatusCode::FORBIDDEN);
    assert!(refused.text.contains("--non-resource-url=/"), "{}", refused.text);
    it.get("alice-token", "/ui/page/main.js").await.refusal(403, "Forbidden");
    it.judge.allows("bob", get_path("/"));
    for path in ["/", "/ui/page/main.js", "/ui/style.css"] {
        let answer = it.with(path, &[BROWSER, ("authorization", "Bearer bob-token")]).await;
        assert_eq!(answer.code, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_user_name_is_no_markup() {
    let it = Controlled::start().await;
    it.judge.knows("odd-token", "<img src=x>", &[]);
    let answer = it.with("/", &[BROWSER, ("authorization", "Bearer odd-token")]).await;
    assert!(answer.text.contains("&lt;img src=x&gt;"), "{}", answer.text);
    assert!(!answer.text.contains("<img"), "{}", answer.text);
}

#[tokio::test]
async fn figures_are_for_those_who_may_list_or_read_metrics() {
    let it = Controlled::start().await;
    it.judge.allows("bob", json!({"verb": "list", "version": "v1", "resource": "pods"}));
    it.get("bob-token", "/api/v1/pods").await.items();
    let ids = |told: &Value| {
        let all = told["collections"].as_array().unwrap().iter();
        all.map(|it| (it["id"].clone(), it["figures"].is_object())).collect::<Vec<_>>()
    };
    let none = it.get("alice-token", "/ui/collections").await.json();
    assert_eq!((ids(&none), &none["totals"]), (vec![], &Value::Null));
    assert_eq!(none["user"], "alice");
    let own = it.get("bob-token", "/ui/collections").await.json();
    assert_eq!(ids(&own), [(json!("pods.v1"), true)]);
    // In one namespace alone: which there are, but no figures, as those count all.
    it.judge.allows("alice", list_pods("shop"));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    let named = it.get("alice-token", "/ui/collections?namespace=shop").await.json();
    assert_eq!(ids(&named), [(json!("pods.v1"), false)]);
    it.judge.knows("ops-token", "ops", &[]);
    it.judge.allows("ops", get_path("/metrics"));
    let all = it.get("ops-token", "/ui/collections").await.json();
    assert_eq!(ids(&all), [(json!("pods.v1"), true)]);
    assert!(all["totals"].is_object());
}

#[tokio::test]
async fn changes_are_reviewed_as_the_watches_that_they_are() {
    let it = Controlled::start().await;
    for query in
        ["resource=pods", "resource=pods&namespace=shop", "resource=pods&namespace=shop&name=web-0"]
    {
        let refused = it.get("alice-token", &format!("/ui/changes?{query}")).await;
        assert!(refused.refusal(403, "Forbidden").contains("cannot watch resource"), "{query}");
    }
    // Whether there is such a thing is not said either.
    it.get("alice-token", "/ui/changes?resource=nope").await.refusal(403, "Forbidden");
    assert!(it.server.requests().resource("pods").is_empty(), "nothing was started");
    let asked = it.judge.accesses();
    assert_eq!(asked[1]["resourceAttributes"], watch_pods("shop"));
    let named = json!({"verb": "watch", "version": "v1", "resource": "pods", "namespace": "shop",
        "name": "web-0", "fieldSelector": {"requirements":
            [{"key": "metadata.name", "operator": "In", "values": ["web-0"]}]}});
    assert_eq!(asked[2]["resourceAttributes"], named);

    it.judge.allows("bob", watch_pods("shop"));
    it.judge.allows("bob", list_pods("shop"));
    it.get("bob-token", "/api/v1/namespaces/shop/pods").await.items();
    // All that is held, as far as it may be watched: in all namespaces that is nothing.
    let all = it.get("bob-token", "/ui/changes?follow=false").await;
    assert!(all.text.contains(r#""resources":[]"#), "{}", all.text);
    let own = it.get("bob-token", "/ui/changes?follow=false&namespace=shop").await;
    assert!(own.text.contains(r#""id":"pods.v1""#), "{}", own.text);
}

#[tokio::test(start_paused = true)]
async fn changes_end_when_the_permission_is_taken_away() {
    let it = Controlled::start().await;
    it.judge.allows("alice", watch_pods("shop"));
    let mut lines = it.changes("resource=pods&namespace=shop").await;
    it.judge.forbids("alice", &watch_pods("shop"));
    let refused = lines.next("refused").await;
    assert_eq!((&refused["resource"], &refused["code"]), (&json!("pods.v1"), &json!(403)));
    assert!(lines.line().await.is_none(), "it goes on");
}

const ALL_PODS: &str = "/api/v1/pods";

impl Controlled {
    /// Alice may watch Pods, which are held.
    async fn with_pods() -> Self {
        let it = Self::start().await;
        it.judge.allows("bob", json!({"verb": "list", "version": "v1", "resource": "pods"}));
        it.get("bob-token", ALL_PODS).await.items();
        it.judge.allows("alice", json!({"verb": "watch", "version": "v1", "resource": "pods"}));
        it
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_all_that_is_held_end_with_the_token() {
    let it = Controlled::with_pods().await;
    let mut lines = it.changes("").await;
    it.judge.forgets("alice-token");
    let refused = lines.next("refused").await;
    assert_eq!((&refused["resource"], &refused["code"]), (&json!("pods.v1"), &json!(401)));
    assert!(lines.line().await.is_none(), "it goes on");
    // Also where nothing may be watched.
    let mut lines = {
        it.judge.knows("alice-token", "alice", &[]);
        tokio::time::advance(Duration::from_secs(11)).await;
        it.changes("namespace=none").await
    };
    it.judge.forgets("alice-token");
    let ends = tokio::time::timeout(Duration::from_secs(100), async {
        while lines.line().await.is_some() {}
    });
    assert!(ends.await.is_ok(), "it goes on");
}

#[tokio::test(start_paused = true)]
async fn what_is_added_to_changes_is_reviewed_with_the_groups_of_now() {
    let it = Controlled::with_pods().await;
    let pods = json!({"verb": "watch", "version": "v1", "resource": "pods"});
    let mut lines = it.changes("").await;
    it.judge.knows("alice-token", "alice", &["other"]);
    it.judge.forbids("alice", &pods);
    assert_eq!(lines.next("refused").await["code"], 403);
    // It is not added again at once, nor with what was.
    let before = it.judge.accesses().len();
    for _ in 0..5 {
        assert_eq!(lines.next("at").await["versions"], json!({}));
    }
    assert_eq!(it.judge.accesses().len(), before);
    it.judge.allows("alice", pods);
    while lines.next("at").await["versions"] == json!({}) {}
    let last = it.judge.accesses().pop().unwrap();
    assert_eq!(last["groups"], json!(["other", "system:authenticated"]));
}

#[tokio::test(start_paused = true)]
async fn changes_wait_for_an_api_server_that_does_not_say_who_may() {
    let it = Controlled::with_pods().await;
    it.judge.knows("carol-token", "carol", &[]);
    // The token is known, so that the rights alone are not.
    it.get("carol-token", "/ui/changes?resource=pods").await.refusal(403, "Forbidden");
    it.judge.allows("carol", json!({"verb": "watch", "version": "v1", "resource": "pods"}));
    it.judge.is_away(true);
    it.get("carol-token", "/ui/changes?namespace=web").await.refusal(503, "ServiceUnavailable");
    it.judge.is_away(false);
    let mut lines = it.changes("").await;
    lines.next("at").await;
    it.judge.allows("bob", json!({"verb": "list", "version": "v1", "resource": "nodes"}));
    it.judge.allows("alice", json!({"verb": "watch", "version": "v1", "resource": "nodes"}));
    it.get("bob-token", "/api/v1/nodes").await.items();
    it.judge.is_away(true);
    for _ in 0..3 {
        lines.next("at").await;
    }
    it.judge.is_away(false);
    // At the next ticks, and not after the pause of what was refused.
    let is_told = async |lines: &mut Lines| {
        lines.next("at").await["versions"].as_object().unwrap().len() == 2
    };
    let mut was = false;
    for _ in 0..3 {
        was |= is_told(&mut lines).await;
    }
    assert!(was, "it is not tried again");
}

#[tokio::test]
async fn changes_count_as_watches_of_their_user() {
    let it = Controlled::start().await;
    it.judge.allows("alice", watch_pods("shop"));
    let options = Options { max_watches_per_user: 1, ..Options::default() };
    let endpoint = Endpoint::new(it.judge.client(&it.server), options);
    let it = Controlled { endpoint, ..it };
    let first = it.changes("resource=pods&namespace=shop").await;
    let more = it.get("alice-token", "/ui/changes?resource=pods&namespace=shop").await;
    more.refusal(429, "TooManyRequests");
    // Also where nothing may be watched.
    it.get("alice-token", "/ui/changes").await.refusal(429, "TooManyRequests");
    drop(first);
    let idle = it.changes("").await;
    it.get("alice-token", "/ui/changes").await.refusal(429, "TooManyRequests");
    drop(idle);
    drop(it.changes("resource=pods&namespace=shop").await);
}

#[tokio::test(start_paused = true)]
async fn changes_are_audited_as_watches() {
    let it = Controlled::start().await;
    it.judge.allows("alice", watch_pods("shop"));
    let (writer, reader) = tokio::io::duplex(4096);
    let Controlled { server, judge, endpoint } = it;
    let it = Controlled { server, judge, endpoint: endpoint.with_audit_log(writer) };
    drop(it.changes("resource=pods&namespace=shop").await);
    it.get("alice-token", "/ui/changes?resource=pods").await.refusal(403, "Forbidden");
    let mut lines = BufReader::new(reader).lines();
    let mut next = async || -> Value {
        serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap()
    };
    let event = next().await;
    assert_eq!((&event["verb"], &event["user"]["username"]), (&json!("watch"), &json!("alice")));
    let about = json!({"resource": "pods", "apiVersion": "v1", "namespace": "shop"});
    assert_eq!(event["objectRef"], about);
    let refused = next().await;
    assert_eq!(refused["responseStatus"]["code"], 403);
    assert_eq!(refused["requestURI"], "/ui/changes?resource=pods");
    assert_eq!(refused["objectRef"], json!({"resource": "pods", "apiVersion": "v1"}));
    // Of nothing, and what is added later.
    it.judge.allows("bob", json!({"verb": "list", "version": "v1", "resource": "nodes"}));
    it.judge.allows("alice", json!({"verb": "watch", "version": "v1", "resource": "nodes"}));
    let mut changes = it.changes("").await;
    let none = next().await;
    assert_eq!((&none["requestURI"], &none["objectRef"]), (&json!("/ui/changes?"), &Value::Null));
    it.get("bob-token", "/api/v1/nodes").await.items();
    assert_eq!(next().await["verb"], "list");
    while changes.next("at").await["versions"] == json!({}) {}
    let later = next().await;
    assert_eq!((&later["verb"], &later["user"]["username"]), (&json!("watch"), &json!("alice")));
    assert_eq!(later["objectRef"], json!({"resource": "nodes", "apiVersion": "v1"}));
}

#[tokio::test]
async fn an_exposed_address_without_tls_says_so_in_a_browser() {
    let it = Controlled::start().await;
    let mut asked = request(Method::GET, "localhost", "/");
    asked.headers_mut().insert("accept", BROWSER.1.parse().unwrap());
    let response = it.endpoint.routes(Access::Refused).oneshot(asked).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    assert!(text.starts_with("<!doctype html>") && text.contains("--tls-cert-file"), "{text}");
}
