//! Workloads.

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::selector::{containers, written};
use super::view::View;

pub(super) fn find(kind: &str) -> Option<&'static BuiltIn> {
    static DEPLOYMENT: BuiltIn = BuiltIn::new(&definitions::DEPLOYMENT, deployment);
    match kind {
        "Deployment" => Some(&DEPLOYMENT),
        _ => None,
    }
}

fn deployment(it: View<'_>) -> Vec<Value> {
    let (names, images) = containers(it, "spec.template.spec");
    cells![
        it.name(),
        format!("{}/{}", it.integer("status.readyReplicas"), it.integer_or("spec.replicas", 1)),
        it.integer("status.updatedReplicas"),
        it.integer("status.availableReplicas"),
        it.age(),
        names,
        images,
        written(it.at("spec.selector")).unwrap_or_else(|_| "<invalid>".to_owned()),
    ]
}
