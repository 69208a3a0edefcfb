//! Who may read where access is controlled.

mod attacks;
mod extensions;
mod floods;
mod forwarding;
mod judge;
mod large;
mod shorts;
mod status_page;
mod watches;
mod writes;

use std::time::Duration;

use axum::Router;
use axum::extract::Request as AxumRequest;
use http::HeaderName;

use super::*;
use crate::access::{Access, Control};
use judge::{Judge, list_pods};

/// An endpoint whose callers are known and judged.
struct Controlled {
    server: TestServer,
    judge: Judge,
    endpoint: Endpoint,
}

impl Controlled {
    async fn start() -> Self {
        let server = server().await;
        let judge = Judge::default();
        let endpoint = Endpoint::new(judge.client(&server), Options::default());
        judge.knows("alice-token", "alice", &["team"]);
        judge.knows("bob-token", "bob", &[]);
        Self { server, judge, endpoint }
    }

    fn router(&self) -> Router {
        let reviews = std::sync::Arc::clone(&self.endpoint.inner.reviews);
        self.endpoint.routes(Access::Controlled(Control::new(reviews, None)))
    }

    /// The answer to a GET with these headers.
    async fn with(&self, path: &str, headers: &[(&'static str, &str)]) -> Answer {
        let mut asked = request(Method::GET, "endpoint.example", path);
        for (name, value) in headers {
            asked.headers_mut().append(HeaderName::from_static(name), value.parse().unwrap());
        }
        self.ask(asked).await
    }

    async fn get(&self, token: &str, path: &str) -> Answer {
        self.with(path, &[("authorization", &format!("Bearer {token}"))]).await
    }

    async fn ask(&self, request: AxumRequest) -> Answer {
        ask_router(self.router(), request).await
    }
}

#[tokio::test]
async fn nobody_is_answered_without_credentials() {
    let it = Controlled::start().await;
    for path in [
        "/api/v1/pods",
        "/api/v1/nope",
        "/api",
        "/openapi/v3",
        "/version",
        "/metrics",
        "/",
        "/pods",
        "/core/v1/pods/shop/web-0",
        "/nope",
        "//",
        "/livez/ping",
        "/api/v1/pods/..%2fx",
    ] {
        let answer = it.with(path, &[]).await;
        assert_eq!(answer.refusal(401, "Unauthorized"), "Unauthorized", "{path}");
        it.get("nobody's", path).await.refusal(401, "Unauthorized");
    }
    assert!(it.judge.accesses().is_empty(), "nobody was looked for rights");
    let reads = it.server.requests();
    assert!(reads.resource("pods").is_empty(), "nothing was started");
}

#[tokio::test]
async fn probes_need_no_credentials_and_come_to_any_host() {
    let it = Controlled::start().await;
    for path in ["/livez", "/readyz", "/healthz"] {
        let probe = request(Method::GET, "10.1.2.3:8443", path);
        let answer = it.ask(probe).await;
        assert_eq!((answer.code, &*answer.text), (StatusCode::OK, "ok\n"), "{path}");
    }
    assert!(it.judge.tokens().is_empty() && it.judge.accesses().is_empty());
}

#[tokio::test]
async fn what_is_allowed_is_read_and_all_else_is_refused_in_the_servers_words() {
    let it = Controlled::start().await;
    it.judge.allows("alice", list_pods("shop"));
    let own = it.get("alice-token", "/api/v1/namespaces/shop/pods").await;
    assert_eq!(own.items(), ["cart-0", "web-0", "web-1"]);
    for (path, message) in [
        (
            "/api/v1/pods",
            r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" at the cluster scope"#,
        ),
        (
            "/api/v1/namespaces/web/pods",
            r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "web""#,
        ),
        (
            "/api/v1/namespaces/shop/pods?watch=1",
            r#"pods is forbidden: User "alice" cannot watch resource "pods" in API group "" in the namespace "shop""#,
        ),
        (
            "/api/v1/namespaces/shop/pods/web-0",
            r#"pods "web-0" is forbidden: User "alice" cannot get resource "pods" in API group "" in the namespace "shop""#,
        ),
        (
            "/api/v1/namespaces/shop/pods/web-0/log",
            r#"pods "web-0" is forbidden: User "alice" cannot get resource "pods/log" in API group "" in the namespace "shop""#,
        ),
        (
            "/api/v1/namespaces/shop",
            r#"namespaces "shop" is forbidden: User "alice" cannot get resource "namespaces" in API group "" in the namespace "shop""#,
        ),
        (
            "/apis/apps/v1/deployments",
            r#"deployments.apps is forbidden: User "alice" cannot list resource "deployments" in API group "apps" at the cluster scope"#,
        ),
        // Whether there is such a thing is not said.
        (
            "/apis/nope.example.com/v1/nopes",
            r#"nopes.nope.example.com is forbidden: User "alice" cannot list resource "nopes" in API group "nope.example.com" at the cluster scope"#,
        ),
        ("/metrics", r#"forbidden: User "alice" cannot get path "/metrics""#),
        ("/", r#"forbidden: User "alice" cannot get path "/""#),
        ("/apis", r#"forbidden: User "alice" cannot get path "/apis""#),
        ("/openapi/v3", r#"forbidden: User "alice" cannot get path "/openapi/v3""#),
        // Short paths.
        (
            "/pods",
            r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" at the cluster scope"#,
        ),
        (
            "/po?namespace=web",
            r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "web""#,
        ),
        (
            "/apps/v1/deployments?labels[a]=b",
            r#"deployments.apps is forbidden: User "alice" cannot list resource "deployments" in API group "apps" at the cluster scope"#,
        ),
        (
            "/core/v1/pods/shop/web-0",
            r#"pods "web-0" is forbidden: User "alice" cannot get resource "pods" in API group "" in the namespace "shop""#,
        ),
        (
            "/core/v1/nodes/node-1",
            r#"nodes "node-1" is forbidden: User "alice" cannot get resource "nodes" in API group "" at the cluster scope"#,
        ),
        ("/nope", r#"forbidden: User "alice" cannot get path "/nope""#),
        ("/no/such", r#"forbidden: User "alice" cannot get path "/no/such""#),
        ("/no/such/thing", r#"such is forbidden"#),
    ] {
        let answer = it.get("alice-token", path).await;
        if path != "/no/such/thing" {
            assert_eq!(answer.refusal(403, "Forbidden"), message, "{path}");
        } else {
            assert!(answer.refusal(403, "Forbidden").starts_with("thing.no is forbidden"));
        }
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
    // In the form that is asked for.
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let bearer = ("authorization", "Bearer bob-token");
    let answer = it.with("/api/v1/namespaces/shop/pods", &[bearer, ("accept", table)]).await;
    assert!(answer.refusal(403, "Forbidden").contains(r#"User "bob""#));
    assert!(it.server.requests().resource("deployments").is_empty(), "nothing was started");
}

#[tokio::test]
async fn reviews_have_all_of_the_caller_and_all_of_the_request() {
    let it = Controlled::start().await;
    it.judge.knows_as(
        "full-token",
        json!({"username": "full", "uid": "u-1", "groups": ["a", "b"], "extra": {"k": ["v", "w"]}}),
    );
    let path = "/apis/apps/v1/namespaces/shop/deployments?watch=1&fieldSelector=metadata.name=web&labelSelector=a=b";
    it.get("full-token", path).await.refusal(403, "Forbidden");
    assert_eq!(
        it.judge.accesses(),
        [json!({
            "user": "full", "uid": "u-1", "groups": ["a", "b"], "extra": {"k": ["v", "w"]},
            "resourceAttributes": {
                "verb": "watch", "group": "apps", "version": "v1", "resource": "deployments",
                "namespace": "shop", "name": "web",
                "fieldSelector": {"requirements": [
                    {"key": "metadata.name", "operator": "In", "values": ["web"]},
                ]},
                "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
            },
        })]
    );
    assert_eq!(it.judge.tokens(), [json!({"token": "full-token"})]);
}

#[tokio::test]
async fn members_of_system_masters_are_not_reviewed() {
    let it = Controlled::start().await;
    it.judge.knows("root-token", "root", &["system:masters"]);
    assert_eq!(it.get("root-token", "/api/v1/pods").await.items().len(), 4);
    assert_eq!(it.get("root-token", "/metrics").await.code, StatusCode::OK);
    assert!(it.judge.accesses().is_empty());
}

#[tokio::test(start_paused = true)]
async fn answers_are_believed_for_ten_seconds_and_asked_for_once() {
    let it = Controlled::start().await;
    it.judge.allows("alice", list_pods("shop"));
    let path = "/api/v1/namespaces/shop/pods";
    it.get("alice-token", path).await.items();
    let all = (0..100).map(|_| it.get("alice-token", path));
    assert!(futures_util::future::join_all(all).await.iter().all(|it| it.code == StatusCode::OK));
    assert_eq!((it.judge.tokens().len(), it.judge.accesses().len()), (1, 1));
    it.get("bob-token", path).await.refusal(403, "Forbidden");
    it.judge.forbids("alice", &list_pods("shop"));
    it.judge.allows("bob", list_pods("shop"));
    tokio::time::sleep(Duration::from_secs(9)).await;
    it.get("alice-token", path).await.items();
    it.get("bob-token", path).await.refusal(403, "Forbidden");
    tokio::time::sleep(Duration::from_secs(1)).await;
    it.get("alice-token", path).await.refusal(403, "Forbidden");
    it.get("bob-token", path).await.items();
    it.judge.forgets("alice-token");
    tokio::time::sleep(Duration::from_secs(10)).await;
    it.get("alice-token", path).await.refusal(401, "Unauthorized");
}

#[tokio::test(start_paused = true)]
async fn while_reviews_fail_only_remembered_answers_count() {
    let it = Controlled::start().await;
    it.judge.allows("alice", list_pods("shop"));
    let path = "/api/v1/namespaces/shop/pods";
    it.get("alice-token", path).await.items();
    it.judge.is_away(true);
    it.get("alice-token", path).await.items();
    let unknown = it.get("bob-token", path).await;
    unknown.refusal(503, "ServiceUnavailable");
    assert_eq!(unknown.headers["retry-after"], "1");
    it.get("alice-token", "/api/v1/pods").await.refusal(503, "ServiceUnavailable");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let message = it.get("alice-token", path).await.refusal(503, "ServiceUnavailable");
    assert!(!message.contains("alice-token"), "{message}");
    it.judge.is_away(false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    it.get("alice-token", path).await.items();
}

#[tokio::test(start_paused = true)]
async fn nobody_without_credentials_is_told_what_fails() {
    let it = Controlled::start().await;
    it.judge.refuses_to_review(true);
    let message = it.get("alice-token", "/api/v1/pods").await.refusal(503, "ServiceUnavailable");
    assert_eq!(message, "callers cannot be looked up now, try again later");
    it.with("/api/v1/pods", &[]).await.refusal(401, "Unauthorized");
    let ready = it.with("/readyz", &[]).await;
    assert_eq!(ready.code, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ready.text, "not ready: the reason is in the log\n");
    // On loopback everybody may know.
    let ready = get(&it.endpoint, "/readyz").await;
    assert_eq!(ready.code, StatusCode::SERVICE_UNAVAILABLE);
    assert!(ready.text.contains("system:auth-delegator"), "{}", ready.text);
    it.judge.refuses_to_review(false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(it.with("/readyz", &[]).await.code, StatusCode::OK);
}
