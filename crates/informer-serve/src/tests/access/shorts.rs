//! Short paths obey the conditions of Kubernetes' own paths, and are told in the audit log; one
//! user's lasting requests are bounded, whatever they are.

use http::header::AUTHORIZATION;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::net::TcpListener;

use super::forwarding::{forwarding, forwarding_to};
use super::*;

#[tokio::test]
async fn strict_resources_have_no_short_path() {
    let it = forwarding(Options { strict: vec!["nodes".into()], ..Options::default() }).await;
    for path in ["/nodes", "/core/v1/nodes", "/core/v1/nodes/node-1"] {
        let message = it.get("root-token", path).await.refusal(403, "Forbidden");
        assert!(message.contains("/api/v1/nodes"), "{path}: {message}");
    }
    assert!(it.server.requests().resource("nodes").is_empty());
}

#[tokio::test]
async fn a_short_path_shows_the_last_write_or_says_that_it_cannot() {
    let it = forwarding(Options::default()).await;
    let pods = "/api/v1/namespaces/shop/pods";
    it.get("root-token", pods).await;
    it.stall("pods");
    let created = it.write(Method::POST, pods, &pod("shop", "new", "web", "node-1")).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    for path in ["/pods?namespace=shop", "/core/v1/pods/shop/new"] {
        let answer = it.get("root-token", path).await;
        if answer.code == StatusCode::OK {
            assert!(answer.text.contains("\"new\""), "{path}: {}", answer.text);
        } else {
            let message = answer.refusal(503, "ServiceUnavailable");
            assert!(message.contains(pods) || message.contains("/api/v1/pods"), "{message}");
            assert_eq!(answer.headers["retry-after"], "1");
        }
    }
}

#[tokio::test]
async fn a_short_path_shows_a_deletion_without_a_version_or_says_that_it_cannot() {
    let it = forwarding(Options::default()).await;
    it.get("root-token", "/api/v1/nodes").await;
    it.stall("nodes");
    let deleted = it.write(Method::DELETE, "/api/v1/nodes/node-1", &json!({})).await;
    assert_eq!(deleted.code, StatusCode::OK, "{}", deleted.text);
    let answer = it.get("root-token", "/nodes").await;
    let message = answer.refusal(503, "ServiceUnavailable");
    assert!(message.contains("/api/v1/nodes"), "{message}");
}

/// The `verb` and `objectRef` of the next line, and its code.
async fn next(lines: &mut Lines<BufReader<DuplexStream>>) -> (Value, Value, Value) {
    let line = lines.next_line().await.unwrap().unwrap();
    let mut event: Value = serde_json::from_str(&line).unwrap();
    let code = event["responseStatus"]["code"].take();
    (event["verb"].take(), event["objectRef"].take(), code)
}

#[tokio::test]
async fn short_paths_and_documents_are_in_the_audit_log() {
    let it = forwarding(Options::default()).await;
    let (writer, reader) = tokio::io::duplex(64 * 1024);
    let mut lines = BufReader::new(reader).lines();
    let it = Controlled { endpoint: it.endpoint.clone().with_audit_log(writer), ..it };
    let pods = json!({"resource": "pods", "apiVersion": "v1"});
    let one = json!({"resource": "pods", "apiVersion": "v1", "namespace": "shop", "name": "web-0"});
    for (token, path, verb, about, code) in [
        ("root-token", "/po", "list", &pods, 200),
        ("root-token", "/core/v1/pods", "list", &pods, 200),
        ("root-token", "/core/v1/pods/shop/web-0", "get", &one, 200),
        ("alice-token", "/core/v1/pods/shop/web-0", "get", &one, 403),
        ("root-token", "/version", "get", &Value::Null, 200),
        ("root-token", "/version", "get", &Value::Null, 200),
    ] {
        it.judge.knows("alice-token", "alice", &[]);
        assert_eq!(it.get(token, path).await.code, code, "{path}");
        let told = next(&mut lines).await;
        assert_eq!(told, (json!(verb), about.clone(), json!(code)), "{path}");
    }
}

#[tokio::test]
async fn a_continue_token_is_of_its_user() {
    let it = Controlled::start().await;
    for user in ["alice", "bob"] {
        it.judge.allows(user, list_pods("shop"));
    }
    let first = it.get("alice-token", "/pods?namespace=shop&limit=1").await;
    let token = first.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let next = format!("/pods?namespace=shop&limit=1&continue={token}");
    it.get("bob-token", &next).await.refusal(410, "Expired");
    assert_eq!(it.get("alice-token", &next).await.items().len(), 1);
    for _ in 0..2 * Options::default().kept_snapshots {
        it.get("bob-token", "/pods?namespace=shop&limit=1").await;
    }
    assert_eq!(it.get("alice-token", &next).await.items().len(), 1);
}

#[tokio::test]
async fn logs_that_are_followed_and_upgrades_count_as_watches_do() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let options = Options { max_watches_per_user: 1, ..Options::default() };
    let it = forwarding_to(&url, server().await, options);
    let pod = "/api/v1/namespaces/shop/pods/web-0";
    let ask = |path: String, upgrade: Option<&str>| {
        let mut asked = request(Method::GET, "endpoint.example", &path);
        let headers = asked.headers_mut();
        headers.insert(AUTHORIZATION, "Bearer root-token".parse().unwrap());
        if let Some(protocol) = upgrade {
            headers.insert("connection", "Upgrade".parse().unwrap());
            headers.insert("upgrade", protocol.parse().unwrap());
        }
        it.router().oneshot(asked)
    };
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert_ne!(stream.read(&mut [0; 4096]).await.unwrap(), 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        stream
    };
    let (stream, followed) = tokio::join!(server, ask(format!("{pod}/log?follow=true"), None));
    let followed = followed.unwrap();
    assert_eq!(followed.status(), StatusCode::OK);
    for (path, upgrade) in [
        (format!("{pod}/log?follow=1"), None),
        (format!("{pod}/exec?command=sh"), Some("SPDY/3.1")),
        (format!("{pod}/attach"), Some("websocket")),
        (format!("{pod}/portforward"), Some("SPDY/3.1")),
        ("/api/v1/pods?watch=1&resourceVersion=0".to_owned(), None),
    ] {
        let refused = ask(path.clone(), upgrade).await.unwrap();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS, "{path}");
    }
    drop((followed, stream));
    let watch = ask("/api/v1/pods?watch=1&resourceVersion=0".to_owned(), None).await.unwrap();
    assert_eq!(watch.status(), StatusCode::OK);
}
