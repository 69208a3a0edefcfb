//! One test body, two arms: the testkit, and a real etcd and kube-apiserver.
//!
//! ```no_run
//! # use informer_tests::on_both_arms;
//! on_both_arms!(a_pod_can_be_created, |arm| async {
//!     let namespace = arm.namespace("create").await?;
//!     let client = arm.client().await?;
//!     // …
//!     Ok(())
//! });
//! ```
//!
//! makes two tests, `a_pod_can_be_created::testkit` and `a_pod_can_be_created::real`. Bodies tell
//! the arms apart only where the servers differ by nature.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use http::Uri;
use informer_testkit::{Checkpoint, Cluster, ClusterOptions, TestServer, Verb};
use kube::Client;
use kube::config::Kubeconfig;
use serde_json::json;
use tempfile::TempDir;

use crate::fixtures::create_namespace;
use crate::proxy::Proxy;
use crate::real::{RealCluster, client_of};
use crate::recorder::Recorder;
use crate::throttle::Throttled;

/// Makes a test of a body for each arm, on a multi-threaded runtime.
///
/// The body is `|arm| async { … }` with an [`Arm`] and the result `anyhow::Result<()>`. On the real
/// arm all tests of a process share one cluster: a body works in namespaces of its own
/// ([`Arm::namespace`]). A body that ends the server or its history begins with `own`, as in
/// `on_both_arms!(own name, |arm| async { … })`, and gets a cluster for itself. One that begins
/// with `flavours` runs on a `current_thread` runtime too, as two more tests of the same name in
/// `one_thread`.
#[macro_export]
macro_rules! on_both_arms {
    (own $name:ident, |$arm:ident| async $body:block) => {
        $crate::on_both_arms!(@ $name, $arm, $body, Own);
    };
    (flavours $name:ident, |$arm:ident| async $body:block) => {
        $crate::on_both_arms!(@ $name, $arm, $body, Shared, mod one_thread {
            #[::tokio::test(flavor = "current_thread")]
            async fn testkit() -> ::anyhow::Result<()> {
                super::super::$name($crate::harness::Arm::testkit().await?).await
            }

            #[::tokio::test(flavor = "current_thread")]
            async fn real() -> ::anyhow::Result<()> {
                match $crate::harness::Arm::real($crate::harness::Sharing::Shared).await? {
                    Some(arm) => super::super::$name(arm).await,
                    None => Ok(()),
                }
            }
        });
    };
    ($name:ident, |$arm:ident| async $body:block) => {
        $crate::on_both_arms!(@ $name, $arm, $body, Shared);
    };
    (@ $name:ident, $arm:ident, $body:block, $sharing:ident $(, $more:item)?) => {
        async fn $name($arm: $crate::harness::Arm) -> ::anyhow::Result<()> $body

        mod $name {
            #[::tokio::test(flavor = "multi_thread")]
            async fn testkit() -> ::anyhow::Result<()> {
                super::$name($crate::harness::Arm::testkit().await?).await
            }

            #[::tokio::test(flavor = "multi_thread")]
            async fn real() -> ::anyhow::Result<()> {
                match $crate::harness::Arm::real($crate::harness::Sharing::$sharing).await? {
                    Some(arm) => super::$name(arm).await,
                    None => Ok(()),
                }
            }

            $($more)?
        }
    };
}

/// Whether a test of the real arm has the cluster for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One cluster for all tests of the process.
    Shared,
    /// A cluster of its own, three seconds more.
    Own,
}

/// A server to test against, behind a [`Proxy`] that can break what passes through it.
pub struct Arm {
    server: Server,
    proxy: Proxy,
    folder: TempDir,
    direct: Client,
}

