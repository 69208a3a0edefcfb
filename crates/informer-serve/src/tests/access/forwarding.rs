//! What is not answered from the cache is asked with the caller's token, and what it told is seen
//! by the next read.

use futures_util::stream;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use informer_testkit::{Cut, Fault, Verb};
use kube::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::Upstream;

/// An endpoint that forwards for `root`, who may do everything.
pub(super) async fn forwarding(options: Options) -> Controlled {
    let server = server().await;
    let url = server.url();
    forwarding_to(&url, server, options)
}

/// As [`forwarding`], to another server than the endpoint's own account asks.
pub(super) fn forwarding_to(url: &str, server: TestServer, options: Options) -> Controlled {
    let judge = Judge::default();
    let upstream = Upstream::of(&Config::new(url.parse().unwrap())).unwrap();
    let endpoint = Endpoint::new(judge.client(&server), options).with_upstream(upstream);
    judge.knows("root-token", "root", &["system:masters"]);
    server.auth().add_token("root-token", "root");
    server.auth().add_token("own-token", "informer");
    Controlled { server, judge, endpoint }
}

impl Controlled {
    pub(super) async fn write(&self, method: Method, path: &str, body: &Value) -> Answer {
        let mut asked = request(method, "endpoint.example", path).map(|_| body.to_string().into());
        let headers = asked.headers_mut();
        headers.insert(AUTHORIZATION, "Bearer root-token".parse().unwrap());
        headers.insert(CONTENT_TYPE, "application/json".parse().unwrap());
        self.ask(asked).await
    }

    pub(super) async fn names(&self, path: &str) -> Vec<String> {
        self.get("root-token", path).await.items()
    }

    /// Whether the next read of the newest state is forwarded.
    pub(super) fn must_forward(&self) -> bool {
        let collection = self.endpoint.inner.collections.now().pop().unwrap();
        self.endpoint.inner.writes.must_forward(&collection, Duration::from_secs(1))
    }

    /// Waits until no request is in flight any more.
    async fn is_quiet(&self) {
        let quiet = "serve_forwarded_in_flight 0";
        while !self.get("root-token", "/metrics").await.text.contains(quiet) {
            tokio::task::yield_now().await;
        }
    }

    /// The cache gets nothing any more.
    pub(super) fn stall(&self, resource: &str) {
        self.server.faults().inject(Fault::stall().on(Verb::Watch).resource(resource));
        self.server.faults().cut_watches(Cut::Close, Some(resource));
    }
}

