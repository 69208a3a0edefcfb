//! Writing: nodes are copied without counting what is in them, and the account is settled at the end.
//!
//! A node that readers may have is copied before it is written, and then what is in it (eight records, or sixteen
//! nodes) is in both. To count that takes an atomic operation for each, up with the copy and down with its original, on
//! memory that mostly nobody touched lately; and mostly for nothing, as the original goes when its copy is published. So
//! the copy *borrows* what it does not write, bit by bit. In the end each original that nobody else has leaves to its copy
//! what was borrowed; of one that others have, what was borrowed is counted, as it would have been at first.
//!
//! This is the crate's only unsafe code; `benches/NOTES.md` says what it saves.

use std::sync::Arc;
use std::{mem, ptr};

use super::{BRANCH, Branch, LEAF, Leaf, Node, Slot, Slots, child, place};
use crate::{Record, ResourceVersion, Uid};

/// What can be in a place.
///
/// # Safety
/// Plain data, `Arc`s and what is made of them, as a clone is by deriving it:
/// - Of a value and its bitwise copy, one may be dropped for each clone that is forgotten, whichever it is and on any
///   thread. So nothing in it may be the only one of its kind, as `Box`, `String` and `&mut` are.
/// - Nothing of it changes through a shared reference, other than what an `Arc` in it points to.
/// - Clones neither panic nor run foreign code.
#[expect(unsafe_code, reason = "`Node::borrow` relies on it")]
pub(in crate::store) unsafe trait Counted: Clone {}

// SAFETY: all of a record is `Counted`, or an `Arc`. It says so field by field, so that it must be looked at again if
// there are others.
#[expect(unsafe_code, reason = "see `Counted`")]
unsafe impl<T> Counted for Record<T>
where
    Uid: Counted,
    ResourceVersion: Counted,
{
}

// SAFETY: `UidRepr` is bytes, or an `Arc`.
#[expect(unsafe_code, reason = "see `Counted`")]
unsafe impl Counted for Uid {}

// SAFETY: `Repr` is a number, or an `Arc`.
#[expect(unsafe_code, reason = "see `Counted`")]
unsafe impl Counted for ResourceVersion {}

/// What a tree borrows from.
pub(super) struct Original<V> {
    root: Node<V>,
    height: u32,
}

impl<V: Counted> Slots<V> {
    /// Puts a value into a place, or takes it out, and returns the one before.
    pub(in crate::store) fn set(&mut self, slot: Slot, value: Option<V>) -> Option<V> {
        self.begin();
        while !self.reaches(slot) {
            let below = mem::replace(&mut self.root, Node::Empty);
            if !matches!(below, Node::Empty) {
                let mut branch = Branch::new();
                branch.children[0] = below;
                self.root = Node::Branch(Arc::new(branch));
            }
            self.height += 1;
        }
        match value {
            Some(value) => self.root.put(self.height, slot, value),
            None => self.root.take(self.height, slot),
        }
    }

    /// The same values for others to read. They share all structure; it is copied before this tree changes it.
    pub(in crate::store) fn share(&mut self) -> Self {
        self.is_shared = true;
        Self { root: self.root.clone(), height: self.height, original: None, is_shared: true }
    }

    /// Lets go of what this tree borrows from, which is the state that was shared before. Cheap if nobody has that any
    /// more; otherwise all that is borrowed is counted.
    pub(in crate::store) fn settle(&mut self) {
        self.is_shared = false;
        let Some(mut original) = self.original.take() else { return };
        let mut root = &self.root;
        for _ in original.height..self.height {
            root = match root {
                Node::Branch(branch) => &branch.children[0],
                Node::Leaf(_) | Node::Empty => &Node::Empty,
            };
        }
        original.root.leave_to(root);
    }

    /// From here on the root is this tree's own, as is every node that says so above it.
    fn begin(&mut self) {
        if self.is_shared {
            self.settle();
        }
        if self.original.is_none() {
            // SAFETY: what is borrowed stays in `original` until `settle`. So does the copy: this tree has it, and so no
            // share of it can be the last that drops it; and nothing replaces or drops the root before `settle`, with
            // which this function and `drop` begin. If the tree is leaked, so is what it borrows from.
            #[expect(unsafe_code, reason = "see the module")]
            let copy = unsafe { self.root.borrow() };
            let root = mem::replace(&mut self.root, copy);
            self.original = Some(Original { root, height: self.height });
        }
    }
}

impl<V: Counted> Drop for Slots<V> {
    fn drop(&mut self) {
        self.settle();
    }
}

impl<V> Leaf<V> {
    fn new() -> Self {
        const { assert!(LEAF <= u8::BITS as usize) }
        Self { values: [const { None }; LEAF], own: u8::MAX }
    }

    fn owns(&self, at: usize) -> bool {
        self.own & (1 << at) != 0
    }
}

impl<V: Counted> Leaf<V> {
    fn set(&mut self, at: usize, value: Option<V>) -> Option<V> {
        if self.owns(at) {
            return mem::replace(&mut self.values[at], value);
        }
        let old = self.values[at].clone();
        self.own |= 1 << at;
        // Not this leaf's to drop.
        mem::forget(mem::replace(&mut self.values[at], value));
        old
    }
}

impl<V> Branch<V> {
    fn new() -> Self {
        const { assert!(BRANCH <= u16::BITS as usize) }
        Self { children: [const { Node::Empty }; BRANCH], own: u16::MAX }
    }

