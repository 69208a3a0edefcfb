//! An HTTP relay that takes down what passes: requests, versions of lists, frames of watches.
//!
//! It stands before an API server, or before several that answer at one address: each new
//! connection then goes to the next of them, as a TCP balancer does it. Like
//! [`ReverseProxy`](crate::reverse_proxy::ReverseProxy) it speaks plain HTTP/1.1 and adds TLS and
//! credentials itself. It cuts its connections, holds the frames of watches back, and answers a
//! watch with 410.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST,
    TRANSFER_ENCODING,
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::reverse_proxy::{Answer, Asked, Framing, frames, from_frames, remove};

use record::version_of_list;
pub use record::{Event, Frame, Note, Query, Record, RequestId, Side, What};

mod record;

/// What the API server says when it does not know a version any more.
const EXPIRED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}"#;

/// A listening relay. Dropping it breaks its connections and frees its port.
pub struct Tap {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

/// A server behind a [`Tap`].
pub struct Target {
    name: String,
    client: Client,
    gone: watch::Sender<bool>,
}

struct Shared {
    side: Side,
    record: Arc<Record>,
    targets: Mutex<Vec<Arc<Target>>>,
    next: AtomicUsize,
    /// Whether frames of watches pass.
    open: watch::Sender<bool>,
    /// Changes when all connections are to break.
    cuts: watch::Sender<()>,
    expires: AtomicBool,
}

impl Tap {
    /// Listens on a free port of the loopback interface. What passes goes into the record, as
    /// seen on this side.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(
        side: Side,
        record: Arc<Record>,
        targets: Vec<Arc<Target>>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            side,
            record,
            targets: Mutex::new(targets),
            next: AtomicUsize::new(0),
            open: watch::Sender::new(true),
            cuts: watch::Sender::new(()),
            expires: AtomicBool::new(false),
        });
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

    /// Lets new connections go to these in turn. Those to others live on, see [`Target::retire`].
    pub fn set_targets(&self, targets: Vec<Arc<Target>>) {
        *self.shared.targets.lock().unwrap_or_else(PoisonError::into_inner) = targets;
    }

    /// Breaks every open connection. New ones are welcome.
    pub fn cut(&self) {
        self.shared.record.note(self.shared.side, "", What::Cut);
        self.shared.cuts.send_replace(());
    }

    /// Holds the frames of all watches back from now on.
    pub fn hold(&self) {
        self.shared.open.send_replace(false);
    }

    /// Ends [`hold`](Self::hold): what was held back comes now.
    pub fn release(&self) {
        self.shared.open.send_replace(true);
    }

    /// Answers the next watch that starts at a version with 410.
    pub fn expire_next_watch(&self) {
        self.shared.expires.store(true, Ordering::Release);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Target {
    /// A server of this name, asked as the user of `config`.
    ///
    /// # Errors
    /// When the configuration makes no client.
    pub fn new(name: impl Into<String>, mut config: kube::Config) -> anyhow::Result<Arc<Self>> {
        // What the server answers is for the client to see.
        config.default_retry = false;
        // Watches may be silent for long.
        config.read_timeout = None;
        let client = Client::try_from(config)?;
        Ok(Arc::new(Self { name: name.into(), client, gone: watch::Sender::new(false) }))
    }

    /// The name that it has in the record.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Closes its connections as their answers end: for a server that has ended.
    pub fn retire(&self) {
        self.gone.send_replace(true);
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("name", &self.name).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((connection, _)) = listener.accept() => {
                if let Some(target) = shared.next_target() {
                    connections.spawn(serve(connection, Arc::clone(&shared), target));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(
    connection: TcpStream,
    shared: Arc<Shared>,
    target: Arc<Target>,
) -> anyhow::Result<()> {
    connection.set_nodelay(true)?;
    let (mut cuts, mut gone) = (shared.cuts.subscribe(), target.gone.subscribe());
    let answer = service_fn(move |request| {
        let (shared, target) = (Arc::clone(&shared), Arc::clone(&target));
        // An error of the service breaks the connection, as one between the two does.
        async move { shared.pass(&target, request).await }
    });
    let mut served = pin!(http1::Builder::new().serve_connection(TokioIo::new(connection), answer));
    let mut is_ending = false;
    loop {
        tokio::select! {
            // A connection that breaks is its client's affair.
            _ = served.as_mut() => return Ok(()),
            _ = cuts.changed() => return Ok(()),
            _ = gone.wait_for(|gone| *gone), if !is_ending => {
                served.as_mut().graceful_shutdown();
                is_ending = true;
            }
        }
    }
}

impl Shared {
    fn next_target(&self) -> Option<Arc<Target>> {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        targets.get(turn % targets.len().max(1)).cloned()
    }

    async fn pass(
        self: &Arc<Self>,
        target: &Target,
        request: Request<Incoming>,
    ) -> anyhow::Result<Answer> {
        let (mut head, body) = request.into_parts();
        let query = Query::of(&head);
        let asked = query.asked;
        let starts_at_a_version = asked == Asked::Watch && query.version.is_some_and(|it| it > 0);
        let id = self.record.asked(self.side, &target.name, query);
        if starts_at_a_version && self.expires.swap(false, Ordering::AcqRel) {
            self.note(target, What::Answered { request: id, code: 410 });
            return expired();
        }
        let hop =
            [HOST, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, ACCEPT_ENCODING];
        remove(&mut head.headers, &hop);
        let body = Body::from(body.collect().await?.to_bytes().to_vec());
        // The client's base URL goes before a path.
        head.uri =
            head.uri.path_and_query().context("a request without a path")?.as_str().parse()?;
        let (mut head, body) =
            target.client.send(Request::from_parts(head, body)).await?.into_parts();
        remove(&mut head.headers, &[CONNECTION, TRANSFER_ENCODING]);
        self.note(target, What::Answered { request: id, code: head.status.as_u16() });
        let body = match asked {
            Asked::StreamingList | Asked::Watch if head.status.is_success() => {
                let watch = Watch {
                    record: Arc::clone(&self.record),
                    side: self.side,
                    target: target.name.clone(),
                    id,
                };
                from_frames(watch.taken_down(body, Framing::of(&head.headers), &self.open))
            }
            _ => {
                let body = body.collect().await?.to_bytes();
                if let Some(version) = version_of_list(&body).filter(|_| head.status.is_success()) {
                    self.note(target, What::Listed { request: id, version });
                }
                Full::from(body).map_err(|never| match never {}).boxed_unsync()
            }
        };
        Ok(Response::from_parts(head, body))
    }

    fn note(&self, target: &Target, what: What) {
        self.record.note(self.side, &target.name, what);
    }
}

fn expired() -> anyhow::Result<Answer> {
    let body = Full::from(EXPIRED).map_err(|never| match never {}).boxed_unsync();
    Ok(Response::builder()
        .status(StatusCode::GONE)
        .header(CONTENT_TYPE, "application/json")
        .body(body)?)
}

/// A watch that is taken down. Its drop is noted as its end.
struct Watch {
    record: Arc<Record>,
    side: Side,
    target: String,
    id: RequestId,
}

impl Watch {
    fn taken_down(
        self,
        body: Body,
        framing: Framing,
        open: &watch::Sender<bool>,
    ) -> impl Stream<Item = Result<Bytes, kube::Error>> + Send + 'static {
        let state = (self, Box::pin(frames(body, framing)), open.subscribe());
        stream::unfold(state, |(watch, mut frames, mut open)| async {
            let frame = frames.next().await?;
            // The sender lives as long as the relay.
            _ = open.wait_for(|open| *open).await;
            if let Some(frame) = frame.as_ref().ok().and_then(|frame| Frame::parse(frame)) {
                let what = What::Frame { request: watch.id, frame };
                watch.record.note(watch.side, &watch.target, what);
            }
            Some((frame, (watch, frames, open)))
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.record.note(self.side, &self.target, What::Ended { request: self.id });
    }
}

#[cfg(test)]
mod tests;