#[tokio::test]
async fn a_write_is_seen_by_the_next_read_though_the_own_watch_stalls() {
    let it = forwarding(Options::default()).await;
    assert_eq!(it.names("/api/v1/namespaces/shop/pods").await.len(), 3);
    it.stall("pods");
    let path = "/api/v1/namespaces/shop/pods";
    let created = it.write(Method::POST, path, &pod("shop", "new", "web", "node-1")).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    let version: u64 =
        created.json()["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let collection = it.endpoint.inner.collections.now().pop().unwrap();
    assert_eq!(collection.history.floor(), version);
    assert!(it.names(path).await.contains(&"new".to_owned()));
}

#[tokio::test]
async fn a_deletion_without_a_version_is_seen_by_the_next_read() {
    let it = forwarding(Options::default()).await;
    let (all, one) = ("/api/v1/nodes", "/api/v1/nodes/node-1");
    assert_eq!(it.names(all).await, ["node-1"]);
    it.stall("nodes");
    let deleted = it.write(Method::DELETE, one, &json!({})).await;
    assert_eq!(deleted.code, StatusCode::OK, "{}", deleted.text);
    assert_eq!(deleted.json()["kind"], "Status", "it names no version");
    it.get("root-token", one).await.refusal(404, "NotFound");
    assert!(it.names(all).await.is_empty());
    assert!(it.names(all).await.is_empty());
}

fn autoscaler(version: &str) -> Value {
    json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"}, "spec": {"maxReplicas": 2,
            "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}}})
}

#[tokio::test]
async fn a_write_is_seen_in_other_versions_of_its_group() {
    let it = forwarding(Options::default()).await;
    let of = |version: &str| {
        format!("/apis/autoscaling/{version}/namespaces/shop/horizontalpodautoscalers")
    };
    let floors = |it: &Controlled| {
        let held = it.endpoint.inner.collections.now();
        let floors = held.iter().map(|it| (it.own.version.clone(), it.history.floor()));
        std::collections::BTreeMap::from_iter(floors)
    };
    let version = |answer: &Answer| -> u64 {
        answer.json()["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    // Before it is held in any version.
    let created = it.write(Method::POST, &of("v2"), &autoscaler("v2")).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    it.names(&of("v1")).await;
    it.names(&of("v2")).await;
    assert!(floors(&it).values().all(|it| *it >= version(&created)), "{:?}", floors(&it));
    // While it is held in both.
    let path = format!("{}/web", of("v1"));
    let written = it.write(Method::PUT, &path, &autoscaler("v1")).await;
    assert_eq!(written.code, StatusCode::OK, "{}", written.text);
    let floor = version(&written);
    let both = [("v1".to_owned(), floor), ("v2".to_owned(), floor)];
    assert_eq!(floors(&it), both.into());

    // A deletion names no version.
    it.stall("horizontalpodautoscalers");
    let deleted = it.write(Method::DELETE, &path, &json!({})).await;
    assert_eq!(deleted.json()["kind"], "Status", "{}", deleted.text);
    let held = it.endpoint.inner.collections.now();
    let must_forward = || {
        let held = held.iter();
        held.map(|of| it.endpoint.inner.writes.must_forward(of, Duration::from_secs(1)))
    };
    assert_eq!(Vec::from_iter(must_forward()), [true, true]);
    // A list of the newest state in one version tells of all.
    it.names(&of("v1")).await;
    for collection in &held {
        assert!(collection.history.floor() > floor, "{:?}", collection.own);
    }
    assert_eq!(Vec::from_iter(must_forward()), [true, true], "until both show it");
}

#[tokio::test]
async fn a_dry_run_and_a_refused_write_change_nothing_that_is_known() {
    let it = forwarding(Options::default()).await;
    let path = "/api/v1/namespaces/shop/pods";
    it.names(path).await;
    let collection = it.endpoint.inner.collections.now().pop().unwrap();
    let refused = it.write(Method::POST, path, &pod("shop", "web-0", "web", "node-1")).await;
    assert_eq!(refused.code, StatusCode::CONFLICT);
    it.server.clear_requests();
    it.names(path).await;
    assert!(it.server.requests().resource("pods").verb(Verb::List).is_empty());
    assert!(collection.history.floor() <= collection.history.version());
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_looked_for() {
    let it = forwarding(Options::default()).await;
    let path = "/api/v1/nodes";
    it.names(path).await;
    it.stall("nodes");
    let lost = Fault::hang_up().after_serving().on(Verb::Create).resource("nodes");
    it.server.faults().inject(lost.times(1));
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-2"}});
    let answer = it.write(Method::POST, path, &node).await;
    assert_eq!(answer.code, StatusCode::GATEWAY_TIMEOUT, "{}", answer.text);
    assert_eq!(it.names(path).await, ["node-1", "node-2"]);
}

#[tokio::test]
async fn requests_in_another_name_are_asked_of_the_api_server_with_the_callers_token() {
    let it = forwarding(Options::default()).await;
    let path = "/api/v1/namespaces/shop/pods";
    it.names(path).await;
    for path in [path, "/version"] {
        it.server.clear_requests();
        let headers = [("authorization", "Bearer root-token"), ("impersonate-user", "jane")];
        let answer = it.with(path, &headers).await;
        assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
    }
    let headers = [("authorization", "Bearer root-token"), ("impersonate-user", "jane")];
    for path in ["/metrics", "/pods", "/"] {
        it.with(path, &headers).await.refusal(403, "Forbidden");
    }
    it.with(path, &[("impersonate-user", "jane")]).await.refusal(401, "Unauthorized");
    // It could not be ended with the rights for it.
    let socket = [
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for (headers, resource) in [(&headers[..], "pods"), (&headers[..1], "secrets")] {
        let path = format!("/api/v1/namespaces/shop/{resource}?watch=1");
        let refused = it.with(&path, &[&socket[..], headers].concat()).await;
        assert!(refused.refusal(403, "Forbidden").contains("over WebSocket"), "{resource}");
    }
}

#[tokio::test]
async fn strict_resources_secrets_and_subresources_are_the_callers() {
    let options = Options { strict: vec!["nodes".to_owned()], ..Options::default() };
    let it = forwarding(options).await;
    it.server.auth().deny("root", Verb::List, "nodes");
    let refused = it.get("root-token", "/api/v1/nodes").await;
    assert!(refused.refusal(403, "Forbidden").contains("\"root\""));
    let secret = it.get("root-token", "/api/v1/namespaces/shop/secrets/s").await;
    assert_eq!(secret.json()["kind"], "Secret");
    it.get("root-token", "/apis/apps/v1/namespaces/kube-system/deployments/coredns/scale").await;
}

#[tokio::test]
async fn what_allow_does_not_name_is_asked_with_the_callers_own_token() {
    let it = forwarding(Options { allow: vec!["pods".to_owned()], ..Options::default() }).await;
    assert_eq!(it.names("/api/v1/nodes").await, ["node-1"]);
    assert_eq!(it.get("root-token", "/api/v1/nodes/node-1").await.json()["kind"], "Node");
    it.server.auth().deny("root", Verb::List, "nodes");
    let refused = it.get("root-token", "/api/v1/nodes").await;
    assert!(refused.refusal(403, "Forbidden").contains("\"root\""), "{}", refused.text);
    // Whoever may not do it here does not get that far.
    it.judge.knows("bob-token", "bob", &[]);
    it.server.auth().add_token("bob-token", "bob");
    let refused = it.get("bob-token", "/api/v1/nodes/node-1").await;
    assert!(refused.refusal(403, "Forbidden").contains("\"bob\""), "{}", refused.text);
    // There is no cache of it, and short paths read no other.
    let refused = it.get("root-token", "/nodes").await.refusal(403, "Forbidden");
    assert!(refused.contains("--allow nodes"), "{refused}");
    assert!(it.endpoint.inner.collections.now().is_empty());
    assert!(it.names("/api/v1/pods").await.len() > 1);
    let held = it.endpoint.inner.collections.now();
    assert_eq!(held.iter().map(|it| it.own.plural.as_str()).collect::<Vec<_>>(), ["pods"]);
}

#[tokio::test]
async fn a_user_has_no_more_watches_than_allowed() {
    let it = forwarding(Options { max_watches_per_user: 1, ..Options::default() }).await;
    let path = "/api/v1/pods?watch=1&resourceVersion=0";
    let ask = || {
        let mut asked = request(Method::GET, "endpoint.example", path);
        asked.headers_mut().insert(AUTHORIZATION, "Bearer root-token".parse().unwrap());
        it.router().oneshot(asked)
    };
    let first = ask().await.unwrap();
    assert_eq!(first.status(), StatusCode::OK);
    let second = ask().await.unwrap();
    assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(second.headers().contains_key("retry-after"));
    drop(first);
    assert_eq!(ask().await.unwrap().status(), StatusCode::OK);
}

/// A request of `root`, made in the name of another.
fn deletion(body: Body) -> AxumRequest {
    let mut asked = request(Method::DELETE, "endpoint.example", "/api/v1/nodes/node-1");
    *asked.body_mut() = body;
    asked.headers_mut().insert(AUTHORIZATION, "Bearer root-token".parse().unwrap());
    asked.headers_mut().insert("impersonate-user", "jane".parse().unwrap());
    asked
}

async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
}

#[tokio::test]
async fn a_refused_write_counts_for_nothing_though_its_caller_has_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let it = forwarding_to(&url, server().await, Options::default());
    it.names("/api/v1/nodes").await;
    for (answer, counts) in [("403 Forbidden", false), ("200 OK", true)] {
        let mut asking = Box::pin(it.router().oneshot(deletion(Body::empty())));
        let taken = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream
        };
        let mut stream = tokio::select! {
            _ = &mut asking => panic!("it has no answer"),
            stream = taken => stream,
        };
        drop(asking);
        assert!(!it.must_forward(), "nobody has said yet what became of it");
        let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        it.is_quiet().await;
        assert_eq!(it.must_forward(), counts, "{answer}");
    }
}

#[tokio::test]
async fn a_write_that_was_not_sent_to_its_end_counts_for_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let it = forwarding_to(&url, server().await, Options::default());
    it.names("/api/v1/nodes").await;
    let chunks = [Ok("{"), Err(std::io::Error::other("reset"))];
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(stream.read_to_end(&mut Vec::new()).await);
    };
    let asking = it.ask(deletion(Body::from_stream(stream::iter(chunks))));
    let ((), answer) = tokio::join!(server, asking);
    assert_eq!(answer.code, StatusCode::GATEWAY_TIMEOUT, "{}", answer.text);
    assert!(!it.must_forward());
}
