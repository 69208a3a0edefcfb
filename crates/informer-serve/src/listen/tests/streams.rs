//! Tests of HTTP/2 clients that keep the connection alive but do not read a stream.

use std::io;

use http::Response;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};

use super::*;

/// Two types of frames; below them an error code and a flag.
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ENHANCE_YOUR_CALM: u32 = 0xb;
const ACK: u8 = 1;

/// A client whose connection runs in a task. It answers pings, and opens windows only as the test
/// reads.
struct Client {
    requests: SendRequest<Empty<Bytes>>,
    driven: JoinHandle<hyper::Result<()>>,
    serving: JoinHandle<()>,
    ended: mpsc::UnboundedReceiver<()>,
}

impl Client {
    /// Connects with a window of this size for each stream.
    async fn connect(window: u32) -> Self {
        let Connected { client, serving, ended } = InMemory::connect("h2").await;
        let handshake = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .initial_connection_window_size(1 << 24)
            .handshake(TokioIo::new(client));
        let (requests, connection) = handshake.await.unwrap();
        Self { requests, driven: tokio::spawn(connection), serving, ended }
    }

    async fn get(&mut self, path: &str) -> Response<Incoming> {
        let uri = format!("https://localhost{path}");
        let request = Request::get(uri).body(Empty::new()).unwrap();
        timeout(FOR_EVER, self.requests.send_request(request)).await.unwrap().unwrap()
    }

    async fn assert_is_served(&mut self) {
        let answer = self.get("/").await.into_body().collect().await.unwrap();
        assert_eq!(answer.to_bytes(), "HTTP/2.0");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_window_is_not_opened_ends_and_no_other() {
    let limit = Limits::default().stall;
    for window in [1, 100, 64 * 1024] {
        let mut client = Client::connect(window).await;
        let mut watch = client.get("/quiet").await.into_body();
        if window >= 5 {
            assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
        }
        let started = Instant::now();
        let stuck = client.get("/endless").await;
        timeout(FOR_EVER, client.ended.recv()).await.expect("still sending").unwrap();
        assert_eq!(started.elapsed(), limit, "{window}");
        let failed = stuck.into_body().collect().await.unwrap_err();
        assert!(format!("{failed:?}").contains("CANCEL"), "{failed:?}");
        if window >= 8 {
            client.assert_is_served().await;
            tokio::time::sleep(limit * 20).await;
            assert!(watch.frame().now_or_never().is_none(), "a quiet watch is no stall");
        }
        assert!(!client.serving.is_finished());
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_large_body_waits_for_the_client_as_well() {
    let mut client = Client::connect(1).await;
    let stuck = client.get("/large").await;
    assert_eq!(stuck.headers()["content-length"], LARGE.to_string());
    tokio::time::sleep(Limits::default().stall).await;
    let failed = stuck.into_body().collect().await.unwrap_err();
    assert!(format!("{failed:?}").contains("CANCEL"), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_is_served_to_its_end() {
    let mut client = Client::connect(16 * 1024).await;
    let mut body = client.get("/large").await.into_body();
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        read += frame.unwrap().into_data().unwrap().len();
        tokio::time::sleep(Limits::default().stall / 2).await;
    }
    assert_eq!(read, LARGE);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_streams_is_closed_and_one_with_a_watch_is_not() {
    let Limits { idle, .. } = Limits::default();
    let mut client = Client::connect(1 << 20).await;
    let watch = client.get("/quiet").await;
    for _ in 0..20 {
        tokio::time::sleep(idle).await;
        client.assert_is_served().await;
    }
    drop(watch);
    tokio::time::sleep(idle / 2).await;
    client.assert_is_served().await;
    let started = Instant::now();
    timeout(FOR_EVER, client.serving).await.expect("still open").unwrap();
    assert_eq!(started.elapsed(), idle);
    // The server closes the connection with a GOAWAY, which is no error.
    client.driven.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_stays_half_open_does_not_keep_its_connection() {
    let mut connected = InMemory::connect("h2").await;
    let started = Instant::now();
    // The window never has room for the small response, so all of it stays in the buffer.
    let no_window = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";
    let get = b"\0\0\x0e\x01\x05\0\0\0\x01\x82\x87\x84\x41\x09localhost";
    connected.client.write_all(&[BEGIN, no_window, get].concat()).await.unwrap();
    let staying = timeout(FOR_EVER, answer_pings(&mut connected.client));
    staying.await.expect("still open").unwrap_err();
    connected.serving.await.unwrap();
    let Limits { stall, idle, .. } = Limits::default();
    assert_eq!(started.elapsed(), idle + stall);
}

#[tokio::test]
async fn a_client_that_resets_what_it_asks_for_is_sent_away_and_no_other() {
    let (mut running, pair) = Running::start_tls().await;
    let mut attacker = pair.connect(&running.address, &["h2"]).await.unwrap();
    let mut attack = [BEGIN, OPEN_WINDOWS].concat();
    for stream in (1..20_001_u32).step_by(2) {
        let id = stream.to_be_bytes();
        let mut get = GET_ENDLESS.to_vec();
        get[5..9].copy_from_slice(&id);
        attack.extend_from_slice(&get);
        attack.extend_from_slice(&[b"\0\0\x04\x03\0", &id[..], b"\0\0\0\x08"].concat());
    }
    let (mut reading, mut writing) = tokio::io::split(&mut attacker);
    let mut told = Vec::new();
    let attacking = async { drop(writing.write_all(&attack).await) };
    let reading = async { drop(reading.read_to_end(&mut told).await) };
    timeout(DEADLINE, async { tokio::join!(attacking, reading) }).await.expect("still served");
    assert_eq!(error_of(&told), Some(ENHANCE_YOUR_CALM));
    // All bodies that were started have ended.
    let mut begun = 0;
    while running.ended.recv().now_or_never().is_some() {
        begun += 1;
    }
    assert!(begun <= 250, "{begun}");

    let mut other = pair.connect(&running.address, &["http/1.1"]).await.unwrap();
    other.write_all(REQUEST).await.unwrap();
    let mut answer = String::new();
    other.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    running.stop().await;
}

/// The error code of the last GOAWAY frame in these bytes.
fn error_of(mut read: &[u8]) -> Option<u32> {
    let mut error = None;
    while let Some((head, rest)) = read.split_first_chunk::<9>() {
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = rest.get(..length)?;
        if head[3] == GOAWAY {
            error = payload[4..].first_chunk().map(|it| u32::from_be_bytes(*it));
        }
        read = &rest[length..];
    }
    error
}

/// Reads frames and answers pings until the connection ends.
async fn answer_pings(client: &mut TlsStream<DuplexStream>) -> io::Result<Infallible> {
    loop {
        let mut head = [0; 9];
        client.read_exact(&mut head).await?;
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        client.read_exact(&mut payload).await?;
        if (head[3], head[4]) == (PING, 0) {
            head[4] = ACK;
            client.write_all(&[&head[..], &payload].concat()).await?;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_http1_connection_is_closed() {
    let mut connected = InMemory::connect("http/1.1").await;
    connected.client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let started = Instant::now();
    timeout(FOR_EVER, connected.serving).await.expect("still open").unwrap();
    assert_eq!(started.elapsed(), Limits::default().request_head);
}
