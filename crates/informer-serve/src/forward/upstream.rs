//! The connection to the API server for forwarded requests. It uses the callers' tokens, and no
//! credentials of the endpoint.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONNECTION, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, StatusCode, Uri, Version};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::ConfigExt;
use kube::config::AuthInfo;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use secrecy::SecretString;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::exchange::{Answered, Unanswered, exchange};
use super::tap::Tap;
use super::version::VersionScan;
use super::writes::Telling;
use super::{headers, upgrade};
use crate::body::Observed;
use crate::listen::Slot;
use crate::per_user::{Lasting, OfUser, PerUser};
use crate::refusal::Refusal;

/// Time limit for connecting to the API server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept. API servers close idle connections later, so no request is
/// sent on a connection that is being closed.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// The API server for requests that are forwarded with the caller's own token.
///
/// It uses the address and the TLS settings of a [`Config`], but neither its client certificate nor
/// its token.
#[derive(Clone)]
pub struct Upstream {
    base: Uri,
    pub(super) client: Client<HttpsConnector<HttpConnector>, Body>,
}

/// Why an [`Upstream`] cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// The API server is behind a proxy.
    #[error("requests of callers cannot be passed on through the proxy of the configuration")]
    Proxy,
    /// The TLS settings of the configuration are invalid.
    #[error("cannot set up TLS to the API server: {0}")]
    Tls(#[source] Box<kube::Error>),
}

/// Forwards requests with their callers' tokens, limits how many are in flight, and counts them.
pub(crate) struct Forwarder {
    upstream: OnceLock<Upstream>,
    permits: Arc<Semaphore>,
    per_user: PerUser,
    counted: Counted,
    stop: CancellationToken,
}

/// The metrics of forwarded requests.
#[derive(Clone, Default)]
struct Counted {
    in_flight: Gauge<i64, AtomicI64>,
    upgraded: Gauge<i64, AtomicI64>,
    refused: Counter<u64, AtomicU64>,
}

/// One request to forward.
pub(crate) struct Forward {
    pub(crate) request: Request<Body>,
    /// The user whose token is sent.
    pub(crate) user: String,
    /// The canonical path, with the query. The API server must resolve it as the endpoint did.
    pub(crate) path: String,
    /// Whether it may stay open without a time limit, as a watch or a followed log does.
    pub(crate) is_long: bool,
    /// Records the version that the response names.
    pub(crate) telling: Option<Telling>,
}

/// A request in flight. It counts in a gauge and holds its permits until it is dropped.
pub(super) struct InFlight {
    gauge: Gauge<i64, AtomicI64>,
    place: Option<(OwnedSemaphorePermit, OfUser)>,
}

impl Upstream {
    /// Creates the upstream of a configuration, without the credentials in it.
    ///
    /// # Errors
    /// If its TLS settings are invalid, or it names a proxy.
    pub fn of(config: &Config) -> Result<Self, UpstreamError> {
        if config.proxy_url.is_some() {
            return Err(UpstreamError::Proxy);
        }
        // The API server would authenticate a client certificate before the caller's token.
        let mut config = config.clone();
        config.auth_info = AuthInfo::default();
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_keepalive(Some(POOL_IDLE));
        let connector = config
            .rustls_https_connector_with_connector(connector)
            .map_err(|error| UpstreamError::Tls(Box::new(error)))?;
        // The client uses HTTP/1.1, because upgrades need it.
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(connector);
        Ok(Self { base: config.cluster_url, client })
    }

    /// The URL of a path on the API server.
    fn url(&self, path: &str) -> Option<Uri> {
        let mut parts = self.base.clone().into_parts();
        let prefix = self.base.path().trim_end_matches('/');
        parts.path_and_query = Some(PathAndQuery::try_from(format!("{prefix}{path}")).ok()?);
        Uri::from_parts(parts).ok()
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("url", &self.base).finish_non_exhaustive()
    }
}

impl Forwarder {
    /// Allows `max_forwarded` requests in flight, and a quarter of that for each user. Long
    /// requests do not count.
    pub(crate) fn new(max_forwarded: usize, stop: CancellationToken) -> Self {
        let permits = Arc::new(Semaphore::new(max_forwarded.min(Semaphore::MAX_PERMITS)));
        let per_user = PerUser::new((max_forwarded / 4).max(1));
        Self { upstream: OnceLock::new(), permits, per_user, counted: Counted::default(), stop }
    }

    /// Sets the server to forward to, unless it is set already. Until then, requests are refused.
    pub(crate) fn set_upstream(&self, upstream: Upstream) {
        drop(self.upstream.set(upstream));
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let Counted { in_flight, upgraded, refused } = self.counted.clone();
        let help = "Requests passed on with their callers' tokens, and not answered yet";
        registry.register("serve_forwarded_in_flight", help, in_flight);
        let help = "Connections of exec, attach and port-forward that are open";
        registry.register("serve_upgraded_connections", help, upgraded);
        let help = "Requests refused because too many are passed on already";
        registry.register("serve_forwarded_refused", help, refused);
    }

