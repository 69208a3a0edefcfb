//! Deltas and their queue: what the reflector saw, in order, on its way to the controller.
//!
//! Nothing is merged or dropped here; the queue is bounded by the reflector, which stops reading
//! from the server while [`DeltaQueue::is_full`]. Merging is the business of each registration's
//! own queue ([`fan_out`](crate::fan_out)). Follows client-go's `RealFIFO` with atomic events: a
//! relist is published as a whole, and what it leaves out is found by comparing it with the store.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::{Item, ObjectKey, ResourceVersion, Uid};

/// One thing that the reflector saw.
pub enum Delta<T> {
    /// A watch said that the object was added.
    Added(Item<T>),
    /// A watch said that the object was modified.
    Updated(Item<T>),
    /// A watch said that the object was deleted.
    Deleted(Tombstone<T>),
    /// A watch said that the object was added or modified, and its state cannot be decoded: what is
    /// known of the same object stays (G30).
    Undecodable {
        /// Namespace and name.
        key: ObjectKey,
        /// The identity of the object. Another object under this name is gone, whatever its
        /// successor looks like.
        uid: Uid,
        /// The version of the state that cannot be decoded.
        version: ResourceVersion,
    },
    /// The server says that nothing happened up to this version that was not sent.
    Bookmark(ResourceVersion),
    /// A complete list begins; until it is finished, `Listed`, `Kept` and `Unlisted` belong to it.
    ReplaceStarted {
        /// Whether an equal UID and version may hide another object (G26).
        distrust: bool,
    },
    /// The list has this object.
    Listed(Item<T>),
    /// The list has the object of this key just as it is known already.
    Kept(ObjectKey),
    /// The object was deleted while the list was still coming in.
    Unlisted(ObjectKey),
    /// The list is complete: the collection at this version.
    ReplaceFinished {
        /// The version of the list.
        version: ResourceVersion,
        /// Whether the server's history was replaced since the last list (G14).
        history_changed: bool,
        /// If the list was made at `""`, so that it is not older than the last write before it was
        /// requested: how many [refreshes](crate::ingest::Sink::refreshes) are complete.
        refreshes: Option<u64>,
    },
    /// The list broke off; what came of it counts for nothing.
    ReplaceAbandoned,
    /// Registrations whose resync is due shall see the store again (G8).
    Sync,
    /// The resource is gone from the server, and all objects with it (G32).
    Cleared {
        /// How many [refreshes](crate::ingest::Sink::refreshes) are complete.
        refreshes: u64,
    },
}

/// An object that a watch reported as deleted.
pub struct Tombstone<T> {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The identity of the object; unset if the server did not say.
    pub uid: Uid,
    /// The version of the deletion.
    pub version: ResourceVersion,
    /// The final state; `None` if it could not be decoded (G30).
    pub last: Option<Arc<T>>,
}

/// An ordered, bounded queue of deltas.
///
/// # Examples
/// ```
/// use informer_core::{Delta, DeltaQueue, Item, ObjectKey};
///
/// let mut queue = DeltaQueue::new(1024);
/// queue.push(Delta::ReplaceStarted { distrust: false });
/// queue.push(Delta::Listed(Item::new(ObjectKey::cluster("a"), "u1".into(), "7".into(), ())));
/// let (version, history_changed, refreshes) = ("9".into(), false, None);
/// queue.push(Delta::ReplaceFinished { version, history_changed, refreshes });
/// assert_eq!(queue.pop_batch(usize::MAX).count(), 3);
/// assert!(queue.is_empty());
/// ```
pub struct DeltaQueue<T> {
    deltas: VecDeque<Delta<T>>,
    capacity: usize,
}

impl<T> DeltaQueue<T> {
    /// An empty queue that counts as full from `capacity` deltas on.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { deltas: VecDeque::new(), capacity }
    }

    /// Appends a delta; nothing is ever refused.
    pub fn push(&mut self, delta: Delta<T>) {
        self.deltas.push_back(delta);
    }

    /// Takes up to `max` deltas, oldest first.
    pub fn pop_batch(&mut self, max: usize) -> impl Iterator<Item = Delta<T>> + '_ {
        let count = max.min(self.deltas.len());
        self.deltas.drain(..count)
    }

    /// The number of deltas queued.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.deltas.len()
    }

    /// Whether nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deltas.is_empty()
    }

    /// Whether the reflector shall stop reading until the queue was worked off.
    #[must_use]
    pub(crate) fn is_full(&self) -> bool {
        self.deltas.len() >= self.capacity
    }
}

// Not derived: contents never reach `Debug` output (G34).

impl<T> fmt::Debug for Delta<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(item) => write!(f, "Added({item:?})"),
            Self::Updated(item) => write!(f, "Updated({item:?})"),
            Self::Deleted(tombstone) => write!(f, "Deleted({tombstone:?})"),
            Self::Undecodable { key, uid, version } => {
                write!(f, "Undecodable({key} uid {uid} at {version})")
            }
            Self::Bookmark(version) => write!(f, "Bookmark({version})"),
            Self::ReplaceStarted { distrust } => write!(f, "ReplaceStarted(distrust: {distrust})"),
            Self::Listed(item) => write!(f, "Listed({item:?})"),
            Self::Kept(key) => write!(f, "Kept({key})"),
            Self::Unlisted(key) => write!(f, "Unlisted({key})"),
            Self::ReplaceFinished { version, history_changed, .. } => {
                write!(f, "ReplaceFinished({version}, history changed: {history_changed})")
            }
            Self::ReplaceAbandoned => f.write_str("ReplaceAbandoned"),
            Self::Sync => f.write_str("Sync"),
            Self::Cleared { .. } => f.write_str("Cleared"),
        }
    }
}

impl<T> fmt::Debug for Tombstone<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} uid {} at {}", self.key, self.uid, self.version)
    }
}

impl<T> fmt::Debug for DeltaQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaQueue").field("deltas", &self.deltas).finish_non_exhaustive()
    }
}
