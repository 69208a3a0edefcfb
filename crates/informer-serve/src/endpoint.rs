//! The endpoint: what is shared by all requests, its routes, its start and its end.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use informer::{Resource, SharedInformerFactory, Status};
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::io::AsyncWrite;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, Control, Reviews};
use crate::api;
use crate::audit::AuditLog;
use crate::backend::Stopping;
use crate::catalog::Catalog;
use crate::collections::Collections;
use crate::definition::described;
use crate::documents::Documents;
use crate::forward::{Forwarder, Upstream, Writes};
use crate::gateway::{self, Pages};
use crate::guard::{self, Guarded};
use crate::listen::{self, Limits};
use crate::metrics::{self, Metrics};
use crate::options::Options;
use crate::per_user::PerUser;
use crate::refusal::Refusal;
use crate::rights::{Right, Rights};
use crate::sending::Sending;
use crate::status_page::{self, Run};
use crate::tls::{Tls, TlsError};

/// How long the last requests may take once the watches have ended.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(5);
/// How often idle resources are looked for, at the most.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// How often it is seen to that what shall be held from the start is held.
const WARM_INTERVAL: Duration = Duration::from_secs(60);
const MIN_SWEEP: Duration = Duration::from_millis(100);

/// Kubernetes' read API, and the gateway's short paths, from informers' caches; a cheap handle,
/// clones are the same endpoint.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) client: Client,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) collections: Arc<Collections>,
    pub(crate) documents: Documents,
    pub(crate) pages: Pages,
    pub(crate) metrics: Metrics,
    pub(crate) stopping: Stopping,
    pub(crate) reviews: Arc<Reviews>,
    pub(crate) rights: Rights,
    /// Whether holding what `--cache` names was begun.
    is_warm: AtomicBool,
    pub(crate) forwarder: Forwarder,
    pub(crate) writes: Arc<Writes>,
    pub(crate) per_user: PerUser,
    pub(crate) sending: Sending,
    pub(crate) audit: OnceLock<AuditLog>,
    /// Why it is not ready, as it was logged last.
    unready: Mutex<Option<String>>,
    pub(crate) run: Run,
}

