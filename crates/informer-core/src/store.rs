//! The store: all objects of a collection, ordered by key, with any number of indexes.
//!
//! One writer, the [`Pipeline`](crate::Pipeline), owns the store and publishes its writes. Readers
//! take [`Snapshot`]s from a [`Reader`]. A snapshot is an immutable, consistent view of the objects
//! and all indexes. Taking one is O(1), does not block the writer, and is not blocked by it (G10).
//!
//! # Examples
//! ```
//! use std::time::Duration;
//! use informer_core::store::Index;
//! use informer_core::{Delta, Item, ObjectKey, Pipeline};
//!
//! struct Pod { node: &'static str }
//!
//! let mut pipeline = Pipeline::new();
//! let reader = pipeline.reader();
//! let by_node = Index::new("node", |pod: &Pod, values| values.push(pod.node));
//! assert!(pipeline.build_index(&by_node, usize::MAX)?);
//! let item = |name: &str, version: u64, node| {
//!     Item::new(ObjectKey::namespaced("default", name), name.into(), version.into(), Pod { node })
//! };
//! let listed = [item("a", 1, "node-1"), item("b", 2, "node-2")].map(Delta::Added);
//! pipeline.apply(Duration::ZERO, listed);
//!
//! let snapshot = reader.snapshot();
//! assert_eq!(snapshot.len(), 2);
//! assert_eq!(snapshot.by_index(&by_node, "node-2")?.next().unwrap().key.name(), "b");
//! # Ok::<(), informer_core::store::IndexError>(())
//! ```

mod building;
mod index;
mod records;
mod replace;
mod snapshot;
mod table;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

pub use index::{Index, IndexError, IndexFault, IndexValues};
pub(crate) use replace::{ReplaceChange, Replacement};
pub use snapshot::{Entry, IndexHits, Objects, Snapshot};

use crate::ingest::Held;
use crate::{Item, ObjectKey, Record, ResourceVersion, Uid};
use building::Building;
use records::{FreeSlots, Slot};
use snapshot::Root;
use table::Table;

/// The writer's side of the store. Readers see its writes after [`publish`](Self::publish).
pub(crate) struct Store<T> {
    root: Root<T>,
    free: FreeSlots,
    /// Indexes under construction, not in the root yet.
    building: Vec<Building<T>>,
    dirty: bool,
    faults: Vec<IndexFault>,
    published: Arc<ArcSwap<Root<T>>>,
}

/// A cheap handle to take snapshots of a store; it still works after the store was dropped.
pub struct Reader<T>(Arc<ArcSwap<Root<T>>>);

/// What a write did to its key.
#[derive(Debug)]
pub(crate) enum Change<T> {
    /// The key was not there.
    Added,
    /// The key held an earlier state of the same object.
    Updated {
        /// The state before.
        old: Record<T>,
    },
    /// The key held another object, which had the same name and another UID (G5).
    Recreated {
        /// The last state of the previous object.
        old: Record<T>,
    },
    /// The store already held exactly this UID and version; nothing changed (G7).
    Unchanged,
}

impl<T> Store<T> {
    /// An empty store at the unset version.
    #[must_use]
    pub(crate) fn new() -> Self {
        let root = Root::new();
        Self {
            published: Arc::new(ArcSwap::from_pointee(root.clone())),
            root,
            free: FreeSlots::default(),
            building: Vec::new(),
            dirty: false,
            faults: Vec::new(),
        }
    }

    /// A handle for readers.
    #[must_use]
    pub(crate) fn reader(&self) -> Reader<T> {
        Reader(Arc::clone(&self.published))
    }

    /// The record of `key` as the writer sees it, published or not.
    #[must_use]
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Record<T>> {
        self.root.objects.get(key)
    }

    /// The key and record of the object with this namespace and name, without building a key.
    #[must_use]
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<(&ObjectKey, &Record<T>)> {
        self.root.objects.find(namespace, name)
    }

