//! Iteration in key order.

use std::cmp::Ordering;
use std::{fmt, slice};

use super::{Child, Node, SortedMap};

impl<K, V> SortedMap<K, V> {
    /// All entries in key order.
    #[must_use]
    pub(crate) fn iter(&self) -> Iter<'_, K, V> {
        self.seek(|_| Ordering::Greater)
    }

    /// The entries in key order, from the first one for which `compare` does not return `Less`.
    pub(crate) fn seek(&self, compare: impl Fn(&K) -> Ordering) -> Iter<'_, K, V> {
        let mut branches = Vec::new();
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.partition_point(|(key, _)| compare(key).is_lt());
                    return Iter { branches, leaf: entries[at..].iter() };
                }
                Node::Branch(children) => {
                    // Not `child_of`: if several keys compare `Equal`, the first may be in the
                    // child before the one that begins with such a key.
                    let at = children[1..].partition_point(|child| compare(&child.first).is_lt());
                    branches.push(children[at + 1..].iter());
                    node = &children[at].node;
                }
            }
        }
    }
}

/// Iterates over the entries of a [`SortedMap`] in key order.
pub(crate) struct Iter<'a, K, V> {
    /// The children still to visit, from the root down.
    branches: Vec<slice::Iter<'a, Child<K, V>>>,
    leaf: slice::Iter<'a, (K, V)>,
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                return Some((key, value));
            }
            let branch = self.branches.last_mut()?;
            match branch.next().map(|child| &*child.node) {
                Some(Node::Leaf(entries)) => self.leaf = entries.iter(),
                Some(Node::Branch(children)) => self.branches.push(children.iter()),
                None => _ = self.branches.pop(),
            }
        }
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { branches: self.branches.clone(), leaf: self.leaf.clone() }
    }
}

impl<K, V> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
