//! The gateway: HTTP answers from informers' caches, for those who write no Rust.
//!
//! ```text
//! GET /deploy?labels[k8s-app]=kube-dns        a plural, singular or short name, as kubectl knows it
//! GET /core/v1/pods?namespace=web&limit=100   group (core for the core group), version, plural name
//! GET /core/v1/pods/web/web-0                 one object
//! GET /core/v1/nodes/node-1                   one object of a cluster-scoped resource
//! GET /livez  /readyz  /metrics               these win over short names
//! ```
//!
//! An informer starts at the first request for a resource and is shared by all later ones; while it
//! syncs, the answer waits. Lists are `List` objects whose `metadata.resourceVersion` is the
//! version that the cache stands for, errors are `Status` objects, as everywhere in Kubernetes.
//!
//! | parameter of lists | |
//! |---|---|
//! | `labels[key]=value` | only objects with this label; may be repeated, and all must match |
//! | `labelSelector=` | the full grammar of label selectors |
//! | `fieldSelector=` | the API server's fields, such as `spec.nodeName=node-1`, or any other by its path in the cached object |
//! | `namespace=` | only this namespace |
//! | `limit=`, `continue=` | pages of one snapshot; 410 once that snapshot is gone |
//!
//! Objects are kept as the bytes that the server sent, protobuf of built-in kinds, and become JSON
//! while an answer is sent: the JSON that the server itself would have sent, as a value. An object
//! that cannot be written, because its bytes are malformed, is an error and never left out: the
//! answer is 500 or, once it has begun, ends with a broken connection; `gateway_unwritable_objects`
//! counts them.
//!
//! It is read-only, listens on loopback unless told otherwise, checks the `Host` header, answers
//! only for what [`GatewayOptions::allow`] names (Secrets never unless named), bounds its inputs
//! and the number of resources that it holds, and lets go of those that nobody asks for.
//! `managedFields` are left out, as by every informer.
//!
//! # Examples
//! In a program of your own:
//! ```
//! use kubectl_informer::gateway::{Gateway, GatewayOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anyhow::Result<()> {
//! # let server = informer_testkit::TestServer::start().await?;
//! # let client = server.client()?;
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let until_ctrl_c = async {};
//! let gateway = Gateway::new(client, GatewayOptions::default());
//! gateway.serve(listener, until_ctrl_c).await;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use informer::{SharedInformerFactory, Status};
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

mod answer;
mod catalog;
mod collections;
mod guard;
mod listen;
mod metrics;
mod page;
mod query;
mod refusal;
mod routes;

use catalog::Catalog;
use collections::Collections;
use metrics::Metrics;
use page::Pages;

/// How long the last requests may take once the gateway is told to stop.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(5);
/// How often idle resources are looked for, at the most.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);

/// What a gateway may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayOptions {
    /// Hold only this namespace of namespaced resources, for those who may read no more. Default:
    /// all.
    pub namespace: Option<String>,
    /// The resources that may be asked for, named as for kubectl; `*` is all but Secrets. Default:
    /// `*`.
    pub allow: Vec<String>,
    /// Host names by which the gateway may be addressed, besides loopback ones. Default: none.
    pub allowed_hosts: Vec<String>,
    /// How long a request waits for the first list. Default: 10 s.
    pub sync_timeout: Duration,
    /// How many resources are held at a time; more are answered 429. Default: 16.
    pub max_collections: usize,
    /// A resource that nobody asked for this long is let go; zero for never. Default: 10 minutes.
    pub idle_timeout: Duration,
    /// How many snapshots are kept for `continue=`. Default: 32.
    pub kept_snapshots: usize,
    /// How long a snapshot is kept for `continue=` after its last page was asked for. Default: 5
    /// minutes.
    pub snapshot_lifetime: Duration,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            namespace: None,
            allow: vec!["*".to_owned()],
            allowed_hosts: Vec::new(),
            sync_timeout: Duration::from_secs(10),
            max_collections: 16,
            idle_timeout: Duration::from_secs(600),
            kept_snapshots: 32,
            snapshot_lifetime: Duration::from_secs(300),
        }
    }
}

/// A gateway; a cheap handle, clones are the same gateway.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    options: GatewayOptions,
    catalog: Catalog,
    collections: Collections,
    pages: Pages,
    metrics: Metrics,
}

impl Gateway {
    /// A gateway that asks the server through `client`, at the first request.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn new(client: Client, options: GatewayOptions) -> Self {
        let factory = SharedInformerFactory::builder(client.clone()).build();
        factory.start();
        let inner = Inner {
            catalog: Catalog::new(client, &options),
            metrics: Metrics::new(factory.clone()),
            collections: Collections::new(factory, &options),
            pages: Pages::new(options.kept_snapshots, options.snapshot_lifetime),
            options,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The routes, to serve them in a program of your own; only [`sweep`](Self::sweep) is left to
    /// call now and then.
    pub fn router(&self) -> Router {
        routes::router(self)
    }

    /// Serves until `stop` resolves, lets running requests end, and stops all informers.
    ///
    /// At most 512 connections are served at a time, and one that does not send a whole request
    /// within 30 s is closed.
    ///
    /// # Cancel safety
    /// Dropping the future stops serving; the informers stop with the last handle of the gateway.
    pub async fn serve(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) {
        let stopping = CancellationToken::new();
        let told = stopping.clone();
        let stopped = async move {
            stop.await;
            told.cancel();
        };
        let serving = listen::serve(listener, self.router(), stopped, listen::Limits::default());
        let deadline = async {
            stopping.cancelled().await;
            tokio::time::sleep(SHUTDOWN_DEADLINE).await;
        };
        let sweeping = async {
            loop {
                tokio::time::sleep(
                    SWEEP_INTERVAL.min(self.inner.options.idle_timeout.max(MIN_SWEEP)),
                )
                .await;
                self.sweep().await;
            }
        };
        tokio::select! {
            () = serving => {}
            () = deadline => {}
            () = sweeping => {}
        }
        self.shutdown().await;
    }

    /// Lets go of the resources that nobody asked for long enough, and of old snapshots.
    /// [`serve`](Self::serve) does it by itself.
    ///
    /// # Cancel safety
    /// What was told to stop stops; dropping the future only ends the wait.
    pub async fn sweep(&self) {
        let now = tokio::time::Instant::now().into_std();
        self.inner.pages.sweep(now);
        self.inner.collections.stop_idle(now).await;
    }

    /// Stops all informers.
    ///
    /// # Cancel safety
    /// Everything is told to stop at the first poll; dropping the future only ends the wait.
    pub async fn shutdown(&self) {
        self.inner.collections.shutdown().await;
    }

    /// The status of every informer.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        self.inner.collections.factory().statuses()
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

const MIN_SWEEP: Duration = Duration::from_millis(100);

/// Whether a server that listens there can be reached from other machines.
#[must_use]
pub fn is_exposed(address: IpAddr) -> bool {
    !address.is_loopback()
}

#[cfg(test)]
mod tests;
