//! Numbered places for values, as persistent as the map: cloning is O(1), clones share structure, and a write copies
//! one path.
//!
//! A radix tree of reference-counted nodes. Keys and postings hold numbers, so that a change of an object is a write
//! here and nowhere else, and that what an index finds is reached without comparing keys.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use hashbrown::HashSet;

/// The number of a place.
pub(super) type Slot = u32;

/// A number's lowest bits are the place in the leaf.
const LEAF_BITS: u32 = 3;

/// So many bits above them choose a child of each branch.
const BRANCH_BITS: u32 = 4;

/// Places of a leaf. Each write after a publication copies one, and raises the reference counts of all that is in it.
const LEAF: usize = 1 << LEAF_BITS;

/// Children of a branch.
const BRANCH: usize = 1 << BRANCH_BITS;

/// The values that have a number.
pub(super) struct Slots<V> {
    root: Node<V>,
    /// Branches above a leaf.
    height: u32,
}

enum Node<V> {
    /// Nothing below.
    Empty,
    Leaf(Arc<Leaf<V>>),
    Branch(Arc<Branch<V>>),
}

type Leaf<V> = [Option<V>; LEAF];
type Branch<V> = [Node<V>; BRANCH];

impl<V> Slots<V> {
    pub(super) fn new() -> Self {
        Self { root: Node::Empty, height: 0 }
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&V> {
        self.leaf(slot)?[place(slot)].as_ref()
    }

    /// What is in several places. Goes down level by level, for all of them on each, so that memory which is far away is
    /// waited for once in each level and not once for each place.
    pub(super) fn get_each<const N: usize>(&self, slots: [Option<Slot>; N]) -> [Option<&V>; N] {
        let slots = slots.map(|slot| slot.filter(|slot| self.reaches(*slot)));
        let mut nodes = slots.map(|slot| slot.map(|slot| (slot, &self.root)));
        for height in (1..=self.height).rev() {
            nodes = nodes.map(|node| match node {
                Some((slot, Node::Branch(children))) => Some((slot, &children[child(slot, height)])),
                _ => None,
            });
        }
        nodes.map(|node| match node {
            Some((slot, Node::Leaf(values))) => values[place(slot)].as_ref(),
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
                let Node::Branch(children) = *node else { return HashSet::new() };
                *node = &children[0];
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
            let Node::Branch(children) = node else { return None };
            node = &children[child(slot, height)];
        }
        Some(node)
    }

    fn reaches(&self, slot: Slot) -> bool {
        u64::from(slot) >> (LEAF_BITS + BRANCH_BITS * self.height) == 0
    }
}

impl<V: Clone> Slots<V> {
    /// Puts a value into a place, or takes it out, and returns the one before.
    pub(super) fn set(&mut self, slot: Slot, value: Option<V>) -> Option<V> {
        while !self.reaches(slot) {
            let below = std::mem::replace(&mut self.root, Node::Empty);
            if !matches!(below, Node::Empty) {
                let mut children = [const { Node::Empty }; BRANCH];
                children[0] = below;
                self.root = Node::Branch(Arc::new(children));
            }
            self.height += 1;
        }
        self.root.set(self.height, slot, value)
    }
}

impl<V> Node<V> {
    /// `first` is the first place below both nodes, which are of the same height.
    fn changed_since(&self, old: &Self, first: Slot, height: u32, places: &mut HashSet<Slot>) {
        match (old, self) {
            (Self::Leaf(old), Self::Leaf(new)) if !Arc::ptr_eq(old, new) => {
                let both = (first..).zip(old.iter().zip(new.iter()));
                places.extend(
                    both.filter_map(|(slot, (old, new))| (old.is_some() && new.is_some()).then_some(slot)),
                );
            }
            (Self::Branch(old), Self::Branch(new)) if !Arc::ptr_eq(old, new) => {
                let below = 1 << (LEAF_BITS + BRANCH_BITS * (height - 1));
                let firsts = (0..).map(|at| first + at * below);
                for (first, (old, new)) in firsts.zip(old.iter().zip(new.iter())) {
                    new.changed_since(old, first, height - 1, places);
                }
            }
            _ => {}
        }
    }
}

impl<V: Clone> Node<V> {
    fn set(&mut self, height: u32, slot: Slot, value: Option<V>) -> Option<V> {
        let is_removal = value.is_none();
        if let Self::Empty = self {
            if is_removal {
                return None;
            }
            *self = match height {
                0 => Self::Leaf(Arc::new([const { None }; LEAF])),
                _ => Self::Branch(Arc::new([const { Self::Empty }; BRANCH])),
            };
        }
        let (old, is_empty) = match self {
            Self::Empty => return None,
            Self::Leaf(values) => {
                let values = Arc::make_mut(values);
                let old = std::mem::replace(&mut values[place(slot)], value);
                (old, is_removal && values.iter().all(Option::is_none))
            }
            Self::Branch(children) => {
                let children = Arc::make_mut(children);
                let old = children[child(slot, height)].set(height - 1, slot, value);
                (old, is_removal && children.iter().all(|child| matches!(child, Self::Empty)))
            }
        };
        if is_empty {
            *self = Self::Empty;
        }
        old
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

/// Clones share all structure.
impl<V> Clone for Slots<V> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), height: self.height }
    }
}

