//! Replicas of `serve`, each with a relay before its API server, behind one address.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use informer_tests::harness::Arm;
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::real::config_of;
use informer_tests::tap::{Record, Side, Tap, Target, What};
use kube::Config;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::endpoint::{Endpoint, kubeconfig_of};

const SOON: Duration = Duration::from_secs(60);

/// The replicas, and the address that clients know.
pub(crate) struct Stage<'a> {
    arm: &'a Arm,
    pub(crate) record: Arc<Record>,
    /// What clients connect to.
    pub(crate) front: Tap,
    pub(crate) replicas: Vec<Replica>,
    started: usize,
}

/// A replica on a runtime of its own, so that it can be killed.
pub(crate) struct Replica {
    runtime: Option<Runtime>,
    endpoint: Option<Endpoint>,
    /// Between it and its API server.
    pub(crate) upstream: Tap,
    pub(crate) target: Arc<Target>,
    record: Arc<Record>,
    _folder: TempDir,
}

impl<'a> Stage<'a> {
    /// With one replica.
    pub(crate) async fn new(arm: &'a Arm) -> anyhow::Result<Self> {
        let record = Arc::new(Record::new());
        let front = Tap::start(Side::Downstream, Arc::clone(&record), Vec::new()).await?;
        let mut stage = Self { arm, record, front, replicas: Vec::new(), started: 0 };
        let first = stage.start().await?;
        stage.replicas.push(first);
        stage.route();
        Ok(stage)
    }

    /// Another replica, which holds all Pods, and to which no client is led yet.
    pub(crate) async fn start(&mut self) -> anyhow::Result<Replica> {
        self.started += 1;
        let name = format!("replica {}", self.started);
        Replica::start(self.arm, &self.record, &name).await.with_context(|| name.clone())
    }

    /// Leads new connections to the replicas that there are, in turn.
    pub(crate) fn route(&self) {
        let targets = self.replicas.iter().map(|it| Arc::clone(&it.target));
        self.front.set_targets(targets.collect());
    }

    /// Notes how far the test has come.
    pub(crate) fn reached(&self, what: impl Into<String>) {
        self.record.note(Side::Downstream, "", What::Reached(what.into()));
    }
}

impl Replica {
    async fn start(arm: &Arm, record: &Arc<Record>, name: &str) -> anyhow::Result<Self> {
        let server = Target::new(name, config_of(&arm.kubeconfig(), None).await?)?;
        let upstream = Tap::start(Side::Upstream, Arc::clone(record), vec![server]).await?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_of(&upstream.url()))?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let started = runtime
            .spawn(async move { Endpoint::start(&kubeconfig, &["--cache", "pods"]).await })
            .await;
        // From here on its drop ends the runtime.
        let mut replica = Self {
            runtime: Some(runtime),
            endpoint: None,
            upstream,
            target: Target::new(name, Config::new("http://127.0.0.1:1".parse()?))?,
            record: Arc::clone(record),
            _folder: folder,
        };
        let endpoint = started??;
        replica.target = Target::new(name, Config::new(endpoint.url().parse()?))?;
        let client = endpoint.client()?;
        replica.endpoint = Some(endpoint);
        let list = async || raw_list(&client, "/api/v1/pods").await;
        eventually_ok("the replica has the Pods", SOON, list).await?;
        Ok(replica)
    }

    /// Ends it as SIGKILL would.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Ends it as SIGTERM would.
    ///
    /// # Errors
    ///
    /// When it does not end.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        match self.endpoint.take() {
            Some(endpoint) => endpoint.stop().await,
            None => Ok(()),
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.record.note(Side::Downstream, self.target.name(), What::Cut);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.target.retire();
    }
}
