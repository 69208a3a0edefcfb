//! Items that wait for their time.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

/// Items by deadline, each at most once; those with the same deadline in the order in which they came.
#[derive(Debug)]
pub(super) struct Delays<K> {
    by_deadline: BTreeMap<Due, K>,
    due: HashMap<K, Due>,
    sequence: u64,
}

/// When, and in what order among the same deadlines.
type Due = (Duration, u64);

impl<K: Hash + Eq + Clone> Delays<K> {
    pub(super) fn new() -> Self {
        Self { by_deadline: BTreeMap::new(), due: HashMap::new(), sequence: 0 }
    }

    /// Lets `item` wait until `deadline`. One that waits already keeps the earlier deadline of the two.
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

    /// Takes the item with the earliest deadline, if that has come.
    pub(super) fn pop_due(&mut self, now: Duration) -> Option<K> {
        let first = self.by_deadline.first_entry().filter(|first| first.key().0 <= now)?;
        let item = first.remove();
        self.due.remove(&item);
        Some(item)
    }

    pub(super) fn len(&self) -> usize {
        self.by_deadline.len()
    }

    pub(super) fn clear(&mut self) {
        self.by_deadline = BTreeMap::new();
        self.due = HashMap::new();
    }
}
