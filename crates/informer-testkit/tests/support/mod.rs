//! Requests by hand: what kube's typed API hides.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::allow_attributes, reason = "an expectation would not hold in every test file")]

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use informer_testkit::Body;
use informer_testkit::{ApiService, ConnectionError, TestServer};
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) async fn server() -> TestServer {
    TestServer::start().await.unwrap()
}

/// A server with the Pods `a`, `b` and `c`.
pub(crate) async fn with_pods() -> (TestServer, ApiService) {
    let server = server().await;
    for name in ["a", "b", "c"] {
        server.cluster().create(&pod("default", name)).unwrap();
    }
    let service = server.service();
    (server, service)
}

/// A minimal Pod.
pub(crate) fn pod(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "example"}], "nodeName": "n1"},
    })
}

pub(crate) fn request(
    method: &str,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Request<http_body_util::Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(http_body_util::Full::new(body))
        .unwrap()
}

/// Asks without a socket.
pub(crate) async fn call(
    service: &ApiService,
    request: Request<http_body_util::Full<Bytes>>,
) -> Result<Response<Body>, ConnectionError> {
    service.clone().oneshot(request).await
}

/// The whole answer to a request.
pub(crate) async fn send(
    service: &ApiService,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, String) {
    let content_type =
        if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    whole(call(service, request(method, path, content_type, body)).await.unwrap()).await
}

pub(crate) async fn whole(response: Response<Body>) -> (u16, String) {
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

/// The answer as JSON.
pub(crate) async fn get(service: &ApiService, path: &str) -> (u16, Value) {
    let (code, body) = send(service, "GET", path, &Value::Null).await;
    (code, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

pub(crate) async fn get_as(service: &ApiService, path: &str, accept: &str) -> (u16, String) {
    let mut request = request("GET", path, "", &Value::Null);
    request.headers_mut().insert("accept", accept.parse().unwrap());
    whole(call(service, request).await.unwrap()).await
}

/// The lines of a watch.
pub(crate) struct Lines<B> {
    body: B,
    buffer: Vec<u8>,
}

pub(crate) async fn watch(service: &ApiService, path: &str) -> Lines<Body> {
    let response = call(service, request("GET", path, "", &Value::Null)).await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    Lines::new(response.into_body())
}

/// A watch over a real connection.
pub(crate) async fn watch_by(client: &kube::Client, path: &str) -> Lines<kube::client::Body> {
    let request = Request::get(path).body(kube::client::Body::empty()).unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    Lines::new(response.into_body())
}

impl<B> Lines<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    pub(crate) fn new(body: B) -> Self {
        Self { body, buffer: Vec::new() }
    }

    /// The next line; `None` at a clean end, an error if the stream breaks.
    pub(crate) async fn line(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(String::from_utf8(line[..end].to_vec()).unwrap()));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    self.buffer.extend_from_slice(&frame.into_data().unwrap_or_default())
                }
                Some(Err(error)) => return Err(error.to_string()),
                None => return Ok(None),
            }
        }
    }

    /// What came without a line break behind it.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer
    }

    pub(crate) async fn event(&mut self) -> Option<Value> {
        self.line().await.unwrap().map(|line| serde_json::from_str(&line).unwrap())
    }

    /// The next event as `TYPE name@version`; of a bookmark `BOOKMARK @version`.
    pub(crate) async fn short(&mut self) -> Option<String> {
        let event = self.event().await?;
        let metadata = &event["object"]["metadata"];
        Some(format!(
            "{} {}@{}",
            event["type"].as_str().unwrap(),
            metadata["name"].as_str().unwrap_or_default(),
            metadata["resourceVersion"].as_str().unwrap_or_default()
        ))
    }
}
