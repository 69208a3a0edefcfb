//! Which resource, and which part of it, an informer holds.

use std::borrow::Cow;
use std::fmt;

use informer_core::selector::{FieldSelector, LabelSelector, ParseSelectorError, SelectableFields};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use crate::Error;

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

/// A part of a resource: what an informer holds, or what is selected from a
/// [`Lister`](crate::Lister). A label selector or a field selector alone converts into the scope of
/// all namespaces.
///
/// # Examples
/// ```
/// use informer::{LabelSelector, Scope};
///
/// let scope = Scope::namespace("shop").labels("app=web")?.fields("spec.nodeName=node-1")?;
/// assert_eq!(scope.to_string(), "namespace shop, labels app=web, fields spec.nodeName=node-1");
///
/// let web: LabelSelector = "app=web".parse()?;
/// assert_eq!(Scope::all().labels(&web)?, Scope::all().labels("app=web")?);
/// assert_eq!(Scope::from(web), Scope::all().labels(String::from("app=web"))?);
/// assert!(Scope::all().labels("app in web").is_err());
/// # Ok::<(), informer::ParseSelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Only this namespace; all of them if `None`. Cluster-scoped resources have no namespaces.
    pub namespace: Option<String>,
    /// Only objects whose labels match.
    pub labels: LabelSelector,
    /// Only objects whose fields match.
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
        let (version, plural) =
            (group_version_path(&self.group, &self.version), segment(&self.plural));
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => {
                format!("{root}/{version}/namespaces/{}/{plural}", segment(namespace))
            }
            None => format!("{root}/{version}/{plural}"),
        }
    }

    /// The path of one object; of a cluster-scoped one the namespace is ignored.
    pub(crate) fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.path(Some(namespace)), segment(name))
    }

    /// `resource` or `resource.group`, as RBAC rules and error messages of the server write it.
    #[must_use]
    pub fn group_resource(&self) -> Cow<'_, str> {
        if self.group.is_empty() {
            return Cow::Borrowed(&self.plural);
        }
        Cow::Owned(format!("{}.{}", self.plural, self.group))
    }

    /// The fields that the API server selects by; of custom resources the name and the namespace
    /// only, since what else there is stands in the definition
    /// ([`SelectableFields::of_definition`]).
    #[must_use]
    pub fn selectable_fields(&self) -> SelectableFields {
        SelectableFields::of(&self.group, &self.version, &self.kind, self.namespaced)
    }
}

/// As the API server defines it, for names of namespaces.
fn is_dns_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// `version`, or `group/version`, as segments of a path.
pub(crate) fn group_version_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        return segment(version).to_string();
    }
    format!("{}/{}", segment(group), segment(version))
}

/// A name as one segment of a path, whatever it holds: it may come from a user, and must not lead
/// elsewhere.
fn segment(name: &str) -> PercentEncode<'_> {
    const ESCAPED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(name, ESCAPED)
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

    /// This scope, with this label selector, parsed or as text.
    ///
    /// # Errors
    /// If a text is no label selector; a [`LabelSelector`] never fails.
    pub fn labels<S>(self, selector: S) -> Result<Self, ParseSelectorError>
    where
        S: TryInto<LabelSelector>,
        ParseSelectorError: From<S::Error>,
    {
        Ok(Self { labels: selector.try_into()?, ..self })
    }

    /// This scope, with this field selector, parsed or as text.
    ///
    /// # Errors
    /// If a text is no field selector; a [`FieldSelector`] never fails.
    pub fn fields<S>(self, selector: S) -> Result<Self, ParseSelectorError>
    where
        S: TryInto<FieldSelector>,
        ParseSelectorError: From<S::Error>,
    {
        Ok(Self { fields: selector.try_into()?, ..self })
    }

    /// Whether the namespace can be one: its name must be a DNS label.
    ///
    /// # Errors
    /// [`Error::InvalidNamespace`].
    ///
    /// # Examples
    /// ```
    /// use informer::Scope;
    ///
    /// assert!(Scope::namespace("kube-system").check().is_ok());
    /// assert!(Scope::namespace("default/pods").check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        match &self.namespace {
            Some(namespace) if !is_dns_label(namespace) => {
                Err(Error::InvalidNamespace { namespace: namespace.clone() })
            }
            _ => Ok(()),
        }
    }
}

impl From<LabelSelector> for Scope {
    fn from(labels: LabelSelector) -> Self {
        Self { labels, ..Self::all() }
    }
}

impl From<FieldSelector> for Scope {
    fn from(fields: FieldSelector) -> Self {
        Self { fields, ..Self::all() }
    }
}

impl From<&Self> for Scope {
    fn from(scope: &Self) -> Self {
        scope.clone()
    }
}

/// `the whole cluster`, `namespace default`, with the selectors.
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

/// A kind whose resource is known from its type alone: every kind of k8s-openapi, and every type
/// that derives `kube::CustomResource`.
#[diagnostic::on_unimplemented(
    message = "the type `{Self}` alone does not say which resource it is",
    label = "no kind of k8s-openapi and no derived custom resource",
    note = "for a struct of your own, name the resource: `factory.informer_as::<Own>(Resource::of::<Pod>(), InformerOptions::new())`",
    note = "for `DynamicObject`, ask discovery: `factory.for_resource(\"apps\", \"v1\", \"deployments\").await`"
)]
pub trait TypedResource: kube::Resource<DynamicType = ()> {
    /// Whether objects of this kind live in namespaces.
    fn namespaced() -> bool;
}

#[diagnostic::do_not_recommend]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_dns_label() {
        for (name, is_one) in [
            ("default", true),
            ("a", true),
            ("0-0", true),
            (&"a".repeat(63), true),
            (&"a".repeat(64), false),
            ("", false),
            ("Default", false),
            ("a.b", false),
            ("a_b", false),
            ("-a", false),
            ("a-", false),
            ("a/b", false),
            ("\u{e4}", false),
        ] {
            assert_eq!(Scope::namespace(name).check().is_ok(), is_one, "{name:?}");
        }
        assert!(Scope::all().check().is_ok());
    }

    #[test]
    fn g34_names_from_outside_stay_within_their_segment_of_the_path() {
        let mut pods = Resource {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "pods".to_owned(),
            kind: "Pod".to_owned(),
            namespaced: true,
        };
        assert_eq!(pods.path(Some("kube-system")), "/api/v1/namespaces/kube-system/pods");
        assert_eq!(
            pods.path(Some("default/secrets?a=b#")),
            "/api/v1/namespaces/default%2Fsecrets%3Fa%3Db%23/pods"
        );
        (pods.group, pods.plural) = ("my.group".to_owned(), "a/b".to_owned());
        assert_eq!(pods.path(None), "/apis/my.group/v1/a%2Fb");
    }
}