impl Arm {
    /// An arm on a test server of its own, which refuses objects in namespaces that do not exist,
    /// as the real one does. Its users `admin`, `viewer` and `nobody` have the rights they have
    /// there, but `viewer` may read everything.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub async fn testkit() -> anyhow::Result<Self> {
        let options = ClusterOptions { strict_namespaces: true, ..ClusterOptions::default() };
        let server = TestServer::builder().cluster(Cluster::with_options(&options)).start().await?;
        for user in USERS {
            server.auth().add_token(&token(user), user);
        }
        server.auth().deny_all("nobody", "*");
        for verb in [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection]
        {
            server.auth().deny("viewer", verb, "*");
        }
        let kubeconfig = testkit_kubeconfig(&server.url());
        let direct = server.client_for(&token("admin"))?;
        Self::new(Server::Testkit(server), &kubeconfig, direct).await
    }

    /// An arm on the real cluster, or `None` where it is skipped, see [`RealCluster::start`].
    ///
    /// # Errors
    ///
    /// When the cluster does not start.
    pub async fn real(sharing: Sharing) -> anyhow::Result<Option<Self>> {
        let cluster = match sharing {
            Sharing::Shared => RealCluster::shared().await?,
            Sharing::Own => RealCluster::start().await?.map(Arc::new),
        };
        let Some(cluster) = cluster else { return Ok(None) };
        let kubeconfig = std::fs::read_to_string(cluster.kubeconfig_path())?;
        let direct = cluster.client().await?;
        Self::new(Server::Real { cluster, sharing }, &kubeconfig, direct).await.map(Some)
    }

    /// `testkit` or `real`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.server {
            Server::Testkit(_) => "testkit",
            Server::Real { .. } => "real",
        }
    }

    /// The test server, on that arm: its faults, its requests.
    #[must_use]
    pub fn test_server(&self) -> Option<&TestServer> {
        match &self.server {
            Server::Testkit(server) => Some(server),
            Server::Real { .. } => None,
        }
    }

    /// The real cluster, on that arm.
    #[must_use]
    pub fn real_cluster(&self) -> Option<&RealCluster> {
        match &self.server {
            Server::Testkit(_) => None,
            Server::Real { cluster, .. } => Some(cluster),
        }
    }

    /// A new client, with connections of its own through the proxy: the one for informers.
    ///
    /// # Errors
    ///
    /// When the kubeconfig does not fit, which would be a fault of this harness.
    pub async fn client(&self) -> anyhow::Result<Client> {
        client_of(&self.kubeconfig(), None).await
    }

    /// As [`client`](Self::client), for a user: see [`real`](crate::real).
    ///
    /// # Errors
    ///
    /// For a user that does not exist on this arm.
    pub async fn client_as(&self, user: &str) -> anyhow::Result<Client> {
        client_of(&self.kubeconfig(), Some(user)).await
    }

    /// As [`client`](Self::client), with the recorder of what it asks.
    ///
    /// # Errors
    ///
    /// As `client`.
    pub async fn recorded_client(&self) -> anyhow::Result<(Client, Recorder)> {
        Ok(Recorder::around(self.client().await?))
    }

    /// A client that goes around the proxy: the one that changes objects, also during an outage,
    /// and that asks what is true.
    #[must_use]
    pub fn direct(&self) -> &Client {
        &self.direct
    }

    /// A kubeconfig whose server is the proxy.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// A folder of this test, removed when the arm is dropped.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What stands between [`client`](Self::client) and the server.
    #[must_use]
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Creates a namespace that no other test of this process uses, and returns its name, which
    /// begins with `prefix`.
    ///
    /// # Errors
    ///
    /// When the server refuses.
    pub async fn namespace(&self, prefix: &str) -> anyhow::Result<String> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let name = format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        create_namespace(&self.direct, &name).await?;
        Ok(name)
    }

    /// Breaks every connection through the proxy, watches among them, in whatever they were doing.
    /// New ones are welcome.
    ///
    /// As after any break, the next request of a client may still take a dead connection from its
    /// pool and fail; this holds for [`end_outage`](Self::end_outage), [`compact`](Self::compact)
    /// and [`start_server`](Self::start_server) too. Try it again, for example with
    /// [`eventually_ok`](crate::helpers::eventually_ok).
    pub async fn cut_watches(&self) {
        self.proxy.cut().await;
    }

    /// From now on connections through the proxy are refused; open ones break. The server lives on,
    /// and [`direct`](Self::direct) reaches it.
    pub async fn begin_outage(&self) {
        self.proxy.refuse().await;
    }

    /// Ends [`begin_outage`](Self::begin_outage).
    pub async fn end_outage(&self) {
        self.proxy.accept().await;
    }

    /// Makes the server forget its history: a watch from any version before the current one is
    /// answered with 410 from now on. Open watches break. Needs a cluster of its own.
    ///
    /// On the real arm this restarts the API server, since etcd alone forgets in vain; see
    /// [`RealCluster::forget_history`].
    ///
    /// # Errors
    ///
    /// On a shared cluster, or when the server fails.
    pub async fn compact(&self) -> anyhow::Result<()> {
        match &self.server {
            Server::Testkit(server) => {
                server.cluster().compact();
                self.proxy.cut().await;
                Ok(())
            }
            Server::Real { .. } => self.own_cluster()?.forget_history().await,
        }
    }

    /// Kills the server: nobody reaches it, around the proxy neither. Needs a cluster of its own.
    ///
    /// # Errors
    ///
    /// On a shared cluster.
    pub async fn kill_server(&self) -> anyhow::Result<()> {
        match &self.server {
            Server::Testkit(server) => {
                server.faults().refuse_connections();
                server.faults().reset_connections();
                Ok(())
            }
            Server::Real { .. } => self.own_cluster()?.kill_apiserver().await,
        }
    }

    /// Starts the server again, with the objects and the address it had.
    ///
    /// # Errors
    ///
    /// On a shared cluster, or when it does not start.
    pub async fn start_server(&self) -> anyhow::Result<()> {
        match &self.server {
            Server::Testkit(server) => {
                server.faults().accept_connections();
                Ok(())
            }
            Server::Real { .. } => self.own_cluster()?.start_apiserver().await,
        }
    }

    /// Keeps what the server holds now, for [`restore`](Self::restore); on the real arm in place of
    /// what was kept before. Needs a cluster of its own.
    ///
    /// # Errors
    ///
    /// On a shared cluster, or when the copy fails.
    pub async fn save(&self) -> anyhow::Result<Saved> {
        match &self.server {
            Server::Testkit(server) => Ok(Saved(Some(server.cluster().checkpoint()))),
            Server::Real { .. } => self.own_cluster()?.save().await.map(|()| Saved(None)),
        }
    }

    /// Puts the server back to what was [saved](Self::save), as one restores a backup of etcd: what
    /// was written since is gone, and versions go back. Open watches break. Needs a cluster of its
    /// own.
    ///
    /// # Errors
    ///
    /// As [`start_server`](Self::start_server).
    pub async fn restore(&self, saved: &Saved) -> anyhow::Result<()> {
        match &self.server {
            Server::Testkit(server) => {
                server.cluster().restore(saved.0.as_ref().context("it is of the other arm")?);
                self.proxy.cut().await;
                Ok(())
            }
            Server::Real { .. } => self.own_cluster()?.restore().await,
        }
    }

    /// From now on requests of this user are answered with 401, as if its token had expired. The
    /// real API server restarts for it; open watches break. Needs a cluster of its own.
    ///
    /// # Errors
    ///
    /// On a shared cluster, or when the server does not start.
    pub async fn revoke(&self, user: &str) -> anyhow::Result<()> {
        match &self.server {
            Server::Testkit(server) => {
                server.auth().revoke_token(&token(user));
                self.proxy.cut().await;
                Ok(())
            }
            Server::Real { .. } => self.own_cluster()?.revoke(user).await,
        }
    }

    /// Ends [`revoke`](Self::revoke).
    ///
    /// # Errors
    ///
    /// As `revoke`.
    pub async fn grant(&self, user: &str) -> anyhow::Result<()> {
        match &self.server {
            Server::Testkit(server) => {
                server.auth().add_token(&token(user), user);
                Ok(())
            }
            Server::Real { .. } => self.own_cluster()?.grant(user).await,
        }
    }

    /// From now on the server has too much to do for this user: requests are answered with 429, by
    /// API priority and fairness on the real arm. Open watches go on.
    ///
    /// # Errors
    ///
    /// When the server refuses, or goes on to serve the user for half a minute.
    pub async fn throttle(&self, user: &str) -> anyhow::Result<Throttled> {
        Throttled::begin(self, user).await
    }

    async fn new(server: Server, kubeconfig: &str, direct: Client) -> anyhow::Result<Self> {
        let url = server_url(kubeconfig)?;
        let proxy = Proxy::start(address(&url)?).await?;
        let folder = tempfile::tempdir()?;
        let scheme = if url.starts_with("https:") { "https" } else { "http" };
        let through = kubeconfig.replace(&url, &format!("{scheme}://{}", proxy.address()));
        std::fs::write(folder.path().join("kubeconfig"), through)?;
        Ok(Self { server, proxy, folder, direct })
    }

    fn own_cluster(&self) -> anyhow::Result<&RealCluster> {
        match &self.server {
            Server::Real { cluster, sharing: Sharing::Own } => Ok(cluster),
            _ => bail!("other tests use this cluster: begin with `own` in on_both_arms!"),
        }
    }
}

