//! Labels and fields of objects, for selecting on the client.

use std::borrow::Cow;

use informer_core::selector::{FieldRequirement, FieldSelector, SelectableField};
use kube::Resource as KubeResource;
use serde::Serialize;

pub use self::path::{FieldPath, FieldPathError};
use crate::Resource;

mod path;
mod scalar;

/// An object whose labels can be read, so that listers can select by them. Every kind of
/// k8s-openapi, `DynamicObject`, `PartialObjectMeta` and derived custom resources have it; for a
/// struct of your own, implement it if you keep the labels.
///
/// # Examples
/// ```
/// use std::collections::BTreeMap;
/// use informer::HasLabels;
///
/// #[derive(serde::Deserialize)]
/// struct Slim { metadata: SlimMeta }
/// #[derive(serde::Deserialize)]
/// struct SlimMeta { #[serde(default)] labels: BTreeMap<String, String> }
///
/// impl HasLabels for Slim {
///     fn label(&self, key: &str) -> Option<&str> {
///         self.metadata.labels.get(key).map(String::as_str)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the labels of `{Self}` cannot be read",
    label = "selecting by labels needs `{Self}: informer::HasLabels`",
    note = "implement `informer::HasLabels` for a struct of your own that keeps the labels; its documentation has an example"
)]
pub trait HasLabels {
    /// The value of one label.
    fn label(&self, key: &str) -> Option<&str>;
}

#[diagnostic::do_not_recommend]
impl<K: KubeResource> HasLabels for K {
    fn label(&self, key: &str) -> Option<&str> {
        self.meta().labels.as_ref()?.get(key).map(String::as_str)
    }
}

/// An object whose fields can be read by their paths, so that listers can select by them.
/// [`Lazy`](crate::Lazy), every kind of k8s-openapi, `DynamicObject`, `PartialObjectMeta` and
/// derived custom resources have it; a struct of your own implements it for the fields that it
/// keeps.
///
/// # Examples
/// ```
/// use std::borrow::Cow;
/// use informer::{FieldPath, HasFields};
///
/// struct Slim { node_name: String }
///
/// impl HasFields for Slim {
///     fn field(&self, path: &FieldPath) -> Option<Cow<'_, str>> {
///         (path.as_str() == "spec.nodeName").then_some(Cow::Borrowed(&self.node_name))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the fields of `{Self}` cannot be read",
    label = "selecting by fields needs `{Self}: informer::HasFields`",
    note = "implement `informer::HasFields` for a struct of your own; its documentation has an example"
)]
pub trait HasFields {
    /// The text, number or boolean at a path, as its JSON has it; `None` where there is nothing, an
    /// empty text, or something that is none of these.
    fn field(&self, path: &FieldPath) -> Option<Cow<'_, str>>;
}

/// Walks down to the field by `Serialize`, without writing anything: 0.1 to 0.3 µs for a Pod's
/// `spec.nodeName`.
#[diagnostic::do_not_recommend]
impl<K: KubeResource + Serialize> HasFields for K {
    fn field(&self, path: &FieldPath) -> Option<Cow<'_, str>> {
        scalar::first(self, path.segments()).map(Cow::Owned)
    }
}

/// A field that a selector names, in the objects of one resource: what is to be read was found out
/// once.
pub(crate) struct Field {
    paths: Vec<FieldPath>,
    default: &'static str,
}

impl Field {
    /// The field as the API server computes it; one that the server does not select by is read at
    /// its path.
    pub(crate) fn of(resource: &Resource, label: &str) -> Self {
        let selectable = resource.selectable_fields();
        let source = selectable.get(label).unwrap_or_else(|| SelectableField::at(label));
        Self { paths: source.paths().map(FieldPath::of_label).collect(), default: source.default() }
    }

    /// The value that is compared; empty where the object has none.
    pub(crate) fn read<'a, T: HasFields>(&self, object: &'a T) -> Cow<'a, str> {
        let mut found = self.paths.iter().filter_map(|path| object.field(path));
        found.find(|value| !value.is_empty()).unwrap_or(Cow::Borrowed(self.default))
    }
}

/// A field selector for the objects of one resource.
#[derive(Default)]
pub(crate) struct Fields(Vec<(Field, FieldRequirement)>);

impl Fields {
    pub(crate) fn of(resource: &Resource, selector: &FieldSelector) -> Self {
        let field = |it: &FieldRequirement| (Field::of(resource, it.field()), it.clone());
        Self(selector.requirements().iter().map(field).collect())
    }

    pub(crate) fn match_object<T: HasFields>(&self, object: &T) -> bool {
        self.0.iter().all(|(field, requirement)| requirement.matches(&field.read(object)))
    }

    pub(crate) fn requirements(&self) -> impl ExactSizeIterator<Item = &FieldRequirement> {
        self.0.iter().map(|(_, requirement)| requirement)
    }
}

#[cfg(test)]
mod tests;
