mod streams;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures_util::{FutureExt, StreamExt, stream};
use http::{Request, Version};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_rustls::client::TlsStream;

use super::*;
use crate::tls::secret::Pair;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const ENDLESS: &[u8] = b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The size of the body of `/large`. It exceeds the buffer of a stream.
const LARGE: usize = 300_000;

/// A time that is longer than any limit of the code.
const FOR_EVER: Duration = Duration::from_secs(600);
/// A deadline for steps that take no time unless the code has a bug.
const DEADLINE: Duration = Duration::from_secs(20);

/// A server that responds with the HTTP version, and on `/endless` with a body that does not end.
struct Running {
    address: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    /// Receives a message when an endless body is dropped.
    ended: mpsc::UnboundedReceiver<()>,
}

impl Running {
    async fn start(limits: Limits, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let (sender, ended) = mpsc::unbounded_channel();
        let stopped = async { _ = stopped.await };
        let serving = tokio::spawn(serve(listener, router(sender), tls, stopped, limits));
        Self { address, stop, serving, ended }
    }

    /// Starts a server with TLS. Returns its certificate as well.
    async fn start_tls() -> (Self, Pair) {
        let pair = Pair::new();
        (Self::start(Limits::default(), Some(pair.tls().acceptor())).await, pair)
    }

    async fn stop(self) {
        drop(self.stop);
        self.serving.await.unwrap();
    }
}

fn router(ended: mpsc::UnboundedSender<()>) -> Router {
    Router::new()
        .route("/", get(async |request: Request<Body>| format!("{:?}", request.version())))
        .route("/known", get(async |Extension(slot): Extension<Slot>| slot.keep()))
        .route("/large", get(async || Body::from(vec![b'x'; LARGE])))
        .route("/quiet", get(async || quiet()))
        .route("/endless", get(move || async move { endless(ended.clone()) }))
}

/// A body with one frame that does not end, as a watch without changes.
fn quiet() -> Body {
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from("first"))]);
    Body::from_stream(first.chain(stream::pending()))
}

fn endless(ended: mpsc::UnboundedSender<()>) -> Body {
    struct Ended(mpsc::UnboundedSender<()>);
    impl Drop for Ended {
        fn drop(&mut self) {
            // The receiver is gone if the test has ended.
            _ = self.0.send(());
        }
    }
    let chunk = Bytes::from(vec![b'x'; 16 * 1024]);
    Body::from_stream(stream::unfold(Ended(ended), move |ended| {
        let chunk = chunk.clone();
        async move { Some((Ok::<_, Infallible>(chunk), ended)) }
    }))
}

#[tokio::test(start_paused = true)]
async fn g34_a_connection_that_does_not_say_what_it_wants_is_closed() {
    let running = Running::start(Limits::default(), None).await;
    for said in [&b""[..], b"GET / HTTP/1.1\r\nHost: loc"] {
        let mut slow = TcpStream::connect(&running.address).await.unwrap();
        slow.write_all(said).await.unwrap();
        let mut answer = Vec::new();
        let closed = timeout(Duration::from_secs(60), slow.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "still open after twice the time that it may take");
        assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    }
    running.stop().await;
}

#[tokio::test]
async fn g34_no_more_connections_are_served_at_a_time_than_allowed() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let running = Running::start(limits, None).await;
    let first = TcpStream::connect(&running.address).await.unwrap();
    let mut second = TcpStream::connect(&running.address).await.unwrap();
    second.write_all(REQUEST).await.unwrap();
    let mut answer = Vec::new();
    let early = timeout(Duration::from_millis(50), second.read_to_end(&mut answer)).await;
    assert!(
        early.is_err() && answer.is_empty(),
        "the second connection was served beside the first"
    );
    drop(first);
    second.read_to_end(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("200 OK"));
    running.stop().await;
}

