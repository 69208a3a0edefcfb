//! The objects of a store: keys in order, each with the slot of its record.

use std::cmp::Ordering;

use super::records::{FreeSlots, Records, Slot};
use crate::sorted_map::{Iter, SortedMap};
use crate::{ObjectKey, Record};

/// Objects by key. A change of an object writes only its record; keys are written when objects are
/// added or removed.
pub(super) struct Table<T> {
    keys: SortedMap<ObjectKey, Slot>,
    records: Records<T>,
}

impl<T> Table<T> {
    pub(super) fn new() -> Self {
        Self { keys: SortedMap::new(), records: Records::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The slot of `key`.
    pub(super) fn slot(&self, key: &ObjectKey) -> Option<Slot> {
        self.keys.get(key).copied()
    }

    /// The record of a slot.
    pub(super) fn record(&self, slot: Slot) -> Option<&Record<T>> {
        self.records.get(slot)
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Record<T>> {
        self.record(self.slot(key)?)
    }

    /// The object with this namespace and name.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<(&ObjectKey, &Record<T>)> {
        let (key, slot) = self.keys.find(|key| key.cmp_parts(namespace, name))?;
        Some((key, self.record(*slot)?))
    }

    /// All objects in key order.
    pub(super) fn iter(&self) -> Entries<'_, T> {
        self.seek(|_| Ordering::Greater)
    }

    /// The objects in key order, from the first key for which `compare` does not return `Less`.
    pub(super) fn seek(&self, compare: impl Fn(&ObjectKey) -> Ordering) -> Entries<'_, T> {
        Entries { keys: self.keys.seek(compare), records: &self.records }
    }

    /// The objects in key order whose keys come after `key`.
    pub(super) fn after(&self, key: &ObjectKey) -> Entries<'_, T> {
        self.seek(|candidate| candidate.cmp(key).then(Ordering::Less))
    }

    /// Sets the record of a key; returns its slot and its previous record.
    pub(super) fn insert(
        &mut self,
        free: &mut FreeSlots,
        key: &ObjectKey,
        record: Record<T>,
    ) -> (Slot, Option<Record<T>>) {
        let slot = self.slot(key).unwrap_or_else(|| {
            let slot = free.take();
            self.keys.insert(key.clone(), slot);
            slot
        });
        (slot, self.records.set(slot, record))
    }

    /// Removes an object and returns it with its slot.
    pub(super) fn remove(
        &mut self,
        free: &mut FreeSlots,
        key: &ObjectKey,
    ) -> Option<(Slot, Record<T>)> {
        let slot = self.keys.remove(key)?;
        let old = self.records.take(slot)?;
        free.give_back(slot);
        Some((slot, old))
    }
}

/// Clones share all structure.
impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self { keys: self.keys.clone(), records: self.records.clone() }
    }
}

/// Iterates over objects in key order.
pub(super) struct Entries<'a, T> {
    keys: Iter<'a, ObjectKey, Slot>,
    records: &'a Records<T>,
}

impl<'a, T> Iterator for Entries<'a, T> {
    type Item = (&'a ObjectKey, Slot, &'a Record<T>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, slot) = self.keys.next()?;
        Some((key, *slot, self.records.get(*slot)?))
    }
}
