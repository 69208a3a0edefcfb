//! The deterministic core of **informer**: everything an informer decides, and nothing it does.
//!
//! No sockets, no tokio, no kube, no clock: time and randomness are arguments. The `informer` crate
//! is the thin async shell that moves bytes and sleeps.

#![forbid(unsafe_code)]

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod delta;
pub mod diff;
mod event;
pub mod fan_out;
pub mod ingest;
mod key;
pub mod leader_election;
mod object;
pub mod own_writes;
mod pipeline;
pub mod reflector;
pub mod selector;
mod sorted_map;
pub mod store;
mod version;
pub mod wire;
pub mod workqueue;

pub use delta::{Delta, DeltaQueue, Tombstone};
pub use event::{Deleted, Event, FinalState, UpdateReason};
pub use key::{ObjectKey, ParseObjectKeyError};
pub use object::{Item, Record};
pub use pipeline::{ObserverFault, ObserverId, Pipeline, Publication, PublicationKind};
pub use version::{ResourceVersion, Uid};