impl Endpoint {
    /// An endpoint that asks the server through `client`, at the first request.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn new(client: Client, options: Options) -> Self {
        let factory = SharedInformerFactory::builder(client).build();
        factory.start();
        Self::over(factory, options)
    }

    /// An endpoint over the informers of a program's own factory. Those of the type
    /// [`Object`](crate::Object) in the scope of [`Options::namespace`] are shared; what else is
    /// asked for is added to the factory, and only that is stopped when it is idle.
    /// [`shutdown`](Self::shutdown) shuts the factory down.
    #[must_use]
    pub fn over(factory: SharedInformerFactory, options: Options) -> Self {
        let client = factory.client().clone();
        let catalog = Arc::new(Catalog::new(client.clone(), &options));
        let collections = Arc::new(Collections::new(factory, Arc::clone(&catalog), &options));
        let stopping =
            Stopping { token: CancellationToken::new(), spread: options.shutdown_spread };
        let inner = Inner {
            catalog,
            documents: Documents::new(client.clone()),
            metrics: Metrics::new(Arc::clone(&collections)),
            pages: Pages::new(options.kept_snapshots, options.snapshot_lifetime),
            reviews: Arc::new(Reviews::new(client.clone())),
            rights: Rights::new(client.clone()),
            is_warm: AtomicBool::new(options.cache.is_empty()),
            forwarder: Forwarder::new(options.max_forwarded, stopping.token.clone()),
            per_user: PerUser::new(options.max_watches_per_user),
            sending: Sending::new(),
            audit: OnceLock::new(),
            unready: Mutex::default(),
            run: Run::new(),
            writes: Writes::new(Arc::clone(&collections)),
            client,
            collections,
            stopping,
            options,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Passes on what is not answered from the cache with the callers' own tokens, where access is
    /// controlled ([`serve_tls`](Self::serve_tls)). Without it such requests are refused. The first
    /// call counts.
    #[must_use]
    pub fn with_upstream(self, upstream: Upstream) -> Self {
        self.inner.forwarder.set_upstream(upstream);
        self
    }

    /// Writes a line for each answer that the API server does not see, and for each refusal: JSON,
    /// with the fields of an `Event` of `audit.k8s.io/v1`. When the writer is too slow, lines are
    /// dropped and counted in `serve_audit_lines_dropped`. The first call counts.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn with_audit_log(self, writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        drop(self.inner.audit.set(AuditLog::start(writer)));
        self
    }

    /// The routes, to serve them in a program of your own; [`warm`](Self::warm) is left to call at
    /// the start, and [`sweep`](Self::sweep) every few seconds. Whoever reaches them reads what the
    /// endpoint's account may read: serve them on loopback, or behind access control of your own.
    pub fn router(&self) -> Router {
        self.routes(Access::Own)
    }

    /// Serves until `stop` resolves; then ends watches one after the other, lets other requests
    /// end, and stops all informers.
    ///
    /// At most [`Options::max_connections`] are served at a time. One that does not send the whole
    /// head of a request within 30 s is closed, as is one that reads nothing for 30 s of what is
    /// sent; an HTTP/2 stream that the client makes no room for during 30 s is reset. An HTTP/2
    /// connection without a stream for 90 s is closed, an HTTP/1.1 connection without a request
    /// after 30 s. On an address that is not loopback everything but the health paths is refused, unless
    /// [`Options::unprotected_api`] is set; see [`serve_tls`](Self::serve_tls).
    ///
    /// # Cancel safety
    /// Dropping the future stops serving; the informers stop with the last handle of the endpoint.
    pub async fn serve(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) {
        self.run(listener, None, stop).await;
    }

    /// As [`serve`](Self::serve), over TLS: HTTP/2 or HTTP/1.1, as the client prefers. Callers are
    /// known by a bearer token, or by a certificate of [`Tls::with_client_ca`], and read what the
    /// API server allows them, on loopback too; unless [`Options::unprotected_api`] is set.
    ///
    /// The account of the endpoint's client must be allowed to create `tokenreviews` and
    /// `subjectaccessreviews`, as the ClusterRole `system:auth-delegator` allows it. Answers are
    /// believed for 10 s. While the API server does not answer reviews, callers are answered 503
    /// after that; open watches go on for two to three minutes.
    ///
    /// # Cancel safety
    /// As that of [`serve`](Self::serve).
    pub async fn serve_tls(
        &self,
        listener: TcpListener,
        tls: Tls,
        stop: impl Future<Output = ()> + Send + 'static,
    ) {
        self.run(listener, Some(tls), stop).await;
    }

    async fn run(
        &self,
        listener: TcpListener,
        tls: Option<Tls>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) {
        let options = &self.inner.options;
        let is_exposed = !listener.local_addr().is_ok_and(|it| it.ip().is_loopback());
        let access = match &tls {
            _ if options.unprotected_api => Access::Own,
            Some(tls) => {
                let reviews = Arc::clone(&self.inner.reviews);
                Access::Controlled(Control::new(reviews, Some(tls.clone())))
            }
            None if is_exposed => Access::Refused,
            None => Access::Own,
        };
        let is_controlled = matches!(access, Access::Controlled(_));
        let token = self.inner.stopping.token.clone();
        let stopped = {
            let token = token.clone();
            async move {
                stop.await;
                token.cancel();
            }
        };
        let limits = Limits { connections: options.max_connections, ..Limits::default() };
        let acceptor = tls.as_ref().map(Tls::acceptor);
        let serving = listen::serve(listener, self.routes(access), acceptor, stopped, limits);
        let reloading = async {
            match &tls {
                Some(tls) => tls.reload(|result| self.certificate_changed(result)).await,
                None => std::future::pending().await,
            }
        };
        let deadline = async {
            token.cancelled().await;
            tokio::time::sleep(options.shutdown_spread + SHUTDOWN_DEADLINE).await;
        };
        let sweeping = async {
            if is_controlled {
                // Says what is missing before the first caller finds out.
                self.inner.reviews.try_out().await;
            }
            loop {
                // Again and again: what cannot be held now may be installed or allowed later.
                if let Err(message) = self.warm().await {
                    tracing::warn!("--cache: {message}");
                }
                let next = Instant::now() + WARM_INTERVAL;
                while Instant::now() < next {
                    let interval = SWEEP_INTERVAL.min(options.idle_timeout.max(MIN_SWEEP));
                    tokio::time::sleep(interval).await;
                    self.sweep().await;
                }
            }
        };
        tokio::select! {
            () = serving => {}
            () = deadline => {}
            () = sweeping => {}
            () = reloading => {}
        }
        self.shutdown().await;
    }

    /// Starts to hold what [`Options::cache`] names; [`serve`](Self::serve) does it by itself.
    ///
    /// Reviews first whether the account of the endpoint's client may list and watch it. A missing
    /// right is logged with the rule to add. While one was never there, and before the first call,
    /// the endpoint is not ready.
    ///
    /// # Errors
    /// What cannot be held, and why, in words; the rest is held.
    ///
    /// # Cancel safety
    /// What was started goes on.
    pub async fn warm(&self) -> Result<(), String> {
        let Inner { catalog, collections, options, rights, .. } = &*self.inner;
        let mut failed = Vec::new();
        for name in &options.cache {
            let started = async {
                let own = catalog.find_by_arg(name).await?;
                let info = catalog.info(&own).await?;
                rights.check(needed(collections, &own)).await;
                collections.acquire(&own, || described(&info), true).await
            };
            match started.await {
                Ok(Ok(_)) => {}
                Ok(Err(unheld)) => failed.push(format!("{name}: {unheld}")),
                Err(refusal) => failed.push(format!("{name}: {}", refusal.message)),
            }
        }
        self.inner.is_warm.store(true, Ordering::Release);
        if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
    }

    /// Lets go of the resources that nobody asked for long enough, of what does not fit into
    /// memory, and of old snapshots; asks for signs of life. [`serve`](Self::serve) does it by
    /// itself.
    ///
    /// # Cancel safety
    /// What was told to stop stops; dropping the future only ends the wait.
    pub async fn sweep(&self) {
        let now = Instant::now();
        self.inner.pages.sweep(now.into_std());
        let Inner { collections, rights, .. } = &*self.inner;
        collections.sweep(now).await;
        let mut asked_for = collections.refused().await;
        asked_for.extend(collections.now().iter().map(|it| it.own.clone()));
        asked_for.extend(collections.extensions.needed());
        rights.check(asked_for.iter().flat_map(|it| needed(collections, it))).await;
    }

    /// Ends open watches and stops all informers.
    ///
    /// # Cancel safety
    /// Everything is told to stop at the first poll; dropping the future only ends the wait.
    pub async fn shutdown(&self) {
        self.inner.stopping.token.cancel();
        self.inner.collections.shutdown().await;
    }

    /// The status of every informer.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        self.inner.collections.factory().statuses()
    }

    /// Adds what `/metrics` shows to a registry of your own.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.inner.register(registry);
    }

    fn certificate_changed(&self, result: &Result<(), TlsError>) {
        self.inner.metrics.certificate_read(result.is_ok());
        match result {
            Ok(()) => {
                tracing::info!("the certificate has changed: new connections get the new one")
            }
            Err(error) => tracing::warn!("the old certificate stays in use: {error}"),
        }
    }

    pub(crate) fn routes(&self, access: Access) -> Router {
        if matches!(access, Access::Controlled(_)) {
            self.inner.collections.extensions.set_controlled();
        }
        let answer = |State(endpoint): State<Self>, request: Request| async move {
            api::answer(&endpoint, request).await
        };
        let own = Router::new()
            .route("/livez", get(|| async { "ok\n" }))
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(ready))
            .route("/metrics", get(show_metrics))
            .merge(status_page::router());
        let mut router = gateway::router(own);
        for segment in ["api", "apis", "openapi", "version"] {
            router = router
                .route(&format!("/{segment}"), any(answer))
                .route(&format!("/{segment}/"), any(answer))
                .route(&format!("/{segment}/{{*rest}}"), any(answer));
        }
        let guarded = Guarded { endpoint: self.clone(), access };
        router.layer(middleware::from_fn_with_state(guarded, guard::guard)).with_state(self.clone())
    }
}

