//! A persistent ordered map: cloning is O(1), clones share structure, and a write copies one path.
//!
//! A B+tree with wide leaves whose nodes are reference-counted. A write through [`Arc::make_mut`] copies the
//! nodes that a clone still holds, once per clone taken, and changes the others in place: a batch of
//! writes between two publications pays for each node once. Keys are found by a few bytes that each node keeps of them
//! ([`SearchKey`]).

mod heads;
mod iter;
mod near;
#[cfg(test)]
mod tests;
mod write;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

pub use heads::SearchKey;
use heads::{Keyed, Row};
pub(crate) use heads::{common_prefix_of, head_of};
pub use iter::{Differences, Iter};
pub(crate) use near::Place;

/// Entries of a leaf and children of a branch, at most. Wide nodes iterate fast and stay shallow; each
/// write after a publication copies one leaf.
const WIDTH: usize = 32;

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
        let compared = |key_head: u64| if BY_HEAD { key_head } else { 0 };
        loop {
            match node {
                Node::Leaf(entries) => {
                    entries.fetch();
                    let wanted = wanted(entries.prefix()) & <Entry<K, V> as Keyed>::HEAD;
                    let at =
                        entries.binary_search_by(|entry| order(&entry.key, compared(entry.head()), wanted));
                    return match at {
                        Ok(at) => (Some(entries[at].parts()), place.down(at + 1)),
                        Err(at) => (None, place.down(at)),
                    };
                }
                Node::Branch(children) => {
                    children.fetch();
                    let wanted = wanted(children.prefix());
                    let is_before =
                        |child: &Child<K, V>| order(&child.first, compared(child.head), wanted).is_le();
                    let at = children[1..].partition_point(is_before);
                    place = place.down(at);
                    node = &children[at].node;
                }
            }
        }
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
