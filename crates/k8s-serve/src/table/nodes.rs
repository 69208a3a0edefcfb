//! Nodes, and what runs on them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::keep::{Keep, keep};
use super::selector::or_none;
use super::view::View;

pub(super) static KINDS: [BuiltIn; 2] = [
    BuiltIn::new("", "Node", &definitions::NODE, node).keeping(&NODE_FIELDS),
    BuiltIn::new("node.k8s.io", "RuntimeClass", &definitions::RUNTIME_CLASS, |it| {
        // The first versions had it in a specification.
        let handler = it.text(if it.has("spec") { "spec.runtimeHandler" } else { "handler" });
        cells![it.name(), handler, it.age()]
    }),
];

static NODE_FIELDS: Keep = keep! {
    metadata { name creationTimestamp labels }
    spec { unschedulable }
    status { conditions { type status } addresses nodeInfo }
};

fn node(it: View<'_>) -> Vec<Value> {
    let mut kernel = it.text_or("status.nodeInfo.kernelVersion", "<unknown>").to_owned();
    let architecture = it.text("status.nodeInfo.architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    cells![
        it.name(),
        status(it),
        roles(it),
        it.age(),
        it.text("status.nodeInfo.kubeletVersion"),
        address(it, "InternalIP"),
        address(it, "ExternalIP"),
        it.text_or("status.nodeInfo.osImage", "<unknown>"),
        kernel,
        it.text_or("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
    ]
}

fn status(it: View<'_>) -> String {
    let ready = match it.last_condition("Ready").map(|it| it.text("status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let is_cordoned = it.boolean("spec.unschedulable");
    format!("{ready}{}", if is_cordoned { ",SchedulingDisabled" } else { "" })
}

fn roles(it: View<'_>) -> String {
    let labels = it.map("metadata.labels").into_iter().flatten();
    let role = |(key, value): (&'_ String, &'_ Value)| match key.as_str() {
        "kubernetes.io/role" => value.as_str().map(str::to_owned),
        key => key.strip_prefix("node-role.kubernetes.io/").map(str::to_owned),
    };
    let roles: BTreeSet<String> = labels.filter_map(role).filter(|it| !it.is_empty()).collect();
    or_none(roles.into_iter().collect::<Vec<_>>().join(","))
}

/// The first address of a type.
fn address<'a>(it: View<'a>, kind: &str) -> &'a str {
    let address = it.list("status.addresses").find(|it| it.text("type") == kind);
    address.map_or("<none>", |it| it.text("address"))
}
