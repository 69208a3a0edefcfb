//! Shared informers for Kubernetes: an always-current, indexed, in-process copy of the cluster's objects,
//! with events for every change.

#![forbid(unsafe_code)]

mod controller;
pub mod decode;
pub mod discovery;
#[doc(hidden)]
pub mod doc_support;
pub mod error;
mod events;
mod factory;
mod handler;
pub mod indexes;
mod labels;
mod lister;
mod options;
pub mod reflector;
mod registration;
mod resource;
mod seed;
mod shared;
mod shared_informer;
mod sink;
pub mod source;
pub mod status;

pub use controller::{Controller, Informer};
pub use decode::Decode;
pub use error::Error;
pub use events::EventStream;
pub use factory::{SharedInformerFactory, SharedInformerFactoryBuilder};
pub use handler::{EventHandler, Filtered, HandlerOptions, Handlers};
pub use informer_core::selector::{FieldSelector, LabelSelector, ParseSelectorError};
pub use informer_core::store::{Index, IndexValues, Snapshot};
pub use informer_core::{
    Deleted, Delta, DeltaQueue, Event, FinalState, Item, ObjectKey, Record, ResourceVersion,
};
pub use informer_core::{Tombstone, Uid, UpdateReason, selector, store};
pub use labels::HasLabels;
pub use lister::{Lister, NamespaceLister, Selection};
pub use options::InformerOptions;
pub use registration::{Registration, Removal};
pub use resource::{Resource, Scope, ScopeKind, TypedResource};
pub use shared_informer::SharedInformer;
pub use status::{InformerState, Status, StatusStream};
