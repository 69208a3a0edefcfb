//! What a worker holds.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{Inner, Key};

/// A key that a worker has. While it exists no other worker gets the same key; dropping it says
/// that the work has ended (client-go's `Done`), also when the worker panics or is cancelled.
///
/// Ended is not succeeded: after a success, [`forget`](super::WorkQueue::forget) the key; after a
/// failure, add it again with [`add_rate_limited`](super::WorkQueue::add_rate_limited).
#[must_use = "dropping it says that the work has ended"]
pub struct Item<K: Key> {
    key: K,
    queue: Arc<Inner<K>>,
}

impl<K: Key> Item<K> {
    pub(super) fn new(key: K, queue: Arc<Inner<K>>) -> Self {
        Self { key, queue }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Says that the work has ended; the same as dropping the item.
    pub fn done(self) {}
}

impl<K: Key> Deref for Item<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Key> Drop for Item<K> {
    fn drop(&mut self) {
        self.queue.with(|queue, now| queue.done(now, &self.key));
    }
}

impl<K: Key + fmt::Debug> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Item").field(&self.key).finish()
    }
}