#[tokio::test]
async fn strangers_that_ask_and_stay_take_no_place_from_others() {
    let limits = Limits { connections: 3, request_head: FOR_EVER, ..Limits::default() };
    let running = Running::start(limits, None).await;
    let ask = async |stream: &mut TcpStream, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 1024];
        let length = stream.read(&mut answer).await.unwrap();
        assert!(answer[..length].starts_with(b"HTTP/1.1 200"), "{path}");
    };
    let mut known = TcpStream::connect(&running.address).await.unwrap();
    ask(&mut known, "/known").await;
    let mut asked = TcpStream::connect(&running.address).await.unwrap();
    ask(&mut asked, "/").await;
    let mut half = TcpStream::connect(&running.address).await.unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut served = Vec::new();
    for mut stranger in [asked, half] {
        let mut probe = TcpStream::connect(&running.address).await.unwrap();
        timeout(DEADLINE, ask(&mut probe, "/known")).await.expect("not served");
        // The read fails with a reset if the server left bytes of the client unread.
        drop(stranger.read_to_end(&mut Vec::new()).await);
        ask(&mut known, "/known").await;
        served.push(probe);
    }
    running.stop().await;
}

#[tokio::test]
async fn the_client_chooses_http2_or_http1() {
    let (running, pair) = Running::start_tls().await;
    for protocols in [&["http/1.1"][..], &[]] {
        let mut stream = pair.connect(&running.address, protocols).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("HTTP/1.1"), "{answer}");
    }

    let stream = pair.connect(&running.address, &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get("https://localhost/").body(Empty::<Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "HTTP/2.0");
    drop(sender);
    connection.await.unwrap().unwrap();
    running.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_speak_tls_is_told() {
    let (running, _) = Running::start_tls().await;
    let mut plain = TcpStream::connect(&running.address).await.unwrap();
    plain.write_all(REQUEST).await.unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{answer}");
    assert!(body.contains("https://"), "{answer}");

    let mut nonsense = TcpStream::connect(&running.address).await.unwrap();
    nonsense.write_all(b"\0\0\0\0\0\0\0\0\0\0\0\0").await.unwrap();
    let mut answer = Vec::new();
    drop(nonsense.read_to_end(&mut answer).await);
    running.stop().await;
}

#[tokio::test]
async fn a_handshake_delays_no_other() {
    let pair = Pair::new();
    let limits = Limits { handshake: FOR_EVER, ..Limits::default() };
    let running = Running::start(limits, Some(pair.tls().acceptor())).await;
    let silent = TcpStream::connect(&running.address).await.unwrap();
    let mut begun = TcpStream::connect(&running.address).await.unwrap();
    begun.write_all(&[22, 3, 1]).await.unwrap();
    let connecting = timeout(DEADLINE, pair.connect(&running.address, &["http/1.1"]));
    let mut stream = connecting.await.expect("no handshake").unwrap();
    stream.write_all(REQUEST).await.unwrap();
    stream.read_to_end(&mut Vec::new()).await.unwrap();
    drop((silent, begun));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handshake_has_a_time_limit() {
    let (running, _) = Running::start_tls().await;
    let mut silent = TcpStream::connect(&running.address).await.unwrap();
    let mut begun = TcpStream::connect(&running.address).await.unwrap();
    begun.write_all(&[22, 3, 1]).await.unwrap();
    for stream in [&mut silent, &mut begun] {
        let closed = timeout(FOR_EVER, stream.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "still open");
    }
    running.stop().await;
}

/// A connection in memory. Tests with a paused clock need one, because sockets would not stop the
/// clock from advancing.
struct InMemory {
    client: DuplexStream,
    pair: Pair,
    serving: JoinHandle<()>,
    ended: mpsc::UnboundedReceiver<()>,
}

impl InMemory {
    fn start(scheme: Scheme) -> Self {
        let pair = Pair::new();
        let tls = match scheme {
            Scheme::Http => None,
            Scheme::Https => Some(pair.tls().acceptor()),
        };
        let (sender, ended) = mpsc::unbounded_channel();
        let server = Server::new(router(sender), tls, Limits::default());
        let (client, served) = duplex(64 * 1024);
        let serving = tokio::spawn(async move {
            let slot = Places::new(1).take(CancellationToken::new()).await;
            server.over(served, (slot, None), CancellationToken::new()).await;
        });
        Self { client, pair, serving, ended }
    }

    /// Opens a connection over TLS.
    async fn connect(protocol: &str) -> Connected {
        let Self { client, pair, serving, ended } = Self::start(Scheme::Https);
        let client = pair.handshake(client, &[protocol]).await.unwrap();
        Connected { client, serving, ended }
    }
}

#[derive(Clone, Copy)]
enum Scheme {
    Http,
    Https,
}

struct Connected {
    client: TlsStream<DuplexStream>,
    serving: JoinHandle<()>,
    ended: mpsc::UnboundedReceiver<()>,
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_that_does_not_begin_is_closed() {
    for said in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
        let mut connected = InMemory::connect("h2").await;
        let started = Instant::now();
        connected.client.write_all(said).await.unwrap();
        timeout(FOR_EVER, connected.serving).await.expect("still open").unwrap();
        assert_eq!(started.elapsed(), Limits::default().request_head);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_closed() {
    let limit = Limits::default().stall;
    let mut connected = InMemory::connect("http/1.1").await;
    let started = Instant::now();
    connected.client.write_all(ENDLESS).await.unwrap();
    timeout(FOR_EVER, connected.ended.recv()).await.expect("still sending").unwrap();
    assert_eq!(started.elapsed(), limit);
    connected.serving.await.unwrap();

    let mut plain = InMemory::start(Scheme::Http);
    let started = Instant::now();
    plain.client.write_all(ENDLESS).await.unwrap();
    timeout(FOR_EVER, plain.ended.recv()).await.expect("still sending").unwrap();
    assert_eq!(started.elapsed(), limit);
    plain.serving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_is_served() {
    let mut connected = InMemory::connect("http/1.1").await;
    connected.client.write_all(ENDLESS).await.unwrap();
    let mut buffer = vec![0; 100 * 1024];
    for _ in 0..20 {
        tokio::time::sleep(Limits::default().stall / 2).await;
        connected.client.read_exact(&mut buffer).await.unwrap();
    }
    assert!(connected.ended.recv().now_or_never().is_none(), "closed");
    drop(connected.client);
    connected.ended.recv().await.unwrap();
    connected.serving.await.unwrap();
}

/// The HTTP/2 preface of a client, with empty settings.
const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Frames that open windows of a gigabyte for the connection and its streams.
const OPEN_WINDOWS: &[u8] =
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\x40\0\0\0\0\0\x04\x08\0\0\0\0\0\x40\0\0\0";
/// GET /endless on stream 1.
const GET_ENDLESS: &[u8] = b"\0\0\x17\x01\x05\0\0\0\x01\x82\x87\x04\x08/endless\x41\x09localhost";

/// GET /quiet on stream 1.
const GET_QUIET: &[u8] = b"\0\0\x15\x01\x05\0\0\0\x01\x82\x87\x04\x06/quiet\x41\x09localhost";

#[tokio::test(start_paused = true)]
async fn an_http2_client_that_answers_no_ping_is_closed() {
    let mut connected = InMemory::connect("h2").await;
    let started = Instant::now();
    connected.client.write_all(&[BEGIN, GET_QUIET].concat()).await.unwrap();
    timeout(FOR_EVER, connected.serving).await.expect("still open").unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(50));
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_that_never_reads_is_closed() {
    let mut connected = InMemory::connect("h2").await;
    let started = Instant::now();
    let said = [BEGIN, OPEN_WINDOWS, GET_ENDLESS].concat();
    connected.client.write_all(&said).await.unwrap();
    timeout(FOR_EVER, connected.ended.recv()).await.expect("still sending").unwrap();
    timeout(FOR_EVER, connected.serving).await.expect("still open").unwrap();
    assert_eq!(started.elapsed(), Limits::default().stall);
}

#[tokio::test]
async fn running_requests_end_before_the_server_does() {
    let (mut running, pair) = Running::start_tls().await;
    let mut stream = pair.connect(&running.address, &["http/1.1"]).await.unwrap();
    let mut idle = pair.connect(&running.address, &["http/1.1"]).await.unwrap();
    stream.write_all(ENDLESS).await.unwrap();
    stream.read_exact(&mut [0; 100]).await.unwrap();
    drop(running.stop);
    idle.read_to_end(&mut Vec::new()).await.unwrap();
    assert!(!running.serving.is_finished(), "a request is still being answered");
    drop(stream);
    running.ended.recv().await.unwrap();
    running.serving.await.unwrap();
}
