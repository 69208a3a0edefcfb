//! Inserting and removing: nodes that are shared with a clone are copied, full ones are split, and
//! sparse ones are merged.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Child, Node, SortedMap, WIDTH, child_of};

/// A node with fewer entries is merged with a neighbour if both fit into one.
const SPARSE: usize = WIDTH / 4;

impl<K: Ord + Clone, V: Clone> SortedMap<K, V> {
    /// Sets the value of `key` and returns the previous one. An existing key is not replaced.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (old, right) = insert(&mut self.root, key, value, true);
        if let Some(right) = right {
            // The separator of the first child is never read; any key of the map will do.
            let first = right.first.clone();
            let left = Child { first, node: Arc::clone(&self.root) };
            self.root = Arc::new(Node::Branch(vec![left, right]));
        }
        self.len += usize::from(old.is_none());
        old
    }

    /// Removes the entry of `key`.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        // Checked first, so that a miss copies no nodes.
        self.get(key)?;
        let removed = remove(&mut self.root, &|candidate: &K| candidate.cmp(key))?;
        self.len -= 1;
        while let Node::Branch(children) = &*self.root {
            let [only] = &children[..] else { break };
            self.root = Arc::clone(&only.node);
        }
        Some(removed)
    }
}

/// Inserts below `node`; the second value is the new right half if the node was split. `rightmost`:
/// whether no entry of the map comes after `node`.
fn insert<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
    rightmost: bool,
) -> (Option<V>, Option<Child<K, V>>) {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            let at = match entries.binary_search_by(|(candidate, _)| candidate.cmp(&key)) {
                Ok(at) => return (Some(std::mem::replace(&mut entries[at].1, value)), None),
                Err(at) => at,
            };
            if entries.len() < WIDTH {
                insert_at(entries, at, (key, value));
                return (None, None);
            }
            let split = split_point(at, rightmost);
            let mut right = split_off(entries, split);
            if at > split || right.is_empty() {
                insert_at(&mut right, at - split, (key, value));
            } else {
                insert_at(entries, at, (key, value));
            }
            let first = right[0].0.clone();
            (None, Some(Child { first, node: Arc::new(Node::Leaf(right)) }))
        }
        Node::Branch(children) => {
            let at = child_of(children, &|candidate: &K| candidate.cmp(&key));
            let last = at + 1 == children.len();
            let (old, split) = insert(&mut children[at].node, key, value, rightmost && last);
            let Some(child) = split else { return (old, None) };
            if children.len() < WIDTH {
                insert_at(children, at + 1, child);
                return (old, None);
            }
            let at = at + 1;
            let split = split_point(at, rightmost);
            let mut right = split_off(children, split);
            if at > split || right.is_empty() {
                insert_at(&mut right, at - split, child);
            } else {
                insert_at(children, at, child);
            }
            let first = right[0].first.clone();
            (old, Some(Child { first, node: Arc::new(Node::Branch(right)) }))
        }
    }
}

/// Where to split a full node for an item at `at`. Entries inserted in key order, such as those of
/// a list, leave full nodes.
fn split_point(at: usize, rightmost: bool) -> usize {
    if rightmost && at == WIDTH { WIDTH } else { WIDTH / 2 }
}

/// The items from `split` on, in a vector with room for a full node.
fn split_off<I>(items: &mut Vec<I>, split: usize) -> Vec<I> {
    let mut right = Vec::with_capacity(WIDTH);
    right.extend(items.drain(split..));
    right
}

/// Grows by a quarter of a node at a time: doubling would waste up to half of what a node holds.
fn insert_at<I>(items: &mut Vec<I>, at: usize, item: I) {
    if items.len() == items.capacity() {
        items.reserve_exact((WIDTH / 4).min(WIDTH - items.len()));
    }
    items.insert(at, item);
}

fn remove<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    compare: &impl Fn(&K) -> Ordering,
) -> Option<V> {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            let at = entries.binary_search_by(|(key, _)| compare(key)).ok()?;
            let (_, value) = entries.remove(at);
            Some(value)
        }
        Node::Branch(children) => {
            let at = child_of(children, compare);
            let removed = remove(&mut children[at].node, compare)?;
            if children[at].node.width() < SPARSE {
                merge_sparse(children, at);
            }
            Some(removed)
        }
    }
}

/// Merges the sparse child `at` with a neighbour if one node can hold both; drops it if it is
/// empty.
fn merge_sparse<K: Ord + Clone, V: Clone>(children: &mut Vec<Child<K, V>>, at: usize) {
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
    match (Arc::make_mut(&mut children[left].node), Arc::unwrap_or_clone(right.node)) {
        (Node::Leaf(into), Node::Leaf(from)) => into.extend(from),
        (Node::Branch(into), Node::Branch(mut from)) => {
            // The first child's separator is not maintained; that of the merged node is the true
            // lower bound.
            from[0].first = right.first;
            into.extend(from);
        }
        (Node::Leaf(_), Node::Branch(_)) | (Node::Branch(_), Node::Leaf(_)) => {
            unreachable!("all leaves have the same depth")
        }
    }
}
