//! Kubernetes' read protocol.
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
pub mod websocket;
mod writer;

pub use accept::Negotiated;
pub use answer::{Body, BodyError};
pub use backend::{At, Backend, Change, Discovery, Feed, FeedEnd, ReadError, Snapshot};
pub use compress::compress;
pub use form::Form;
pub use object::{Object, WriteError};
pub use options::{ProtobufSupport, ReadOptions, WatchListSupport};
pub use params::{Parameters, Selectors};
pub use read::{Miss, ReadSide};
pub use resource::Resource;
pub use route::{DiscoveryPath, ResourcePath, Route, Verb};
pub use status::{Cause, Details, Status};
