//! An HTTP proxy before an API server, which ends watches cleanly or takes a frame out of them.
//!
//! [`Proxy`](crate::proxy::Proxy) breaks connections and knows nothing of what they carry. This one
//! speaks plain HTTP/1.1 and adds TLS and credentials itself, so that any client can use it at a
//! bare URL; it also counts what it is asked. It knows the frames of watches in JSON and in
//! protobuf, which client-go asks for by default.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream, StreamExt};
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING,
};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// What happens to watches that are opened from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchFault {
    /// Nothing.
    #[default]
    None,
    /// They are answered, and end cleanly before the first byte.
    CloseAtOnce,
    /// They end cleanly after their first frame.
    CloseAfterFirstFrame,
    /// The bookmark that ends the initial events of a streaming list never comes.
    DropInitialEventsEnd,
}

/// What a request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A watch that begins with initial events.
    StreamingList,
    /// Any other watch.
    Watch,
    /// Anything else: a list, where informers ask.
    List,
}

/// A listening proxy. Dropping it breaks its connections and frees its port.
#[derive(Debug)]
pub struct ReverseProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

struct Shared {
    client: Client,
    fault: Mutex<WatchFault>,
    requests: Mutex<Vec<(Instant, Asked)>>,
}

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

impl ReverseProxy {
    /// Listens on a free port of the loopback interface, and passes requests on as the user of
    /// `config`.
    ///
    /// # Errors
    ///
    /// When no port can be had, or the configuration makes no client.
    pub async fn start(mut config: kube::Config) -> anyhow::Result<Self> {
        // What the server answers is for the client to see.
        config.default_retry = false;
        let client = Client::try_from(config)?;
        let shared =
            Arc::new(Shared { client, fault: Mutex::default(), requests: Mutex::default() });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { address, shared, accepting })
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets a fault befall watches that are opened from now on.
    pub fn set_fault(&self, fault: WatchFault) {
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Every request so far, and when it came.
    #[must_use]
    pub fn requests(&self) -> Vec<(Instant, Asked)> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ReverseProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("fault", &self.fault).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((connection, _)) = listener.accept() => {
                connections.spawn(serve(connection, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(connection: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let answer = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move {
            let answer = shared.pass(request).await;
            Ok::<_, Infallible>(answer.unwrap_or_else(|error| bad_gateway(&error)))
        }
    });
    // A connection that breaks is its client's affair.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), answer).await;
    Ok(())
}

impl Shared {
    async fn pass(&self, request: Request<Incoming>) -> anyhow::Result<Answer> {
        let (mut head, body) = request.into_parts();
        let asked = Asked::by(head.uri.query().unwrap_or_default());
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), asked));
        remove(
            &mut head.headers,
            &[HOST, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING],
        );
        let body = Body::from(body.collect().await?.to_bytes().to_vec());
        // The client's base URL goes before a path.
        head.uri =
            head.uri.path_and_query().context("a request without a path")?.as_str().parse()?;
        let (mut head, body) =
            self.client.send(Request::from_parts(head, body)).await?.into_parts();
        remove(&mut head.headers, &[CONNECTION, TRANSFER_ENCODING]);
        let framing = Framing::of(&head.headers);
        let fault = match asked {
            Asked::StreamingList | Asked::Watch if head.status.is_success() => {
                *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
            }
            _ => WatchFault::None,
        };
        let body = match fault {
            WatchFault::None => body.boxed_unsync(),
            WatchFault::CloseAtOnce => Empty::new().map_err(|never| match never {}).boxed_unsync(),
            WatchFault::CloseAfterFirstFrame => from_frames(frames(body, framing).take(1)),
            WatchFault::DropInitialEventsEnd => {
                from_frames(frames(body, framing).filter(|frame| {
                    let keep = !frame.as_ref().is_ok_and(|frame| ends_initial_events(frame));
                    std::future::ready(keep)
                }))
            }
        };
        Ok(Response::from_parts(head, body))
    }
}

impl Asked {
    pub(crate) fn by(query: &str) -> Self {
        let has = |wanted: &[&str]| query.split('&').any(|pair| wanted.contains(&pair));
        if has(&["sendInitialEvents=true"]) {
            Self::StreamingList
        } else if has(&["watch=true", "watch=1"]) {
            Self::Watch
        } else {
            Self::List
        }
    }
}

pub(crate) fn remove(headers: &mut HeaderMap, names: &[http::HeaderName]) {
    for name in names {
        headers.remove(name);
    }
}

pub(crate) fn bad_gateway(error: &anyhow::Error) -> Answer {
    let text = Full::from(format!("{error:#}\n")).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(text);
    *answer.status_mut() = StatusCode::BAD_GATEWAY;
    answer
}

/// In JSON and in protobuf: the type comes first, in so many letters, and texts are as they are.
fn ends_initial_events(frame: &[u8]) -> bool {
    let has = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    has(&frame[..frame.len().min(32)], b"BOOKMARK") && has(frame, b"k8s.io/initial-events-end")
}

/// How the frames of a watch lie one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Framing {
    /// Each ends with a newline.
    Lines,
    /// Each begins with its length in four bytes.
    Lengths,
}

