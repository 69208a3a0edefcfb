//! What both sides meet: one API server, and before it one proxy for each side.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use informer_tests::fixtures::create_namespace;
use informer_tests::proxy::Proxy;
use informer_tests::real::{RealCluster, config_of};
use informer_tests::reverse_proxy::{ReverseProxy, WatchFault};
use kube::Client;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::page::Versions;
use crate::peer::{HISTORY, Peer, Report};

/// How long something may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(300);

/// The API server, and how to start the two sides.
pub(crate) struct Stage {
    pub(crate) cluster: RealCluster,
    /// Goes around the proxies.
    pub(crate) direct: Client,
    pub(crate) versions: Versions,
    client_go: PathBuf,
    informer: PathBuf,
}

/// Something for each side.
#[derive(Debug)]
pub(crate) struct Pair<T> {
    pub(crate) client_go: T,
    pub(crate) informer: T,
}

impl Stage {
    /// Builds the peer and starts the API server.
    pub(crate) async fn start() -> Result<Self> {
        let client_go = build_client_go().await?;
        let cluster = RealCluster::start_always().await?;
        let direct = cluster.client().await?;
        let informer = std::env::current_exe()?;
        let server = direct.apiserver_version().await?.git_version;
        let mut stage =
            Self { cluster, direct, versions: Versions::default(), client_go, informer };
        let peers = stage
            .peers(Pair::both(stage.arguments(&stage.cluster.kubeconfig_path(), "default")?))
            .await?;
        let Pair { client_go, informer } = peers.map(|peer| peer.version);
        stage.versions = Versions { server, client_go, informer };
        Ok(stage)
    }

    /// A namespace, which both sides will watch.
    pub(crate) async fn namespace(&self, name: &str) -> Result<()> {
        create_namespace(&self.direct, name).await
    }

    /// Both sides, each behind a proxy that can break its connections.
    pub(crate) async fn behind_proxies(
        &self,
        namespace: &str,
        more: &[&str],
    ) -> Result<(Pair<Peer>, Pair<Proxy>)> {
        let address = self.cluster.url().trim_start_matches("https://").parse()?;
        let proxies = Pair {
            client_go: Proxy::start(address).await?,
            informer: Proxy::start(address).await?,
        };
        let kubeconfig = std::fs::read_to_string(self.cluster.kubeconfig_path())?;
        // Removed with the cluster.
        let folder =
            self.cluster.kubeconfig_path().parent().context("a file is in a folder")?.to_owned();
        let arguments = proxies.as_ref().try_map(|proxy| {
            let url = format!("https://{}", proxy.address());
            let path = folder.join(format!("kubeconfig-{}", proxy.address().port()));
            std::fs::write(&path, kubeconfig.replace(self.cluster.url(), &url))?;
            let mut arguments = self.arguments(&path, namespace)?;
            arguments.extend(more.iter().map(ToString::to_string));
            Ok(arguments)
        })?;
        Ok((self.peers(arguments).await?, proxies))
    }

    /// Both sides, each behind a proxy that does something to its watches, from the first one on.
    pub(crate) async fn behind_reverse_proxies(
        &self,
        namespace: &str,
        fault: WatchFault,
        more: &[&str],
    ) -> Result<(Pair<Peer>, Pair<ReverseProxy>)> {
        let config = config_of(&self.cluster.kubeconfig_path(), None).await?;
        let proxies = Pair {
            client_go: ReverseProxy::start(config.clone()).await?,
            informer: ReverseProxy::start(config).await?,
        };
        let arguments = proxies.as_ref().map(|proxy| {
            proxy.set_fault(fault);
            let mut arguments =
                vec![format!("--server={}", proxy.url()), format!("--namespace={namespace}")];
            arguments.extend(more.iter().map(ToString::to_string));
            arguments
        });
        Ok((self.peers(arguments).await?, proxies))
    }

