//! The group without a name, but for Pods.

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::view::View;

pub(super) fn find(kind: &str) -> Option<&'static BuiltIn> {
    static CONFIG_MAP: BuiltIn = BuiltIn::new(&definitions::CONFIG_MAP, config_map);
    static NAMESPACE: BuiltIn = BuiltIn::new(&definitions::NAMESPACE, namespace);
    match kind {
        "ConfigMap" => Some(&CONFIG_MAP),
        "Namespace" => Some(&NAMESPACE),
        _ => None,
    }
}

fn config_map(it: View<'_>) -> Vec<Value> {
    cells![it.name(), it.count("data") + it.count("binaryData"), it.age()]
}

fn namespace(it: View<'_>) -> Vec<Value> {
    cells![it.name(), it.text_or("status.phase", "Active"), it.age()]
}
