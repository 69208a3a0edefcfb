//! Small kinds of the group without a name.

use std::fmt::Write;

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::keep::{Keep, keep};
use super::view::View;

pub(super) static KINDS: [BuiltIn; 6] = [
    BuiltIn::new("", "ComponentStatus", &definitions::COMPONENT_STATUS, component_status),
    BuiltIn::new("", "ConfigMap", &definitions::CONFIG_MAP, config_map).keeping(&DATA),
    BuiltIn::new("", "Namespace", &definitions::NAMESPACE, namespace),
    BuiltIn::new("", "ResourceQuota", &definitions::RESOURCE_QUOTA, resource_quota),
    BuiltIn::new("", "Secret", &definitions::SECRET, secret).keeping(&DATA),
    BuiltIn::new("", "ServiceAccount", &definitions::SERVICE_ACCOUNT, |it| {
        cells![it.name(), it.age()]
    }),
];

/// Only the number of entries is shown, and they can be large.
static DATA: Keep = keep! {
    metadata { name namespace creationTimestamp }
    type data (keys) binaryData (keys)
};

fn component_status(it: View<'_>) -> Vec<Value> {
    let condition = it.list("conditions").find(|it| it.text("type") == "Healthy");
    let status = match condition.map(|it| it.text("status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    let text = |path| condition.map_or("", |it| it.text(path));
    cells![it.name(), status, text("message"), text("error")]
}

fn config_map(it: View<'_>) -> Vec<Value> {
    cells![it.name(), it.size("data") + it.size("binaryData"), it.age()]
}

fn namespace(it: View<'_>) -> Vec<Value> {
    cells![it.name(), it.text_or("status.phase", "Active"), it.age()]
}

fn resource_quota(it: View<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (String::new(), String::new());
    let mut resources: Vec<&String> =
        it.map("status.hard").into_iter().flat_map(|it| it.keys()).collect();
    resources.sort_unstable();
    // Names of resources have dots in them.
    let quantity = |path, resource| {
        let quantity = it.map(path).and_then(|it| it.get(resource));
        quantity.and_then(Value::as_str).unwrap_or("0")
    };
    for resource in resources {
        let (used, hard) = (quantity("status.used", resource), quantity("status.hard", resource));
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        let comma = if column.is_empty() { "" } else { ", " };
        let _ = write!(column, "{comma}{resource}: {used}/{hard}");
    }
    cells![it.name(), requests, limits, it.age()]
}

fn secret(it: View<'_>) -> Vec<Value> {
    cells![it.name(), it.text_or("type", "Opaque"), it.size("data"), it.age()]
}
