//! Tests of forwarding with a caller's token, to the test kit and to servers that check the raw
//! request.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use informer_testkit::{TestServer, Verb};
use kube::Config;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Forward, Forwarder, Upstream};
use crate::listen;
use crate::per_user::PerUser;

const CONFIG_MAPS: &str = "/api/v1/namespaces/shop/configmaps";

fn forwarder(url: &str, max_forwarded: usize) -> Forwarder {
    let mut config = Config::new(url.parse().unwrap());
    config.auth_info.token = Some("own".to_owned().into());
    config.auth_info.username = Some("own".to_owned());
    let upstream = Upstream::of(&config).unwrap();
    let forwarder = Forwarder::new(max_forwarded, CancellationToken::new());
    forwarder.set_upstream(upstream);
    forwarder
}

fn plain(method: Method, path: &str, body: Body) -> Forward {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json").body(body).unwrap();
    Forward { request, user: "jane".into(), path: path.to_owned(), is_long: false, telling: None }
}

fn config_map(name: &str) -> Body {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    Body::from(object.to_string())
}

/// A listener for a server that the test writes by hand, and its URL.
async fn raw() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// Reads the head of a request, in lower case.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

async fn text(body: Body) -> String {
    String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_write_is_made_by_the_caller_and_refused_to_the_caller() {
    let server = TestServer::start().await.unwrap();
    server.auth().add_token("janes", "jane");
    server.auth().add_token("joes", "joe");
    server.auth().deny("joe", Verb::Create, "configmaps");
    let forwarder = forwarder(&server.url(), 8);
    let write = || plain(Method::POST, CONFIG_MAPS, config_map("a"));

    let answer = forwarder.forward(write(), &"joes".into()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let status: Value = serde_json::from_str(&text(answer.into_body()).await).unwrap();
    assert!(status["message"].as_str().unwrap().contains("\"joe\""), "{status}");

    let answer = forwarder.forward(write(), &"unknown".into()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);

    let answer = forwarder.forward(write(), &"janes".into()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    let created: Value = serde_json::from_str(&text(answer.into_body()).await).unwrap();
    assert_eq!(created["metadata"]["name"], "a");
}

#[tokio::test]
async fn nothing_of_the_own_account_is_sent_and_nothing_that_names_another_caller() {
    let (listener, url) = raw().await;
    let forwarder = forwarder(&format!("{url}/prefix/"), 8);
    let mut forward = plain(Method::GET, "/api/v1/pods?limit=1", Body::empty());
    let headers = forward.request.headers_mut();
    for (name, value) in
        [("x-remote-user", "admin"), ("cookie", "c"), ("host", "h"), ("impersonate-user", "jane")]
    {
        headers.insert(name, value.parse().unwrap());
    }
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        let answer = b"HTTP/1.1 200 OK\r\nWarning: 299 - \"old\"\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok";
        stream.write_all(answer).await.unwrap();
        head
    };
    let token = "callers".into();
    let (head, answer) = tokio::join!(server, forwarder.forward(forward, &token));
    assert!(head.starts_with("get /prefix/api/v1/pods?limit=1 http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nauthorization: bearer callers\r\n"), "{head}");
    assert!(head.contains("\r\nimpersonate-user: jane\r\n"), "{head}");
    assert_eq!(head.matches("authorization").count(), 1, "{head}");
    for unwanted in ["own", "x-remote", "cookie", "host: h\r\n", "content-length", "chunked"] {
        assert!(!head.contains(unwanted), "{unwanted}: {head}");
    }
    let answer = answer.unwrap();
    assert_eq!(answer.headers()["warning"], "299 - \"old\"");
    assert!(!answer.headers().contains_key("set-cookie"));
    assert_eq!(text(answer.into_body()).await, "ok");
}

#[tokio::test]
async fn the_certificate_of_the_own_account_is_not_even_read() {
    let mut config = Config::new("https://127.0.0.1:1".parse().unwrap());
    config.auth_info.client_certificate_data = Some("no certificate".to_owned());
    config.auth_info.client_key_data = Some("no key".to_owned().into());
    config.root_cert = Some(Vec::new());
    // The API server would authenticate the certificate before the caller's token.
    assert!(Upstream::of(&config).is_ok());
}

#[tokio::test]
async fn bodies_pass_as_they_come_in_both_directions() {
    let (listener, url) = raw().await;
    let forwarder = forwarder(&url, 8);
    let (send, chunks) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let chunks = stream::unfold(chunks, |mut it| async { Some((it.recv().await?, it)) });
    let forward = plain(Method::POST, CONFIG_MAPS, Body::from_stream(chunks));
    send.try_send(Ok(Bytes::from_static(b"first"))).unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let mut first = [0; 10];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"5\r\nfirst\r\n");
        // The first chunk was forwarded before the second one exists.
        send.send(Ok(Bytes::from_static(b"last"))).await.unwrap();
        drop(send);
        let mut rest = [0; 14];
        stream.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"4\r\nlast\r\n0\r\n\r\n");
        let answer = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
        stream.write_all(answer).await.unwrap();
        stream
    };
    let token = "t".into();
    let (mut stream, answer) = tokio::join!(server, forwarder.forward(forward, &token));
    let mut body = answer.unwrap().into_body().into_data_stream();
    assert_eq!(body.next().await.unwrap().unwrap(), "one");
    stream.write_all(b"3\r\ntwo\r\n0\r\n\r\n").await.unwrap();
    assert_eq!(body.next().await.unwrap().unwrap(), "two");
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn no_more_requests_are_in_flight_than_allowed_but_for_those_that_last() {
    let (listener, url) = raw().await;
    let forwarder = forwarder(&url, 1);
    let token = "t".into();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await.unwrap();
        stream
    };
    let get = || plain(Method::GET, "/api/v1/pods", Body::empty());
    let (mut first, answer) = tokio::join!(server, forwarder.forward(get(), &token));
    let refusal = forwarder.forward(get(), &token).await.unwrap_err();
    assert_eq!((refusal.code.as_u16(), refusal.retry_after), (429, Some(1)));

    let lasting = Forward { is_long: true, ..get() };
    let (_second, watch) = tokio::join!(
        async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            stream
        },
        forwarder.forward(lasting, &token)
    );
    assert_eq!(watch.unwrap().status(), StatusCode::OK);

    // The first request is no longer in flight once its last byte was read, even though the reader
    // has not polled for the end of the body.
    first.write_all(b"12345").await.unwrap();
    let mut body = answer.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "12345");
    assert!(forwarder.begin(false, false, "jane").is_some());
    drop(body);
}

