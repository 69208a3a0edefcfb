//! Inserting and removing: nodes that a clone holds are copied, split when they are full, and merged when they are sparse.

use std::cmp::Ordering;
use std::sync::Arc;

use super::heads::{Keyed, Row};
use super::{Child, Entry, Node, SearchKey, SortedMap, WIDTH, child_of};

/// Below this many entries a node is merged into its neighbour if both fit into one.
const SPARSE: usize = WIDTH / 4;

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
