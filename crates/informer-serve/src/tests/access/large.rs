//! What one client may take: large answers, selectors of watches, places of connections.

use axum::response::Response;

use informer_testkit::Verb;
use tokio_util::sync::CancellationToken;

use super::forwarding::forwarding;
use super::watches::{WATCH, watch_pods};
use super::*;
use crate::api::MAX_WATCH_TERMS;
use crate::listen::Places;
use crate::sending::{GUARANTEED, MAX_SENDING, MAX_SENDING_TO_USER};

const PODS: &str = "/api/v1/namespaces/shop/pods";

impl Controlled {
    /// The answer to a GET, none of whose body is read.
    async fn begin(&self, token: &str, path: &str) -> Response {
        let mut asked = request(Method::GET, "endpoint.example", path);
        let bearer = format!("Bearer {token}").parse().unwrap();
        asked.headers_mut().insert("authorization", bearer);
        self.router().oneshot(asked).await.unwrap()
    }

    async fn begin_lists(&self, token: &str) -> Vec<Response> {
        let mut lists = Vec::new();
        for _ in 0..MAX_SENDING_TO_USER {
            let list = self.begin(token, PODS).await;
            assert_eq!(list.status(), StatusCode::OK, "{token}: {}", lists.len());
            lists.push(list);
        }
        lists
    }

    fn knows_readers(&self, names: &[&str]) {
        for name in names {
            self.judge.knows(&format!("{name}-token"), name, &[]);
            self.judge.allows(name, list_pods("shop"));
        }
    }
}

#[tokio::test]
async fn a_user_who_reads_no_list_gets_so_many_and_no_more() {
    let it = Controlled::start().await;
    it.knows_readers(&["alice", "bob"]);
    let get_pod = json!({"verb": "get", "version": "v1", "resource": "pods", "namespace": "shop", "name": "web-0"});
    it.judge.allows("alice", get_pod);
    it.judge.allows("alice", watch_pods());
    let watch = it.begin("alice-token", WATCH).await;
    let mut lists = it.begin_lists("alice-token").await;
    for path in [PODS, "/pods?namespace=shop"] {
        let refused = it.get("alice-token", path).await;
        let message = refused.refusal(429, "TooManyRequests");
        assert_eq!(message, "too many large answers are being sent, try again later", "{path}");
        assert_eq!(refused.headers["retry-after"], "1");
    }
    let metrics = get(&it.endpoint, "/metrics").await.text;
    assert!(metrics.contains("serve_large_answers_refused_total 2\n"), "{metrics}");
    // What lasts and what is small counts elsewhere, or not at all.
    let small = it.get("alice-token", &format!("{PODS}/web-0")).await;
    assert_eq!(small.code, StatusCode::OK, "{}", small.text);
    let another = it.begin("alice-token", WATCH).await;
    assert_eq!(another.status(), StatusCode::OK);
    assert_eq!(it.get("bob-token", PODS).await.items().len(), 3);

    // One that was read to its end, and one that was given up.
    let read = lists.pop().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(read.ends_with(b"}\n"));
    assert_eq!(it.get("alice-token", PODS).await.items().len(), 3);
    drop(lists.pop());
    let last = [it.begin("alice-token", PODS).await, it.begin("alice-token", PODS).await];
    assert!(last.iter().all(|it| it.status() == StatusCode::OK));
    it.get("alice-token", PODS).await.refusal(429, "TooManyRequests");
    drop((watch, another));
}

#[tokio::test]
async fn no_more_lists_are_sent_at_a_time_than_allowed() {
    let it = Controlled::start().await;
    let readers = ["a", "b", "c", "d"];
    it.knows_readers(&readers);
    it.knows_readers(&["e"]);
    let mut lists = Vec::new();
    for reader in readers {
        lists.extend(it.begin_lists(&format!("{reader}-token")).await);
    }
    assert_eq!(lists.len(), MAX_SENDING);
    for _ in 0..GUARANTEED {
        let list = it.begin("e-token", PODS).await;
        assert_eq!(list.status(), StatusCode::OK, "others keep nobody from reading");
        lists.push(list);
    }
    it.get("e-token", PODS).await.refusal(429, "TooManyRequests");
    drop(lists);
    assert_eq!(it.get("e-token", PODS).await.items().len(), 3);
}

