//! A real etcd and kube-apiserver, started for a test and ended with it.
//!
//! The processes belong to `tests/real-cluster/cluster run`, a script that takes its orders on
//! stdin and ends them all, and their folder, when stdin closes: whatever kills the test process,
//! nothing stays behind.
//!
//! Four users exist: `admin` may do everything, `viewer` may get, list and watch Pods in namespace
//! `default`, `nobody` may do nothing, and neither may `certified`, who has a client certificate
//! and is in group `team`. No controllers, scheduler or kubelet run: what a Deployment
//! would create, the test creates, and it writes status itself.
//!
//! What to know of its history: the API server answers watches from a cache that starts anew with
//! it. So an etcd compaction alone expires no watch, and after a restart a watch from an old
//! version is Expired whether etcd was compacted or not. [`RealCluster::forget_history`] makes sure
//! of it.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, Once, PoisonError};

use anyhow::{Context, bail, ensure};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// Set to `1`, this environment variable turns the real arm on.
pub const SWITCH: &str = "INFORMER_REAL_CLUSTER";

/// A running etcd and kube-apiserver of our own.
///
/// Dropping it ends the processes and removes their folder.
pub struct RealCluster {
    folder: PathBuf,
    url: String,
    etcd_url: String,
    supervisor: Arc<Mutex<Supervisor>>,
}

impl RealCluster {
    /// Starts a cluster, or says once on stderr that the real arm is skipped and returns `None`
    /// unless the environment says `INFORMER_REAL_CLUSTER=1`. Takes about three seconds, and five
    /// minutes more where the binaries have to be built first.
    ///
    /// # Errors
    ///
    /// When the binaries cannot be built, or the servers do not become ready.
    ///
    /// # Cancel safety
    ///
    /// A cluster that started for nobody ends by itself.
    pub async fn start() -> anyhow::Result<Option<Self>> {
        if !Self::enabled() {
            say_skipped();
            return Ok(None);
        }
        Self::start_always().await.map(Some)
    }

    /// Starts a cluster whatever the environment says: for programs whose only purpose needs one.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    ///
    /// As for [`start`](Self::start).
    pub async fn start_always() -> anyhow::Result<Self> {
        spawn_blocking(Self::start_blocking).await?
    }

    /// The cluster that all tests of this process share, started by the first one that asks; `None`
    /// as for [`start`](Self::start). Tests keep to namespaces of their own there, and leave the
    /// API server running.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start); the next caller tries again.
    pub async fn shared() -> anyhow::Result<Option<Arc<Self>>> {
        static SHARED: OnceCell<Arc<RealCluster>> = OnceCell::const_new();
        if !Self::enabled() {
            say_skipped();
            return Ok(None);
        }
        let start = || async { anyhow::Ok(Arc::new(spawn_blocking(Self::start_blocking).await??)) };
        Ok(Some(Arc::clone(SHARED.get_or_try_init(start).await?)))
    }

    /// Whether the environment turns the real arm on.
    #[must_use]
    pub fn enabled() -> bool {
        std::env::var(SWITCH).is_ok_and(|value| value == "1")
    }

    /// The kubeconfig, with contexts `admin` (the current one), `viewer`, `nobody` and `certified`.
    #[must_use]
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Where the API server listens: `https://127.0.0.1:PORT`, the same after every restart.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The certificate and the private key of the API server, which are good for `127.0.0.1`.
    #[must_use]
    pub fn server_certificate(&self) -> (PathBuf, PathBuf) {
        let certificates = self.folder.join("certs");
        (certificates.join("apiserver.crt"), certificates.join("apiserver.key"))
    }

    /// The authority of the client certificates.
    #[must_use]
    pub fn client_ca(&self) -> PathBuf {
        self.folder.join("client-ca.crt")
    }

