//! Requests that no client library sends, over a socket.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::listening::{Listening, last};
use super::*;

async fn start() -> (TestServer, Listening) {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let listening = Listening::start(endpoint, "127.0.0.1", None).await;
    (server, listening)
}

/// How many answers there are.
fn answers(text: &str) -> usize {
    text.matches("HTTP/1.1 ").count()
}

#[tokio::test]
async fn nothing_is_smuggled_in_a_body() {
    let (_server, it) = start().await;
    // What another server might take for a request of its own.
    let inner = last("/api/v1/namespaces/shop/pods");
    let length = inner.len();
    for (head, body) in [
        ("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", format!("0\r\n\r\n{inner}")),
        ("Content-Length: 4\r\nContent-Length: 5\r\n", format!("abcd{inner}")),
        ("Content-Length: +4\r\n", format!("abcd{inner}")),
        ("Content-Length: 4, 5\r\n", format!("abcd{inner}")),
        ("Transfer-Encoding: chunked, identity\r\n", format!("0\r\n\r\n{inner}")),
        ("Transfer-Encoding : chunked\r\n", format!("0\r\n\r\n{inner}")),
        ("Transfer-Encoding: xchunked\r\n", format!("0\r\n\r\n{inner}")),
        ("X: a\r\n Content-Length: 0\r\n", inner.clone()),
        ("Content-Length: 0x5\r\n", inner.clone()),
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
    let (_server, it) = start().await;
    let inner = last("/api/v1/namespaces/shop/pods");
    let plain = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answer = it.send(format!("{plain}{inner}").as_bytes()).await;
    assert!(answers(&answer) == 2 && answer.contains("web-0"), "one after the other: {answer}");

    // Ends a connection that goes on.
    let last = last("/livez");
    let (length, hex) = (inner.len(), format!("{:x}", inner.len()));
    let long = "x".repeat(40_000);
    for (head, body) in [
        // A lone line feed ends a line, as for Go's servers: the body is as long as it says.
        (format!("X: a\nContent-Length: {length}\r\n"), inner.clone()),
        (format!("Content-Length: {length}\nX: a\r\n"), inner.clone()),
        ("Transfer-Encoding: chunked\n".to_owned(), format!("{hex}\r\n{inner}\r\n0\r\n\r\n")),
        // A lone carriage return does not.
        ("X: a\rContent-Length: 0\r\n".to_owned(), inner.clone()),
        ("X: a\r\n\rContent-Length: 0\r\n".to_owned(), inner.clone()),
        // Two lengths, and folded ones.
        (
            format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n", length + 5),
            format!("0\r\n\r\n{inner}"),
        ),
        ("Transfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n".to_owned(), inner.clone()),
        ("Content-Length: 0\r\nContent-Length: 1\r\n".to_owned(), inner.clone()),
        ("Content-Length:\r\n\t0\r\n".to_owned(), inner.clone()),
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
    let (_server, it) = start().await;
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
    let answer = it.get("/api/v1/namespaces/shop/pods").await;
    assert!(answer.contains("web-0"), "{answer}");
}

#[tokio::test]
async fn connections_that_say_nothing_hold_nobody_up() {
    let (_server, it) = start().await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(&it.address).await.unwrap();
        stream.write_all(b"GET /api/v1/pods HTTP/1.1\r\nHost: loc").await.unwrap();
        slow.push(stream);
    }
    let answer = it.get("/livez").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
