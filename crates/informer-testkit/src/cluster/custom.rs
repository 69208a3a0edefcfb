//! CustomResourceDefinitions: what they define is served as long as they are there.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_serve::{Resource, Status};
use serde::Deserialize;
use serde_json::json;

use super::state::{State, now};
use crate::json::Fields;
use crate::object::Object;

pub(super) const CRD: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Whether the objects of `resource` define resources.
pub(super) fn defines_resources(resource: &Resource) -> bool {
    resource.name() == CRD
}

/// Checks a definition, and gives it the status of one that is served.
pub(super) fn accept(name: &str, rest: &mut Fields) -> Result<(), Status> {
    let invalid = |field: &str, fault: &str| {
        Status::invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, field, fault)
    };
    let definition = Definition::read(rest)
        .map_err(|error| invalid("spec", &format!("Invalid value: {error}")))?;
    let wanted = format!("{}.{}", definition.names.plural, definition.group);
    if name != wanted {
        return Err(invalid(
            "metadata.name",
            &format!(
                "Invalid value: {name:?}: must be spec.names.plural+\".\"+spec.group, {wanted:?}"
            ),
        ));
    }
    let stored: Vec<&str> =
        definition.versions.iter().filter(|v| v.storage).map(|v| v.name.as_str()).collect();
    if stored.len() != 1 {
        let fault = "Invalid value: must have exactly one version marked as storage version";
        return Err(invalid("spec.versions", fault));
    }
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now()});
    let status = json!({
        "acceptedNames": rest.object("spec").read::<serde_json::Value>("names").ok().flatten(),
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored,
    });
    if rest.object("status").raw("conditions").is_none() {
        rest.set("status", &status);
    }
    Ok(())
}

impl State {
    /// Serves what the definitions say, and nothing else besides the built-in resources.
    pub(super) fn serve_definitions(&mut self) {
        let mut resources: Vec<Arc<Resource>> =
            self.resources.iter().filter(|r| !r.custom).cloned().collect();
        let definitions = self.resource(CRD).and_then(|crds| self.collection(crds));
        let mut custom: Vec<Resource> = definitions
            .into_iter()
            .flat_map(|all| all.iter().flat_map(defined_resources))
            .collect();
        // A stable sort: the definitions come by name.
        custom.sort_by(|a, b| {
            (&a.group, Reverse(priority(&a.version)))
                .cmp(&(&b.group, Reverse(priority(&b.version))))
        });
        resources.extend(custom.into_iter().map(Arc::new));
        self.serve(resources);
    }

    /// Deletes all objects that a definition defines, and ends their watches.
    pub(super) fn delete_defined(&mut self, definition: &Object) {
        for resource in defined_resources(definition).into_iter().take(1) {
            let keys: Vec<_> = self
                .collection(&resource)
                .map(|collection| collection.iter().map(|object| object.key().clone()).collect())
                .unwrap_or_default();
            for key in keys {
                self.take(&resource, &key);
            }
            self.end_watches(&resource);
        }
    }
}

fn defined_resources(definition: &Object) -> Vec<Resource> {
    let (_, rest) = definition.fields();
    let Ok(definition) = Definition::read(&rest) else { return Vec::new() };
    definition
        .versions
        .iter()
        .filter(|version| version.served)
        .map(|v| definition.resource(v))
        .collect()
}

#[derive(Debug, Deserialize)]
struct Definition {
    group: String,
    names: Names,
    scope: String,
    versions: Vec<Version>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    plural: String,
    #[serde(default)]
    singular: String,
    kind: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    storage: bool,
    #[serde(default)]
    subresources: Option<Subresources>,
    #[serde(default)]
    selectable_fields: Vec<SelectableField>,
}

#[derive(Debug, Deserialize)]
struct Subresources {
    status: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelectableField {
    json_path: String,
}

impl Definition {
    fn read(rest: &Fields) -> Result<Self, serde_json::Error> {
        rest.read("spec")?.ok_or_else(|| serde::de::Error::missing_field("spec"))
    }

    fn resource(&self, version: &Version) -> Resource {
        let mut resource =
            Resource::new(&self.group, &version.name, &self.names.plural, &self.names.kind);
        if !self.names.singular.is_empty() {
            resource.singular.clone_from(&self.names.singular);
        }
        resource.short_names.clone_from(&self.names.short_names);
        resource.categories.clone_from(&self.names.categories);
        resource.namespaced = self.scope == "Namespaced";
        resource.has_status = version.subresources.as_ref().is_some_and(|s| s.status.is_some());
        resource.custom = true;
        resource.selectable_fields = version
            .selectable_fields
            .iter()
            .map(|f| f.json_path.trim_start_matches('.').to_owned())
            .collect();
        resource
    }
}

/// How Kubernetes orders versions: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then anything
/// else.
fn priority(version: &str) -> (u8, u64, u64) {
    let numbers = |text: &str, word: &str| -> Option<(u64, u64)> {
        let (major, minor) = text.strip_prefix('v')?.split_once(word)?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    if let Some(Ok(major)) = version.strip_prefix('v').map(str::parse::<u64>) {
        (3, major, 0)
    } else if let Some((major, minor)) = numbers(version, "beta") {
        (2, major, minor)
    } else if let Some((major, minor)) = numbers(version, "alpha") {
        (1, major, minor)
    } else {
        (0, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_order_as_kubernetes_says() {
        let mut versions = ["v1", "v1alpha1", "v2beta1", "v10", "foo", "v1beta2", "v2"];
        versions.sort_by_key(|version| Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]);
    }
}
