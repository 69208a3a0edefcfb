//! An in-memory Kubernetes API server over real TCP, with faults on demand and realistic objects:
//! for tests of anything that watches Kubernetes.
//!
//! [`TestServer`] listens on a loopback port and answers as a kube-apiserver does: discovery, lists
//! in pages, watches with bookmarks, streaming lists, selectors, conflicts,
//! CustomResourceDefinitions, and errors with the codes and reasons that clients match on; in JSON
//! and in Kubernetes' protobuf. kube's client and `kubectl` work on it. It starts in a millisecond
//! and needs nothing installed.
//!
//! - [`Cluster`] holds the objects; tests write to it directly, as all the controllers that they do
//!   not run.
//! - [`Faults`] is what goes wrong: refused and reset connections, watches cut within a frame, 410,
//!   429, stalls, bytes that drip, frames that are truncated, malformed or far too large, objects
//!   that nobody can decode. It has a table of them all. [`Auth`] shows 401 and 403.
//! - [`TestServer::requests`] tells what was asked, for assertions such as "one LIST, at this
//!   version".
//! - [`generate`] makes Pods, Deployments and Nodes as large as real ones; [`Life`] makes a cluster
//!   live.
//!
//! Reads are answered by [`k8s_serve`], of which [`Cluster`] is one backend.
//!
//! # Examples
//! ```
//! use informer_testkit::{Cut, TestServer, Verb};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = TestServer::start().await?;
//! server.cluster().create(&json!({
//!     "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": "default"},
//! }))?;
//!
//! // Point the code under test at `server.client()`, `server.url()` or `server.kubeconfig()`, and then:
//! server.faults().cut_watches(Cut::Reset, Some("pods"));
//! server.cluster().delete("pods", "default", "web-0")?;
//!
//! // … the code under test must have noticed, and asked for no more than it had to:
//! assert_eq!(server.requests().verb(Verb::List).resource("pods").len(), 0);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod accept;
mod auth;
mod builtin;
mod cluster;
mod faults;
pub mod generate;
mod json;
mod life;
mod object;
mod pages;
mod protobuf;
mod requests;
mod server;
mod wire;

pub use auth::Auth;
pub use cluster::{Checkpoint, Cluster, ClusterOptions, ClusterSnapshot, Write};
pub use faults::{Cut, Fault, FaultHandle, Faults};
pub use k8s_serve::{
    Body, BodyError, Cause, Details, ProtobufSupport, ReadOptions, Resource, Status, Verb,
    WatchListSupport,
};
pub use life::{Happening, Life, What};
pub use object::Object;
pub use requests::{Request, Requests};
pub use server::{ApiService, ConnectionError, StartError, TestServer, TestServerBuilder};
