//! A client of either arm that refuses writes, loses answers, and holds watches back.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is answered with this code and reason, and does not reach the server.
    Refused(u16, &'static str),
    /// The server applies it, and the answer is a reset connection.
    Lost,
    /// It is never sent, and never answered.
    Stuck,
    /// Watches are held back from just before it on.
    Unseen,
}

/// Stands between a controller and its client.
pub(crate) struct Meddler {
    /// Of the writes to come, by their method.
    fates: Mutex<VecDeque<(Method, Fate)>>,
    /// Whether watches are held back.
    holds: watch::Sender<bool>,
    /// How late each piece of a watch is.
    late: Duration,
}

impl Meddler {
    /// Pieces of watches are so late.
    pub(crate) fn new(late: Duration) -> Arc<Self> {
        Arc::new(Self { fates: Mutex::default(), holds: watch::Sender::new(false), late })
    }

    pub(crate) fn client(self: &Arc<Self>, client: &Client) -> Client {
        let (meddler, namespace) = (Arc::clone(self), client.default_namespace().to_owned());
        let client = client.clone();
        let serve = move |request: Request<Body>| {
            let (meddler, client) = (Arc::clone(&meddler), client.clone());
            async move { meddler.serve(&client, request).await }
        };
        Client::new(tower::service_fn(serve), namespace)
    }

    /// The next writes of this method end so, one after the other.
    pub(crate) fn expect(&self, method: &Method, fates: &[Fate]) {
        let fates = fates.iter().map(|fate| (method.clone(), *fate));
        self.fates.lock().unwrap_or_else(PoisonError::into_inner).extend(fates);
    }

    /// How many of the expected writes have not come.
    pub(crate) fn expected(&self) -> usize {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Watches say nothing from now on, or go on.
    pub(crate) fn hold_watches(&self, hold: bool) {
        self.holds.send_replace(hold);
    }

    async fn serve(&self, client: &Client, request: Request<Body>) -> Result<Answer, BoxError> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        match self.fate(request.method()) {
            Some(Fate::Refused(code, reason)) => {
                let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {},
                    "status": "Failure", "message": "refused on the way", "reason": reason, "code": code });
                let body = boxed(Full::new(Bytes::from(status.to_string())));
                let code = StatusCode::from_u16(code)?;
                Ok(Response::builder().status(code).body(body)?)
            }
            Some(Fate::Lost) => {
                client.send(request).await?.into_body().collect_bytes().await?;
                Err(io::Error::from(io::ErrorKind::ConnectionReset).into())
            }
            Some(Fate::Stuck) => std::future::pending().await,
            fate @ (Some(Fate::Unseen) | None) => {
                if fate.is_some() {
                    self.hold_watches(true);
                }
                let (parts, body) = client.send(request).await?.into_parts();
                let body = if is_watch { self.held_back(body) } else { boxed(body) };
                Ok(Response::from_parts(parts, body))
            }
        }
    }

    fn fate(&self, method: &Method) -> Option<Fate> {
        let mut fates = self.fates.lock().unwrap_or_else(PoisonError::into_inner);
        let is_next = fates.front().is_some_and(|(expected, _)| expected == method);
        if is_next { fates.pop_front().map(|(_, fate)| fate) } else { None }
    }

    fn held_back(&self, body: Body) -> UnsyncBoxBody<Bytes, BoxError> {
        let (holds, late) = (self.holds.subscribe(), self.late);
        let pieces = BodyStream::new(body).then(move |piece| {
            let mut holds = holds.clone();
            async move {
                sleep(late).await;
                // The sender lives as long as the test.
                _ = holds.wait_for(|holds| !holds).await;
                piece
            }
        });
        boxed(StreamBody::new(pieces))
    }
}

fn boxed<B>(body: B) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}