    /// Where etcd listens, for whoever writes past the API server: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn etcd_url(&self) -> &str {
        &self.etcd_url
    }

    /// A client of the user `admin`.
    ///
    /// # Errors
    ///
    /// As [`client_as`](Self::client_as).
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        self.client_as("admin").await
    }

    /// A client of one of the users.
    ///
    /// # Errors
    ///
    /// For a user that does not exist.
    pub async fn client_as(&self, user: &str) -> anyhow::Result<kube::Client> {
        client_of(&self.kubeconfig_path(), Some(user)).await
    }

    /// Kills the API server (`SIGKILL`) and returns once it is gone. Does nothing to a dead one.
    ///
    /// # Errors
    ///
    /// When the supervising process is gone.
    ///
    /// # Cancel safety
    ///
    /// The order is carried out even if nobody waits for it; the next one waits its turn. This
    /// holds for every order.
    pub async fn kill_apiserver(&self) -> anyhow::Result<()> {
        self.order("kill").await.map(drop)
    }

    /// Asks the API server to end (`SIGTERM`) and returns once it is gone, killed after five
    /// seconds.
    ///
    /// # Errors
    ///
    /// When the supervising process is gone.
    pub async fn stop_apiserver(&self) -> anyhow::Result<()> {
        self.order("stop").await.map(drop)
    }

    /// Starts the API server on its old port and returns once it is ready, after about two seconds.
    /// Does nothing to a running one.
    ///
    /// # Errors
    ///
    /// When it does not become ready; the last lines of its log are in the text.
    pub async fn start_apiserver(&self) -> anyhow::Result<()> {
        self.order("start").await.map(drop)
    }

    /// Kills the API server and starts it again.
    ///
    /// # Errors
    ///
    /// As [`start_apiserver`](Self::start_apiserver).
    pub async fn restart_apiserver(&self) -> anyhow::Result<()> {
        self.kill_apiserver().await?;
        self.start_apiserver().await
    }

    /// Compacts etcd at its current revision, which is returned. Open and new watches go on: the
    /// API server answers them from its cache.
    ///
    /// # Errors
    ///
    /// When etcd refuses.
    pub async fn compact(&self) -> anyhow::Result<u64> {
        let revision = self.order("compact").await?;
        revision.parse().with_context(|| format!("etcd's revision {revision:?}"))
    }

    /// Compacts etcd and restarts the API server, so that watches from any version before the
    /// current one are answered with 410.
    ///
    /// # Errors
    ///
    /// As [`compact`](Self::compact) and [`start_apiserver`](Self::start_apiserver).
    pub async fn forget_history(&self) -> anyhow::Result<()> {
        self.compact().await?;
        self.restart_apiserver().await
    }

    /// Keeps a copy of what etcd holds now, in place of the one before.
    ///
    /// # Errors
    ///
    /// When the copy fails.
    pub async fn save(&self) -> anyhow::Result<()> {
        self.order("save").await.map(drop)
    }

    /// Puts etcd back to what was [saved](Self::save), as one restores a backup, and starts the API
    /// server on it: everything written since is gone, and versions go back. Returns once the
    /// server is ready.
    ///
    /// # Errors
    ///
    /// When nothing was saved, or the servers do not start.
    pub async fn restore(&self) -> anyhow::Result<()> {
        self.order("restore").await.map(drop)
    }

    /// Takes a user's token back: from now on it is answered with 401. Restarts the API server.
    ///
    /// # Errors
    ///
    /// As [`start_apiserver`](Self::start_apiserver).
    pub async fn revoke(&self, user: &str) -> anyhow::Result<()> {
        self.order(&format!("revoke {user}")).await.map(drop)
    }

    /// Makes a [revoked](Self::revoke) token good again. Restarts the API server.
    ///
    /// # Errors
    ///
    /// For a user that never was, and as [`start_apiserver`](Self::start_apiserver).
    pub async fn grant(&self, user: &str) -> anyhow::Result<()> {
        self.order(&format!("grant {user}")).await.map(drop)
    }

    /// Runs the kubectl of the cluster's version as `admin` and returns what it prints.
    ///
    /// # Errors
    ///
    /// When kubectl fails, with what it says.
    pub async fn kubectl<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> anyhow::Result<String> {
        let mut command = Command::new(kubectl_path()?);
        command
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.kubeconfig_path())
            .arg("--cache-dir")
            .arg(self.folder.join("kubectl-cache"))
            .stdin(Stdio::null());
        let shown = format!("{command:?}");
        let output =
            spawn_blocking(move || command.output()).await?.context("kubectl does not run")?;
        ensure!(output.status.success(), "{shown}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    fn start_blocking() -> anyhow::Result<Self> {
        let status = script("build").stdin(Stdio::null()).status().context("bash does not run")?;
        ensure!(status.success(), "the real cluster's binaries cannot be built, see above");
        let supervisor = Supervisor::start()?;
        let folder = supervisor.folder.clone();
        let read =
            |name| std::fs::read_to_string(folder.join(name)).map(|text| text.trim().to_owned());
        let (url, etcd_url) = (read("url")?, read("etcd-url")?);
        Ok(Self { folder, url, etcd_url, supervisor: Arc::new(Mutex::new(supervisor)) })
    }

    async fn order(&self, order: &str) -> anyhow::Result<String> {
        let (supervisor, order) = (Arc::clone(&self.supervisor), order.to_owned());
        spawn_blocking(move || {
            let mut supervisor = supervisor.lock().unwrap_or_else(PoisonError::into_inner);
            supervisor.order(&order)
        })
        .await?
    }
}

