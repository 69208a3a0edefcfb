//! Records by slot: a persistent vector. Cloning is O(1), clones share structure, and a write
//! copies one path.
//!
//! Keys and postings refer to records by slot. A change of an object writes only its record, and an
//! index lookup reads records without comparing keys.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::Record;

/// The number under which a record is stored.
pub(super) type Slot = u32;

/// A slot's lowest bits choose the record in its leaf.
const LEAF_BITS: u32 = 3;

/// At each level, this many bits above them choose the child of a branch.
const BRANCH_BITS: u32 = 4;

/// Records of a leaf. Each write after a publication copies one leaf.
const LEAF: usize = 1 << LEAF_BITS;

/// Children of a branch.
const BRANCH: usize = 1 << BRANCH_BITS;

/// The records that have a slot: a radix tree of reference-counted nodes.
pub(super) struct Records<T> {
    root: Node<T>,
    /// The number of branch levels above the leaves.
    height: u32,
}

enum Node<T> {
    /// Nothing below.
    Empty,
    Leaf(Arc<[Option<Record<T>>; LEAF]>),
    Branch(Arc<[Self; BRANCH]>),
}

impl<T> Records<T> {
    pub(super) fn new() -> Self {
        Self { root: Node::Empty, height: 0 }
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Record<T>> {
        if !self.reaches(slot) {
            return None;
        }
        let mut node = &self.root;
        let mut height = self.height;
        loop {
            match node {
                Node::Empty => return None,
                Node::Leaf(records) => return records[in_leaf(slot)].as_ref(),
                Node::Branch(children) => node = &children[child(slot, height)],
            }
            height -= 1;
        }
    }

    /// Sets the record of a slot and returns the one before.
    pub(super) fn set(&mut self, slot: Slot, record: Record<T>) -> Option<Record<T>> {
        while !self.reaches(slot) {
            let below = std::mem::replace(&mut self.root, Node::Empty);
            if !matches!(below, Node::Empty) {
                let mut children = [const { Node::Empty }; BRANCH];
                children[0] = below;
                self.root = Node::Branch(Arc::new(children));
            }
            self.height += 1;
        }
        self.root.set(self.height, slot, record)
    }

    /// Takes the record of a slot.
    pub(super) fn take(&mut self, slot: Slot) -> Option<Record<T>> {
        // Checked first, so that a miss copies no nodes.
        self.get(slot)?;
        let record = self.root.take(self.height, slot);
        while self.height > 0 {
            self.root = match &self.root {
                Node::Empty => Node::Empty,
                Node::Branch(children) if children[1..].iter().all(Node::is_empty) => {
                    children[0].clone()
                }
                Node::Branch(_) | Node::Leaf(_) => break,
            };
            self.height -= 1;
        }
        record
    }

    /// Whether the tree is high enough for the slot.
    fn reaches(&self, slot: Slot) -> bool {
        u64::from(slot) >> (LEAF_BITS + BRANCH_BITS * self.height) == 0
    }
}

impl<T> Node<T> {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    fn set(&mut self, height: u32, slot: Slot, record: Record<T>) -> Option<Record<T>> {
        match self {
            Self::Leaf(records) => Arc::make_mut(records)[in_leaf(slot)].replace(record),
            Self::Branch(children) => {
                Arc::make_mut(children)[child(slot, height)].set(height - 1, slot, record)
            }
            Self::Empty => {
                *self = match height {
                    0 => Self::Leaf(Arc::new([const { None }; LEAF])),
                    _ => Self::Branch(Arc::new([const { Self::Empty }; BRANCH])),
                };
                self.set(height, slot, record)
            }
        }
    }

    /// Takes a record; a node that holds no more records becomes empty.
    fn take(&mut self, height: u32, slot: Slot) -> Option<Record<T>> {
        let (record, is_empty) = match self {
            Self::Empty => return None,
            Self::Leaf(records) => {
                let records = Arc::make_mut(records);
                let record = records[in_leaf(slot)].take();
                (record, records.iter().all(Option::is_none))
            }
            Self::Branch(children) => {
                let children = Arc::make_mut(children);
                let record = children[child(slot, height)].take(height - 1, slot);
                (record, children.iter().all(Self::is_empty))
            }
        };
        if is_empty {
            *self = Self::Empty;
        }
        record
    }
}

/// The position of a slot's record in its leaf.
fn in_leaf(slot: Slot) -> usize {
    slot as usize % LEAF
}

/// The position of the child that contains the slot, in a branch of this height.
fn child(slot: Slot, height: u32) -> usize {
    (slot >> (LEAF_BITS + BRANCH_BITS * (height - 1))) as usize % BRANCH
}

/// Clones share all structure.
impl<T> Clone for Records<T> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), height: self.height }
    }
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Empty => Self::Empty,
            Self::Leaf(records) => Self::Leaf(Arc::clone(records)),
            Self::Branch(children) => Self::Branch(Arc::clone(children)),
        }
    }
}

/// Allocates slots, the lowest free one first, so that leaves stay full and the last ones become
/// empty.
#[derive(Debug, Default)]
pub(super) struct FreeSlots {
    /// This slot and all above were never used.
    next: Slot,
    freed: BinaryHeap<Reverse<Slot>>,
}

impl FreeSlots {
    /// # Panics
    /// Beyond four billion objects.
    pub(super) fn take(&mut self) -> Slot {
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

    pub(super) fn give_back(&mut self, slot: Slot) {
        self.freed.push(Reverse(slot));
        // All slots are free: the heap's memory after a large store is freed, too.
        if self.freed.len() == self.next as usize {
            *self = Self::default();
        }
    }
}
