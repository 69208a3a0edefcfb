//! Which resource, and which part of it, an informer holds.

use std::borrow::Cow;
use std::fmt;

use informer_core::selector::{FieldSelector, LabelSelector};

/// A resource of the API server: group, version and plural name, with what discovery says of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The plural name in lower case, as it stands in URLs.
    pub plural: String,
    /// The kind of its objects, such as `Pod`.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// The part of a resource that an informer holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Only this namespace; all of them if `None`. Cluster-scoped resources have no namespaces.
    pub namespace: Option<String>,
    /// Only objects whose labels match, selected by the server.
    pub labels: LabelSelector,
    /// Only objects whose fields match, selected by the server.
    pub fields: FieldSelector,
}

impl Resource {
    /// The resource of a typed kind.
    ///
    /// # Examples
    /// ```
    /// use informer::Resource;
    /// use k8s_openapi::api::apps::v1::Deployment;
    ///
    /// let deployments = Resource::of::<Deployment>();
    /// assert_eq!(deployments.to_string(), "deployments.v1.apps");
    /// assert!(deployments.namespaced);
    /// ```
    #[must_use]
    pub fn of<K: TypedResource>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespaced: K::namespaced(),
        }
    }

    /// `version`, or `group/version`: what objects say in `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            return self.version.clone();
        }
        format!("{}/{}", self.group, self.version)
    }

    /// The path of the collection, of one namespace or of all.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let (api_version, plural) = (self.api_version(), &self.plural);
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/{api_version}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{api_version}/{plural}"),
        }
    }

    /// `resource` or `resource.group`, as RBAC rules and error messages of the server write it.
    #[must_use]
    pub fn group_resource(&self) -> Cow<'_, str> {
        if self.group.is_empty() {
            return Cow::Borrowed(&self.plural);
        }
        Cow::Owned(format!("{}.{}", self.plural, self.group))
    }
}

/// `pods.v1`, `deployments.v1.apps`: as kubectl takes it.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.plural, self.version)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

impl Scope {
    /// The whole resource.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// One namespace.
    #[must_use]
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }
}

/// `all namespaces`, `namespace default`, with the selectors.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "namespace {namespace}")?,
            None => f.write_str("the whole cluster")?,
        }
        if !self.labels.is_everything() {
            write!(f, ", labels {}", self.labels)?;
        }
        if !self.fields.is_everything() {
            write!(f, ", fields {}", self.fields)?;
        }
        Ok(())
    }
}

/// A kind whose resource is known from its type alone: every kind of k8s-openapi, and every type that derives
/// `kube::CustomResource`.
pub trait TypedResource: kube::Resource<DynamicType = ()> {
    /// Whether objects of this kind live in namespaces.
    fn namespaced() -> bool;
}

impl<K: kube::Resource<DynamicType = ()>> TypedResource for K
where
    K::Scope: ScopeKind,
{
    fn namespaced() -> bool {
        K::Scope::NAMESPACED
    }
}

/// What a scope type of k8s-openapi says in its type.
pub trait ScopeKind {
    /// Whether it is the scope of namespaced resources.
    const NAMESPACED: bool;
}

impl ScopeKind for k8s_openapi::NamespaceResourceScope {
    const NAMESPACED: bool = true;
}

impl ScopeKind for k8s_openapi::ClusterResourceScope {
    const NAMESPACED: bool = false;
}

impl ScopeKind for k8s_openapi::SubResourceScope {
    const NAMESPACED: bool = true;
}
