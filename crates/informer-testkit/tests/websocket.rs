//! Watches over WebSocket, by a client that knows nothing of the test kit.

mod support;

use futures_util::{Stream, StreamExt};
use informer_testkit::TestServer;
use serde_json::Value;
use support::pod;
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Opens a watch; the protocol that was agreed on, and its messages.
async fn connect(
    server: &TestServer,
    query: &str,
    headers: &[(&'static str, &'static str)],
) -> Result<(Option<HeaderValue>, impl Stream<Item = Result<Message, Error>> + Unpin + use<>), u16>
{
    let url = format!("ws://{}{PODS}?{query}", server.address());
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("origin", HeaderValue::from_static("http://localhost"));
    for (name, value) in headers {
        match *value {
            "" => drop(request.headers_mut().remove(*name)),
            value => drop(request.headers_mut().insert(*name, HeaderValue::from_static(value))),
        }
    }
    let stream = TcpStream::connect(server.address()).await.unwrap();
    match client_async(request, stream).await {
        Ok((socket, response)) => {
            Ok((response.headers().get("sec-websocket-protocol").cloned(), socket))
        }
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

fn short(message: &Message) -> String {
    let event: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
    let metadata = &event["object"]["metadata"];
    format!("{} {}", event["type"].as_str().unwrap(), metadata["name"].as_str().unwrap())
}

#[tokio::test]
async fn events_are_messages_until_the_watch_ends() {
    let server = support::server().await;
    server.cluster().create(&pod("default", "a")).unwrap();
    let headers = [("sec-websocket-protocol", "base64.binary.k8s.io")];
    let (protocol, mut socket) = connect(&server, "watch=1", &headers).await.unwrap();
    assert_eq!(protocol.unwrap(), "base64.binary.k8s.io");
    assert_eq!(short(&socket.next().await.unwrap().unwrap()), "ADDED a");
    server.cluster().create(&pod("default", "b")).unwrap();
    assert_eq!(short(&socket.next().await.unwrap().unwrap()), "ADDED b");
    server.faults().cut_watches(informer_testkit::Cut::Close, None);
    assert!(matches!(socket.next().await, Some(Ok(Message::Close(_)))));
    server.shutdown().await;
}

#[tokio::test]
async fn protobuf_comes_in_binary_messages() {
    let server = support::server().await;
    server.cluster().create(&pod("default", "a")).unwrap();
    let headers = [("accept", "application/vnd.kubernetes.protobuf")];
    let (_, mut socket) = connect(&server, "watch=1", &headers).await.unwrap();
    let Some(Ok(Message::Binary(event))) = socket.next().await else { panic!("no event") };
    // Field 1 is the type.
    assert!(event.starts_with(b"\x0a\x05ADDED\x12"));
}

#[tokio::test]
async fn what_is_no_watch_is_not_upgraded() {
    let server = support::server().await;
    assert_eq!(connect(&server, "", &[]).await.err(), Some(200));
    assert_eq!(connect(&server, "watch=1&limit=x", &[]).await.err(), Some(400));
    assert_eq!(connect(&server, "watch=1", &[("origin", "")]).await.err(), Some(403));
}

#[tokio::test]
async fn a_server_that_ends_closes_them() {
    let server = support::server().await;
    let (_, mut socket) = connect(&server, "watch=1", &[]).await.unwrap();
    server.shutdown().await;
    while let Some(Ok(_)) = socket.next().await {}
}
