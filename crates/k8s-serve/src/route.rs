//! What a path asks for.

use std::fmt;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::params::boolean;
use crate::resource::Resource;

/// What the path of a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `/healthz`, `/livez`, `/readyz` and below.
    Health,
    /// `/version`.
    Version,
    /// `/api`, `/apis` and their groups and versions.
    Discovery(DiscoveryPath),
    /// `/openapi/v2`.
    OpenApi,
    /// A collection or an object.
    Resource(ResourcePath),
    /// Nothing that is served.
    Unknown,
}

/// A discovery document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiscoveryPath {
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/v1`, with an empty group, and `/apis/{group}/{version}`.
    Version {
        /// The group.
        group: String,
        /// The version.
        version: String,
    },
}

/// The path of a collection or an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourcePath {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// The namespace, if the path has one.
    pub namespace: Option<String>,
    /// The plural name of the resource.
    pub resource: String,
    /// The name of the object; without it the path is that of a collection.
    pub name: Option<String>,
    /// What follows the name, for example `status`.
    pub subresource: Option<String>,
}

/// What a request does, in the words of RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows the changes of a collection.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes parts of an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
    /// Anything that is not about a resource: discovery, health, `/version`.
    Other,
}

impl Route {
    /// Reads a path, without its query.
    #[must_use]
    pub fn parse(path: &str) -> Self {
        let segments: Vec<String> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
            .collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
            ["version"] => Self::Version,
            ["openapi", "v2"] => Self::OpenApi,
            ["api"] => Self::Discovery(DiscoveryPath::Core),
            ["apis"] => Self::Discovery(DiscoveryPath::Groups),
            ["apis", group] => Self::Discovery(DiscoveryPath::Group((*group).to_owned())),
            ["api", version] => Self::Discovery(DiscoveryPath::version("", version)),
            ["apis", group, version] => Self::Discovery(DiscoveryPath::version(group, version)),
            ["api", version, rest @ ..] => ResourcePath::parse("", version, rest),
            ["apis", group, version, rest @ ..] => ResourcePath::parse(group, version, rest),
            _ => Self::Unknown,
        }
    }
}

impl DiscoveryPath {
    fn version(group: &str, version: &str) -> Self {
        Self::Version { group: group.to_owned(), version: version.to_owned() }
    }
}

impl ResourcePath {
    /// What a request with this method and query does here.
    #[must_use]
    pub fn verb(&self, method: &Method, query: &str) -> Verb {
        match (method.as_str(), &self.name) {
            ("GET" | "HEAD", Some(_)) => Verb::Get,
            ("GET" | "HEAD", None) if wants_watch(query) => Verb::Watch,
            ("GET" | "HEAD", None) => Verb::List,
            ("POST", _) => Verb::Create,
            ("PUT", _) => Verb::Update,
            ("PATCH", _) => Verb::Patch,
            ("DELETE", Some(_)) => Verb::Delete,
            ("DELETE", None) => Verb::DeleteCollection,
            _ => Verb::Other,
        }
    }

    /// Whether it is a path of this resource.
    #[must_use]
    pub fn names(&self, resource: &Resource) -> bool {
        resource.plural == self.resource
            && resource.version == self.version
            && resource.group == self.group
    }

    /// Reads what follows group and version. `namespaces/x` is the object, `namespaces/x/pods` is a
    /// collection in it, and `namespaces/x/status` is the object's subresource.
    fn parse(group: &str, version: &str, rest: &[&str]) -> Route {
        let path = |namespace: Option<&str>,
                    resource: &str,
                    name: Option<&str>,
                    subresource: Option<String>| {
            Route::Resource(Self {
                group: group.to_owned(),
                version: version.to_owned(),
                namespace: namespace.map(str::to_owned),
                resource: resource.to_owned(),
                name: name.map(str::to_owned),
                subresource,
            })
        };
        let joined = |rest: &[&str]| (!rest.is_empty()).then(|| rest.join("/"));
        match rest {
            ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
                path(None, "namespaces", Some(name), Some((*sub).to_owned()))
            }
            ["namespaces", namespace, resource] => path(Some(namespace), resource, None, None),
            ["namespaces", namespace, resource, name, sub @ ..] => {
                path(Some(namespace), resource, Some(name), joined(sub))
            }
            [resource] => path(None, resource, None, None),
            [resource, name, sub @ ..] => path(None, resource, Some(name), joined(sub)),
            [] => Route::Unknown,
        }
    }
}

impl Verb {
    /// The word as RBAC writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn wants_watch(query: &str) -> bool {
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "watch")
        .is_some_and(|(_, value)| boolean(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_what_they_should() {
        let resource = |text: &str| match Route::parse(text) {
            Route::Resource(p) => format!(
                "{}/{} {} {} {} {}",
                p.group,
                p.version,
                p.namespace.unwrap_or_default(),
                p.resource,
                p.name.unwrap_or_default(),
                p.subresource.unwrap_or_default()
            ),
            other => format!("{other:?}"),
        };
        for (path, meaning) in [
            ("/api/v1/pods", "/v1  pods  "),
            ("/api/v1/namespaces", "/v1  namespaces  "),
            ("/api/v1/namespaces/a", "/v1  namespaces a "),
            ("/api/v1/namespaces/a/status", "/v1  namespaces a status"),
            ("/api/v1/namespaces/a/pods", "/v1 a pods  "),
            ("/api/v1/namespaces/a/pods/b/status", "/v1 a pods b status"),
            ("/apis/apps/v1/namespaces/a/deployments/b", "apps/v1 a deployments b "),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                "rbac.authorization.k8s.io/v1  clusterroles system:node ",
            ),
            ("/version", "Version"),
            ("/readyz/ping", "Health"),
            ("/apis/apps", "Discovery(Group(\"apps\"))"),
            ("/openapi/v3", "Unknown"),
            ("/", "Unknown"),
        ] {
            assert_eq!(resource(path), meaning, "{path}");
        }
    }

    #[test]
    fn verbs_are_those_of_rbac() {
        let Route::Resource(pods) = Route::parse("/api/v1/pods") else { panic!() };
        assert_eq!(pods.verb(&Method::GET, "limit=1"), Verb::List);
        assert_eq!(pods.verb(&Method::GET, "watch=1"), Verb::Watch);
        assert_eq!(pods.verb(&Method::GET, "watch=true&a=b"), Verb::Watch);
        // As Python writes it, and only what is said first.
        for query in ["watch=false", "watch=False", "watch=0", "watch=false&watch=true"] {
            assert_eq!(pods.verb(&Method::GET, query), Verb::List, "{query}");
        }
        assert_eq!(pods.verb(&Method::DELETE, ""), Verb::DeleteCollection);
    }
}
