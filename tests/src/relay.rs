//! An HTTP relay before an API server that makes trouble for controllers: it holds the frames of
//! watches back, and loses answers to writes that the server has carried out.
//!
//! Like [`ReverseProxy`](crate::reverse_proxy::ReverseProxy) it speaks plain HTTP/1.1. It keeps a
//! record of every write, and counts requests, by client: by the `User-Agent` of the requests. To
//! break connections put a [`Proxy`](crate::proxy::Proxy) before it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, USER_AGENT,
};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::reverse_proxy::{Answer, Asked, Framing, bad_gateway, frames, from_frames, remove};

/// What happens to frames and answers from now on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Trouble {
    /// Each frame of a watch is held back for a random time of at most this. Their order is kept.
    pub hold: Duration,
    /// Which part of the answers to writes is lost, after the server has carried them out.
    pub lost_answers: f64,
}

/// How many requests a client has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Watches, those that begin with initial events among them.
    pub watches: usize,
    /// Watches that begin with initial events.
    pub streaming_lists: usize,
    /// Other reads: lists, objects by name, discovery.
    pub reads: usize,
    /// Writes.
    pub writes: usize,
}

/// A write that the server has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// When it came, in microseconds since 1970.
    pub sent: u64,
    /// When the server had answered, in microseconds since 1970.
    pub answered: u64,
    /// The method.
    pub method: Method,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource, or nothing.
    pub subresource: String,
    /// The server's answer.
    pub status: StatusCode,
    /// The name in the answer.
    pub name: String,
    /// The UID in the answer.
    pub uid: String,
    /// The version in the answer.
    pub version: String,
    /// The UID of the owner that controls the object in the answer.
    pub owner: String,
    /// Whether the client got no answer.
    pub lost: bool,
}

/// A listening relay. Dropping it breaks its connections and frees its port.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

struct Shared {
    client: Client,
    state: Mutex<State>,
}

struct State {
    trouble: Trouble,
    random: fastrand::Rng,
    counts: BTreeMap<String, Counts>,
    writes: BTreeMap<String, Vec<Write>>,
}

impl Relay {
    /// Listens on a free port of the loopback interface, and passes requests on as the user of
    /// `config`. Chance begins at `seed`.
    ///
    /// # Errors
    /// When no port can be had, or the configuration makes no client.
    pub async fn start(mut config: kube::Config, seed: u64) -> anyhow::Result<Self> {
        // What the server answers is for the client to see.
        config.default_retry = false;
        // Watches may be silent for long.
        config.read_timeout = None;
        let state = State {
            trouble: Trouble::default(),
            random: fastrand::Rng::with_seed(seed),
            counts: BTreeMap::new(),
            writes: BTreeMap::new(),
        };
        let shared =
            Arc::new(Shared { client: Client::try_from(config)?, state: Mutex::new(state) });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { address, shared, accepting })
    }

    /// Where it listens, without TLS.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes trouble from now on, also in watches that are open.
    pub fn set_trouble(&self, trouble: Trouble) {
        self.shared.state().trouble = trouble;
    }

    /// What a client has asked so far.
    #[must_use]
    pub fn counts(&self, agent: &str) -> Counts {
        self.shared.state().counts.get(agent).copied().unwrap_or_default()
    }

    /// The writes of a client so far, in the order of their answers.
    #[must_use]
    pub fn writes(&self, agent: &str) -> Vec<Write> {
        self.shared.state().writes.get(agent).cloned().unwrap_or_default()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Microseconds since 1970: the clock that all processes of a machine share.
#[must_use]
pub fn now_in_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default()
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
            match shared.pass(request).await {
                Ok(Some(answer)) => Ok(answer),
                // An error of the service ends the connection without an answer.
                Ok(None) => Err("the answer is lost"),
                Err(error) => Ok(bad_gateway(&error)),
            }
        }
    });
    // A connection that breaks is its client's affair.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), answer).await;
    Ok(())
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer, unless it is lost.
    async fn pass(self: &Arc<Self>, request: Request<Incoming>) -> anyhow::Result<Option<Answer>> {
        let (mut head, body) = request.into_parts();
        let sent = now_in_micros();
        let agent = head.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
        let agent = agent.unwrap_or_default().to_owned();
        let is_read = head.method == Method::GET;
        let asked = Asked::by(head.uri.query().unwrap_or_default());
        self.state().counts.entry(agent.clone()).or_default().add(is_read, asked);
        let hop = [HOST, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];
        remove(&mut head.headers, &hop);
        if !is_read {
            // The record is of JSON.
            head.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        }
        let body = Body::from(body.collect().await?.to_bytes().to_vec());
        // The client's base URL goes before a path.
        head.uri =
            head.uri.path_and_query().context("a request without a path")?.as_str().parse()?;
        let path = Path::of(&head)?;
        let method = head.method.clone();
        let (mut head, body) =
            self.client.send(Request::from_parts(head, body)).await?.into_parts();
        remove(&mut head.headers, &[CONNECTION, TRANSFER_ENCODING]);
        let body = match asked {
            Asked::StreamingList | Asked::Watch if is_read && head.status.is_success() => {
                let frames = frames(body, Framing::of(&head.headers));
                from_frames(held(frames, Arc::clone(self)))
            }
            _ if is_read => body.boxed_unsync(),
            _ => {
                let body = body.collect().await?.to_bytes();
                let told = Told::of(&body);
                let mut state = self.state();
                let lost_answers = state.trouble.lost_answers;
                let lost = state.random.f64() < lost_answers;
                state.writes.entry(agent).or_default().push(Write {
                    sent,
                    answered: now_in_micros(),
                    method,
                    resource: path.resource,
                    subresource: path.subresource,
                    status: head.status,
                    name: told.name,
                    uid: told.uid,
                    version: told.version,
                    owner: told.owner,
                    lost,
                });
                if lost {
                    return Ok(None);
                }
                Full::from(body).map_err(|never| match never {}).boxed_unsync()
            }
        };
        Ok(Some(Response::from_parts(head, body)))
    }
}

