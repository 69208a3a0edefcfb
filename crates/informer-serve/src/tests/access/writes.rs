//! What the next read waits for after writes whose answers say too little, or what is not so.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::CONTENT_TYPE;
use informer::Resource;
use k8s_serve::{ResourcePath, Route, Verb};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::forwarding::{forwarding, forwarding_to};
use super::*;
use crate::forward::{Kind, telling};

const NODES: &str = "/api/v1/nodes";

/// An endpoint that holds the Nodes, and forwards to a server that gives one answer.
async fn answered_with(answer: Vec<u8>) -> Controlled {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let it = forwarding_to(&url, server().await, Options::default());
    assert_eq!(it.names(NODES).await, ["node-1"]);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut read, mut chunk) = (Vec::new(), [0; 4096]);
        while !read.windows(4).any(|it| it == b"\r\n\r\n") {
            let length = stream.read(&mut chunk).await.unwrap();
            read.extend_from_slice(&chunk[..length]);
        }
        stream.write_all(&answer).await.unwrap();
        // What is left of the request would reset the connection.
        drop(stream.read_to_end(&mut Vec::new()).await);
    });
    it
}

fn json_answer(status: &str, body: &Value) -> Vec<u8> {
    let (body, media_type) = (body.to_string(), "application/json");
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{CONTENT_TYPE}: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[tokio::test]
async fn deletions_of_a_collection_are_seen_by_the_next_read() {
    let it = forwarding(Options::default()).await;
    let (pods, selected) = ("/api/v1/namespaces/shop/pods", "?labelSelector=app%3Dweb");
    assert_eq!(it.names(pods).await, ["cart-0", "web-0", "web-1"]);
    it.stall("pods");
    let deleted = it.write(Method::DELETE, &format!("{pods}{selected}"), &json!({})).await;
    assert_eq!(deleted.items(), ["web-0", "web-1"], "{}", deleted.text);
    let listed = &deleted.json()["metadata"]["resourceVersion"];
    assert!(listed.is_string(), "it names the version of the list before the deletions");
    assert_eq!(it.names(pods).await, ["cart-0"]);
}

#[tokio::test]
async fn a_refused_deletion_of_a_collection_may_have_deleted_some_of_it() {
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}});
    for (method, status, counts) in [
        (Method::DELETE, "422 Unprocessable Entity", true),
        (Method::DELETE, "403 Forbidden", true),
        (Method::DELETE, "429 Too Many Requests", true),
        // Before the first object is looked at.
        (Method::DELETE, "401 Unauthorized", false),
        // One object is created, or it is not.
        (Method::POST, "422 Unprocessable Entity", false),
    ] {
        let it = answered_with(json_answer(status, &refusal)).await;
        let answer = it.write(method.clone(), NODES, &json!({})).await;
        assert!(status.starts_with(answer.code.as_str()), "{}", answer.text);
        assert_eq!(it.must_forward(), counts, "{method} {status}");
    }
}

/// A caller needs no rights to send such a request.
#[tokio::test]
async fn a_refused_impersonation_does_not_keep_readers_from_the_cache() {
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}});
    let it = answered_with(json_answer("403 Forbidden", &refusal)).await;
    let mut asked = request(Method::DELETE, "endpoint.example", NODES);
    for (name, value) in [("authorization", "Bearer root-token"), ("impersonate-user", "jane")] {
        asked.headers_mut().insert(name, value.parse().unwrap());
    }
    assert_eq!(it.ask(asked).await.code, StatusCode::FORBIDDEN);
    assert!(!it.must_forward());
}

#[tokio::test]
async fn a_dry_run_in_the_query_of_a_deletion_is_no_promise() {
    // The API server looks at the options of the body alone, if there are any.
    let success = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}});
    let one = "/api/v1/nodes/node-1";
    for (method, path, counts) in [
        (Method::DELETE, one, true),
        (Method::DELETE, NODES, true),
        (Method::PATCH, one, false),
        (Method::POST, NODES, false),
    ] {
        let it = answered_with(json_answer("200 OK", &success)).await;
        let answer = it.write(method.clone(), &format!("{path}?dryRun=All"), &json!({})).await;
        assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
        assert_eq!(it.must_forward(), counts, "{method} {path}");
    }
}

#[tokio::test]
async fn bindings_are_writes_of_pods() {
    let it = forwarding(Options::default()).await;
    let told = |path: &str, plural: &str| {
        let Route::Resource(path) = Route::parse(path) else { panic!("{path}") };
        let resource = Resource {
            group: path.group.clone(),
            version: path.version.clone(),
            plural: plural.to_owned(),
            kind: "Binding".to_owned(),
            namespaced: true,
        };
        let path: &ResourcePath = &path;
        drop(telling(
            &it.endpoint.inner.writes,
            &resource,
            path,
            (&Method::POST, Verb::Create, ""),
        ));
    };
    it.names("/api/v1/pods").await;
    told("/apis/example.com/v1/namespaces/shop/bindings", "bindings");
    assert!(!it.must_forward(), "they are others");
    told("/api/v1/namespaces/shop/bindings", "bindings");
    assert!(it.must_forward());
}

#[tokio::test]
async fn a_list_whose_version_is_not_found_keeps_no_reader_from_the_cache() {
    // As lists of custom resources are: the version comes last.
    let list = format!(
        r#"{{"apiVersion":"v1","items":[{{"x":"{}"}}],"kind":"NodeList","metadata":{{"resourceVersion":"99"}}}}"#,
        "y".repeat(100_000)
    );
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(list.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        packed.len()
    );
    let it = answered_with([head.as_bytes(), &packed].concat()).await;
    let held = it.endpoint.inner.collections.now().pop().unwrap();
    drop(it.endpoint.inner.writes.telling(&held.own, Kind::Write));
    assert!(it.must_forward());
    let headers = [("authorization", "Bearer root-token"), ("accept-encoding", "gzip")];
    let mut asked = request(Method::GET, "endpoint.example", NODES);
    for (name, value) in headers {
        asked.headers_mut().insert(name, value.parse().unwrap());
    }
    let response = it.router().oneshot(asked).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), packed);
    let cached = async {
        while it.must_forward() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), cached).await.unwrap();
}