    /// What is held under a name, compared with this UID and version.
    #[must_use]
    pub(crate) fn held(
        &self,
        namespace: &str,
        name: &str,
        uid: &Uid,
        version: &ResourceVersion,
    ) -> Held {
        match self.find(namespace, name) {
            None => Held::Nothing,
            Some((key, record)) if record.is_state(uid, version) => Held::Same(key.clone()),
            Some((key, record)) if record.uid == *uid => Held::Older(key.clone()),
            Some((key, _)) => Held::Other(key.clone()),
        }
    }

    /// The number of objects, published or not.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.root.objects.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version of the store, published or not.
    #[must_use]
    pub(crate) fn version(&self) -> &ResourceVersion {
        &self.root.version
    }

    /// Sets the version of the store; readers see it after the next publication.
    pub(crate) fn set_version(&mut self, version: ResourceVersion) {
        self.root.version = version;
        self.dirty = true;
    }

    /// Starts a new epoch: the server's history was replaced, so older versions are not comparable
    /// (G14).
    pub(crate) fn history_changed(&mut self) {
        self.root.epoch += 1;
        self.dirty = true;
    }

    /// Writes one object.
    pub(crate) fn upsert(&mut self, item: Item<T>) -> Change<T> {
        self.write(&item.key, item.record, false)
    }

    /// [`upsert`](Self::upsert); with `distrust`, a record of equal UID and version counts as
    /// changed.
    fn write(&mut self, key: &ObjectKey, record: Record<T>, distrust: bool) -> Change<T> {
        let held = self.root.objects.get(key);
        if !distrust && held.is_some_and(|held| held.is_state(&record.uid, &record.version)) {
            return Change::Unchanged;
        }
        let same_object = held.is_some_and(|held| held.uid == record.uid);
        let (slot, old) = self.root.objects.insert(&mut self.free, key, record);
        self.reindex(key, slot, old.as_ref());
        self.dirty = true;
        match old {
            None => Change::Added,
            Some(old) if same_object => Change::Updated { old },
            Some(old) => Change::Recreated { old },
        }
    }

    /// Removes one object and returns its last state.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Record<T>> {
        let (slot, old) = self.root.objects.remove(&mut self.free, key)?;
        self.reindex(key, slot, Some(&old));
        self.dirty = true;
        Some(old)
    }

    /// Makes all writes since the last publication visible to readers, in one step. Does nothing if
    /// there were none; returns whether there were.
    pub(crate) fn publish(&mut self) -> bool {
        let is_dirty = std::mem::take(&mut self.dirty);
        if is_dirty {
            self.published.store(Arc::new(self.root.clone()));
        }
        is_dirty
    }

    /// Takes the faults of index functions since the last call.
    pub(crate) fn take_faults(&mut self) -> Vec<IndexFault> {
        std::mem::take(&mut self.faults)
    }

    /// Updates the indexes from the `old` record of `key` to its current one.
    fn reindex(&mut self, key: &ObjectKey, slot: Slot, old: Option<&Record<T>>) {
        let Root { objects, indexes, .. } = &mut self.root;
        let [old, new] =
            [old, objects.record(slot)].map(|record| record.map(|record| &*record.object));
        let building = self.building.iter_mut().filter(|building| building.has_filed(key));
        for postings in indexes.iter_mut().chain(building.map(|building| &mut building.postings)) {
            postings.update(key, slot, old, new, &mut self.faults);
        }
    }

    /// Sets the whole table at once. Only correct if the store has no objects.
    fn fill(&mut self, objects: Table<T>, free: FreeSlots) {
        (self.root.objects, self.free) = (objects, free);
        // The clone ends the borrow; it shares all structure.
        for (key, slot, _) in self.root.objects.clone().iter() {
            self.reindex(key, slot, None);
        }
        self.dirty = true;
    }
}

impl<T> Reader<T> {
    /// The state last published. O(1), and never blocks.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot::new(self.0.load_full())
    }
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("objects", &self.len())
            .field("version", &self.root.version)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reader").field(&self.snapshot()).finish()
    }
}
