//! Replacing the whole content: a list, staged item by item and published in one step (G9).

use std::fmt;

use hashbrown::HashSet;

use super::records::FreeSlots;
use super::table::Table;
use super::{Change, Store};
use crate::{Item, ObjectKey, Record, ResourceVersion};

/// A complete new list, staged for a store. Holds the objects that are new or changed, and only the
/// keys of the others (G7, G35).
pub(crate) struct Replacement<T> {
    changed: Table<T>,
    /// The free slots of `changed`.
    free: FreeSlots,
    /// Keys of objects that the store has already. None of them is in `changed`.
    kept: HashSet<ObjectKey>,
}

impl<T> Replacement<T> {
    /// An empty list.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self { changed: Table::new(), free: FreeSlots::default(), kept: HashSet::new() }
    }

    /// Adds `item`; replaces an earlier one with the same key.
    pub(crate) fn insert(&mut self, item: Item<T>) {
        self.kept.remove(&item.key);
        self.changed.insert(&mut self.free, &item.key, item.record);
    }

    /// Adds the object of `key` in the state that the store holds: the listed state is equal, or
    /// cannot be decoded (G30). Does nothing if the list has a decoded state of the object already.
    pub(crate) fn keep(&mut self, key: ObjectKey) {
        if self.changed.slot(&key).is_none() {
            self.kept.insert(key);
        }
    }

    /// Removes an object that was deleted before the list was complete.
    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.changed.remove(&mut self.free, key);
        self.kept.remove(key);
    }
}

impl<T> Default for Replacement<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Replacement<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (changed, kept) = (self.changed.len(), self.kept.len());
        f.debug_struct("Replacement").field("changed", &changed).field("kept", &kept).finish()
    }
}

impl<T> Store<T> {
    /// Makes the store equal to `list` at `version` and publishes it, all in one step. `changes` is
    /// called for each removed object, then for each written one, both in key order.
    ///
    /// `distrust`: the list comes from another history of the server, so equal UID and version do
    /// not imply an equal object (G26). Every listed object counts as changed.
    pub(crate) fn replace(
        &mut self,
        list: Replacement<T>,
        version: ResourceVersion,
        distrust: bool,
        mut changes: impl FnMut(&ObjectKey, ReplaceChange<T>),
    ) {
        let Replacement { changed, free, kept } = list;
        let held = self.root.objects.iter().map(|(key, ..)| key);
        let gone = held.filter(|key| !kept.contains(*key) && changed.slot(key).is_none());
        let gone: Vec<ObjectKey> = gone.cloned().collect();
        drop(kept);
        for key in &gone {
            let Some(old) = self.remove(key) else { continue };
            changes(key, ReplaceChange::Removed(old));
        }
        if self.is_empty() {
            for (key, _, record) in changed.iter() {
                changes(key, ReplaceChange::Written(Change::Added, record.clone()));
            }
            self.fill(changed, free);
        } else {
            for (key, _, record) in changed.iter() {
                let change = self.write(key, record.clone(), distrust);
                changes(key, ReplaceChange::Written(change, record.clone()));
            }
        }
        self.set_version(version);
        self.publish();
    }
}

/// One thing that a [`Replacement`] did to the store.
#[derive(Debug)]
pub(crate) enum ReplaceChange<T> {
    /// The object is not in the list.
    Removed(Record<T>),
    /// The object is in the list, in this state.
    Written(Change<T>, Record<T>),
}
