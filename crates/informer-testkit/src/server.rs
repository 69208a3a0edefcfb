//! A cluster behind a real TCP socket.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

mod listen;
mod service;
mod websocket;
mod write;

pub use service::{ApiService, ConnectionError};

use crate::auth::Auth;
use crate::cluster::Cluster;
use crate::faults::Faults;
use crate::pages::Pages;
use crate::requests::{RequestLog, Requests};
use k8s_serve::{ProtobufSupport, ReadOptions, ReadSide, WatchListSupport};

/// An API server on a loopback port, over a [`Cluster`]. Dropping it ends everything it started.
///
/// It speaks HTTP/1.1 without TLS, watches over WebSocket, and JSON or Kubernetes' protobuf as
/// `Accept` asks for, with the same bytes as a kube-apiserver: built-in kinds, the metadata of all
/// kinds, tables, discovery, failures. Large answers are compressed on request. It answers discovery (single documents and aggregated), `get`, `list`, `watch`, `create`,
/// `update`, `patch`, `delete` and `deletecollection` as a kube-apiserver 1.36 does, with the same
/// codes, reasons and messages, for all built-in resources and for custom ones.
///
/// # Simplifications
/// Those of [`Cluster`], and: bodies of writes are JSON alone; no YAML or CBOR; what is missing in
/// an object that was written as JSON is not filled in with defaults, but with zeros in protobuf;
/// strategic merge patches and server-side apply are read as merge patches (apply creates what is
/// missing, and takes JSON only); no subresource but `status`.
///
/// # Examples
/// ```
/// use informer_testkit::{TestServer, Verb};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = TestServer::start().await?;
/// for n in 0..10 {
///     server.cluster().create(&serde_json::json!({
///         "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("web-{n}")},
///     }))?;
/// }
///
/// let client = server.client()?;
/// let request = http::Request::get("/api/v1/pods?limit=3").body(Vec::new())?;
/// let list: serde_json::Value = client.request(request).await?;
/// assert_eq!(list["items"].as_array().map(Vec::len), Some(3));
/// assert_eq!(server.requests().verb(Verb::List).resource("pods").len(), 1);
///
/// server.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct TestServer {
    core: Arc<Core>,
    address: SocketAddr,
    tracker: TaskTracker,
    cancel: CancellationToken,
    _end: DropGuard,
}

/// What is shared by all connections of a server.
pub(crate) struct Core {
    pub(crate) read: ReadSide<Cluster>,
    pub(crate) faults: Faults,
    pub(crate) auth: Auth,
    pub(crate) requests: RequestLog,
    pub(crate) pages: Pages,
}

/// How a [`TestServer`] shall be; from [`TestServer::builder`].
#[derive(Debug, Clone)]
pub struct TestServerBuilder {
    cluster: Option<Cluster>,
    port: u16,
    options: ReadOptions,
}

/// A [`TestServer`] could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot listen on port {port} of 127.0.0.1: {reason}")]
pub struct StartError {
    port: u16,
    reason: String,
}

impl TestServer {
    /// Starts a server with an empty cluster on a free port.
    ///
    /// # Errors
    /// If no socket can be opened.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready starts nothing.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// A server that is not as usual.
    #[must_use]
    pub fn builder() -> TestServerBuilder {
        TestServerBuilder { cluster: None, port: 0, options: ReadOptions::default() }
    }

