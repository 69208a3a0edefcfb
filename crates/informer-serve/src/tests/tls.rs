//! The endpoint over TLS.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::tls::Tls;
use crate::tls::secret::{Pair, Secret};

struct Running {
    endpoint: Endpoint,
    address: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Running {
    async fn start(endpoint: Endpoint, host: &str, tls: Tls) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = {
            let endpoint = endpoint.clone();
            let stopped = async { drop(stopped.await) };
            tokio::spawn(async move { endpoint.serve_tls(listener, tls, stopped).await })
        };
        Self { endpoint, address, stop, serving }
    }

    /// The text of an answer.
    async fn get(&self, pair: &Pair, path: &str) -> String {
        let mut stream = pair.connect(&self.address, &["http/1.1"]).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
    }
}

#[tokio::test]
async fn the_api_is_answered_and_watched_over_tls() {
    let server = server().await;
    let pair = Pair::new();
    // Without access control, which has tests of its own.
    let options = Options { unprotected_api: true, ..Options::default() };
    let running = Running::start(endpoint(&server, options), "127.0.0.1", pair.tls()).await;
    let text = running.get(&pair, "/api/v1/pods").await;
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.contains(r#""cart-0""#), "{text}");

    let mut socket = pair.connect(&running.address, &["http/1.1"]).await.unwrap();
    let head = "GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: localhost\r\nOrigin: https://localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    let text = until(&mut socket, r#""name":"web-1""#).await;
    assert!(text.starts_with("HTTP/1.1 101"), "{text}");
    running.stop().await;
}

async fn until(stream: &mut TlsStream<TcpStream>, expected: &str) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if text.contains(expected) {
            return text.into_owned();
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the socket was closed");
    }
}

#[tokio::test]
async fn tls_opens_the_api_to_nobody_without_credentials() {
    let server = server().await;
    let pair = Pair::new();
    let running =
        Running::start(endpoint(&server, Options::default()), "0.0.0.0", pair.tls()).await;
    let text = running.get(&pair, "/api/v1/pods").await;
    assert!(text.starts_with("HTTP/1.1 401 Unauthorized"), "{text}");
    assert!(running.get(&pair, "/livez").await.starts_with("HTTP/1.1 200 OK"));
    running.stop().await;
}

#[tokio::test]
async fn new_connections_get_the_certificate_that_replaced_the_old_one() {
    let server = server().await;
    let (old, new) = (Pair::new(), Pair::new());
    let mut secret = Secret::new(&old);
    let tls = Tls::load(secret.certificate(), secret.key()).unwrap();
    let running = Running::start(endpoint(&server, Options::default()), "127.0.0.1", tls).await;
    assert!(running.get(&old, "/livez").await.contains("200 OK"));
    let mut open = old.connect(&running.address, &["http/1.1"]).await.unwrap();

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
    assert!(running.get(&old, "/livez").await.contains("200 OK"));
    secret.replace(&new);
    read_again("used").await;
    assert!(running.get(&new, "/livez").await.contains("200 OK"));
    assert!(old.connect(&running.address, &[]).await.is_err(), "the old one is still in use");

    // What is open stays open.
    open.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    assert!(until(&mut open, "ok\n").await.contains("200 OK"));
    running.stop().await;
}
