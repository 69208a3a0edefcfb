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
mod hits;
mod index;
mod kept;
mod replace;
mod slots;
mod snapshot;
mod table;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

pub use building::IndexBuild;
pub use hits::IndexHits;
pub use index::{Index, IndexError, IndexFault, IndexValues, panic_message};
pub use replace::{ReplaceChange, Replacement};
pub use snapshot::{Entry, Objects, Snapshot};

use crate::sorted_map::Place;
use crate::{Item, ObjectKey, Record, ResourceVersion};
use slots::{Numbers, Slot};
use snapshot::Root;
use table::Table;

/// The writing side of a collection of objects. Writes are seen by readers after [`publish`](Self::publish).
pub struct Store<T> {
    root: Root<T>,
    numbers: Numbers,
    dirty: bool,
    faults: Vec<IndexFault>,
    /// Behind the object that was found last, for lists come in order. What is wrong here costs time only.
    near: AtomicU64,
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
        let mut root = Root::new();
        Self {
            published: Arc::new(ArcSwap::from_pointee(root.share())),
            root,
            numbers: Numbers::default(),
            dirty: false,
            faults: Vec::new(),
            near: AtomicU64::new(Place::NONE.to_bits()),
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

    /// The key and record of the object with this namespace and name, without building a key of them. Cheapest for
    /// objects in key order.
    #[must_use]
    pub fn find(&self, namespace: &str, name: &str) -> Option<(&ObjectKey, &Record<T>)> {
        let near = Place::from_bits(self.near.load(Ordering::Relaxed));
        let (found, next) = self.root.objects.find_near(near, namespace, name);
        self.near.store(next.to_bits(), Ordering::Relaxed);
        found
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
        self.write(&item.key, item.record)
    }

    /// [`upsert`](Self::upsert) with a key that is kept if it was not there.
    pub(crate) fn write(&mut self, key: &ObjectKey, record: Record<T>) -> Change<T> {
        let objects = &mut self.root.objects;
        let slot = objects.slot(key);
        let same_object = match slot.and_then(|slot| objects.record(slot)) {
            Some(held) if held.is_state(&record.uid, &record.version) => return Change::Unchanged,
            held => held.is_some_and(|held| held.uid == record.uid),
        };
        let (slot, old) = match slot {
            Some(slot) => (slot, objects.change(slot, record)),
            None => (objects.add(&mut self.numbers, key.clone(), record), None),
        };
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
        let (slot, old) = self.root.objects.remove(&mut self.numbers, key)?;
        self.reindex(key, slot, Some(&old));
        self.dirty = true;
        Some(old)
    }

    /// Makes all writes since the last publication visible to readers, in one step. Does nothing if there
    /// were none.
    pub fn publish(&mut self) {
        if std::mem::take(&mut self.dirty) {
            self.published.store(Arc::new(self.root.share()));
            // What was published before is gone, unless somebody reads it.
            self.root.objects.settle();
        }
    }

    /// Takes what index functions did wrong since the last call.
    pub fn take_faults(&mut self) -> Vec<IndexFault> {
        std::mem::take(&mut self.faults)
    }

    /// Brings the indexes to what is now in the place of `key`, which held `old`.
    fn reindex(&mut self, key: &ObjectKey, slot: Slot, old: Option<&Record<T>>) {
        let Root { objects, indexes, .. } = &mut self.root;
        for postings in indexes {
            let [old, new] = [old, objects.record(slot)].map(|record| record.map(|record| &*record.object));
            postings.update(key, slot, old, new, &mut self.faults);
        }
    }

    /// The whole table in one go, for a first list; only right where there were no objects before.
    fn fill(&mut self, objects: Table<T>, numbers: Numbers) {
        (self.root.objects, self.numbers) = (objects, numbers);
        let Root { objects, indexes, .. } = &mut self.root;
        let mut entries = objects.iter();
        while let Some((key, slot, record)) = entries.next_slot() {
            for postings in &mut *indexes {
                postings.update(key, slot, None, Some(&record.object), &mut self.faults);
            }
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