    async fn peers(&self, arguments: Pair<Vec<String>>) -> Result<Pair<Peer>> {
        Ok(Pair {
            client_go: Peer::start(&self.client_go, &arguments.client_go).await?,
            informer: Peer::start(&self.informer, &arguments.informer).await?,
        })
    }

    fn arguments(&self, kubeconfig: &Path, namespace: &str) -> Result<Vec<String>> {
        let path = kubeconfig.to_str().context("the path of a kubeconfig is not UTF-8")?;
        Ok(vec![format!("--kubeconfig={path}"), format!("--namespace={namespace}")])
    }
}

impl<T> Pair<T> {
    pub(crate) fn both(one: T) -> Self
    where
        T: Clone,
    {
        Self { client_go: one.clone(), informer: one }
    }

    pub(crate) fn as_ref(&self) -> Pair<&T> {
        Pair { client_go: &self.client_go, informer: &self.informer }
    }

    pub(crate) fn map<U>(self, mut f: impl FnMut(T) -> U) -> Pair<U> {
        Pair { client_go: f(self.client_go), informer: f(self.informer) }
    }

    pub(crate) fn try_map<U>(self, mut f: impl FnMut(T) -> Result<U>) -> Result<Pair<U>> {
        Ok(Pair { client_go: f(self.client_go)?, informer: f(self.informer)? })
    }
}

impl Pair<Peer> {
    /// Both reports.
    pub(crate) async fn reports(&mut self) -> Result<Pair<Report>> {
        Ok(Pair {
            client_go: self.client_go.report().await?,
            informer: self.informer.report().await?,
        })
    }

    /// Waits until both reports are so.
    pub(crate) async fn until(
        &mut self,
        what: &str,
        is_so: impl Fn(&Report) -> bool,
    ) -> Result<Pair<Report>> {
        let mut reports = self.reports().await?;
        let end = Instant::now() + PATIENCE;
        while !(is_so(&reports.client_go) && is_so(&reports.informer)) {
            ensure!(Instant::now() < end, "not within {PATIENCE:?}: {what}: {reports:?}");
            sleep(Duration::from_millis(500)).await;
            reports = self.reports().await?;
        }
        Ok(reports)
    }

    /// Waits until neither handler is called any more.
    pub(crate) async fn until_quiet(&mut self) -> Result<Pair<Report>> {
        let calls = |pair: &Pair<Report>| pair.as_ref().map(|r| (r.added, r.updated, r.deleted));
        let mut before = self.reports().await?;
        let end = Instant::now() + PATIENCE;
        loop {
            sleep(Duration::from_secs(2)).await;
            let now = self.reports().await?;
            let (a, b) = (calls(&before), calls(&now));
            if (a.client_go, a.informer) == (b.client_go, b.informer) {
                return Ok(now);
            }
            ensure!(Instant::now() < end, "handlers are called without end: {now:?}");
            before = now;
        }
    }
}

impl Pair<Proxy> {
    /// Breaks the connections of both sides, and refuses new ones.
    pub(crate) async fn refuse(&self) {
        tokio::join!(self.client_go.refuse(), self.informer.refuse());
    }

    /// Ends [`refuse`](Self::refuse).
    pub(crate) async fn accept(&self) {
        tokio::join!(self.client_go.accept(), self.informer.accept());
    }
}

/// Waits until `attempt` says so.
pub(crate) async fn until<F: Future<Output = Result<bool>>>(
    what: &str,
    mut attempt: impl FnMut() -> F,
) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while !attempt().await? {
        if Instant::now() >= end {
            bail!("not within {PATIENCE:?}: {what}");
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn build_client_go() -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/client-go");
    let program = folder.join("bin/client-go");
    let status = Command::new("go")
        .args(["build", "-buildvcs=false", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(&folder)
        .status()
        .await
        .context("the peer needs Go (https://go.dev/dl)")?;
    ensure!(status.success(), "{} does not build, see above", folder.display());
    debug_assert_eq!(HISTORY, "history", "the subcommand of the peer");
    Ok(program)
}
