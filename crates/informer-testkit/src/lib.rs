//! An in-memory Kubernetes API server, for tests of anything that watches Kubernetes.
#![forbid(unsafe_code)]

mod auth;
mod builtin;
mod cluster;
mod faults;
mod json;
pub mod protocol;
mod requests;
mod resource;
mod server;
mod status;

pub use auth::Auth;
pub use cluster::{Checkpoint, Cluster, ClusterFeed, ClusterOptions, ClusterSnapshot, Write};
pub use faults::{Cut, Fault, FaultHandle, Faults};
pub use protocol::Verb;
pub use requests::{Request, Requests};
pub use resource::Resource;
pub use server::{ApiService, ConnectionError, StartError, TestServer, TestServerBuilder};
pub use status::{Cause, Details, Status};