#[tokio::test]
async fn an_upgrade_lasts_only_once_the_api_server_has_agreed() {
    let (listener, url) = raw().await;
    let forwarder = forwarder(&url, 1);
    let token = "t".into();
    let mut get = plain(Method::GET, "/api/v1/pods", Body::empty());
    // This upgrade belongs to no connection and never completes.
    get.request.extensions_mut().insert(hyper::upgrade::on(Request::new(())));
    get.request.headers_mut().insert("connection", "Upgrade".parse().unwrap());
    get.request.headers_mut().insert("upgrade", "anything".parse().unwrap());
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await.unwrap();
        stream
    };
    let (_stream, answer) = tokio::join!(server, forwarder.forward(get, &token));
    let answer = answer.unwrap();
    assert!(forwarder.begin(false, false, "joe").is_none(), "it has a place like any other");
    drop(answer);
    assert!(forwarder.begin(false, false, "joe").is_some());
}

#[tokio::test]
async fn one_user_has_no_more_than_a_quarter_of_all_requests_in_flight() {
    let (_listener, url) = raw().await;
    let forwarder = forwarder(&url, 8);
    let begin = |user| forwarder.begin(false, false, user);
    let janes = [begin("jane"), begin("jane")];
    assert!(janes.iter().all(Option::is_some) && begin("jane").is_none());
    assert!(begin("joe").is_some());
    assert!(forwarder.begin(true, false, "jane").is_some(), "a watch is none of them");
    drop(janes);
    assert!(begin("jane").is_some());
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_to_be_repeated_unseen() {
    let (listener, url) = raw().await;
    let forwarder = forwarder(&url, 8);
    let token = "t".into();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
    };
    let write = plain(Method::DELETE, "/api/v1/namespaces/shop/configmaps/a", Body::empty());
    let ((), lost) = tokio::join!(server, forwarder.forward(write, &token));
    let refusal = lost.unwrap_err();
    assert_eq!((refusal.code.as_u16(), refusal.retry_after), (504, None));
    assert!(refusal.message.contains("not known whether"), "{}", refusal.message);

    drop(listener);
    let write = plain(Method::POST, CONFIG_MAPS, config_map("a"));
    let refusal = forwarder.forward(write, &token).await.unwrap_err();
    assert_eq!((refusal.code.as_u16(), refusal.retry_after), (503, Some(1)), "it was never sent");
}

#[tokio::test]
async fn upgraded_connections_are_joined() {
    let (listener, url) = raw().await;
    let forwarder = std::sync::Arc::new(forwarder(&url, 1));
    let lasting = std::sync::Arc::new(PerUser::new(1));
    let counted = std::sync::Arc::clone(&lasting);
    let places = std::sync::Arc::clone(&forwarder);
    let router = Router::new().fallback(move |mut request: axum::extract::Request| {
        let forwarder = std::sync::Arc::clone(&forwarder);
        request.extensions_mut().insert(lasting.open("jane").unwrap());
        async move {
            let path = request.uri().path().to_owned();
            let forward =
                Forward { request, user: "jane".into(), path, is_long: false, telling: None };
            forwarder.forward(forward, &"callers".into()).await
        }
    });
    let endpoint = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = endpoint.local_addr().unwrap();
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let limits = listen::Limits::default();
    let serving = tokio::spawn(listen::serve(endpoint, router, None, stopped, limits));
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        assert!(
            head.contains("upgrade: spdy/3.1") && head.contains("connection: upgrade"),
            "{head}"
        );
        assert!(head.contains("authorization: bearer callers"), "{head}");
        let answer =
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        let mut said = [0; 5];
        stream.read_exact(&mut said).await.unwrap();
        stream.write_all(&said).await.unwrap();
        said
    });
    let mut caller = TcpStream::connect(address).await.unwrap();
    let request = b"POST /api/v1/namespaces/a/pods/b/exec HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n";
    caller.write_all(request).await.unwrap();
    let head = read_head(&mut caller).await;
    assert!(head.starts_with("http/1.1 101 ") && head.contains("upgrade: spdy/3.1"), "{head}");
    assert!(counted.open("jane").is_err(), "it counts while it is open");
    assert!(places.begin(false, false, "jane").is_some(), "it has no place of others");
    caller.write_all(b"hello").await.unwrap();
    let mut echo = Vec::new();
    caller.read_to_end(&mut echo).await.unwrap();
    assert_eq!(echo, b"hello");
    assert_eq!(&server.await.unwrap(), b"hello");
    stop.cancel();
    drop(caller);
    while counted.open("jane").is_err() {
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(Duration::from_secs(30), serving).await.unwrap().unwrap();
}
