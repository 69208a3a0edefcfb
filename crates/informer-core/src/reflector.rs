//! The reflector: what to ask the API server next so that the store becomes, and stays, equal to a collection.
//!
//! [`Reflector`] is a state machine without I/O, clock or randomness of its own. Its driver opens the lists
//! and watches it asks for, applies each frame whole (to the staged list or to the store), tells the machine
//! what happened with [`Reflector::handle`], and asks [`Reflector::poll`] what to do until it says `None`.
//! Objects and bytes never get here.

mod backoff;
mod types;

pub use backoff::{Backoff, BackoffConfig};
pub use types::{
    Action, Failure, FailureKind, Input, ListRequest, ReflectorConfig, State, VersionMatch, WatchRequest,
};
