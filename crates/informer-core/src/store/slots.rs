//! Numbered places for values, as persistent as the map: to share them is O(1), what was shared stays as it is, and a
//! write copies one path.
//!
//! A radix tree of reference-counted nodes. Keys and postings hold numbers, so that a change of an object is a write
//! here and nowhere else, and that what an index finds is reached without comparing keys.

mod draft;
mod numbers;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use hashbrown::HashSet;

use draft::{Counted, Original};
pub(super) use numbers::Numbers;

/// The number of a place.
pub(super) type Slot = u32;

/// A number's lowest bits are the place in the leaf.
const LEAF_BITS: u32 = 3;

/// So many bits above them choose a child of each branch.
const BRANCH_BITS: u32 = 4;

/// Places of a leaf. Each write after a publication copies one.
const LEAF: usize = 1 << LEAF_BITS;

/// Children of a branch.
const BRANCH: usize = 1 << BRANCH_BITS;

/// The values that have a number.
pub(super) struct Slots<V: Counted> {
    root: Node<V>,
    /// Branches above a leaf.
    height: u32,
    /// What this tree was when it was first written since it was last settled; it borrows from that.
    original: Option<Original<V>>,
    /// Whether it was shared since it was last settled.
    is_shared: bool,
}

enum Node<V> {
    /// Nothing below.
    Empty,
    Leaf(Arc<Leaf<V>>),
    Branch(Arc<Branch<V>>),
}

struct Leaf<V> {
    values: [Option<V>; LEAF],
    /// While this is written: which of them are its own, and not borrowed, a bit for each.
    own: u8,
}

struct Branch<V> {
    children: [Node<V>; BRANCH],
    /// As in a leaf.
    own: u16,
}

impl<V: Counted> Slots<V> {
    pub(super) fn new() -> Self {
        Self { root: Node::Empty, height: 0, original: None, is_shared: false }
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&V> {
        self.leaf(slot)?.values[place(slot)].as_ref()
    }

    /// What is in several places. Goes down level by level, for all of them on each, so that memory which is far away is
    /// waited for once in each level and not once for each place.
    pub(super) fn get_each<const N: usize>(&self, slots: [Option<Slot>; N]) -> [Option<&V>; N] {
        let slots = slots.map(|slot| slot.filter(|slot| self.reaches(*slot)));
        let mut nodes = slots.map(|slot| slot.map(|slot| (slot, &self.root)));
        for height in (1..=self.height).rev() {
            nodes = nodes.map(|node| match node {
                Some((slot, Node::Branch(branch))) => Some((slot, &branch.children[child(slot, height)])),
                _ => None,
            });
        }
        nodes.map(|node| match node {
            Some((slot, Node::Leaf(leaf))) => leaf.values[place(slot)].as_ref(),
            _ => None,
        })
    }

    /// Reads one place after another, fast where they are neighbours.
    pub(super) fn cursor(&self) -> Cursor<'_, V> {
        Cursor { slots: self, leaf: &[], of: Slot::MAX, siblings: &[], above: Slot::MAX }
    }

    /// The places with a value in `old` and here that stand in leaves which are not shared.
    pub(super) fn changed_since(&self, old: &Self) -> HashSet<Slot> {
        let (mut before, mut now) = (&old.root, &self.root);
        // What the taller one has beyond the other's reach, the other has not.
        let height = self.height.min(old.height);
        for (node, above) in [(&mut before, old.height - height), (&mut now, self.height - height)] {
            for _ in 0..above {
                let Node::Branch(branch) = *node else { return HashSet::new() };
                *node = &branch.children[0];
            }
        }
        let mut places = HashSet::new();
        now.changed_since(before, 0, height, &mut places);
        places
    }

    fn leaf(&self, slot: Slot) -> Option<&Leaf<V>> {
        match self.node(slot, 0)? {
            Node::Leaf(leaf) => Some(leaf),
            Node::Branch(_) | Node::Empty => None,
        }
    }

    /// The node of this height above the slot.
    fn node(&self, slot: Slot, height: u32) -> Option<&Node<V>> {
        if !self.reaches(slot) || height > self.height {
            return None;
        }
        let mut node = &self.root;
        for height in (height + 1..=self.height).rev() {
            let Node::Branch(branch) = node else { return None };
            node = &branch.children[child(slot, height)];
        }
        Some(node)
    }

    fn reaches(&self, slot: Slot) -> bool {
        u64::from(slot) >> (LEAF_BITS + BRANCH_BITS * self.height) == 0
    }
}

impl<V> Node<V> {
    /// `first` is the first place below both nodes, which are of the same height.
    fn changed_since(&self, old: &Self, first: Slot, height: u32, places: &mut HashSet<Slot>) {
        match (old, self) {
            (Self::Leaf(old), Self::Leaf(new)) if !Arc::ptr_eq(old, new) => {
                let both = (first..).zip(old.values.iter().zip(&new.values));
                places.extend(
                    both.filter_map(|(slot, (old, new))| (old.is_some() && new.is_some()).then_some(slot)),
                );
            }
            (Self::Branch(old), Self::Branch(new)) if !Arc::ptr_eq(old, new) => {
                let below = 1 << (LEAF_BITS + BRANCH_BITS * (height - 1));
                let firsts = (0..).map(|at| first + at * below);
                for (first, (old, new)) in firsts.zip(old.children.iter().zip(&new.children)) {
                    new.changed_since(old, first, height - 1, places);
                }
            }
            _ => {}
        }
    }
}

/// Where its leaf has the slot.
#[inline]
fn place(slot: Slot) -> usize {
    slot as usize % LEAF
}

/// Which child of a branch of this height has the slot.
fn child(slot: Slot, height: u32) -> usize {
    (slot >> (LEAF_BITS + BRANCH_BITS * (height - 1))) as usize % BRANCH
}

/// Clones share what is below.
impl<V> Clone for Node<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Empty => Self::Empty,
            Self::Leaf(leaf) => Self::Leaf(Arc::clone(leaf)),
            Self::Branch(branch) => Self::Branch(Arc::clone(branch)),
        }
    }
}

/// See [`Slots::cursor`].
pub(super) struct Cursor<'a, V: Counted> {
    slots: &'a Slots<V>,
    /// The leaf that was read last, if there is one of that number.
    leaf: &'a [Option<V>],
    /// Its number.
    of: u32,
    /// The leaves of the same branch, and the branch's number.
    siblings: &'a [Node<V>],
    above: u32,
}

impl<'a, V: Counted> Cursor<'a, V> {
    #[inline]
    pub(super) fn get(&mut self, slot: Slot) -> Option<&'a V> {
        if self.of != slot >> LEAF_BITS {
            self.go_to(slot);
        }
        self.leaf.get(place(slot))?.as_ref()
    }

    #[inline(never)]
    fn go_to(&mut self, slot: Slot) {
        self.of = slot >> LEAF_BITS;
        if self.above != self.of >> BRANCH_BITS {
            self.above = self.of >> BRANCH_BITS;
            self.siblings = match self.slots.node(slot, 1) {
                Some(Node::Branch(branch)) => &branch.children,
                _ => &[],
            };
        }
        self.leaf = match self.siblings.get(child(slot, 1)) {
            Some(Node::Leaf(leaf)) => &leaf.values,
            // A tree of one leaf has no branch.
            None => self.slots.leaf(slot).map_or(&[], |leaf| &leaf.values),
            _ => &[],
        };
    }
}

impl<V: Counted> Clone for Cursor<'_, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}