impl<V> Clone for Node<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Empty => Self::Empty,
            Self::Leaf(values) => Self::Leaf(Arc::clone(values)),
            Self::Branch(children) => Self::Branch(Arc::clone(children)),
        }
    }
}

/// See [`Slots::cursor`].
pub(super) struct Cursor<'a, V> {
    slots: &'a Slots<V>,
    /// The leaf that was read last, if there is one of that number.
    leaf: &'a [Option<V>],
    /// Its number.
    of: u32,
    /// The leaves of the same branch, and the branch's number.
    siblings: &'a [Node<V>],
    above: u32,
}

impl<'a, V> Cursor<'a, V> {
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
                Some(Node::Branch(children)) => &**children,
                _ => &[],
            };
        }
        self.leaf = match self.siblings.get(child(slot, 1)) {
            Some(Node::Leaf(leaf)) => &**leaf,
            // A tree of one leaf has no branch.
            None => self.slots.leaf(slot).map_or(&[], |leaf| leaf),
            _ => &[],
        };
    }
}

impl<V> Clone for Cursor<'_, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

/// Which numbers are free; the lowest goes first, so that leaves stay full, and those behind them can go.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// This one and all above were never used.
    next: Slot,
    freed: BinaryHeap<Reverse<Slot>>,
}

impl Numbers {
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
        // All of them: what a large store needed to remember is let go.
        if self.freed.len() == self.next as usize {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Add(u32),
        Change(usize, u32),
        Remove(usize),
        Snapshot,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => any::<u32>().prop_map(Step::Add),
            3 => (any::<usize>(), any::<u32>()).prop_map(|(at, value)| Step::Change(at, value)),
            5 => any::<usize>().prop_map(Step::Remove),
            1 => Just(Step::Snapshot),
        ];
        prop::collection::vec(step, 0..2000)
    }

    fn assert_same(slots: &Slots<u32>, model: &BTreeMap<Slot, u32>) {
        let mut cursor = slots.cursor();
        for slot in 0..2000 {
            assert_eq!(slots.get(slot), model.get(&slot));
            assert_eq!(cursor.get(slot), model.get(&slot));
        }
        assert_eq!(slots.get(Slot::MAX), None);
        for first in (0..2000).step_by(97) {
            let several = [Some(first), Some(1999 - first), None, Some(first / 2), Some(Slot::MAX)];
            assert_eq!(slots.get_each(several), several.map(|slot| model.get(&slot?)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn equals_a_naive_model_in_every_snapshot(steps in steps()) {
            let (mut slots, mut numbers, mut model) = (Slots::new(), Numbers::default(), BTreeMap::new());
            let mut kept = Vec::new();
            let used = |model: &BTreeMap<Slot, u32>, at: usize| {
                model.keys().nth(at % model.len().max(1)).copied()
            };
            for step in steps {
                match step {
                    Step::Add(value) => {
                        let slot = numbers.take();
                        let lowest = (0..).find(|slot| !model.contains_key(slot));
                        prop_assert_eq!(Some(slot), lowest);
                        prop_assert_eq!(slots.set(slot, Some(value)), model.insert(slot, value));
                    }
                    Step::Change(at, value) => {
                        let Some(slot) = used(&model, at) else { continue };
                        prop_assert_eq!(slots.set(slot, Some(value)), model.insert(slot, value));
                    }
                    Step::Remove(at) => {
                        let Some(slot) = used(&model, at) else { continue };
                        prop_assert_eq!(slots.set(slot, None), model.remove(&slot));
                        numbers.give_back(slot);
                    }
                    Step::Snapshot => kept.push((slots.clone(), model.clone())),
                }
            }
            kept.push((slots, model));
            for (slots, model) in kept {
                assert_same(&slots, &model);
            }
        }
    }

    #[test]
    fn what_is_empty_again_holds_nothing() {
        let (mut slots, mut numbers) = (Slots::new(), Numbers::default());
        let taken: Vec<Slot> = (0..5_000).map(|_| numbers.take()).collect();
        for slot in &taken {
            slots.set(*slot, Some(*slot));
        }
        for slot in taken {
            assert_eq!(slots.set(slot, None), Some(slot));
            assert_eq!(slots.set(slot, None), None, "it is gone");
            numbers.give_back(slot);
        }
        assert!(matches!(slots.root, Node::Empty));
        assert_eq!((numbers.freed.capacity(), numbers.take()), (0, 0));
    }
}
