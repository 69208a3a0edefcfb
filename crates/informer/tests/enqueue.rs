//! From events to keys: the object, its owner, or what a function says, also of what is gone.

#[macro_use]
mod common;

use std::sync::Arc;

use futures_util::future::poll_immediate;
use informer::source::FailureKind;
use informer::workqueue::{Enqueue, WorkQueue};
use informer::{
    Deleted, Event, EventHandler, Filtered, FinalState, ObjectKey, Resource, UpdateReason,
};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use common::{object, scripted_informer, soon};

run_tests! {
    on_both_runtimes:
        the_owner_is_the_controller_of_that_group_and_kind_in_whatever_version,
        an_object_that_changes_hands_enqueues_both_owners,
        mapped_keys_are_those_of_the_old_state_and_the_new,
        a_filter_around_it_leaves_events_out;
    on_a_paused_clock:
        a_delete_that_was_missed_enqueues_its_key_too;
}

/// A ReplicaSet with an owner.
fn owned_by(
    api_version: &str,
    kind: &str,
    name: &str,
    controller: Option<bool>,
) -> Arc<ReplicaSet> {
    let mut object = ReplicaSet::default();
    object.metadata.owner_references = Some(vec![OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        controller,
        ..OwnerReference::default()
    }]);
    Arc::new(object)
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "a")
}

fn added<T>(object: Arc<T>) -> Event<T> {
    Event::Added { key: key(), object, initial: true }
}

fn updated<T>(old: Arc<T>, new: Arc<T>) -> Event<T> {
    Event::Updated { key: key(), old, new, reason: UpdateReason::Change }
}

fn deleted<T>(old: Arc<T>, last: Arc<T>) -> Event<T> {
    Event::Deleted(Deleted { key: key(), old, last, final_state: FinalState::Unknown })
}

/// All keys that wait, in order.
async fn drain<K: informer::workqueue::Key + ToString>(queue: &WorkQueue<K>) -> Vec<String> {
    let mut keys = Vec::new();
    while let Some(Some(item)) = poll_immediate(queue.next()).await {
        keys.push(item.key().to_string());
    }
    keys
}

/// The keys that one event enqueues as the owners of the given resource.
async fn owners(of: &Resource, event: &Event<ReplicaSet>) -> Vec<String> {
    let queue = WorkQueue::new("owners");
    Enqueue::owner(&queue, of).on_event(event);
    drain(&queue).await
}

async fn the_owner_is_the_controller_of_that_group_and_kind_in_whatever_version() {
    let deployments = Resource::of::<Deployment>();
    let yes = Some(true);
    let cases = [
        (owned_by("apps/v1", "Deployment", "web", yes), vec!["default/web"]),
        (owned_by("apps/v1beta9", "Deployment", "web", yes), vec!["default/web"]),
        (owned_by("apps/v1", "Deployment", "web", Some(false)), vec![]),
        (owned_by("apps/v1", "Deployment", "web", None), vec![]),
        (owned_by("apps/v1", "StatefulSet", "web", yes), vec![]),
        (owned_by("other.example.com/v1", "Deployment", "web", yes), vec![]),
        (owned_by("v1", "Deployment", "web", yes), vec![]),
        (Arc::default(), vec![]),
    ];
    for (object, expected) in cases {
        for event in [added(Arc::clone(&object)), deleted(Arc::clone(&object), Arc::clone(&object))]
        {
            assert_eq!(
                owners(&deployments, &event).await,
                expected,
                "{event:?} {:?}",
                object.metadata
            );
        }
    }
    // Of the core group, and without a namespace.
    let event = added(owned_by("v1", "Node", "n1", yes));
    assert_eq!(owners(&Resource::of::<Node>(), &event).await, ["n1"]);
}

async fn an_object_that_changes_hands_enqueues_both_owners() {
    let deployments = Resource::of::<Deployment>();
    let (old, new) = (
        owned_by("apps/v1", "Deployment", "old", Some(true)),
        owned_by("apps/v1", "Deployment", "new", Some(true)),
    );
    let event = updated(Arc::clone(&old), Arc::clone(&new));
    assert_eq!(owners(&deployments, &event).await, ["default/old", "default/new"]);
    assert_eq!(
        owners(&deployments, &updated(Arc::clone(&old), Arc::default())).await,
        ["default/old"]
    );
    // It is gone before the handler learns that it changed hands.
    assert_eq!(
        owners(&deployments, &deleted(Arc::clone(&old), new)).await,
        ["default/old", "default/new"]
    );
    assert_eq!(owners(&deployments, &deleted(old, Arc::default())).await, ["default/old"]);
}

async fn mapped_keys_are_those_of_the_old_state_and_the_new() {
    let queue = WorkQueue::new("nodes");
    let on = |node: &str| {
        let mut pod = Pod::default();
        pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
        Arc::new(pod)
    };
    let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let mut handler = Enqueue::mapped(&queue, node);
    handler.on_event(&added(Arc::default()));
    handler.on_event(&updated(on("one"), on("two")));
    handler.on_event(&deleted(on("three"), on("four")));
    assert_eq!(drain(&queue).await, ["one", "two", "three", "four"]);
}

async fn a_filter_around_it_leaves_events_out() {
    let queue = WorkQueue::new("controlled");
    let is_owned = |set: &ReplicaSet| set.metadata.owner_references.is_some();
    let mut handler = Filtered::new(Enqueue::object(&queue), is_owned);
    handler.on_event(&added(Arc::default()));
    assert!(queue.is_empty());
    handler.on_event(&added(owned_by("v1", "Node", "n1", None)));
    assert_eq!(drain(&queue).await, ["default/a"]);
}

async fn a_delete_that_was_missed_enqueues_its_key_too() {
    let (informer, mut script) = scripted_informer();
    let queue = WorkQueue::new("config_maps");
    informer.add_event_handler(Enqueue::object(&queue)).expect("it runs");
    informer.start();
    script.list(10, &[object("a", 1, "1"), object("b", 2, "1")]).await;
    let (_, feed) = script.watch().await;
    for expected in ["default/a", "default/b"] {
        assert_eq!(soon(queue.next()).await.expect("a key").to_string(), expected);
    }
    feed.fail(FailureKind::Expired, "too old resource version");
    script.list(20, &[object("b", 2, "1")]).await;
    let gone = soon(queue.next()).await.expect("a key");
    assert_eq!(gone.to_string(), "default/a", "what did not change is not enqueued");
    assert!(queue.is_empty());
    assert!(informer.unsynced_store().get(&gone).is_none());
    informer.stop().await;
}
