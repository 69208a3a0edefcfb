//! The deterministic core of **informer**: everything an informer decides, and nothing it does.
//!
//! No sockets, no tokio, no kube, no clock: time and randomness are arguments. The `informer` crate is
//! the thin async shell that moves bytes and sleeps.

#![forbid(unsafe_code)]

pub mod key;
pub mod reflector;
pub mod selector;
pub mod version;
pub mod wire;

pub use key::{ObjectKey, ParseObjectKeyError};
pub use version::{ResourceVersion, Uid};