impl fmt::Debug for RealCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealCluster")
            .field("url", &self.url)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// The program `kubectl` of the cluster's version.
///
/// # Errors
///
/// When bash does not run.
pub fn kubectl_path() -> anyhow::Result<PathBuf> {
    Ok(binaries()?.join("kubectl"))
}

/// A client from a kubeconfig file, with the current context or the named one.
///
/// # Errors
///
/// When the file cannot be read or does not have the context.
pub async fn client_of(kubeconfig: &Path, context: Option<&str>) -> anyhow::Result<kube::Client> {
    Ok(kube::Client::try_from(config_of(kubeconfig, context).await?)?)
}

/// What a client is made of, see [`client_of`].
///
/// # Errors
///
/// As `client_of`.
pub async fn config_of(kubeconfig: &Path, context: Option<&str>) -> anyhow::Result<kube::Config> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions {
        context: context.map(ToOwned::to_owned),
        ..KubeConfigOptions::default()
    };
    Ok(kube::Config::from_custom_kubeconfig(file, &options).await?)
}

/// `cluster run`, the process that owns the servers.
struct Supervisor {
    child: Child,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Supervisor {
    fn start() -> anyhow::Result<Self> {
        let mut child = script("run")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A ^C on the terminal is for the test process; this one ends when its stdin closes.
            .process_group(0)
            .spawn()
            .context("bash does not run")?;
        let answers = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut started = Self { child, answers, folder: PathBuf::new() };
        started.folder =
            PathBuf::from(started.answer("ready ").context("the real cluster does not start")?);
        Ok(started)
    }

    fn order(&mut self, order: &str) -> anyhow::Result<String> {
        let mut orders = self.child.stdin.as_ref().context("stdin is piped")?;
        writeln!(orders, "{order}").context("the real cluster's supervisor is gone")?;
        self.answer("ok").with_context(|| format!("the real cluster fails to {order}"))
    }

    fn answer(&mut self, expected: &str) -> anyhow::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        match line.trim_end().strip_prefix(expected) {
            Some(rest) => Ok(rest.trim().to_owned()),
            None if line.is_empty() => bail!("it ended, see stderr"),
            None => bail!("{}", line.trim_end()),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Closes stdin first, which ends it. An error would mean that it is not our child.
        drop(self.child.wait());
    }
}

fn script(verb: &str) -> Command {
    let mut command = Command::new("bash");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/real-cluster/cluster")).arg(verb);
    command
}

fn binaries() -> anyhow::Result<PathBuf> {
    let output = script("path").stdin(Stdio::null()).output().context("bash does not run")?;
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// Goes around the test harness's capture: a skipped test passes, and nobody would see it.
fn say_skipped() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let text =
            "real arm skipped: run `tests/real-cluster/cluster build` and set INFORMER_REAL_CLUSTER=1\n";
        // Without a stderr there is nobody to tell.
        drop(std::io::stderr().write_all(text.as_bytes()));
    });
}