    fn owns(&self, at: usize) -> bool {
        self.own & (1 << at) != 0
    }
}

impl<V: Counted> Branch<V> {
    /// A child that can be written.
    fn own_child(&mut self, at: usize) -> &mut Node<V> {
        if !self.owns(at) {
            // SAFETY: the child belongs to a node that this one is a copy of, and stays there as long as that does,
            // which `begin` says more of. The copy takes its place here.
            #[expect(unsafe_code, reason = "see the module")]
            let copy = unsafe { self.children[at].borrow() };
            self.own |= 1 << at;
            // Not this branch's to drop.
            mem::forget(mem::replace(&mut self.children[at], copy));
        }
        &mut self.children[at]
    }
}

/// A node of the draft, which nobody else has: it was made when the draft came here first, only `share` and `count_for`
/// clone an `Arc` of a node, and after both all is copied anew. No node is pointed to weakly.
#[expect(unsafe_code, reason = "`Arc::get_mut` is an atomic exchange on each level")]
fn own<N>(node: &mut Arc<N>) -> &mut N {
    assert_eq!(Arc::strong_count(node), 1, "what is shared is copied before it is written");
    // SAFETY: this is the only pointer to the node, as was just seen; whoever had another one would have it from here.
    unsafe { &mut *Arc::as_ptr(node).cast_mut() }
}

impl<V: Counted> Node<V> {
    /// A copy that can be written, with all that is in this node, uncounted.
    ///
    /// # Safety
    /// This node must stay as it is until it [leaves](Self::leave_to) to the copy what is in it, and until then the copy must
    /// not be dropped with anything that is borrowed in it.
    #[expect(unsafe_code, reason = "see the module")]
    unsafe fn borrow(&self) -> Self {
        match self {
            Self::Empty => Self::Empty,
            // SAFETY: values are `Counted`; the caller sees to the rest.
            Self::Leaf(leaf) => {
                Self::Leaf(Arc::new(Leaf { values: unsafe { ptr::read(&leaf.values) }, own: 0 }))
            }
            // SAFETY: children are `Arc`s; the caller sees to the rest.
            Self::Branch(branch) => {
                Self::Branch(Arc::new(Branch { children: unsafe { ptr::read(&branch.children) }, own: 0 }))
            }
        }
    }

    /// Puts a value below a node that is the draft's own.
    fn put(&mut self, height: u32, slot: Slot, value: V) -> Option<V> {
        let mut node = self;
        for height in (1..=height).rev() {
            if let Self::Empty = node {
                *node = Self::Branch(Arc::new(Branch::new()));
            }
            let Self::Branch(branch) = node else { unreachable!("branches are above the leaves") };
            node = own(branch).own_child(child(slot, height));
        }
        if let Self::Empty = node {
            *node = Self::Leaf(Arc::new(Leaf::new()));
        }
        let Self::Leaf(leaf) = node else { unreachable!("leaves are below the branches") };
        own(leaf).set(place(slot), Some(value))
    }

    /// Takes what is in a place out of a node that is the draft's own, and the node out of the tree if that was all.
    fn take(&mut self, height: u32, slot: Slot) -> Option<V> {
        let (old, is_empty) = match self {
            Self::Empty => return None,
            Self::Leaf(leaf) => {
                let leaf = own(leaf);
                let old = leaf.set(place(slot), None);
                (old, leaf.values.iter().all(Option::is_none))
            }
            Self::Branch(branch) => {
                let branch = own(branch);
                let old = branch.own_child(child(slot, height)).take(height - 1, slot);
                (old, branch.children.iter().all(|child| matches!(child, Self::Empty)))
            }
        };
        if is_empty {
            // Nothing is in it, so nothing that is borrowed.
            *self = Self::Empty;
        }
        old
    }

    /// Leaves to `copy` what that has borrowed from this node, or counts it, if others have the node too.
    fn leave_to(&mut self, copy: &Self) {
        match (self, copy) {
            (Self::Leaf(original), Self::Leaf(copy)) => match Arc::get_mut(original) {
                Some(original) => {
                    for at in (0..LEAF).filter(|at| !copy.owns(*at)) {
                        mem::forget(original.values[at].take());
                    }
                }
                None => original.count_for(copy),
            },
            (Self::Branch(original), Self::Branch(copy)) => match Arc::get_mut(original) {
                Some(original) => {
                    for (at, child) in original.children.iter_mut().enumerate() {
                        if copy.owns(at) {
                            child.leave_to(&copy.children[at]);
                        } else {
                            mem::forget(mem::replace(child, Self::Empty));
                        }
                    }
                }
                None => original.count_for(copy),
            },
            // Nothing is left of one of them that the other could have borrowed.
            _ => {}
        }
    }
}

impl<V: Counted> Leaf<V> {
    fn count_for(&self, copy: &Self) {
        for at in (0..LEAF).filter(|at| !copy.owns(*at)) {
            mem::forget(self.values[at].clone());
        }
    }
}

impl<V: Counted> Branch<V> {
    fn count_for(&self, copy: &Self) {
        for (at, child) in self.children.iter().enumerate() {
            match (child, &copy.children[at]) {
                _ if !copy.owns(at) => mem::forget(child.clone()),
                (Node::Leaf(original), Node::Leaf(copy)) => original.count_for(copy),
                (Node::Branch(original), Node::Branch(copy)) => original.count_for(copy),
                _ => {}
            }
        }
    }
}
