//! Shared informers for Kubernetes: an always-current, indexed, in-process copy of the cluster's
//! objects, with an event for every change.
//!
//! An informer lists a resource, watches it, keeps a copy of every object, and tells any number of
//! handlers what changed. It is what client-go's `tools/cache` and `informers` packages are to Go:
//! what controllers, schedulers and dashboards stand on.
//! [Coming from client-go](manual::from_client_go) says where its names live here.
//!
//! # In one screen
//! ```
//! use std::time::Duration;
//! use informer::SharedInformerFactory;
//! use k8s_openapi::api::core::v1::Pod;
//! use kube::ResourceExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anyhow::Result<()> {
//! # let server = informer_testkit::TestServer::start().await?;
//! # let client = server.client()?;
//! # server.cluster().load(informer_testkit::generate::pods(3))?;
//! // let client = kube::Client::try_default().await?;
//! let factory = SharedInformerFactory::builder(client).resync(Duration::from_secs(300)).build();
//!
//! let pods = factory.informer::<Pod>()?;
//! let printer = pods.add_handler(|h| {
//!     h.on_add(|pod, _initial| println!("add {}", pod.name_any()))
//!         .on_update(|_old, new, _reason| println!("update {}", new.name_any()))
//!         .on_delete(|gone| println!("delete {}", gone.last.name_any()))
//! })?;
//! factory.start();
//!
//! let lister = pods.synced().await?; // the first list is in the store
//! printer.synced().await?; // and the handler has returned from all of it
//! assert_eq!(lister.len(), 3);
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # The parts
//! - [`SharedInformerFactory`] makes informers and shares them: one watch per collection.
//! - [`SharedInformer`] is a handle to one: add handlers
//!   ([`add_handler`](SharedInformer::add_handler)), streams ([`events`](SharedInformer::events))
//!   and indexes ([`add_index`](SharedInformer::add_index)), wait
//!   ([`synced`](SharedInformer::synced)), ask how it is ([`status`](SharedInformer::status)).
//! - [`Lister`] reads the store; a [`Snapshot`] is one consistent view over the objects and every
//!   index.
//! - [`Representation`] is the seam where bytes become objects: typed kinds, `DynamicObject`,
//!   metadata only, or a struct of your own with just the fields you use.
//! - [`Controller`] reconciles: the objects of a kind, one at a time, each time something about them
//!   changes, and never from a copy older than its own writes.
//! - [`workqueue`] takes keys from events to workers of your own.
//! - [`Reflector`](reflector::Reflector), [`reflector::Controller`] and [`Informer`] are for use
//!   alone, each with any [`ListWatch`](source::ListWatch) as its source.
//! - [`leader_election`] lets one of several replicas act.
//! - [`discovery`] knows what resources the server has.
//!
//! # The runtime
//! Informers run on the tokio runtime on which their factory was built, or for those of their own
//! on which they were; it needs its timers and I/O (`enable_all`). Whatever waits may be awaited on
//! any tokio runtime with timers, and panics elsewhere. An informer stops when its runtime ends,
//! and says so ([`StopCause::RuntimeEnded`]).
//!
//! # What is promised
//! - **Store before handler**: when a handler hears of a change, the store shows it, or a later
//!   state.
//! - **Legal histories**: per handler and object, added, updated any number of times, deleted. An
//!   object with the same name and another UID is deleted, then added. A delete that was missed
//!   comes with the last known state.
//! - **A relist costs its changes**: objects that did not change are neither delivered nor decoded
//!   again.
//! - **Isolation**: callbacks run off the runtime's workers, each registration behind a bounded
//!   queue of its own that merges by object; slow, blocked and panicking handlers delay nobody
//!   else.
//! - **Waiting is honest**: three facts, three names: [`SharedInformer::synced`],
//!   [`Registration::synced`], [`SharedInformerFactory::wait_for_sync`]. Failing lists, forbidden
//!   access and missing resources are never reported as synced.
//! - **Errors are state**: [`Status`] says what the informer is doing and what went wrong. Every
//!   retry backs off.
//! - **Nothing runs on**: an informer ends with its last owner; what was stopped can be asked for
//!   again.
//!
//! All of them, the tests that show them, migration tables, failure modes and sizing: the
//! [`manual`].
//!
//! # Features and versions
//! One feature, off by default: `prometheus-client` adds the collectors of [`controller`] and
//! [`workqueue`]. The library
//! chooses neither a Kubernetes version (enable one of k8s-openapi's features in your binary) nor
//! TLS (enable kube's).

#![forbid(unsafe_code)]

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod controller;
pub mod decode;
pub mod diff;
pub mod discovery;
mod error;
mod events;
mod factory;
mod fields;
mod handler;
pub mod indexes;
mod lazy;
pub mod leader_election;
mod lister;
pub mod manual;
mod metadata;
mod metadata_only;
mod options;
pub mod reflector;
mod registration;
mod representation;
mod resource;
mod runtime;
mod seed;
mod selection;
pub mod selector;
mod shared;
mod shared_informer;
mod sink;
pub mod source;
mod standalone;
mod status;
mod stopping;
pub mod store;
pub mod workqueue;

pub use controller::Controller;
pub use error::{Error, Missing, NotReached, NotSynced, UnknownResource};
pub use events::EventStream;
pub use factory::{ForResource, SharedInformerFactory, SharedInformerFactoryBuilder};
pub use fields::{FieldPath, FieldPathError, HasFields, HasLabels};
pub use handler::{EventHandler, Filtered, HandlerOptions, Handlers};
pub use informer_core::selector::{FieldSelector, LabelSelector, ParseSelectorError};
pub use informer_core::store::{Index, IndexValues, Snapshot};
pub use informer_core::{
    Deleted, Delta, DeltaQueue, Event, FinalState, Item, ObjectKey, Publication, PublicationKind,
    Record, ResourceVersion,
};
pub use informer_core::{Tombstone, Uid, UpdateReason};
pub use lazy::Lazy;
pub use lister::{Lister, NamespaceLister};
pub use metadata::HasMetadata;
pub use metadata_only::MetadataOnly;
pub use options::{InformerOptions, TransformError};
pub use registration::{Registration, Removal};
pub use representation::Representation;
pub use resource::{Resource, Scope, ScopeKind, TypedResource};
pub use selection::Selection;
pub use shared_informer::{Observation, SharedInformer};
pub use standalone::Informer;
pub use status::{
    Counters, InformerState, RecentError, RegistrationStatus, StaleObject, Status, StatusStream,
    StopCause,
};