#[tokio::test]
async fn a_large_object_counts_as_a_list_does() {
    let it = Controlled::start().await;
    it.judge.allows("alice", list_pods("shop"));
    let mut large = pod("shop", "large", "web", "node-1");
    large["metadata"]["annotations"] = json!({"large": "x".repeat(100_000)});
    it.server.cluster().create(&large).unwrap();
    let get_pod = json!({"verb": "get", "version": "v1", "resource": "pods", "namespace": "shop", "name": "large"});
    it.judge.allows("alice", get_pod);
    let path = format!("{PODS}/large");
    assert_eq!(it.get("alice-token", PODS).await.items().len(), 4);
    let lists = it.begin_lists("alice-token").await;
    it.get("alice-token", &path).await.refusal(429, "TooManyRequests");
    drop(lists);
    assert_eq!(it.get("alice-token", &path).await.code, StatusCode::OK);
}

/// A label selector of so many requirements.
fn without(labels: usize) -> String {
    format!("labelSelector={}", Vec::from_iter((0..labels).map(|it| format!("!x{it}"))).join(","))
}

#[tokio::test]
async fn watches_with_selectors_of_many_terms_are_passed_on() {
    let it = forwarding(Options::default()).await;
    let few = without(MAX_WATCH_TERMS);
    let many = without(MAX_WATCH_TERMS + 1);
    let values = Vec::from_iter((0..MAX_WATCH_TERMS).map(|it| it.to_string())).join(",");
    let of_values = format!("labelSelector=app+notin+({values})");
    let excluded = (0..=MAX_WATCH_TERMS / 2).map(|it| format!("metadata.namespace!=n{it}"));
    let fields =
        format!("fieldSelector={}", Vec::from_iter(excluded).join(",").replace('=', "%3D"));
    let long = format!("fieldSelector=metadata.name%3D{}", "x".repeat(9000));
    for (selector, is_passed_on) in
        [(few, false), (many, true), (of_values, true), (fields, true), (long, true)]
    {
        let path = format!("{PODS}?watch=1&resourceVersion=0&{selector}");
        it.get("root-token", PODS).await.items();
        it.server.clear_requests();
        let watch = it.begin("root-token", &path).await;
        assert_eq!(watch.status(), StatusCode::OK, "{selector}");
        let passed = it.server.requests().resource("pods").verb(Verb::Watch);
        assert_eq!(!passed.is_empty(), is_passed_on, "{selector}");
    }
    // Lists are compared by themselves.
    it.server.clear_requests();
    let list = format!("{PODS}?{}", without(2 * MAX_WATCH_TERMS));
    assert_eq!(it.get("root-token", &list).await.items().len(), 3);
    assert!(it.server.requests().resource("pods").is_empty());
    // The stream of the status page is nothing that the API server has.
    let changes = format!("/ui/changes?resource=pods&{}", without(MAX_WATCH_TERMS + 1));
    let message = it.get("root-token", &changes).await.refusal(400, "BadRequest");
    assert_eq!(message, "labelSelector: at most 100 requirements and values");
}

#[tokio::test(start_paused = true)]
async fn accepted_credentials_alone_keep_the_place_of_a_connection() {
    let it = Controlled::start().await;
    for (token, path, keeps) in [
        // Whatever is allowed.
        (Some("alice-token"), PODS, true),
        (Some("unknown"), PODS, false),
        (None, PODS, false),
        (None, "/livez", false),
    ] {
        let (places, close) = (Places::new(1), CancellationToken::new());
        let slot = places.take(close.clone()).await;
        let mut asked = request(Method::GET, "endpoint.example", path);
        asked.extensions_mut().insert(slot.clone());
        if let Some(token) = token {
            let bearer = format!("Bearer {token}").parse().unwrap();
            asked.headers_mut().insert("authorization", bearer);
        }
        it.ask(asked).await;
        let another = places.take(CancellationToken::new());
        let taken = tokio::time::timeout(Duration::from_secs(10), another).await;
        assert!(taken.is_err(), "it is still held here");
        assert_eq!(!close.is_cancelled(), keeps, "{token:?} {path}");
        drop(slot);
    }
}
