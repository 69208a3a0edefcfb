//! The objects of one resource: the newest state, and the changes that led to it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use informer_core::ObjectKey;
use k8s_serve::{Change, Snapshot};

use crate::object::Object;

/// One collection with its history.
#[derive(Debug, Clone, Default)]
pub(super) struct Collection {
    /// Copied by the first write after a snapshot was taken, while that snapshot is in use.
    objects: Arc<BTreeMap<ObjectKey, Object>>,
    history: VecDeque<Change<Object>>,
    /// The version of the newest change that is no longer in the history.
    dropped: u64,
    /// Counts how often feeds were closed; a feed of another generation ends.
    pub(super) generation: u64,
    /// Whether the resource is gone.
    pub(super) retired: bool,
}

/// A state of a collection of a [`Cluster`](crate::Cluster).
#[derive(Debug, Clone)]
pub struct ClusterSnapshot {
    objects: Arc<BTreeMap<ObjectKey, Object>>,
    version: u64,
}

impl Collection {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(key)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// Puts an object at its own version.
    pub(super) fn put(&mut self, object: Object, keep: usize) {
        let objects = Arc::make_mut(&mut self.objects);
        let before = objects.insert(object.key().clone(), object.clone());
        self.record(Change { version: object.version(), before, after: Some(object) }, keep);
    }

    /// Takes an object out, at a version.
    pub(super) fn take(&mut self, key: &ObjectKey, version: u64, keep: usize) -> Option<Object> {
        let before = Arc::make_mut(&mut self.objects).remove(key)?;
        self.record(Change { version, before: Some(before.clone()), after: None }, keep);
        Some(before)
    }

    /// The state at the newest version.
    pub(super) fn newest(&self, version: u64) -> ClusterSnapshot {
        ClusterSnapshot { objects: Arc::clone(&self.objects), version }
    }

    /// The state at an older version: the changes since are taken back. `None` if some are
    /// forgotten.
    pub(super) fn at(&self, version: u64) -> Option<ClusterSnapshot> {
        let mut snapshot = self.newest(version);
        let mut changes = self.after(version)?.rev().peekable();
        if changes.peek().is_none() {
            return Some(snapshot);
        }
        let objects = Arc::make_mut(&mut snapshot.objects);
        for change in changes {
            match (&change.before, &change.after) {
                (Some(before), _) => drop(objects.insert(before.key().clone(), before.clone())),
                (None, Some(after)) => drop(objects.remove(after.key())),
                (None, None) => {}
            }
        }
        Some(snapshot)
    }

    /// The changes after a version; `None` if some are forgotten.
    pub(super) fn after(
        &self,
        version: u64,
    ) -> Option<impl DoubleEndedIterator<Item = &Change<Object>>> {
        if version < self.dropped {
            return None;
        }
        let from = self.history.partition_point(|change| change.version <= version);
        Some(self.history.range(from..))
    }

    /// Forgets all changes up to `version` and closes all feeds.
    pub(super) fn forget(&mut self, version: u64) {
        self.history.clear();
        self.dropped = version;
        self.generation += 1;
    }

    fn record(&mut self, change: Change<Object>, keep: usize) {
        self.history.push_back(change);
        while self.history.len() > keep {
            self.dropped = self.history.pop_front().map_or(self.dropped, |change| change.version);
        }
    }
}

impl Snapshot for ClusterSnapshot {
    type Object = Object;

    fn version(&self) -> u64 {
        self.version
    }

    fn object(&self, namespace: &str, name: &str) -> Option<Object> {
        self.objects.get(&ObjectKey::namespaced(namespace, name)).cloned()
    }

    fn page(
        &self,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
        limit: usize,
    ) -> Vec<Object> {
        self.range(namespace, after).take(limit).cloned().collect()
    }

    fn remaining(&self, namespace: Option<&str>, after: &ObjectKey) -> usize {
        self.range(namespace, Some(after)).count()
    }
}

impl ClusterSnapshot {
    fn range<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<&'a ObjectKey>,
    ) -> impl Iterator<Item = &'a Object> {
        let of_namespace = namespace.map(|namespace| ObjectKey::namespaced(namespace, ""));
        let from = match (after, &of_namespace) {
            (Some(after), Some(first)) if after < first => Bound::Included(first),
            (Some(after), _) => Bound::Excluded(after),
            (None, Some(first)) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        };
        self.objects
            .range::<ObjectKey, _>((from, Bound::Unbounded))
            .take_while(move |(key, _)| {
                namespace.is_none_or(|namespace| key.namespace() == namespace)
            })
            .map(|(_, object)| object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_serve::Resource;

    fn object(namespace: &str, name: &str, version: u64) -> Object {
        let pods = Resource { namespaced: true, ..Resource::new("", "v1", "pods", "Pod") };
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","resourceVersion":"{version}"}}}}"#
        );
        Object::parse(&pods, json.as_bytes()).unwrap()
    }

    fn names(snapshot: &ClusterSnapshot) -> Vec<String> {
        snapshot
            .page(None, None, 100)
            .iter()
            .map(|o| format!("{}@{}", o.key(), o.version()))
            .collect()
    }

    #[test]
    fn older_states_come_back_until_they_are_forgotten() {
        let mut collection = Collection::default();
        collection.put(object("a", "x", 1), 3);
        collection.put(object("b", "y", 2), 3);
        collection.put(object("a", "x", 3), 3);
        collection.take(object("b", "y", 0).key(), 4, 3);
        assert_eq!(names(&collection.newest(4)), ["a/x@3"]);
        assert_eq!(names(&collection.at(3).unwrap()), ["a/x@3", "b/y@2"]);
        assert_eq!(names(&collection.at(2).unwrap()), ["a/x@1", "b/y@2"]);
        assert_eq!(names(&collection.at(1).unwrap()), ["a/x@1"]);
        assert!(collection.at(0).is_none());
        assert!(collection.after(0).is_none());
        assert_eq!(collection.after(2).unwrap().count(), 2);
    }

    #[test]
    fn pages_stay_within_their_namespace() {
        let mut collection = Collection::default();
        for (at, (namespace, name)) in
            [("a", "z"), ("a-b", "a"), ("a-b", "b"), ("b", "a")].into_iter().enumerate()
        {
            collection.put(object(namespace, name, at as u64 + 1), 10);
        }
        let snapshot = collection.newest(4);
        let page = |namespace, after: Option<&ObjectKey>, limit| {
            snapshot
                .page(namespace, after, limit)
                .iter()
                .map(|o| o.key().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(page(Some("a-b"), None, 9), ["a-b/a", "a-b/b"]);
        assert_eq!(page(Some("a-b"), Some(&ObjectKey::namespaced("a-b", "a")), 9), ["a-b/b"]);
        assert_eq!(page(Some("a"), None, 9), ["a/z"]);
        assert_eq!(page(None, Some(&ObjectKey::namespaced("a-b", "a")), 2), ["a-b/b", "a/z"]);
        assert_eq!(page(Some("c"), None, 9), [""; 0]);
        assert_eq!(snapshot.remaining(Some("a-b"), &ObjectKey::namespaced("a-b", "a")), 1);
    }
}
