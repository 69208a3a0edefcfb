//! The store: all objects of a collection, ordered by key, with any number of indexes.
//!
//! One writer owns the [`Store`] and publishes; everyone else holds a [`Reader`] and takes [`Snapshot`]s.
//! A snapshot is O(1) to take, is one consistent view over the objects and every index, never changes, and
//! neither blocks the writer nor is blocked by it (G10).
//!
//! # Examples
//! ```
//! use informer_core::store::{Index, Store};
//! use informer_core::{Item, ObjectKey};
//!
//! struct Pod { node: &'static str }
//!
//! let mut store = Store::new();
//! let reader = store.reader();
//! let by_node = Index::new("node", |pod: &Pod, values| values.push(pod.node));
//! store.add_index(&by_node)?;
//! let item = |name: &str, version: u64, node| {
//!     Item::new(ObjectKey::namespaced("default", name), name.into(), version.into(), Pod { node })
//! };
//! store.upsert(item("a", 1, "node-1"));
//! store.upsert(item("b", 2, "node-2"));
//! assert_eq!(reader.snapshot().len(), 0, "nothing is seen before it is published");
//! store.publish();
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
pub use replace::{ReplaceChange, Replacement};
pub use snapshot::{Entry, IndexHits, Objects, Snapshot};

use crate::{Item, ObjectKey, Record, ResourceVersion};
use building::Building;
use records::{FreeSlots, Slot};
use snapshot::Root;
use table::Table;

/// The writing side of a collection of objects. Writes are seen by readers after [`publish`](Self::publish).
pub struct Store<T> {
    root: Root<T>,
    free: FreeSlots,
    /// Indexes that are not in the root yet.
    building: Vec<Building<T>>,
    dirty: bool,
    faults: Vec<IndexFault>,
    published: Arc<ArcSwap<Root<T>>>,
}

/// A cheap handle from which anyone takes snapshots of a [`Store`], also after the store is gone.
pub struct Reader<T>(Arc<ArcSwap<Root<T>>>);

/// What a write did to its key.
#[derive(Debug)]
pub enum Change<T> {
    /// The key was not there.
    Added,
    /// The key held an earlier state of the same object.
    Updated {
        /// The state before.
        old: Record<T>,
    },
    /// The key held another object, which had the same name and another UID (G5).
    Recreated {
        /// The last state of the object that is gone.
        old: Record<T>,
    },
    /// The store already held exactly this UID and version; nothing changed (G7).
    Unchanged,
}

impl<T> Store<T> {
    /// An empty store at the unset version.
    #[must_use]
    pub fn new() -> Self {
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
    pub fn reader(&self) -> Reader<T> {
        Reader(Arc::clone(&self.published))
    }

    /// The record of `key` as the writer sees it, published or not.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Record<T>> {
        self.root.objects.get(key)
    }

    /// The key and record of the object with this namespace and name, without building a key of them.
    #[must_use]
    pub fn find(&self, namespace: &str, name: &str) -> Option<(&ObjectKey, &Record<T>)> {
        self.root.objects.find(namespace, name)
    }

    /// The number of objects as the writer sees it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.root.objects.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version that the store stands at.
    #[must_use]
    pub fn version(&self) -> &ResourceVersion {
        &self.root.version
    }

    /// Sets the version that the store stands at, with the next publication.
    pub fn set_version(&mut self, version: ResourceVersion) {
        self.root.version = version;
        self.dirty = true;
    }

    /// Notes that the server's history was replaced: versions from before mean nothing any more (G14).
    pub fn history_changed(&mut self) {
        self.root.epoch += 1;
        self.dirty = true;
    }

    /// Writes one object.
    pub fn upsert(&mut self, item: Item<T>) -> Change<T> {
        self.write(&item.key, item.record, false)
    }

    /// [`upsert`](Self::upsert), which may `distrust` an equal UID and version: then the state counts as another one.
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
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Record<T>> {
        let (slot, old) = self.root.objects.remove(&mut self.free, key)?;
        self.reindex(key, slot, Some(&old));
        self.dirty = true;
        Some(old)
    }

    /// Makes all writes since the last publication visible to readers, in one step. Does nothing if there
    /// were none.
    pub fn publish(&mut self) {
        if std::mem::take(&mut self.dirty) {
            self.published.store(Arc::new(self.root.clone()));
        }
    }

    /// Takes what index functions did wrong since the last call.
    pub fn take_faults(&mut self) -> Vec<IndexFault> {
        std::mem::take(&mut self.faults)
    }

    /// Brings the indexes to the record that `key` has now, after `old`.
    fn reindex(&mut self, key: &ObjectKey, slot: Slot, old: Option<&Record<T>>) {
        let Root { objects, indexes, .. } = &mut self.root;
        let [old, new] = [old, objects.record(slot)].map(|record| record.map(|record| &*record.object));
        let building = self.building.iter_mut().filter(|building| building.has_filed(key));
        for postings in indexes.iter_mut().chain(building.map(|building| &mut building.postings)) {
            postings.update(key, slot, old, new, &mut self.faults);
        }
    }

    /// The whole table in one go, for a first list; only right where there were no objects before.
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
    /// The store as last published: O(1), and never waits.
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
