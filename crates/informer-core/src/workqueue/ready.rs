//! Items that wait to be handed out, in two priorities.

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

/// How urgent an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// What can wait: the initial objects after a restart, and resyncs.
    Low,
    /// What has changed.
    #[default]
    Normal,
}

/// How many items of [`Priority::Normal`] are handed out in a row while one of
/// [`Priority::Low`] waits: of ten, one is of low priority, so that no item waits for ever.
pub(super) const NORMAL_IN_A_ROW: u32 = 9;

/// Items that wait, each once. Those of one priority are in the order in which they got it.
#[derive(Debug)]
pub(super) struct Ready<K> {
    normal: VecDeque<K>,
    low: BTreeMap<u64, K>,
    waiting: HashMap<K, Waiting>,
    /// How many items of normal priority were handed out while the first of low priority waited.
    passed: u32,
    sequence: u64,
}

#[derive(Debug)]
struct Waiting {
    /// When it was added.
    added: Duration,
    /// Its place, if its priority is low.
    low: Option<u64>,
}

impl<K: Hash + Eq + Clone> Ready<K> {
    pub(super) fn new() -> Self {
        Self {
            normal: VecDeque::new(),
            low: BTreeMap::new(),
            waiting: HashMap::new(),
            passed: 0,
            sequence: 0,
        }
    }

    /// Whether `item` waits. If its priority is lower than `priority`, it gets that one.
    pub(super) fn raise(&mut self, item: &K, priority: Priority) -> bool {
        let Some(waiting) = self.waiting.get_mut(item) else { return false };
        match priority {
            Priority::Low => {}
            Priority::Normal => {
                let promoted = waiting.low.take().and_then(|place| self.low.remove(&place));
                self.normal.extend(promoted);
            }
        }
        true
    }

    /// Adds an item that does not wait.
    pub(super) fn push(&mut self, added: Duration, item: K, priority: Priority) {
        let low = match priority {
            Priority::Normal => {
                self.normal.push_back(item.clone());
                None
            }
            Priority::Low => {
                self.sequence += 1;
                self.low.insert(self.sequence, item.clone());
                Some(self.sequence)
            }
        };
        self.waiting.insert(item, Waiting { added, low });
    }

    /// The next item, and when it was added.
    pub(super) fn pop(&mut self) -> Option<(K, Duration)> {
        let is_turn_of_low = self.normal.is_empty() || self.passed >= NORMAL_IN_A_ROW;
        let low = if is_turn_of_low { self.low.pop_first() } else { None };
        let item = match low {
            Some((_, item)) => {
                self.passed = 0;
                item
            }
            None => {
                self.passed = if self.low.is_empty() { 0 } else { self.passed + 1 };
                self.normal.pop_front()?
            }
        };
        let added = self.waiting.remove(&item).map_or(Duration::ZERO, |waiting| waiting.added);
        Some((item, added))
    }
}

impl<K> Ready<K> {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many items are of low priority.
    pub(super) fn low(&self) -> usize {
        self.low.len()
    }
}
