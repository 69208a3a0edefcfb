//! A persistent ordered map: cloning is O(1), clones share structure, and a write copies one path.
//!
//! A B+tree with wide leaves whose nodes are reference-counted. Writes are copy-on-write
//! ([`Arc::make_mut`]): a node shared with a clone is copied, any other is changed in place. A
//! batch of writes between two publications copies each node at most once.

mod iter;
#[cfg(test)]
mod tests;
mod write;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

pub(crate) use iter::Iter;

/// Entries of a leaf and children of a branch, at most. Wide nodes iterate fast and stay shallow;
/// each write after a publication copies one leaf.
const WIDTH: usize = 32;

/// An ordered map whose clones are snapshots.
pub(crate) struct SortedMap<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

#[derive(Clone)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    Branch(Vec<Child<K, V>>),
}

struct Child<K, V> {
    /// Lower bound: not above any key of the node, above every key of the nodes before it. That of
    /// a branch's first child is not maintained.
    first: K,
    node: Arc<Node<K, V>>,
}

impl<K, V> SortedMap<K, V> {
    /// An empty map.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self { root: Arc::new(Node::Leaf(Vec::new())), len: 0 }
    }

    /// The number of entries.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The entry for which `compare` returns `Equal`. `compare` orders a key of the map relative to
    /// the one searched for.
    pub(crate) fn find(&self, compare: impl Fn(&K) -> Ordering) -> Option<(&K, &V)> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(key, _)| compare(key)).ok()?;
                    let (key, value) = &entries[at];
                    return Some((key, value));
                }
                Node::Branch(children) => node = &children[child_of(children, &compare)].node,
            }
        }
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// The value of `key`.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (_, value) = self.find(|candidate| candidate.cmp(key))?;
        Some(value)
    }
}

/// The position of the only child that may contain the key searched for.
fn child_of<K, V>(children: &[Child<K, V>], compare: &impl Fn(&K) -> Ordering) -> usize {
    children[1..].partition_point(|child| compare(&child.first).is_le())
}

/// Clones share all structure.
impl<K, V> Clone for SortedMap<K, V> {
    fn clone(&self) -> Self {
        Self { root: Arc::clone(&self.root), len: self.len }
    }
}

impl<K: Clone, V> Clone for Child<K, V> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), node: Arc::clone(&self.node) }
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug, V> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(key, _)| key)).finish()
    }
}

impl<K, V> Node<K, V> {
    fn width(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Branch(children) => children.len(),
        }
    }
}
