//! The read side of the Kubernetes API — discovery, get, list, watch — over anything that has
//! snapshots and tells what changes.
//!
//! [`ReadSide`] turns requests into responses as a kube-apiserver would. It knows nothing of
//! sockets, of writes, of who may read what, or of how objects are kept: a [`Backend`] gives it the
//! resources, ordered [`Snapshot`]s of a collection at a version, and watchers of the
//! [`WatchCache`](watch_cache::WatchCache) that it feeds with what changes. An [`Object`] is its
//! bytes, in JSON or in protobuf; the read side writes it in the form that a client accepts.
//!
//! Versions are numbers here, as those of a kube-apiserver are.

#![forbid(unsafe_code)]

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod accept;
pub mod answer;
mod backend;
mod compress;
mod discovery;
mod form;
mod json;
mod list;
pub mod log;
mod object;
mod options;
pub mod page;
mod params;
mod protobuf;
mod read;
mod resource;
mod route;
mod status;
pub mod table;
mod token;
mod watch;
pub mod watch_cache;
pub mod websocket;
mod writer;

pub use accept::Negotiated;
pub use answer::{Body, BodyError};
pub use backend::{At, Backend, Change, Discovery, ReadError, Snapshot, WatchEnd};
pub use compress::compress;
pub use form::Form;
pub use object::{Object, WriteError};
pub use options::{ProtobufSupport, ReadOptions, WatchListSupport};
pub use params::{Parameters, Selectors};
pub use read::{Miss, ReadSide};
pub use resource::Resource;
pub use route::{DiscoveryPath, ResourcePath, Route, Verb};
pub use status::{Cause, Details, Status};
