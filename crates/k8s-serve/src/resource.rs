//! What a resource is called, and what can be done with it.

use std::fmt;

use informer_core::selector::SelectableFields;

/// One resource in one version of its API group, as discovery describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group, for example `v1`.
    pub version: String,
    /// The name in URLs: plural, lower case, for example `pods`.
    pub plural: String,
    /// The singular name, for example `pod`.
    pub singular: String,
    /// The kind of its objects, for example `Pod`.
    pub kind: String,
    /// What `kubectl` also accepts, for example `po`.
    pub short_names: Vec<String>,
    /// Groups of resources it belongs to, for example `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether `/status` is a subresource: status is then written through it alone.
    pub has_status: bool,
    /// Whether a CustomResourceDefinition defines it.
    pub custom: bool,
    /// The verbs that discovery announces.
    pub verbs: Vec<String>,
    /// Paths that field selectors may use besides `metadata.name` and `metadata.namespace`, as a
    /// CustomResourceDefinition declares them. If there are none, a built-in kind has the fields
    /// that API servers have.
    pub selectable_fields: Vec<String>,
}

/// The verbs of a resource that can be read and written.
const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

impl Resource {
    /// A cluster-scoped resource with all verbs and nothing else; the public fields say the rest.
    #[must_use]
    pub fn new(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            kind: kind.to_owned(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: false,
            has_status: false,
            custom: false,
            verbs: ALL_VERBS.map(str::to_owned).to_vec(),
            selectable_fields: Vec::new(),
        }
    }

    /// `v1` or `group/version`, as objects carry it.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `pods` or `deployments.apps`: the name without the version. Versions of one resource share
    /// their objects, which this names.
    #[must_use]
    pub fn name(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether `text` names it: `pods`, `pod`, `po`, `deployments.apps` or `deployments.v1.apps`.
    #[must_use]
    pub fn is_called(&self, text: &str) -> bool {
        let (word, rest) =
            text.split_once('.').map_or((text, None), |(word, rest)| (word, Some(rest)));
        let word_fits = word == self.plural
            || word == self.singular
            || self.short_names.iter().any(|s| s == word);
        word_fits
            && rest.is_none_or(|rest| {
                rest == self.group
                    || rest
                        .strip_prefix(self.version.as_str())
                        .is_some_and(|rest| rest.strip_prefix('.').unwrap_or(rest) == self.group)
            })
    }

    /// The fields that the server selects by.
    #[must_use]
    pub fn fields(&self) -> SelectableFields {
        if self.custom || !self.selectable_fields.is_empty() {
            return SelectableFields::custom(self.namespaced, &self.selectable_fields);
        }
        SelectableFields::of(&self.group, &self.version, &self.kind, self.namespaced)
    }
}

/// `pods.v1` or `deployments.v1.apps`.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.plural, self.version)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_answers_to_all_its_names() {
        let mut deployments = Resource::new("apps", "v1", "deployments", "Deployment");
        deployments.short_names.push("deploy".to_owned());
        for name in ["deployments", "deployment", "deploy", "deployments.apps", "deploy.v1.apps"] {
            assert!(deployments.is_called(name), "{name}");
        }
        for name in ["pods", "deployments.batch", "deployments.v2.apps", "deployments.v1"] {
            assert!(!deployments.is_called(name), "{name}");
        }
        assert!(Resource::new("", "v1", "pods", "Pod").is_called("pods.v1"));
    }
}