impl Framing {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let kind =
            headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if kind.contains("protobuf") { Self::Lengths } else { Self::Lines }
    }

    /// How many bytes the first frame has, if it is there.
    fn first(self, bytes: &[u8]) -> Option<usize> {
        let end = match self {
            Self::Lines => bytes.iter().position(|&byte| byte == b'\n')? + 1,
            Self::Lengths => 4 + u32::from_be_bytes(*bytes.first_chunk()?) as usize,
        };
        (end <= bytes.len()).then_some(end)
    }
}

pub(crate) fn from_frames(
    frames: impl Stream<Item = Result<Bytes, kube::Error>> + Send + 'static,
) -> UnsyncBoxBody<Bytes, kube::Error> {
    StreamBody::new(frames.map(|frame| frame.map(Frame::data))).boxed_unsync()
}

/// Cuts a body into frames.
pub(crate) fn frames(
    body: Body,
    framing: Framing,
) -> impl Stream<Item = Result<Bytes, kube::Error>> + Send + 'static {
    let state = (body.into_data_stream(), BytesMut::new());
    stream::try_unfold(state, move |(mut body, mut rest)| async move {
        loop {
            if let Some(end) = framing.first(&rest) {
                return Ok(Some((rest.split_to(end).freeze(), (body, rest))));
            }
            match body.next().await {
                Some(chunk) => rest.extend_from_slice(&chunk?),
                None if rest.is_empty() => return Ok(None),
                None => return Ok(Some((rest.split().freeze(), (body, rest)))),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use informer_testkit::TestServer;
    use serde_json::{Value, json};

    const PODS: &str = "/api/v1/pods";
    const STREAMING: &str = "/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true\
        &resourceVersionMatch=NotOlderThan&timeoutSeconds=1";

    #[tokio::test]
    async fn it_passes_on_what_it_is_asked_and_counts_it() {
        let (_server, proxy) = a_proxy().await;
        let list: Value = serde_json::from_slice(&get(&proxy, PODS).await).unwrap();
        assert_eq!(list["items"][0]["metadata"]["name"], "one");
        assert_eq!(types(&get(&proxy, STREAMING).await), ["ADDED", "ADDED", "BOOKMARK"]);
        get(&proxy, "/api/v1/pods?watch=1&resourceVersion=1&timeoutSeconds=1").await;
        let asked: Vec<_> = proxy.requests().into_iter().map(|(_, asked)| asked).collect();
        assert_eq!(asked, [Asked::List, Asked::StreamingList, Asked::Watch]);
    }

    #[tokio::test]
    async fn watches_end_cleanly_or_lack_their_bookmark() {
        let (_server, proxy) = a_proxy().await;
        for (fault, expected) in [
            (WatchFault::CloseAtOnce, &[] as &[&str]),
            (WatchFault::CloseAfterFirstFrame, &["ADDED"]),
            (WatchFault::DropInitialEventsEnd, &["ADDED", "ADDED"]),
        ] {
            proxy.set_fault(fault);
            assert_eq!(types(&get(&proxy, STREAMING).await), expected, "{fault:?}");
            assert!(get(&proxy, PODS).await.len() > 100, "lists stay whole");
        }
    }

    #[test]
    fn frames_are_lines_or_have_their_length_before_them() {
        assert_eq!(Framing::Lines.first(b"{}\n{}"), Some(3));
        assert_eq!(Framing::Lines.first(b"{}"), None);
        assert_eq!(Framing::Lengths.first(b"\0\0\0\x02\n\nrest"), Some(6));
        assert_eq!(Framing::Lengths.first(b"\0\0\0\x02\n"), None);
        assert_eq!(Framing::Lengths.first(b"\0\0"), None);
        let bookmark = b"\n\x08BOOKMARK\x12...\x19k8s.io/initial-events-end\x12\x04true";
        assert!(ends_initial_events(bookmark));
        assert!(!ends_initial_events(
            b"\n\x05ADDED\x12...\x19k8s.io/initial-events-end\x12\x04true"
        ));
        assert!(!ends_initial_events(b"\n\x08BOOKMARK\x12..."));
    }

    async fn a_proxy() -> (TestServer, ReverseProxy) {
        let server = TestServer::start().await.unwrap();
        for name in ["one", "two"] {
            let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name } });
            server.cluster().create(&pod).unwrap();
        }
        let proxy =
            ReverseProxy::start(kube::Config::new(server.url().parse().unwrap())).await.unwrap();
        (server, proxy)
    }

    /// The whole body, which must end cleanly.
    async fn get(proxy: &ReverseProxy, path: &str) -> Bytes {
        let client = Client::try_from(kube::Config::new(proxy.url().parse().unwrap())).unwrap();
        let request = Request::get(path).body(Body::empty()).unwrap();
        client.send(request).await.unwrap().into_body().collect_bytes().await.unwrap()
    }

    fn types(body: &[u8]) -> Vec<String> {
        let frames = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
        frames.map(|frame| frame.unwrap()["type"].as_str().unwrap().to_owned()).collect()
    }
}
