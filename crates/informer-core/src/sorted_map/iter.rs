//! Going through a map in key order, and through what two maps do not share.

use std::cmp::Ordering;
use std::{fmt, slice};

use super::{Child, Entry, Node, SortedMap};

impl<K, V> SortedMap<K, V> {
    /// All entries in key order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.seek(|_| Ordering::Greater)
    }

    /// The entries in key order from the first one for which `compare` does not say `Less`.
    pub fn seek(&self, compare: impl Fn(&K) -> Ordering) -> Iter<'_, K, V> {
        let mut branches = Vec::new();
        let mut node = &*self.root;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.partition_point(|entry| compare(&entry.key).is_lt());
                    return Iter { branches, leaf: entries[at..].iter() };
                }
                Node::Branch(children) => {
                    // Not `child_of`: of several keys that are `Equal`, the first may stand before the child that
                    // begins with one of them.
                    let at = children[1..].partition_point(|child| compare(&child.first).is_lt());
                    branches.push(children[at + 1..].iter());
                    node = &children[at].node;
                }
            }
        }
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// The entries that may be different in `old` and here, in key order from behind `after` on: of what both maps share
    /// only those with a value that is `wanted`. So two maps of which one came from the other by a few writes give a few
    /// entries, some of them equal.
    pub fn differences<'a, W: Fn(&V) -> bool>(
        &'a self,
        old: &'a Self,
        after: Option<&K>,
        wanted: W,
    ) -> Differences<'a, K, V, W> {
        let start = |map: &'a Self| match after {
            Some(after) => map.seek(|key| if key <= after { Ordering::Less } else { Ordering::Greater }),
            None => map.iter(),
        };
        Differences { old: start(old), new: start(self), wanted }
    }
}

/// Iterates over the entries of a [`SortedMap`] in key order.
pub struct Iter<'a, K, V> {
    /// The children still to visit, from the root down.
    branches: Vec<slice::Iter<'a, Child<K, V>>>,
    leaf: slice::Iter<'a, Entry<K, V>>,
}

impl<'a, K, V> Iter<'a, K, V> {
    /// The next entries, as many as lie beside each other; none at the end only.
    pub(crate) fn take_leaf(&mut self) -> &'a [Entry<K, V>] {
        let entries = self.rest_of_leaf();
        self.leaf = [].iter();
        entries
    }

    /// What is left of the leaf, or the next one; empty at the end only.
    fn rest_of_leaf(&mut self) -> &'a [Entry<K, V>] {
        while self.leaf.len() == 0 {
            let child = loop {
                let Some(branch) = self.branches.last_mut() else { return &[] };
                match branch.next() {
                    Some(child) => break child,
                    None => self.branches.pop(),
                };
            };
            let mut node = &*child.node;
            while let Node::Branch(children) = node {
                let (first, rest) = children.split_first().expect("a branch has children");
                self.branches.push(rest.iter());
                node = &first.node;
            }
            let Node::Leaf(entries) = node else { continue };
            self.leaf = entries.iter();
        }
        self.leaf.as_slice()
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.leaf.len() == 0 {
            self.rest_of_leaf();
        }
        self.leaf.next().map(Entry::parts)
    }
}

/// See [`SortedMap::differences`].
pub struct Differences<'a, K, V, W> {
    old: Iter<'a, K, V>,
    new: Iter<'a, K, V>,
    wanted: W,
}

impl<'a, K: Ord, V, W: Fn(&V) -> bool> Iterator for Differences<'a, K, V, W> {
    /// A key with its value in the old map and in the new one.
    type Item = (&'a K, Option<&'a V>, Option<&'a V>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (old, new) = (self.old.rest_of_leaf(), self.new.rest_of_leaf());
            let order = match (old.first(), new.first()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                // The same entries of the same leaf.
                _ if std::ptr::eq(old, new) => {
                    let skipped =
                        new.iter().position(|entry| (self.wanted)(&entry.value)).unwrap_or(new.len());
                    self.old.leaf = old[skipped..].iter();
                    self.new.leaf = new[skipped..].iter();
                    if skipped == new.len() {
                        continue;
                    }
                    Ordering::Equal
                }
                (Some(old), Some(new)) => old.key.cmp(&new.key),
            };
            let old = if order.is_le() { self.old.next() } else { None };
            let new = if order.is_ge() { self.new.next() } else { None };
            let (key, _) = old.or(new)?;
            return Some((key, old.map(|(_, value)| value), new.map(|(_, value)| value)));
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

impl<K, V, W> fmt::Debug for Differences<'_, K, V, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Differences").finish_non_exhaustive()
    }
}
