//! Delayed items.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

/// Delayed items by deadline, each at most once. Items with the same deadline are in the order of
/// insertion.
#[derive(Debug)]
pub(super) struct Delays<K> {
    by_deadline: BTreeMap<Due, K>,
    due: HashMap<K, Due>,
    sequence: u64,
}

/// A deadline, and the order of insertion among equal deadlines.
type Due = (Duration, u64);

impl<K: Hash + Eq + Clone> Delays<K> {
    pub(super) fn new() -> Self {
        Self { by_deadline: BTreeMap::new(), due: HashMap::new(), sequence: 0 }
    }

    /// Delays `item` until `deadline`. An item that is already delayed gets the earlier of both
    /// deadlines.
    pub(super) fn insert(&mut self, item: K, deadline: Duration) {
        if let Some(&due) = self.due.get(&item) {
            if due.0 <= deadline {
                return;
            }
            self.by_deadline.remove(&due);
        }
        self.sequence += 1;
        let due = (deadline, self.sequence);
        self.due.insert(item.clone(), due);
        self.by_deadline.insert(due, item);
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Duration> {
        self.by_deadline.first_key_value().map(|(due, _)| due.0)
    }

    /// Takes the item with the earliest deadline, if that has passed.
    pub(super) fn pop_due(&mut self, now: Duration) -> Option<K> {
        let first = self.by_deadline.first_entry().filter(|first| first.key().0 <= now)?;
        let item = first.remove();
        self.due.remove(&item);
        Some(item)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_deadline.len()
    }

    pub(super) fn clear(&mut self) {
        self.by_deadline = BTreeMap::new();
        self.due = HashMap::new();
    }
}
