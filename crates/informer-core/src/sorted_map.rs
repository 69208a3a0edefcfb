//! A persistent ordered map: cloning is O(1), clones share structure, and a write copies one path.
//!
//! A B+tree with wide leaves whose nodes are reference-counted. A write through [`Arc::make_mut`] copies the
//! nodes that a clone still holds, once per clone taken, and changes the others in place: a batch of
//! writes between two publications pays for each node once.

mod heads;
mod near;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::slice;
use std::sync::Arc;

pub use heads::SearchKey;
use heads::{Keyed, Row};
pub(crate) use heads::{common_prefix_of, head_of};
pub(crate) use near::Place;

/// Entries of a leaf and children of a branch, at most. Wide nodes iterate fast and stay shallow; each
/// write after a publication copies one leaf.
const WIDTH: usize = 32;

/// Below this many entries a node is merged into its neighbour if both fit into one.
const SPARSE: usize = WIDTH / 4;

/// An ordered map whose clones are snapshots.
pub struct SortedMap<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

enum Node<K, V> {
    Leaf(Row<Entry<K, V>>),
    Branch(Row<Child<K, V>>),
}

#[derive(Clone)]
pub(crate) struct Entry<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    /// Half of it: where the value has four bytes, there is room for that.
    head: u32,
}

struct Child<K, V> {
    /// Not above any key of the node, above every key of the nodes before it.
    first: K,
    node: Arc<Node<K, V>>,
    head: u64,
}

impl<K, V> SortedMap<K, V> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self { root: Arc::new(Node::Leaf(Row::new())), len: 0 }
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

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

impl<K: SearchKey, V> SortedMap<K, V> {
    /// The entry for which `compare` says `Equal`; `compare` orders a key of the map against the one
    /// looked for.
    pub fn find(&self, compare: impl Fn(&K) -> Ordering) -> Option<(&K, &V)> {
        self.search::<false>(&compare, &|_| 0).0
    }

    /// Looks for an entry, and says what place is behind it, or would be.
    ///
    /// `BY_HEAD`: looks at keys only where heads are equal. That finds what begins as all keys of each node on the way do,
    /// which is not looked at, as every key in the map does.
    fn search<const BY_HEAD: bool>(
        &self,
        compare: &impl Fn(&K) -> Ordering,
        head: &impl Fn(usize) -> u64,
    ) -> (Option<(&K, &V)>, Place) {
        let mut place = Place::ROOT;
        let mut node = &*self.root;
        let order = |key: &K, key_head: u64, wanted: u64| match key_head.cmp(&wanted) {
            Ordering::Equal => compare(key),
            other => other,
        };
        let wanted = |prefix: usize| if BY_HEAD { head(prefix) } else { 0 };
        let head_of = |key_head: u64| if BY_HEAD { key_head } else { 0 };
        loop {
            match node {
                Node::Leaf(entries) => {
                    entries.fetch();
                    let wanted = wanted(entries.prefix()) & <Entry<K, V> as Keyed>::HEAD;
                    let at =
                        entries.binary_search_by(|entry| order(&entry.key, head_of(entry.head()), wanted));
                    return match at {
                        Ok(at) => (Some(entries[at].parts()), place.down(at + 1)),
                        Err(at) => (None, place.down(at)),
                    };
                }
                Node::Branch(children) => {
                    children.fetch();
                    let wanted = wanted(children.prefix());
                    let is_before =
                        |child: &Child<K, V>| order(&child.first, head_of(child.head), wanted).is_le();
                    let at = children[1..].partition_point(is_before);
                    place = place.down(at);
                    node = &children[at].node;
                }
            }
        }
    }

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

    /// The value of `key`.
    pub fn get(&self, key: &K) -> Option<&V> {
        let (_, value) = self.find_by_head(|candidate| candidate.cmp(key), |at| key.head(at))?;
        Some(value)
    }

    /// [`find`](Self::find) for a key that has these heads: looks at few keys.
    pub(crate) fn find_by_head(
        &self,
        compare: impl Fn(&K) -> Ordering,
        head: impl Fn(usize) -> u64,
    ) -> Option<(&K, &V)> {
        self.search::<true>(&compare, &head).0
    }
}

