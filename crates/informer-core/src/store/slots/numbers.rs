//! Which places are taken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Slot;

/// Which numbers are free; the lowest goes first, so that leaves stay full, and those behind them can go.
#[derive(Debug, Default)]
pub(in crate::store) struct Numbers {
    /// This one and all above were never used.
    next: Slot,
    pub(super) freed: BinaryHeap<Reverse<Slot>>,
}

impl Numbers {
    /// # Panics
    /// Beyond four billion objects.
    pub(in crate::store) fn take(&mut self) -> Slot {
        if let Some(Reverse(slot)) = self.freed.pop() {
            if self.freed.len() < self.freed.capacity() / 4 {
                self.freed.shrink_to(self.freed.len() * 2);
            }
            return slot;
        }
        let slot = self.next;
        self.next = slot.checked_add(1).expect("a store has four billion objects at most");
        slot
    }

    pub(in crate::store) fn give_back(&mut self, slot: Slot) {
        self.freed.push(Reverse(slot));
        // All of them: what a large store needed to remember is let go.
        if self.freed.len() == self.next as usize {
            *self = Self::default();
        }
    }
}