    /// Sends a request to the API server with the caller's token, and returns the response.
    ///
    /// # Errors
    /// If the request cannot be forwarded, or the API server sends no response.
    pub(crate) async fn forward(
        &self,
        forward: Forward,
        token: &SecretString,
    ) -> Result<Response, Refusal> {
        let Forward { mut request, user, path, is_long, mut telling } = forward;
        let mut refuse = |refusal| {
            if let Some(telling) = &mut telling {
                telling.changed_nothing();
            }
            Err(refusal)
        };
        let Some(upstream) = self.upstream.get() else {
            return refuse(Refusal::forbidden(
                "nothing is passed on for callers here: ask the API server itself",
            ));
        };
        let protocol = upgrade::requested(request.headers()).cloned();
        let Some(in_flight) = self.begin(is_long, protocol.is_some(), &user) else {
            self.counted.refused.inc();
            let message =
                "too many requests are being passed on to the API server, try again later";
            let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, message);
            refusal.retry_after = Some(1);
            return refuse(refusal);
        };
        let upgraded = match protocol.as_ref().map(|_| upgrade::take(&mut request)).transpose() {
            Ok(upgraded) => upgraded,
            Err(refusal) => return refuse(refusal),
        };
        let slot = request.extensions().get::<Slot>().cloned();
        let lasting = request.extensions().get::<Lasting>().cloned();
        let method = request.method().clone();
        let request = match prepare(upstream, request, &path, token, protocol) {
            Ok(request) => request,
            Err(refusal) => return refuse(refusal),
        };
        let exchanged = exchange(upstream, request, is_long, (telling, in_flight)).await;
        let Answered { answer, telling, mut in_flight } = match exchanged {
            Ok(answered) => answered,
            Err(Unanswered { refusal, was_not_sent: true }) => return Err(refusal),
            Err(Unanswered { refusal, was_not_sent: false }) => return Err(lost(&method, refusal)),
        };
        if let (StatusCode::SWITCHING_PROTOCOLS, Some(caller)) = (answer.status(), upgraded) {
            let stop = self.stop.clone();
            in_flight.lasts();
            return Ok(upgrade::join(caller, answer, stop, (slot, lasting, in_flight)));
        }
        let (parts, body) = answer.into_parts();
        let watched = telling.map(|telling| (VersionScan::of(&parts.headers), telling));
        let tap = Tap { watched, _place: in_flight };
        let mut response = Response::new(Body::new(Observed::new(body, tap)));
        *response.status_mut() = parts.status;
        *response.headers_mut() = headers::of_answer(&parts.headers);
        Ok(response)
    }

    pub(super) fn begin(&self, is_long: bool, is_upgrade: bool, user: &str) -> Option<InFlight> {
        let place = match is_long {
            true => None,
            false => {
                let of_user = self.per_user.begin(user)?;
                Some((Arc::clone(&self.permits).try_acquire_owned().ok()?, of_user))
            }
        };
        let Counted { in_flight, upgraded, .. } = &self.counted;
        let gauge = if is_upgrade { upgraded } else { in_flight }.clone();
        gauge.inc();
        Some(InFlight { gauge, place })
    }
}

impl InFlight {
    /// Releases the permits, because upgraded connections do not count as requests in flight.
    fn lasts(&mut self) {
        self.place = None;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

/// The request to send to the API server.
fn prepare(
    upstream: &Upstream,
    request: Request<Body>,
    path: &str,
    token: &SecretString,
    protocol: Option<HeaderValue>,
) -> Result<Request<Body>, Refusal> {
    let bad = |message| Refusal::bad_request(message);
    let (parts, body) = request.into_parts();
    let mut passed = Request::new(body);
    *passed.method_mut() = parts.method;
    *passed.version_mut() = Version::HTTP_11;
    *passed.uri_mut() =
        upstream.url(path).ok_or_else(|| bad("the path or query is no part of a URL"))?;
    *passed.headers_mut() = headers::of_request(&parts.headers, token)
        .map_err(|_| bad("the bearer token cannot be passed on"))?;
    if let Some(protocol) = protocol {
        passed.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        passed.headers_mut().insert(UPGRADE, protocol);
    }
    Ok(passed)
}

/// The error for a request whose response was lost. A write may have happened, so the error has no
/// `Retry-After`: clients repeat a request on their own if it has one.
fn lost(method: &Method, refusal: Refusal) -> Refusal {
    if method.is_safe() {
        return refusal;
    }
    let message = format!("{}; it is not known whether the request took effect", refusal.message);
    Refusal::new(StatusCode::GATEWAY_TIMEOUT, message)
}
