//! Replacing the whole content: a list, staged item by item and published in one step (G9).

use std::fmt;

use hashbrown::HashSet;

use super::records::FreeSlots;
use super::table::Table;
use super::{Change, Store};
use crate::{Item, ObjectKey, Record, ResourceVersion};

/// A complete new list on its way into a store. Holds the objects that are new or changed, and only the
/// keys of the others (G7, G35).
pub struct Replacement<T> {
    changed: Table<T>,
    /// Of `changed`.
    free: FreeSlots,
    /// Keys of objects that the store has already. None of them is in `changed`.
    kept: HashSet<ObjectKey>,
}

impl<T> Replacement<T> {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self { changed: Table::new(), free: FreeSlots::default(), kept: HashSet::new() }
    }

    /// The list has `item`. The last one of a key counts.
    pub fn insert(&mut self, item: Item<T>) {
        self.kept.remove(&item.key);
        self.changed.insert(&mut self.free, &item.key, item.record);
    }

    /// The list has the object of `key` as the store has it already, or in a state that cannot be decoded
    /// (G30): the store keeps what it has, unless the list had a newer good state of it before.
    pub fn keep(&mut self, key: ObjectKey) {
        if self.changed.slot(&key).is_none() {
            self.kept.insert(key);
        }
    }

    /// The object was deleted before the list was complete.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.changed.remove(&mut self.free, key);
        self.kept.remove(key);
    }

    /// The number of objects so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changed.len() + self.kept.len()
    }

    /// Whether the list has no objects so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
    /// Makes the store equal to `list` at `version` and publishes it, all in one step. `changes` is told
    /// what changed: first the removals, then the rest, each in key order.
    ///
    /// `distrust`: the list is of another history of the server, so an equal UID and version do not mean
    /// an equal object (G26); every object of the list counts as changed.
    pub fn replace(
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
pub enum ReplaceChange<T> {
    /// The object is not in the list.
    Removed(Record<T>),
    /// The object is in the list, in this state.
    Written(Change<T>, Record<T>),
}