impl<K: SearchKey + Clone, V: Clone> SortedMap<K, V> {
    /// Sets the value of `key` and returns the one before. The key that is already there stays.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (old, right) = insert(&mut self.root, key, value, true);
        if let Some(right) = right {
            let left = std::mem::replace(&mut self.root, Arc::new(Node::Leaf(Row::new())));
            // The separator of the first child is never looked at; any key of the map will do.
            let first = right.first.clone();
            self.root = Arc::new(Node::Branch(vec![Child { first, node: left, head: 0 }, right].into()));
        }
        self.len += usize::from(old.is_none());
        old
    }

    /// Removes the entry of `key`.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        // Looked for first, so that a miss copies nothing.
        self.get(key)?;
        let removed = remove(&mut self.root, &|candidate: &K| candidate.cmp(key))?;
        self.len -= 1;
        while let Node::Branch(children) = &*self.root {
            let [only] = &**children else { break };
            self.root = Arc::clone(&only.node);
        }
        Some(removed)
    }
}

/// Clones share all structure.
impl<K, V> Clone for SortedMap<K, V> {
    fn clone(&self) -> Self {
        Self { root: Arc::clone(&self.root), len: self.len }
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

impl<'a, K: SearchKey, V, W: Fn(&V) -> bool> Iterator for Differences<'a, K, V, W> {
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

impl<K: Clone, V: Clone> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(entries) => Self::Leaf(entries.clone()),
            Self::Branch(children) => Self::Branch(children.clone()),
        }
    }
}

impl<K: Clone, V> Clone for Child<K, V> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), node: Arc::clone(&self.node), head: self.head }
    }
}

impl<K, V> Entry<K, V> {
    fn parts(&self) -> (&K, &V) {
        (&self.key, &self.value)
    }
}

impl<K: SearchKey, V> Keyed for Entry<K, V> {
    type Key = K;

    fn key(&self) -> &K {
        &self.key
    }

    fn lowest(&self) -> Option<&K> {
        Some(&self.key)
    }

    fn highest(&self) -> Option<&K> {
        Some(&self.key)
    }

    const HEAD: u64 = !(u32::MAX as u64);

    fn head(&self) -> u64 {
        u64::from(self.head) << u32::BITS
    }

    fn set_head(&mut self, head: u64) {
        self.head = (head >> u32::BITS) as u32;
    }
}

impl<K: SearchKey, V> Keyed for Child<K, V> {
    type Key = K;

    fn key(&self) -> &K {
        &self.first
    }

    fn lowest(&self) -> Option<&K> {
        match &*self.node {
            Node::Leaf(entries) => entries.first()?.lowest(),
            Node::Branch(children) => children.first()?.lowest(),
        }
    }

    fn highest(&self) -> Option<&K> {
        match &*self.node {
            Node::Leaf(entries) => entries.last()?.highest(),
            Node::Branch(children) => children.last()?.highest(),
        }
    }

    const HEAD: u64 = u64::MAX;

    fn head(&self) -> u64 {
        self.head
    }