impl Inner {
    /// Logs why it is not ready, once for each reason: where access is controlled, nobody else is
    /// told.
    fn warn_of_unready(&self, message: &str) {
        let mut unready = self.unready.lock().unwrap_or_else(PoisonError::into_inner);
        if unready.as_deref() != Some(message) {
            tracing::warn!("not ready: {message}");
            *unready = Some(message.to_owned());
        }
    }

    /// Adds all metrics to a registry.
    fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        self.forwarder.register(registry);
        self.per_user.register(registry);
        self.sending.register(registry);
        self.rights.register(registry);
        if let Some(audit) = self.audit.get() {
            audit.register(registry);
        }
    }
}

async fn ready(State(endpoint): State<Endpoint>) -> Response {
    let Inner { catalog, collections, stopping, reviews, rights, is_warm, .. } = &*endpoint.inner;
    let not_held = || {
        if !is_warm.load(Ordering::Acquire) {
            return Some("what --cache names is not held yet".to_owned());
        }
        let eager: Vec<_> = collections.now().into_iter().filter(|it| it.is_eager).collect();
        let mut needed = eager.iter().map(|it| Right::to_hold(&it.own, collections.namespace()));
        let missing = needed.find_map(|it| rights.never_granted(&it));
        let mut unsynced = eager.iter().filter(|it| !it.informer.has_synced());
        missing.or_else(|| unsynced.next().map(|it| format!("{}: no list yet", it.own)))
    };
    let ready = match catalog.check().await {
        Err(refusal) => Err(refusal.message),
        Ok(()) if stopping.token.is_cancelled() => Err("stopping".to_owned()),
        Ok(()) => match reviews.missing_right().await {
            Some(message) => Err(message),
            None => not_held().map_or(Ok(()), Err),
        },
    };
    match ready {
        Ok(()) => {
            *endpoint.inner.unready.lock().unwrap_or_else(PoisonError::into_inner) = None;
            "ok\n".into_response()
        }
        Err(message) => {
            endpoint.inner.warn_of_unready(&message);
            (StatusCode::SERVICE_UNAVAILABLE, format!("{message}\n")).into_response()
        }
    }
}

/// What the endpoint's account must be allowed so that a resource can be held.
fn needed(collections: &Collections, resource: &Resource) -> impl Iterator<Item = Right> {
    let held = Right::to_hold(resource, collections.namespace());
    held.into_iter().chain(Right::to_describe(resource))
}

async fn show_metrics(State(endpoint): State<Endpoint>) -> Response {
    let mut registry = Registry::default();
    endpoint.inner.register(&mut registry);
    match metrics::encode(&registry) {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

/// Whether a server that listens there can be reached from other machines.
#[must_use]
pub fn is_exposed(address: IpAddr) -> bool {
    !address.is_loopback()
}
