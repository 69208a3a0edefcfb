//! The endpoint against the test kit.

mod access;
mod api;
mod bounds;
mod gateway;
mod held;
mod listening;
mod raw;
mod status_page;
mod tls;
mod watch;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use informer_testkit::TestServer;
use k8s_protobuf::encode;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{Endpoint, Object, Options};

/// An answer: code, body as text, headers.
struct Answer {
    code: StatusCode,
    text: String,
    headers: HeaderMap,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The names of the items.
    fn items(&self) -> Vec<String> {
        let list = self.json();
        let items = list["items"].as_array().unwrap_or_else(|| panic!("{}", self.text));
        items.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The message, which must be that of a `Status` with this code and reason.
    fn refusal(&self, code: u16, reason: &str) -> String {
        let status = self.json();
        assert_eq!(self.code.as_u16(), code, "{}", self.text);
        assert_eq!(
            (&status["kind"], &status["status"], &status["code"], &status["reason"]),
            (&json!("Status"), &json!("Failure"), &json!(code), &json!(reason)),
            "{}",
            self.text
        );
        status["message"].as_str().unwrap().to_owned()
    }
}

async fn ask(endpoint: &Endpoint, request: Request<Body>) -> Answer {
    ask_router(endpoint.router(), request).await
}

async fn ask_router(router: Router, request: Request<Body>) -> Answer {
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Answer { code: parts.status, text, headers: parts.headers }
}

async fn get(endpoint: &Endpoint, path: &str) -> Answer {
    ask(endpoint, request(Method::GET, "localhost", path)).await
}

fn request(method: Method, host: &str, path: &str) -> Request<Body> {
    let escaped = path.replace(' ', "%20");
    Request::builder().method(method).uri(escaped).header("host", host).body(Body::empty()).unwrap()
}

fn pod(namespace: &str, name: &str, app: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app, "k8s.io/tier": "x"}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "i"}]}})
}

/// A server with four Pods, a Node, a Deployment and a Secret.
async fn server() -> TestServer {
    let server = TestServer::start().await.unwrap();
    let cluster = server.cluster();
    for (namespace, name, app, node) in [
        ("shop", "cart-0", "cart", "node-1"),
        ("shop", "web-0", "web", "node-1"),
        ("shop", "web-1", "web", "node-2"),
        ("web", "web-0", "web", "node-2"),
    ] {
        cluster.create(&pod(namespace, name, app, node)).unwrap();
    }
    cluster
        .create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}))
        .unwrap();
    cluster
        .create(&json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "coredns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
            "spec": {"replicas": 2}}))
        .unwrap();
    cluster
        .create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"},
            "data": {"password": "aHVudGVyMg=="}}))
        .unwrap();
    server
}

fn endpoint(server: &TestServer, options: Options) -> Endpoint {
    Endpoint::new(server.client().unwrap(), options)
}

/// As [`endpoint`], for a paused clock: without a socket, for which the clock would not wait.
fn unhurried(server: &TestServer, options: Options) -> Endpoint {
    Endpoint::new(kube::Client::new(server.service(), "default"), options)
}

/// A Pod with readable metadata and a malformed spec.
fn broken() -> Object {
    let mut bytes = Vec::new();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "broken", "namespace": "x"},
        "spec": {"nodeName": "hunter2", "containers": []}});
    encode::object(&pod, &mut bytes).unwrap();
    let at = bytes.windows(9).position(|it| it == b"\x52\x07hunter2").unwrap();
    // A length beyond the end of the spec.
    bytes[at + 1] = 0x7f;
    Object::from_protobuf(&bytes).unwrap()
}