/// What a server held, see [`Arm::save`].
pub struct Saved(Option<Checkpoint>);

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saved").finish_non_exhaustive()
    }
}

impl fmt::Debug for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arm")
            .field("name", &self.name())
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

enum Server {
    Testkit(TestServer),
    Real { cluster: Arc<RealCluster>, sharing: Sharing },
}

const USERS: [&str; 3] = ["admin", "viewer", "nobody"];

fn token(user: &str) -> String {
    format!("token-of-{user}")
}

/// The same contexts as the real cluster's.
fn testkit_kubeconfig(url: &str) -> String {
    let users = USERS.map(|user| json!({ "name": user, "user": { "token": token(user) } }));
    let contexts = USERS.map(|user| {
        json!({ "name": user, "context": { "cluster": "testkit", "user": user, "namespace": "default" } })
    });
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "admin",
        "clusters": [{ "name": "testkit", "cluster": { "server": url } }],
        "users": users,
        "contexts": contexts,
    })
    .to_string()
}

fn server_url(kubeconfig: &str) -> anyhow::Result<String> {
    let parsed = Kubeconfig::from_yaml(kubeconfig)?;
    let cluster = parsed.clusters.into_iter().next().and_then(|named| named.cluster);
    cluster.and_then(|cluster| cluster.server).context("a kubeconfig without a server")
}

fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let uri: Uri = url.parse()?;
    let authority = uri.authority().with_context(|| format!("{url} has no host"))?;
    authority.as_str().parse().with_context(|| format!("{url} is not an address and a port"))
}
