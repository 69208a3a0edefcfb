//! Workloads.

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::keep::{Keep, keep};
use super::selector::{containers, label_selector, labels, written};
use super::text::{lower, resource_name};
use super::view::View;

pub(super) static KINDS: [BuiltIn; 6] = [
    BuiltIn::new("apps", "Deployment", &definitions::DEPLOYMENT, deployment).keeping(&FIELDS),
    BuiltIn::new("apps", "ReplicaSet", &definitions::REPLICA_SET, replica_set).keeping(&FIELDS),
    BuiltIn::new("apps", "StatefulSet", &definitions::STATEFUL_SET, stateful_set).keeping(&FIELDS),
    BuiltIn::new("apps", "DaemonSet", &definitions::DAEMON_SET, daemon_set).keeping(&FIELDS),
    BuiltIn::new("apps", "ControllerRevision", &definitions::CONTROLLER_REVISION, revision)
        .keeping(&REVISION_FIELDS),
    BuiltIn::new(
        "",
        "ReplicationController",
        &definitions::REPLICATION_CONTROLLER,
        replication_controller,
    )
    .keeping(&FIELDS),
];

static FIELDS: Keep = keep! {
    metadata { name namespace creationTimestamp }
    spec { replicas selector template { spec { nodeSelector containers { name image } } } }
    status {
        replicas readyReplicas updatedReplicas availableReplicas
        desiredNumberScheduled currentNumberScheduled numberReady updatedNumberScheduled
        numberAvailable
    }
};

const TEMPLATE: &str = "spec.template.spec";

fn deployment(it: View<'_>) -> Vec<Value> {
    let (names, images) = containers(it, TEMPLATE);
    cells![
        it.name(),
        ready_replicas(it),
        it.integer("status.updatedReplicas"),
        it.integer("status.availableReplicas"),
        it.age(),
        names,
        images,
        written(it.at("spec.selector")).unwrap_or_else(|_| "<invalid>".to_owned()),
    ]
}

fn replica_set(it: View<'_>) -> Vec<Value> {
    replicas(it, label_selector(it.at("spec.selector")))
}

fn replication_controller(it: View<'_>) -> Vec<Value> {
    replicas(it, labels(it.map("spec.selector")))
}

fn replicas(it: View<'_>, selector: String) -> Vec<Value> {
    let (names, images) = containers(it, TEMPLATE);
    cells![
        it.name(),
        desired_replicas(it),
        it.integer("status.replicas"),
        it.integer("status.readyReplicas"),
        it.age(),
        names,
        images,
        selector,
    ]
}

fn stateful_set(it: View<'_>) -> Vec<Value> {
    let (names, images) = containers(it, TEMPLATE);
    cells![it.name(), ready_replicas(it), it.age(), names, images]
}

fn daemon_set(it: View<'_>) -> Vec<Value> {
    let (names, images) = containers(it, TEMPLATE);
    cells![
        it.name(),
        it.integer("status.desiredNumberScheduled"),
        it.integer("status.currentNumberScheduled"),
        it.integer("status.numberReady"),
        it.integer("status.updatedNumberScheduled"),
        it.integer("status.numberAvailable"),
        labels(it.map("spec.template.spec.nodeSelector")),
        it.age(),
        names,
        images,
        label_selector(it.at("spec.selector")),
    ]
}

/// Without the data, which are any JSON.
static REVISION_FIELDS: Keep = keep! {
    metadata { name namespace creationTimestamp ownerReferences }
    revision
};

fn revision(it: View<'_>) -> Vec<Value> {
    let owner = it.list("metadata.ownerReferences").find(|it| it.boolean("controller"));
    let owner = owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let (kind, name) = (owner.text("kind"), owner.text("name"));
            let group = owner.text("apiVersion").split_once('/').map_or("", |it| it.0);
            match resource_name(kind, group) {
                kind if kind.is_empty() => name.to_owned(),
                kind => format!("{}/{name}", lower(&kind)),
            }
        },
    );
    cells![it.name(), owner, it.integer("revision"), it.age()]
}

fn desired_replicas(it: View<'_>) -> i64 {
    it.integer_or("spec.replicas", 1)
}

fn ready_replicas(it: View<'_>) -> String {
    format!("{}/{}", it.integer("status.readyReplicas"), desired_replicas(it))
}
