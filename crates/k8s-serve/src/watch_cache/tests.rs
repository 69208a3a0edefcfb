//! Waiting for changes.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use informer_core::ObjectKey;
use informer_core::wire::{Encoding, Wire};

use super::*;
use crate::resource::Resource;

#[derive(Clone)]
struct Plain(ObjectKey, u64);

impl Object for Plain {
    fn key(&self) -> &ObjectKey {
        &self.0
    }

    fn version(&self) -> u64 {
        self.1
    }

    fn label(&self, _: &str) -> Option<&str> {
        None
    }

    fn field(&self, path: &str) -> Cow<'_, str> {
        Cow::Borrowed(if path == "metadata.name" { self.0.name() } else { "" })
    }

    fn wire(&self) -> Wire<'_> {
        Wire { encoding: Encoding::Json, bytes: b"{}" }
    }
}

fn created(version: u64) -> Change<Plain> {
    let object = Plain(ObjectKey::cluster(&format!("n{version}")), version);
    Change { version, before: None, after: Some(object) }
}

fn watched() -> (WatchCache<Plain>, Watcher<Plain>) {
    let cache = WatchCache::new(0, Capacity::Changes(100));
    let nodes = Resource::new("", "v1", "nodes", "Node");
    let watcher = cache.watch(0, &Interest::everything(&nodes)).unwrap();
    (cache, watcher)
}

/// As a watch does whose bookmark is due while it waits for more of a burst.
#[tokio::test(start_paused = true)]
async fn a_change_that_was_waited_for_and_not_taken_is_there_at_the_next_wait() {
    let (cache, mut watcher) = watched();
    assert!(watcher.take().unwrap().changes.is_empty());
    cache.push(1, [created(1)]);
    watcher.ready().await;
    let next = tokio::time::timeout(std::time::Duration::from_secs(60), watcher.next()).await;
    assert_eq!(next.expect("the change does not come").unwrap().changes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_ended_is_given_the_last_changes_first() {
    let (cache, mut watcher) = watched();
    cache.push(1, [created(1)]);
    cache.end_watchers();
    assert_eq!(watcher.next().await.unwrap().changes.len(), 1);
    assert!(matches!(watcher.next().await, Err(Ended::Closed)));
}

#[test]
fn the_last_changes_are_those_of_interest_and_a_watch_goes_on_from_them() {
    let (cache, _watcher) = watched();
    let nodes = Resource::new("", "v1", "nodes", "Node");
    let everything = Interest::everything(&nodes);
    let one = Interest::of_query(&nodes, None, "fieldSelector=metadata.name%3Dn2").unwrap();
    cache.push(5, (1..=5).map(created));
    cache.push(7, []);
    let versions = |interest: &Interest, limit| -> Vec<u64> {
        let (at, changes) = cache.last_changes(interest, limit);
        assert_eq!(at, 7);
        changes.iter().map(|(_, logged)| logged.change().version).collect()
    };
    assert_eq!(versions(&everything, 2), [4, 5]);
    assert!(versions(&everything, 0).is_empty());
    assert_eq!(versions(&one, 2), [2]);
    let (at, _) = cache.last_changes(&everything, 1);
    assert!(cache.watch(at, &everything).unwrap().take().unwrap().changes.is_empty());
}

/// Counts how often its labels are looked at.
#[derive(Clone)]
struct Looked(Plain, Arc<AtomicUsize>);

impl Object for Looked {
    fn key(&self) -> &ObjectKey {
        self.0.key()
    }

    fn version(&self) -> u64 {
        self.0.version()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.label(key)
    }

    fn field(&self, path: &str) -> Cow<'_, str> {
        self.0.field(path)
    }

    fn wire(&self) -> Wire<'_> {
        self.0.wire()
    }
}

/// All of it is under the lock of the cache: what bounds the terms of selectors bounds that, too.
#[test]
fn a_change_is_compared_with_each_term_of_each_selection_once_for_each_state() {
    let (selections, terms) = (20, 50);
    let cache = WatchCache::new(0, Capacity::Changes(10));
    let nodes = Resource::new("", "v1", "nodes", "Node");
    let watchers: Vec<_> = (0..2 * selections)
        .map(|watcher| {
            let of = |term| format!("!s{}-{term}", watcher % selections);
            let selector = Vec::from_iter((0..terms).map(of)).join(",");
            let query = format!("labelSelector={selector}");
            cache.watch(0, &Interest::of_query(&nodes, None, &query).unwrap()).unwrap()
        })
        .collect();
    let looked = Arc::new(AtomicUsize::new(0));
    let state =
        |version| Some(Looked(Plain(ObjectKey::cluster("n"), version), Arc::clone(&looked)));
    cache.push(2, [Change { version: 2, before: state(1), after: state(2) }]);
    assert_eq!(looked.load(Ordering::Relaxed), 2 * selections * terms);
    drop(watchers);
}
