//! Requests that no client library sends, over a socket.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::*;

/// An endpoint on a socket; it ends when the sender is dropped.
struct Listening {
    address: String,
    _server: TestServer,
    _stop: oneshot::Sender<()>,
}

impl Listening {
    async fn start() -> Self {
        let server = server().await;
        let endpoint = endpoint(&server, Options::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let stopped = async {
                drop(stopped.await);
            };
            endpoint.serve(listener, stopped).await;
        });
        Self { address, _server: server, _stop: stop }
    }

    /// Everything that comes back until the connection ends.
    async fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        // It may be closed before all of it is sent.
        drop(stream.write_all(bytes).await);
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// How many answers there are.
fn answers(text: &str) -> usize {
    text.matches("HTTP/1.1 ").count()
}

#[tokio::test]
async fn nothing_is_smuggled_in_a_body() {
    let it = Listening::start().await;
    // What another server might take for a request of its own.
    let inner =
        "GET /api/v1/namespaces/shop/pods HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let length = inner.len();
    for (head, body) in [
        ("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", format!("0\r\n\r\n{inner}")),
        ("Content-Length: 4\r\nContent-Length: 5\r\n", format!("abcd{inner}")),
        ("Content-Length: +4\r\n", format!("abcd{inner}")),
        ("Content-Length: 4, 5\r\n", format!("abcd{inner}")),
        ("Transfer-Encoding: chunked, identity\r\n", format!("0\r\n\r\n{inner}")),
        ("Transfer-Encoding : chunked\r\n", format!("0\r\n\r\n{inner}")),
        ("Transfer-Encoding: xchunked\r\n", format!("0\r\n\r\n{inner}")),
        ("X: a\r\n Content-Length: 0\r\n", inner.to_owned()),
        ("Content-Length: 0x5\r\n", inner.to_owned()),
    ] {
        let request = format!(
            "POST /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n{body}"
        );
        let answer = it.send(request.as_bytes()).await;
        assert!(answers(&answer) == 1 && !answer.contains("web-0"), "{head:?}: {answer}");
        assert!(answer.starts_with("HTTP/1.1 4"), "{head:?}: {answer}");
    }
    // The body is read as long as it says, and what it holds is no request.
    let request = format!(
        "POST /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{inner}"
    );
    let answer = it.send(request.as_bytes()).await;
    assert_eq!(answers(&answer), 1, "{answer}");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

/// Requests on one connection that stays open: what servers disagree about ends it, or is read as
/// this one reads it, and the inner request is never answered.
#[tokio::test]
async fn where_a_request_ends_is_not_a_matter_of_opinion() {
    let it = Listening::start().await;
    let inner =
        "GET /api/v1/namespaces/shop/pods HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let plain = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answer = it.send(format!("{plain}{inner}").as_bytes()).await;
    assert!(answers(&answer) == 2 && answer.contains("web-0"), "one after the other: {answer}");

    // Ends a connection that goes on.
    let last = "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (length, hex) = (inner.len(), format!("{:x}", inner.len()));
    let long = "x".repeat(40_000);
    for (head, body) in [
        // A lone line feed ends a line, as for Go's servers: the body is as long as it says.
        (format!("X: a\nContent-Length: {length}\r\n"), inner.to_owned()),
        (format!("Content-Length: {length}\nX: a\r\n"), inner.to_owned()),
        ("Transfer-Encoding: chunked\n".to_owned(), format!("{hex}\r\n{inner}\r\n0\r\n\r\n")),
        // A lone carriage return does not.
        ("X: a\rContent-Length: 0\r\n".to_owned(), inner.to_owned()),
        ("X: a\r\n\rContent-Length: 0\r\n".to_owned(), inner.to_owned()),
        // Two lengths, and folded ones.
        (
            format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n", length + 5),
            format!("0\r\n\r\n{inner}"),
        ),
        ("Transfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n".to_owned(), inner.to_owned()),
        ("Content-Length: 0\r\nContent-Length: 1\r\n".to_owned(), inner.to_owned()),
        ("Content-Length:\r\n\t0\r\n".to_owned(), inner.to_owned()),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
            format!("0\r\n\r\n{inner}"),
        ),
        ("Transfer-Encoding: \x0bchunked\r\n".to_owned(), format!("0\r\n\r\n{inner}")),
        // Extensions of chunks, and sizes that are none.
        (
            "Transfer-Encoding: chunked\r\n".to_owned(),
            format!("{hex};a=\"b\"\r\n{inner}\r\n0\r\n\r\n"),
        ),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("2;\nxx\r\n0\r\n\r\n{inner}")),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("1;{long}\r\nx\r\n0\r\n\r\n{inner}")),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("0x0\r\n\r\n{inner}")),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("-1\r\n\r\n{inner}")),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("10000000000000000\r\n\r\n{inner}")),
    ] {
        let request =
            format!("POST /version HTTP/1.1\r\nHost: localhost\r\n{head}\r\n{body}{last}");
        let answer = it.send(request.as_bytes()).await;
        assert!(answers(&answer) <= 2 && !answer.contains("web-0"), "{head:?}: {answer}");
        assert!(!answer.starts_with("HTTP/1.1 2"), "{head:?}: {answer}");
    }
}

#[tokio::test]
async fn malformed_and_oversized_heads_are_refused() {
    let it = Listening::start().await;
    let long = "x".repeat(300_000);
    for request in [
        format!("GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {long}\r\n\r\n"),
        format!("GET /api/v1/pods?{long} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        "GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX\0: y\r\n\r\n".to_owned(),
        "GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: a\r\n\tfolded\r\n\r\n".to_owned(),
        "GET  /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET /api/v1/pods HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned(),
        "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03\r\n\r\n".to_owned(),
        format!("GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(2000)),
    ] {
        let answer = it.send(request.as_bytes()).await;
        let short = &request[..request.len().min(60)];
        assert!(!answer.contains(" 200 ") && !answer.contains("web-0"), "{short}: {answer}");
    }
    // It is still there.
    let answer = it
        .send(b"GET /api/v1/namespaces/shop/pods HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.contains("web-0"), "{answer}");
}

#[tokio::test]
async fn connections_that_say_nothing_hold_nobody_up() {
    let it = Arc::new(Listening::start().await);
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(&it.address).await.unwrap();
        stream.write_all(b"GET /api/v1/pods HTTP/1.1\r\nHost: loc").await.unwrap();
        slow.push(stream);
    }
    let answer =
        it.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
