//! The objects of a store: keys in order, each with the number of the place that its record is in.

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashSet;

use super::slots::{Cursor, Numbers, Slot, Slots};
use crate::sorted_map::{Iter, Place, SortedMap};
use crate::{ObjectKey, Record};

/// Objects by key. A change of an object writes its place only; keys are written when objects come and go.
pub(super) struct Table<T> {
    keys: SortedMap<ObjectKey, Slot>,
    records: Slots<Record<T>>,
}

impl<T> Table<T> {
    pub(super) fn new() -> Self {
        Self { keys: SortedMap::new(), records: Slots::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Where the record of `key` is.
    pub(super) fn slot(&self, key: &ObjectKey) -> Option<Slot> {
        self.keys.get(key).copied()
    }

    /// What is in a place.
    pub(super) fn record(&self, slot: Slot) -> Option<&Record<T>> {
        self.records.get(slot)
    }

    /// What is in several places, which are read together.
    pub(super) fn records<const N: usize>(&self, slots: [Option<Slot>; N]) -> [Option<&Record<T>>; N] {
        self.records.get_each(slots)
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Record<T>> {
        self.record(self.slot(key)?)
    }

    /// The object with this namespace and name.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<(&ObjectKey, &Record<T>)> {
        let (compare, head) = parts(namespace, name);
        let (key, slot) = self.keys.find_by_head(compare, head)?;
        Some((key, self.record(*slot)?))
    }

    /// [`find`](Self::find) by way of a place; see [`SortedMap::find_near`].
    pub(super) fn find_near(
        &self,
        near: Place,
        namespace: &str,
        name: &str,
    ) -> (Option<(&ObjectKey, &Record<T>)>, Place) {
        let (compare, head) = parts(namespace, name);
        let (found, next) = self.keys.find_near(near, compare, head);
        (found.and_then(|(key, slot)| Some((key, self.record(*slot)?))), next)
    }

    /// All objects in key order.
    pub(super) fn iter(&self) -> Entries<'_, T> {
        Entries { keys: self.keys.iter(), records: self.records.cursor() }
    }

    /// The objects in key order from the first one whose key `compare` does not say is `Less`.
    pub(super) fn seek(&self, compare: impl Fn(&ObjectKey) -> Ordering) -> Entries<'_, T> {
        Entries { keys: self.keys.seek(compare), records: self.records.cursor() }
    }

    /// The same objects for others to read; see [`Slots::share`].
    pub(super) fn share(&mut self) -> Self {
        Self { keys: self.keys.clone(), records: self.records.share() }
    }

    /// To be called when what was shared before may have gone; see [`Slots::settle`].
    pub(super) fn settle(&mut self) {
        self.records.settle();
    }

    /// Adds an object whose key is not there, and says where.
    pub(super) fn add(&mut self, numbers: &mut Numbers, key: ObjectKey, record: Record<T>) -> Slot {
        let slot = numbers.take();
        self.keys.insert(key, slot);
        self.records.set(slot, Some(record));
        slot
    }

    /// Changes what is in a place.
    pub(super) fn change(&mut self, slot: Slot, record: Record<T>) -> Option<Record<T>> {
        self.records.set(slot, Some(record))
    }

    /// Sets the record of a key, whether it is there or not; one that is gets another place. Cheaper than looking first.
    pub(super) fn put(&mut self, numbers: &mut Numbers, key: ObjectKey, record: Record<T>) {
        let slot = numbers.take();
        if let Some(before) = self.keys.insert(key, slot) {
            self.records.set(before, None);
            numbers.give_back(before);
        }
        self.records.set(slot, Some(record));
    }

    /// Removes an object, and says where it was.
    pub(super) fn remove(&mut self, numbers: &mut Numbers, key: &ObjectKey) -> Option<(Slot, Record<T>)> {
        let slot = self.keys.remove(key)?;
        let old = self.records.set(slot, None)?;
        numbers.give_back(slot);
        Some((slot, old))
    }

    /// Places that had an object in `old` and have one here, if it may be another: what both share is skipped.
    pub(super) fn changed_since(&self, old: &Self) -> HashSet<Slot> {
        self.records.changed_since(&old.records)
    }

    /// The objects that may be different in `old` and here, in key order from behind `after` on: those of a few
    /// keys around the ones that came or went, and those whose place is `changed`.
    pub(super) fn differences<'a>(
        &'a self,
        old: &'a Self,
        changed: &'a HashSet<Slot>,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = Difference<'a, T>> {
        let keys = self.keys.differences(&old.keys, after, |slot| changed.contains(slot));
        let placed = |table: &'a Self, slot: Option<&Slot>| {
            slot.and_then(|slot| Some((*slot, &table.record(*slot)?.object)))
        };
        keys.map(move |(key, before, now)| (key, placed(old, before), placed(self, now)))
    }
}

/// How keys compare with the one of these parts, and the heads of that.
fn parts(namespace: &str, name: &str) -> (impl Fn(&ObjectKey) -> Ordering, impl Fn(usize) -> u64) {
    (move |key| key.cmp_parts(namespace, name), move |at| ObjectKey::head_of_parts(namespace, name, at))
}

/// A place with the object in it.
pub(super) type Placed<'a, T> = (Slot, &'a Arc<T>);

/// A key with its object in the old table and in the new one.
pub(super) type Difference<'a, T> = (&'a ObjectKey, Option<Placed<'a, T>>, Option<Placed<'a, T>>);

/// Iterates over objects in key order.
pub(super) struct Entries<'a, T> {
    keys: Iter<'a, ObjectKey, Slot>,
    records: Cursor<'a, Record<T>>,
}

impl<'a, T> Entries<'a, T> {
    /// The next object with its place.
    #[inline]
    pub(super) fn next_slot(&mut self) -> Option<(&'a ObjectKey, Slot, &'a Record<T>)> {
        let (key, slot) = self.keys.next()?;
        Some((key, *slot, self.records.get(*slot)?))
    }
}

impl<'a, T> Iterator for Entries<'a, T> {
    type Item = (&'a ObjectKey, &'a Record<T>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_slot().map(|(key, _, record)| (key, record))
    }

    #[inline]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, mut folded: B, mut f: F) -> B {
        loop {
            let leaf = self.keys.take_leaf();
            if leaf.is_empty() {
                return folded;
            }
            for entry in leaf {
                let Some(record) = self.records.get(entry.value) else { return folded };
                folded = f(folded, (&entry.key, record));
            }
        }
    }
}

impl<T> Clone for Entries<'_, T> {
    fn clone(&self) -> Self {
        Self { keys: self.keys.clone(), records: self.records.clone() }
    }
}