    /// The base URL, for example `http://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of the socket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig for this server, as YAML.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_with("{}")
    }

    /// A kubeconfig with a bearer token, as YAML; see [`Auth::add_token`].
    #[must_use]
    pub fn kubeconfig_for(&self, token: &str) -> String {
        self.kubeconfig_with(&format!("{{token: {}}}", crate::json::quoted(token)))
    }

    /// A kube client for this server. Like every client made from a `kube::Config`, it tries again
    /// by itself on 429, 503 and 504, up to 15 times; to see these, make one over
    /// [`service`](Self::service).
    ///
    /// # Errors
    /// If kube cannot make one.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn client(&self) -> Result<kube::Client, kube::Error> {
        kube::Client::try_from(self.config())
    }

    /// A kube client with a bearer token; see [`Auth::add_token`].
    ///
    /// # Errors
    /// If kube cannot make one.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn client_for(&self, token: &str) -> Result<kube::Client, kube::Error> {
        let mut config = self.config();
        config.auth_info = serde_json::from_value(serde_json::json!({ "token": token }))
            .map_err(kube::Error::SerdeError)?;
        kube::Client::try_from(config)
    }

    /// The objects, for writes from within the process.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        self.core.read.backend()
    }

    /// The faults.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.core.faults
    }

    /// Users and what they may do.
    #[must_use]
    pub fn auth(&self) -> &Auth {
        &self.core.auth
    }

    /// The requests that have arrived so far, those of [`service`](Self::service) included. The
    /// last 100,000 are kept.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.core.requests.all()
    }

    /// Forgets the requests that have arrived so far.
    pub fn clear_requests(&self) {
        self.core.requests.clear();
    }

    /// The server as a `tower::Service`, without a socket: for tests with a paused clock.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = informer_testkit::TestServer::start().await?;
    /// let client = kube::Client::new(server.service(), "default");
    /// assert!(client.apiserver_version().await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn service(&self) -> ApiService {
        ApiService::new(Arc::clone(&self.core))
    }

    /// Ends the server: all connections are closed, all tasks have ended, the port is free. The
    /// [`Cluster`] stays, and another server can take it over.
    ///
    /// # Cancel safety
    /// Dropping the future ends the server, too; only nobody waits for it.
    pub async fn shutdown(self) {
        self.cancel.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    fn config(&self) -> kube::Config {
        // The address is a valid authority.
        kube::Config::new(self.url().parse().unwrap_or_default())
    }

    fn kubeconfig_with(&self, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: testkit\nclusters:\n- name: testkit\n  cluster: {{server: \
             \"{}\"}}\nusers:\n- name: testkit\n  user: {user}\ncontexts:\n- name: testkit\n  context: {{cluster: \
             testkit, user: testkit, namespace: default}}\n",
            self.url()
        )
    }
}

impl TestServerBuilder {
    /// Serves a cluster that is there already. Default: a new one.
    #[must_use]
    pub fn cluster(mut self, cluster: Cluster) -> Self {
        self.cluster = Some(cluster);
        self
    }

    /// Listens on a certain port. Default: one that is free.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Changes how reads are answered.
    #[must_use]
    pub fn read_options(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self
    }

    /// Sends bookmarks more or less often. Default: every 60 s.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: std::time::Duration) -> Self {
        self.options.bookmark_interval = interval;
        self
    }

    /// Refuses `sendInitialEvents`, as an older server does.
    #[must_use]
    pub fn disable_watch_list(mut self) -> Self {
        self.options.watch_list = WatchListSupport::Refused;
        self
    }

    /// Does not serve protobuf, as an extension server may not. Default: it does.
    #[must_use]
    pub fn protobuf(mut self, support: ProtobufSupport) -> Self {
        self.options.protobuf = support;
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    /// If no socket can be opened.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready starts nothing.
    #[expect(
        clippy::unused_async,
        reason = "a server elsewhere than in this process would have to wait"
    )]
    pub async fn start(self) -> Result<TestServer, StartError> {
        let core = Arc::new(Core {
            read: ReadSide::new(self.cluster.unwrap_or_default(), self.options),
            faults: Faults::new(),
            auth: Auth::default(),
            requests: RequestLog::default(),
            pages: Pages::default(),
        });
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let failed =
            |error: std::io::Error| StartError { port: self.port, reason: error.to_string() };
        let listener = listen::Listener::bind(wanted).map_err(failed)?;
        let address = listener.address();
        let (tracker, cancel) = (TaskTracker::new(), CancellationToken::new());
        tracker.spawn(listen::run(listener, Arc::clone(&core), tracker.clone(), cancel.clone()));
        Ok(TestServer { core, address, tracker, _end: cancel.clone().drop_guard(), cancel })
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("address", &self.address).finish_non_exhaustive()
    }
}
