//! Labels of objects, for selecting on the client.

use kube::Resource;

/// An object whose labels can be read, so that listers can select by them. Every kind of k8s-openapi,
/// `DynamicObject`, `PartialObjectMeta` and derived custom resources have it; for a struct of your own,
/// implement it if you keep the labels.
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
impl<K: Resource> HasLabels for K {
    fn label(&self, key: &str) -> Option<&str> {
        self.meta().labels.as_ref()?.get(key).map(String::as_str)
    }
}
