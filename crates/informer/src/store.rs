//! What a [`Snapshot`](crate::Snapshot) of the store hands out, and the [`Reader`] that takes
//! snapshots.

pub use informer_core::store::{Entry, IndexError, IndexHits, Objects, Reader};