impl Counts {
    fn add(&mut self, is_read: bool, asked: Asked) {
        match asked {
            _ if !is_read => self.writes += 1,
            Asked::StreamingList => {
                self.streaming_lists += 1;
                self.watches += 1;
            }
            Asked::Watch => self.watches += 1,
            Asked::List => self.reads += 1,
        }
    }
}

/// Frames, each some time after it came, in their order.
fn held<E: Send + 'static>(
    frames: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    shared: Arc<Shared>,
) -> impl Stream<Item = Result<Bytes, E>> + Send + 'static {
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut frames = Box::pin(frames);
        let mut due = Instant::now();
        loop {
            let frame = tokio::select! {
                frame = frames.next() => frame,
                // The client's connection has ended.
                () = sender.closed() => return,
            };
            let Some(frame) = frame else { return };
            let hold = {
                let mut state = shared.state();
                let part = state.random.f64();
                state.trouble.hold.mul_f64(part)
            };
            due = due.max(Instant::now() + hold);
            if sender.send((due, frame)).is_err() {
                return;
            }
        }
    });
    stream::unfold(receiver, |mut receiver| async {
        let (due, frame) = receiver.recv().await?;
        if due > Instant::now() {
            sleep_until(due).await;
        }
        Some((frame, receiver))
    })
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
struct Path {
    resource: String,
    subresource: String,
}

impl Path {
    fn of(head: &Parts) -> anyhow::Result<Self> {
        let mut parts = head.uri.path().trim_matches('/').split('/');
        let parts: Vec<_> = match parts.next() {
            Some("api") => parts.skip(1).collect(),
            Some("apis") => parts.skip(2).collect(),
            _ => Vec::new(),
        };
        let parts = match parts.as_slice() {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        let at = |number: usize| parts.get(number).copied().unwrap_or_default().to_owned();
        if head.method != Method::GET && at(0).is_empty() {
            bail!("a write to {}", head.uri.path());
        }
        Ok(Self { resource: at(0), subresource: at(2) })
    }
}

/// What an answer says of an object: itself, or a `Status` with its details.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    name: String,
    uid: String,
    version: String,
    owner: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Document {
    metadata: Metadata,
    details: Option<Metadata>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    uid: String,
    #[serde(default)]
    controller: bool,
}

impl Told {
    fn of(body: &[u8]) -> Self {
        let document: Document = serde_json::from_slice(body).unwrap_or_default();
        let metadata = document.details.unwrap_or(document.metadata);
        let owner = metadata.owner_references.into_iter().find(|owner| owner.controller);
        Self {
            name: metadata.name,
            uid: metadata.uid,
            version: metadata.resource_version,
            owner: owner.map(|owner| owner.uid).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
