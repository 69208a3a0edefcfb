//! The endpoint over TLS.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::listening::{Listening, exchange, last, read_until};
use super::*;
use crate::tls::Tls;
use crate::tls::secret::{Pair, Secret};

/// The response to a client that trusts this certificate, as text.
async fn get_over_tls(running: &Listening, pair: &Pair, path: &str) -> String {
    let stream = pair.connect(&running.address, &["http/1.1"]).await.unwrap();
    exchange(stream, last(path).as_bytes()).await
}

#[tokio::test]
async fn the_api_is_answered_and_watched_over_tls() {
    let server = server().await;
    let pair = Pair::new();
    // Without access control, which has tests of its own.
    let options = Options { unprotected_api: true, ..Options::default() };
    let running = Listening::start(endpoint(&server, options), "127.0.0.1", Some(pair.tls())).await;
    let text = get_over_tls(&running, &pair, "/api/v1/pods").await;
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.contains(r#""cart-0""#), "{text}");

    let mut socket = pair.connect(&running.address, &["http/1.1"]).await.unwrap();
    let head = "GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: localhost\r\nOrigin: https://localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    let text = read_until(&mut socket, &[r#""name":"web-1""#]).await;
    assert!(text.starts_with("HTTP/1.1 101"), "{text}");
    running.stop().await;
}

#[tokio::test]
async fn tls_opens_the_api_to_nobody_without_credentials() {
    let server = server().await;
    let pair = Pair::new();
    let running =
        Listening::start(endpoint(&server, Options::default()), "0.0.0.0", Some(pair.tls())).await;
    let text = get_over_tls(&running, &pair, "/api/v1/pods").await;
    assert!(text.starts_with("HTTP/1.1 401 Unauthorized"), "{text}");
    assert!(get_over_tls(&running, &pair, "/livez").await.starts_with("HTTP/1.1 200 OK"));
    running.stop().await;
}

#[tokio::test]
async fn new_connections_get_the_certificate_that_replaced_the_old_one() {
    let server = server().await;
    let (old, new) = (Pair::new(), Pair::new());
    let mut secret = Secret::new(&old);
    let tls = Tls::load(secret.certificate(), secret.key()).unwrap();
    let running =
        Listening::start(endpoint(&server, Options::default()), "127.0.0.1", Some(tls)).await;
    assert!(get_over_tls(&running, &old, "/livez").await.contains("200 OK"));
    let open = old.connect(&running.address, &["http/1.1"]).await.unwrap();

    let read_again = async |result: &str| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(10)).await;
        tokio::time::resume();
        let line = format!("serve_certificate_changes_total{{result=\"{result}\"}} 1\n");
        while !get(&running.endpoint, "/metrics").await.text.contains(&line) {
            tokio::task::yield_now().await;
        }
    };
    secret.replace(&Pair { certificate: new.certificate.clone(), key: old.key.clone() });
    read_again("refused").await;
    assert!(get_over_tls(&running, &old, "/livez").await.contains("200 OK"));
    secret.replace(&new);
    read_again("used").await;
    assert!(get_over_tls(&running, &new, "/livez").await.contains("200 OK"));
    assert!(old.connect(&running.address, &[]).await.is_err(), "the old one is still in use");

    // What is open stays open.
    assert!(exchange(open, last("/livez").as_bytes()).await.contains("200 OK"));
    running.stop().await;
}
