//! The servers, and who changes Pods.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::process::Child;
use tokio::time::sleep;

use crate::cluster::Cluster;
use crate::etcd_writer::EtcdWriter;
use crate::programs;
use crate::serve::{self, Running, Server};

use super::generator::{ALL_PODS, Asked, Generator, Pace};
use super::tls::Tls;
use super::usage::Usage;
use super::{Arguments, Sizes};

/// More than there are watches.
const CONNECTIONS: &str = "16384";

/// How long the servers are left alone after watches were opened or closed.
pub(super) const SETTLE: Duration = Duration::from_secs(3);

/// All that is needed to measure.
pub(super) struct Bench {
    pub(super) cluster: Cluster,
    pub(super) sizes: Sizes,
    pub(super) asked: Asked,
    /// Whether kube-apiserver comes first.
    pub(super) is_turned: bool,
    serve: PathBuf,
    etcd_writer: PathBuf,
    flags: Vec<String>,
    tls: Arc<Tls>,
}

/// Both servers; ours ends with this.
pub(super) struct Servers {
    ours: Running,
    theirs: Running,
    _process: Child,
}

impl Bench {
    pub(super) async fn new(cluster: Cluster, sizes: Sizes, arguments: &Arguments) -> Result<Self> {
        allow_files();
        let serve = programs::build_kubectl_informer().await?;
        let etcd_writer = programs::build_etcd_writer().await?;
        let tls = Tls::new().await?;
        let mut flags = tls.flags()?;
        // Reviews are no part of what is measured.
        flags.push("--unprotected-api".to_owned());
        flags.extend(["--max-connections".to_owned(), CONNECTIONS.to_owned()]);
        flags.extend(arguments.serve_flag.iter().cloned());
        Ok(Self {
            cluster,
            sizes,
            asked: Asked { wire: arguments.wire, http2: !arguments.http1 },
            is_turned: false,
            serve,
            etcd_writer,
            flags,
            tls: Arc::new(tls),
        })
    }

    /// The same with another cluster, which has no Pods.
    pub(super) async fn with_empty_cluster(&self) -> Result<Self> {
        Ok(Self {
            cluster: Cluster::start().await?,
            sizes: Sizes { pods: 0, ..self.sizes.clone() },
            serve: self.serve.clone(),
            etcd_writer: self.etcd_writer.clone(),
            flags: self.flags.clone(),
            tls: Arc::clone(&self.tls),
            ..*self
        })
    }

    /// Starts ours, and waits until it holds all Pods.
    pub(super) async fn servers(&self) -> Result<Servers> {
        let theirs = Running { target: self.cluster.target(), pid: self.cluster.apiserver_pid()? };
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let (process, ours) = serve::start(&self.serve, &theirs.target, &flags).await?;
        let ours = Running { target: self.tls.trusted(&ours.target, None)?, ..ours };
        serve::holds(&ours.target, self.sizes.pods).await?;
        Ok(Servers { ours, theirs, _process: process })
    }

    /// In whose turn they are measured.
    pub(super) fn turns(&self) -> [Server; 2] {
        match self.is_turned {
            false => [Server::Ours, Server::KubeApiserver],
            true => [Server::KubeApiserver, Server::Ours],
        }
    }

    /// One that changes so many Pods in turn: those that come first in a list.
    pub(super) async fn writer(&self, pods: usize) -> Result<EtcdWriter> {
        EtcdWriter::start(&self.etcd_writer, self.cluster.etcd(), pods).await
    }

    /// A process for watches of all Pods.
    pub(super) fn watchers(&self, server: &Running, pace: Pace) -> Result<Generator> {
        Generator::start(&server.target, self.asked, pace, &[ALL_PODS.to_owned()])
    }

    /// The newest version.
    pub(super) async fn version(&self) -> Result<String> {
        let pods = Api::<Pod>::all(self.cluster.target().client().await?);
        let page = pods.list_metadata(&ListParams::default().limit(1)).await?;
        page.metadata.resource_version.context("a list without a version")
    }
}

impl Servers {
    pub(super) fn running(&self, server: Server) -> &Running {
        match server {
            Server::Ours => &self.ours,
            Server::KubeApiserver => &self.theirs,
        }
    }
}

/// How many processors a server takes while nothing happens.
pub(super) async fn idle_rate(server: &Running, during: Duration) -> Result<f64> {
    let usage = Usage::start(server.pid)?;
    sleep(during).await;
    Ok(usage.spent()?.rate())
}

/// As many files as may be, for this process and those that it starts: a connection is one.
pub(crate) fn allow_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        eprintln!("the limit of open files stays: {error}");
    }
}
