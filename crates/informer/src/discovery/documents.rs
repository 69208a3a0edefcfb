//! The two shapes of discovery documents: aggregated (`apidiscovery.k8s.io`), and the older ones.

use serde::Deserialize;

use super::{ApiResourceInfo, FailedGroup};
use crate::Resource;

/// A document of `/api` or `/apis`, whichever of the shapes the server chose.
#[derive(Deserialize)]
#[serde(tag = "kind")]
pub(super) enum Root {
    /// All groups with all their resources.
    #[serde(rename = "APIGroupDiscoveryList")]
    Aggregated(Aggregated),
    /// `/api` of an older server: versions of the core group.
    #[serde(rename = "APIVersions")]
    CoreVersions(CoreVersions),
    /// `/apis` of an older server: groups and their versions.
    #[serde(rename = "APIGroupList")]
    Groups(Groups),
}

#[derive(Deserialize)]
pub(super) struct Aggregated {
    #[serde(default)]
    items: Vec<AggregatedGroup>,
}

#[derive(Deserialize)]
struct AggregatedGroup {
    #[serde(default)]
    metadata: Named,
    #[serde(default)]
    versions: Vec<AggregatedVersion>,
}

#[derive(Deserialize, Default)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct AggregatedVersion {
    version: String,
    #[serde(default)]
    resources: Vec<AggregatedResource>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    #[serde(default)]
    response_kind: ResponseKind,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

#[derive(Deserialize, Default)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
pub(super) struct CoreVersions {
    #[serde(default)]
    pub(super) versions: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Groups {
    #[serde(default)]
    pub(super) groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    pub(super) name: String,
    #[serde(default)]
    versions: Vec<GroupVersion>,
    #[serde(default)]
    preferred_version: GroupVersion,
}

#[derive(Deserialize, Default)]
struct GroupVersion {
    #[serde(default)]
    version: String,
}

/// A document of `/api/v1` or `/apis/{group}/{version}`.
#[derive(Deserialize)]
pub(super) struct ResourceList {
    #[serde(default)]
    resources: Vec<ListedResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedResource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

impl Aggregated {
    /// Splits the document into what it tells and which groups it could not read.
    pub(super) fn into_parts(self) -> (Vec<ApiResourceInfo>, Vec<FailedGroup>) {
        let (mut resources, mut failed) = (Vec::new(), Vec::new());
        for group in self.items {
            for version in group.versions {
                if version.freshness == "Stale" {
                    failed.push(FailedGroup {
                        group_version: group_version(&group.metadata.name, &version.version),
                        cause: "its server does not answer".to_owned(),
                    });
                    continue;
                }
                let of =
                    |it: AggregatedResource| it.into_info(&group.metadata.name, &version.version);
                resources.extend(version.resources.into_iter().map(of));
            }
        }
        (resources, failed)
    }
}

impl AggregatedResource {
    fn into_info(self, group: &str, version: &str) -> ApiResourceInfo {
        let resource = Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: self.resource,
            kind: self.response_kind.kind,
            namespaced: self.scope == "Namespaced",
        };
        ApiResourceInfo {
            singular: singular(self.singular_resource, &resource.kind),
            resource,
            short_names: self.short_names,
            categories: self.categories,
            verbs: self.verbs,
            preferred: false,
        }
    }
}

impl Group {
    /// The versions, the preferred one first.
    pub(super) fn into_versions(self) -> Vec<String> {
        let preferred = self.preferred_version.version;
        let mut versions: Vec<String> = self.versions.into_iter().map(|it| it.version).collect();
        versions.sort_by_key(|version| *version != preferred);
        versions
    }
}

impl ResourceList {
    /// The resources, without subresources.
    pub(super) fn into_infos(self, group: &str, version: &str) -> Vec<ApiResourceInfo> {
        let resources = self.resources.into_iter().filter(|it| !it.name.contains('/'));
        resources.map(|it| it.into_info(group, version)).collect()
    }
}

impl ListedResource {
    fn into_info(self, group: &str, version: &str) -> ApiResourceInfo {
        ApiResourceInfo {
            singular: singular(self.singular_name, &self.kind),
            resource: Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                plural: self.name,
                kind: self.kind,
                namespaced: self.namespaced,
            },
            short_names: self.short_names,
            categories: self.categories,
            verbs: self.verbs,
            preferred: false,
        }
    }
}

/// `v1`, `apps/v1`.
pub(super) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Older servers leave the singular name empty; it is the kind in lower case then.
fn singular(told: String, kind: &str) -> String {
    if told.is_empty() { kind.to_lowercase() } else { told }
}
