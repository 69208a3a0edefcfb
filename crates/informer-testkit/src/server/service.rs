//! One request: faults, then who asks, then reads and writes.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Response};
use informer_core::wire::MediaType;
use k8s_serve::answer::failed_watch;
use k8s_serve::page::{NextPage, at_newest};
use k8s_serve::{Body, Form, Parameters, ResourcePath, Route, Status, Verb, compress, websocket};
use tokio_util::sync::CancellationToken;

use super::websocket::Upgrades;
use super::{Core, write};
use crate::accept::forget_protobuf;
use crate::faults::{Asked, Guarded, Verdict};

/// A test server as a `tower::Service`; cloning it is cheap.
///
/// Requests arrive as over a socket, faults and all. Where a socket would be refused or reset, the
/// call or the body fails with an error.
#[derive(Clone)]
pub struct ApiService {
    core: Arc<Core>,
    reset: Option<CancellationToken>,
    upgrades: Option<Upgrades>,
}

/// There is no answer: the connection was refused or reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server accepts no connections.
    Refused,
    /// The connection ended before the answer.
    Reset,
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused",
            Self::Reset => "connection reset",
        })
    }
}

impl std::error::Error for ConnectionError {
    /// What a socket would have said, by which clients tell a server that is away.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        static REFUSED: LazyLock<io::Error> =
            LazyLock::new(|| io::ErrorKind::ConnectionRefused.into());
        match self {
            Self::Refused => Some(&*REFUSED),
            Self::Reset => None,
        }
    }
}

impl ApiService {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core, reset: None, upgrades: None }
    }

    /// For requests of a connection, which `reset` resets, and which may be upgraded.
    pub(super) fn on_connection(self, reset: CancellationToken, upgrades: Upgrades) -> Self {
        Self { reset: Some(reset), upgrades: Some(upgrades), ..self }
    }

    async fn answer<B>(self, mut request: Request<B>) -> Result<Response<Body>, ConnectionError>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let faults = &self.core.faults;
        if self.reset.is_none() && *faults.refusing().borrow() {
            return Err(ConnectionError::Refused);
        }
        let upgrade = hyper::upgrade::on(&mut request);
        let (mut parts, body) = request.into_parts();
        let query = parts.uri.query().unwrap_or_default();
        let route = Route::parse(parts.uri.path());
        let path = match &route {
            Route::Resource(path) => Some(path),
            _ => None,
        };
        let verb = path.map_or(Verb::Other, |path| path.verb(&parts.method, query));
        let asked = Asked::new(verb, path, &parts, &self.core.pages);
        let user = self.core.auth.user(&parts.headers);
        let number = self.core.requests.arrived(
            &parts,
            &route,
            verb,
            user.as_ref().map_or("", String::as_str),
        );
        if faults.have_no_protobuf(&asked) {
            forget_protobuf(&mut parts.headers);
        }
        let query = parts.uri.query().unwrap_or_default();
        let moved = faults.move_page(&asked).then(|| at_newest(query));
        let query = moved.as_deref().unwrap_or(query);

        // Faults have to see what they alter: what is compressed is so behind them.
        let mut plain = parts.headers.clone();
        plain.remove(ACCEPT_ENCODING);
        let (mut served, mut to_serve) = (None, Some((user, body)));
        let response = loop {
            let verdict = match served.is_some() {
                true => faults.judge_served(&asked),
                false => faults.judge(&asked),
            };
            break match verdict {
                Verdict::Serve => {
                    if let Some(response) = served {
                        break response;
                    }
                    if let Some((user, body)) = to_serve.take() {
                        served = Some(match self.authorize(user, verb, path) {
                            Err(status) => self.core.read.refuse(&status, &parts.headers),
                            Ok(()) if is_read(&parts.method) => {
                                self.core.read.respond(&route, query, &plain).await
                            }
                            Ok(()) => {
                                write::respond(&self.core, &route, verb, &parts, query, body).await
                            }
                        });
                    }
                    continue;
                }
                Verdict::Answer(status) => self.core.read.refuse(&status, &parts.headers),
                Verdict::ErrorEvent(status) => {
                    self.failed_watch(&status, path, &parts.headers).await
                }
                Verdict::HangUp => {
                    if let Some(reset) = &self.reset {
                        reset.cancel();
                    }
                    return Err(ConnectionError::Reset);
                }
                Verdict::Wait(lifted) => {
                    lifted.cancelled().await;
                    continue;
                }
            };
        };
        self.core.requests.answered(number, &response);
        if let (Some(page), Some(next)) = (asked.page(), response.extensions().get::<NextPage>()) {
            self.core.pages.give(&next.0, page + 1);
        }
        let gzip = faults.compresses(&asked);
        let accepts = parts.headers;
        let streamed = verb == Verb::Watch && response.status().is_success();
        let whole = http_body::Body::size_hint(response.body()).exact().is_some();
        if whole && !streamed && !gzip && !faults.touch_bodies() {
            return Ok(compress(response, &accepts).await);
        }
        let media = media_type(response.headers());
        let open = faults.open(asked, response.status().is_success(), media, self.reset.clone());
        let mut response =
            response.map(|body| Body::stream(Guarded::new(body, open, gzip).into_stream()));
        if gzip {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        match streamed {
            true => match &self.upgrades {
                Some(upgrades) if websocket::is_requested(&accepts) => {
                    Ok(upgrades.accept(&accepts, upgrade, response))
                }
                _ => Ok(response),
            },
            false => Ok(compress(response, &accepts).await),
        }
    }

    /// A watch that ends with an error as soon as it is open, in the form in which its events would
    /// be.
    async fn failed_watch(
        &self,
        status: &Status,
        path: Option<&ResourcePath>,
        headers: &HeaderMap,
    ) -> Response<Body> {
        let read = &self.core.read;
        let resource = match path {
            Some(path) => read.resolve(path).await.ok(),
            None => None,
        };
        let form = resource
            .map(|resource| read.negotiate(headers, &resource)?.object(&Parameters::default()));
        match form.transpose() {
            Ok(form) => failed_watch(status, form.map_or(MediaType::Json, Form::media)),
            Err(refused) => read.refuse(&refused, headers),
        }
    }

    fn authorize(
        &self,
        user: Result<String, Status>,
        verb: Verb,
        path: Option<&ResourcePath>,
    ) -> Result<(), Status> {
        let user = user?;
        path.map_or(Ok(()), |path| self.core.auth.check(&user, verb, path))
    }
}

/// How the body of an answer is written.
fn media_type(headers: &HeaderMap) -> MediaType {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    MediaType::of_answer(value, None, &MediaType::ALL).unwrap_or(MediaType::Json)
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = ConnectionError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, ConnectionError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

impl fmt::Debug for ApiService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiService").finish_non_exhaustive()
    }
}