    fn set_head(&mut self, head: u64) {
        self.head = head;
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

/// The child that holds the key looked for, if any does.
fn child_of<K, V>(children: &[Child<K, V>], compare: &impl Fn(&K) -> Ordering) -> usize {
    children[1..].partition_point(|child| compare(&child.first).is_le())
}

/// Inserts below `node`; the second value is the new right half if the node had to be split.
/// `rightmost`: nothing of the map stands right of `node`.
fn insert<K: SearchKey + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
    rightmost: bool,
) -> (Option<V>, Option<Child<K, V>>) {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            // Keys of a list come in order, each behind all others.
            let behind_all = rightmost && entries.last().is_some_and(|last| last.key < key);
            let found = match behind_all {
                true => Err(entries.len()),
                false => entries.binary_search_by(|entry| entry.key.cmp(&key)),
            };
            let at = match found {
                Ok(at) => return (Some(std::mem::replace(&mut entries.item_mut(at).value, value)), None),
                Err(at) => at,
            };
            let entry = Entry { key, value, head: 0 };
            if entries.len() < WIDTH {
                narrow_for_entry(entries, at, &entry.key);
                entries.insert(at, entry, WIDTH);
                return (None, None);
            }
            let split = split_point(at, rightmost);
            let mut right = entries.split_off(split, WIDTH);
            let (half, at) =
                if at > split || right.is_empty() { (&mut right, at - split) } else { (&mut *entries, at) };
            narrow_for_entry(half, at, &entry.key);
            half.insert(at, entry, WIDTH);
            let first = right[0].key.clone();
            (None, Some(Child { first, node: Arc::new(Node::Leaf(right)), head: 0 }))
        }
        Node::Branch(children) => {
            let end = children.len() - 1;
            let at = match rightmost && children[end].first <= key {
                true => end,
                false => child_of(children, &|candidate: &K| candidate.cmp(&key)),
            };
            let last = at == end;
            if at == 0 || last {
                narrow_for_end(children, &key);
            }
            let below = &mut children.item_mut(at).node;
            let (old, split) = insert(below, key, value, rightmost && last);
            let Some(child) = split else { return (old, None) };
            children.insert(at + 1, child, WIDTH + 1);
            if children.len() <= WIDTH {
                return (old, None);
            }
            let split = if rightmost && last { WIDTH } else { children.len() / 2 };
            let right = children.split_off(split, WIDTH);
            let first = right[0].first.clone();
            (old, Some(Child { first, node: Arc::new(Node::Branch(right)), head: 0 }))
        }
    }
}

/// For a key that goes to `at`.
fn narrow_for_entry<K: SearchKey, V>(entries: &mut Row<Entry<K, V>>, at: usize, key: &K) {
    // That was compared with already, so its text is at hand.
    let neighbour = entries.get(at.saturating_sub(1));
    if let Some(common) = neighbour.map(|neighbour| neighbour.key.common_prefix(key)) {
        entries.narrow(common);
    }
}

/// For a key that goes below the first child or the last one, and maybe beyond what is there.
fn narrow_for_end<K: SearchKey, V>(children: &mut Row<Child<K, V>>, key: &K) {
    let other = match &**children {
        [_, .., last] => Some(&last.first),
        // Its own separator may be no key that is below.
        [only] => only.lowest(),
        [] => None,
    };
    if let Some(common) = other.map(|other| other.common_prefix(key)) {
        children.narrow(common);
    }
}

/// Where to split a full leaf for an entry that goes to `at`. Entries that come in key order, as those of a
/// list do, leave full leaves behind them.
fn split_point(at: usize, rightmost: bool) -> usize {
    if rightmost && at == WIDTH { WIDTH } else { WIDTH / 2 }
}

fn remove<K: SearchKey + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    compare: &impl Fn(&K) -> Ordering,
) -> Option<V> {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            let at = entries.binary_search_by(|entry| compare(&entry.key)).ok()?;
            Some(entries.remove(at).value)
        }
        Node::Branch(children) => {
            let at = child_of(children, compare);
            let removed = remove(&mut children.item_mut(at).node, compare)?;
            if children[at].node.width() < SPARSE {
                merge_sparse(children, at);
            }
            Some(removed)
        }
    }
}

/// Merges the sparse child `at` with a neighbour if one node can hold both; drops it if it is empty.
fn merge_sparse<K: SearchKey + Clone, V: Clone>(children: &mut Row<Child<K, V>>, at: usize) {
    if children[at].node.width() == 0 && children.len() > 1 {
        children.remove(at);
        return;
    }
    let left = at.saturating_sub(1);
    let Some(right) = children.get(left + 1) else { return };
    if children[left].node.width() + right.node.width() > WIDTH {
        return;
    }
    let right = children.remove(left + 1);
    match (Arc::make_mut(&mut children.item_mut(left).node), Arc::unwrap_or_clone(right.node)) {
        (Node::Leaf(into), Node::Leaf(from)) => into.append(from),
        (Node::Branch(into), Node::Branch(mut from)) => {
            // The first separator was never maintained; the child's own is the true lower bound.
            from.item_mut(0).first = right.first;
            into.append(from);
        }
        _ => unreachable!("all leaves have the same depth"),
    }
}
