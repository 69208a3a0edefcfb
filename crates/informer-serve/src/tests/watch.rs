//! Watches through the endpoint: nothing is lost, whatever happens between it and the server.

use std::time::Duration;

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use informer_testkit::{Cut, Fault, Verb};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::listening::{Listening, read_until};
use super::*;

/// An open watch, event by event.
struct Watch {
    body: BodyDataStream,
    text: String,
}

impl Watch {
    async fn open(endpoint: &Endpoint, query: &str) -> Self {
        let path = format!("/api/v1/pods?watch=1&{query}");
        let asked = request(Method::GET, "localhost", &path);
        let response = endpoint.router().oneshot(asked).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Self { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// The next event: its type, and the name of its object, or its version if it has none.
    async fn next(&mut self) -> Option<(String, String)> {
        while !self.text.contains('\n') {
            self.text.push_str(std::str::from_utf8(&self.body.next().await?.unwrap()).unwrap());
        }
        let (line, rest) = self.text.split_once('\n').unwrap();
        let event: Value = serde_json::from_str(line).unwrap();
        self.text = rest.to_owned();
        let metadata = &event["object"]["metadata"];
        let about = [&metadata["name"], &metadata["resourceVersion"], &event["object"]["code"]];
        let about = about.iter().find(|it| !it.is_null()).unwrap().to_string();
        Some((event["type"].as_str().unwrap().to_owned(), about.trim_matches('"').to_owned()))
    }

    async fn expect(&mut self, events: &[(&str, &str)]) {
        for (kind, about) in events {
            let next = self.next().await.unwrap_or_else(|| panic!("{kind} {about} did not come"));
            assert_eq!((&*next.0, &*next.1), (*kind, *about));
        }
    }
}

async fn version(endpoint: &Endpoint) -> String {
    let list = get(endpoint, "/api/v1/pods").await.json();
    list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Waits until the cache has what the cluster has now.
async fn caught_up(endpoint: &Endpoint, server: &TestServer) {
    let version = server.cluster().version();
    get(endpoint, &format!("/api/v1/pods?resourceVersion={version}")).await.items();
}

#[tokio::test]
async fn a_watch_begins_with_everything_or_goes_on_from_a_version() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let start = version(&endpoint).await;
    let mut all = Watch::open(&endpoint, "").await;
    let web = "labelSelector=app%3Dweb";
    let initial =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut list = Watch::open(&endpoint, &format!("{initial}&{web}")).await;
    let mut late = Watch::open(&endpoint, &format!("resourceVersion={start}&{web}")).await;
    all.expect(&[("ADDED", "cart-0"), ("ADDED", "web-0"), ("ADDED", "web-1"), ("ADDED", "web-0")])
        .await;
    list.expect(&[("ADDED", "web-0"), ("ADDED", "web-1"), ("ADDED", "web-0")]).await;
    list.expect(&[("BOOKMARK", &start)]).await;

    let cluster = server.cluster();
    cluster.apply(&pod("shop", "web-1", "other", "node-2")).unwrap();
    cluster.apply(&pod("shop", "cart-0", "web", "node-1")).unwrap();
    cluster.delete("pods", "web", "web-0").unwrap();
    all.expect(&[("MODIFIED", "web-1"), ("MODIFIED", "cart-0"), ("DELETED", "web-0")]).await;
    for watch in [&mut list, &mut late] {
        watch.expect(&[("DELETED", "web-1"), ("ADDED", "cart-0"), ("DELETED", "web-0")]).await;
    }
    // From before all of that, once more.
    let mut again = Watch::open(&endpoint, &format!("resourceVersion={start}")).await;
    again.expect(&[("MODIFIED", "web-1"), ("MODIFIED", "cart-0"), ("DELETED", "web-0")]).await;
}

#[tokio::test]
async fn a_relist_upstream_is_a_gap_downstream_and_no_list() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let before = version(&endpoint).await;
    let mut open =
        Watch::open(&endpoint, &format!("resourceVersion={before}&allowWatchBookmarks=1")).await;
    let mut plain = Watch::open(&endpoint, &format!("resourceVersion={before}")).await;
    let inside: u64 = before.parse::<u64>().unwrap() + 2;
    let mut waiting = Watch::open(&endpoint, &format!("resourceVersion={inside}")).await;

    // The watch breaks; what happens meanwhile is compacted away.
    let cluster = server.cluster();
    let stall = server.faults().inject(Fault::stall().on(Verb::Watch).resource("pods"));
    server.faults().cut_watches(Cut::Close, Some("pods"));
    cluster.create(&pod("shop", "brief", "web", "node-1")).unwrap();
    cluster.delete("pods", "shop", "brief").unwrap();
    cluster.delete("pods", "web", "web-0").unwrap();
    cluster.apply(&pod("shop", "cart-0", "web", "node-1")).unwrap();
    cluster.compact();
    stall.lift();
    caught_up(&endpoint, &server).await;

    let end = version(&endpoint).await;
    open.expect(&[("DELETED", "web-0"), ("MODIFIED", "cart-0"), ("BOOKMARK", &end)]).await;
    plain.expect(&[("DELETED", "web-0"), ("MODIFIED", "cart-0")]).await;
    waiting.expect(&[("ERROR", "410")]).await;
    assert_eq!(waiting.next().await, None);
    let mut late = Watch::open(&endpoint, &format!("resourceVersion={inside}")).await;
    late.expect(&[("ERROR", "410")]).await;
    let mut again = Watch::open(&endpoint, &format!("resourceVersion={before}")).await;
    again.expect(&[("DELETED", "web-0"), ("MODIFIED", "cart-0")]).await;

    cluster.delete("pods", "shop", "cart-0").unwrap();
    for watch in [&mut open, &mut plain, &mut again] {
        watch.expect(&[("DELETED", "cart-0")]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_history_ends_all_watches() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    let checkpoint = server.cluster().checkpoint();
    server.cluster().create(&pod("shop", "lost", "web", "node-1")).unwrap();
    caught_up(&endpoint, &server).await;
    let start = version(&endpoint).await;
    let mut watch = Watch::open(&endpoint, &format!("resourceVersion={start}")).await;
    server.cluster().restore(&checkpoint);
    server.faults().cut_watches(Cut::Close, Some("pods"));
    watch.expect(&[("ERROR", "410")]).await;
    assert_eq!(watch.next().await, None);
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
}

#[tokio::test]
async fn a_watch_from_before_the_log_is_expired_and_one_ahead_is_silent() {
    let server = server().await;
    let endpoint = endpoint(&server, Options { log_bytes: 2000, ..Options::default() });
    let start = version(&endpoint).await;
    let ahead = server.cluster().version() + 11;
    let mut future = Watch::open(&endpoint, &format!("resourceVersion={ahead}")).await;
    for round in 0..12 {
        let name = format!("p-{round}");
        server.cluster().create(&pod("shop", &name, "web", "node-1")).unwrap();
    }
    future.expect(&[("ADDED", "p-11")]).await;
    let mut old = Watch::open(&endpoint, &format!("resourceVersion={start}")).await;
    old.expect(&[("ERROR", "410")]).await;
}

#[tokio::test(start_paused = true)]
async fn watches_end_cleanly_and_spread_when_the_endpoint_stops() {
    let server = server().await;
    let options = Options { shutdown_spread: Duration::from_secs(8), ..Options::default() };
    let endpoint = unhurried(&server, options);
    let start = version(&endpoint).await;
    let mut watches = Vec::new();
    for _ in 0..20 {
        watches.push(Watch::open(&endpoint, &format!("resourceVersion={start}")).await);
    }
    endpoint.inner.stopping.token.cancel();
    let begin = tokio::time::Instant::now();
    let ends = watches.into_iter().map(|mut watch| async move {
        assert_eq!(watch.next().await, None);
        begin.elapsed()
    });
    let mut ends = futures_util::future::join_all(ends).await;
    ends.sort();
    assert!(ends[19] <= Duration::from_secs(8), "{ends:?}");
    assert!(ends[19] - ends[0] > Duration::from_secs(2), "{ends:?}");
}

#[tokio::test]
async fn a_browser_watches_over_websocket_if_its_page_may() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let listening = Listening::start(endpoint, "127.0.0.1", None).await;
    let address = &listening.address;
    let open = async |path: &str, origin: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: base64.binary.k8s.io\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    };
    let own = format!("http://{address}");
    let mut stream = open("/api/v1/pods?watch=1", &own).await;
    let events = [r#""name":"cart-0""#, r#""name":"web-1""#];
    let text = read_until(&mut stream, &events).await;
    assert!(text.starts_with("HTTP/1.1 101"), "{text}");
    assert!(text.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{text}");
    assert!(text.to_lowercase().contains("sec-websocket-protocol: base64.binary.k8s.io"), "{text}");

    for (path, origin) in [
        ("/api/v1/pods?watch=1", "http://evil.example"),
        ("/api/v1/secrets?watch=1", &*own),
        ("/api/v1/namespaces/shop/pods/web-0/exec", &*own),
        ("/api/v1/pods", &*own),
        ("/apis", &*own),
    ] {
        let text = read_until(&mut open(path, origin).await, &["\"code\":403"]).await;
        assert!(text.starts_with("HTTP/1.1 403"), "{path}: {text}");
    }
    listening.stop().await;
}

#[tokio::test]
async fn watches_and_their_bytes_are_counted() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let mut watch = Watch::open(&endpoint, "").await;
    watch.next().await;
    let metrics = get(&endpoint, "/metrics").await.text;
    assert!(metrics.contains("serve_open_watches{resource=\"pods.v1\"} 1\n"), "{metrics}");
    assert!(metrics.contains("serve_staleness_seconds{resource=\"pods.v1\"}"), "{metrics}");
    drop(watch);
    let metrics = get(&endpoint, "/metrics").await.text;
    assert!(metrics.contains("serve_open_watches{resource=\"pods.v1\"} 0\n"), "{metrics}");
    assert!(!metrics.contains("web-0"));
}
