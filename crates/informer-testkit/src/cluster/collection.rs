//! The objects of one resource: the newest state, and the changes that led to it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use informer_core::ObjectKey;
use k8s_serve::watch_cache::{Capacity, WatchCache};
use k8s_serve::{Change, Snapshot};

use crate::object::Object;

/// One collection with its history.
#[derive(Debug, Clone)]
pub(super) struct Collection {
    /// Copied by the first write after a snapshot was taken, while that snapshot is in use.
    objects: Arc<BTreeMap<ObjectKey, Object>>,
    /// The changes, and who watches them. Shared with the checkpoints of the cluster.
    pub(super) watch_cache: WatchCache<Object>,
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
    /// An empty one, of which up to `history` changes are remembered.
    pub(super) fn new(version: u64, history: usize) -> Self {
        let watch_cache = WatchCache::new(version, Capacity::Changes(history));
        Self { objects: Arc::default(), watch_cache, retired: false }
    }

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
    pub(super) fn put(&mut self, object: Object) {
        let objects = Arc::make_mut(&mut self.objects);
        let before = objects.insert(object.key().clone(), object.clone());
        self.record(Change { version: object.version(), before, after: Some(object) });
    }

    /// Takes an object out, at a version.
    pub(super) fn take(&mut self, key: &ObjectKey, version: u64) -> Option<Object> {
        let before = Arc::make_mut(&mut self.objects).remove(key)?;
        self.record(Change { version, before: Some(before.clone()), after: None });
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
        let changes = self.watch_cache.changes_after(version)?;
        if changes.is_empty() {
            return Some(snapshot);
        }
        let objects = Arc::make_mut(&mut snapshot.objects);
        for logged in changes.iter().rev() {
            match logged.change() {
                Change { before: Some(before), .. } => {
                    objects.insert(before.key().clone(), before.clone());
                }
                Change { before: None, after, .. } => {
                    after.as_ref().map(|after| objects.remove(after.key()));
                }
            }
        }
        Some(snapshot)
    }

    /// Forgets all changes up to `version`, and leaves the watches to another cluster's state.
    pub(super) fn forget(&mut self, version: u64, history: usize) {
        self.watch_cache = WatchCache::new(version, Capacity::Changes(history));
    }

    fn record(&self, change: Change<Object>) {
        self.watch_cache.push(change.version, [change]);
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
        let mut collection = Collection::new(0, 3);
        collection.put(object("a", "x", 1));
        collection.put(object("b", "y", 2));
        collection.put(object("a", "x", 3));
        collection.take(object("b", "y", 0).key(), 4);
        assert_eq!(names(&collection.newest(4)), ["a/x@3"]);
        assert_eq!(names(&collection.at(3).unwrap()), ["a/x@3", "b/y@2"]);
        assert_eq!(names(&collection.at(2).unwrap()), ["a/x@1", "b/y@2"]);
        assert_eq!(names(&collection.at(1).unwrap()), ["a/x@1"]);
        assert!(collection.at(0).is_none());
    }

    #[test]
    fn pages_stay_within_their_namespace() {
        let mut collection = Collection::new(0, 10);
        for (at, (namespace, name)) in
            [("a", "z"), ("a-b", "a"), ("a-b", "b"), ("b", "a")].into_iter().enumerate()
        {
            collection.put(object(namespace, name, at as u64 + 1));
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
