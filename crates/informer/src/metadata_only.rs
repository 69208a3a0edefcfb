//! Forms of objects that need nothing but metadata.

use kube::core::{DynamicObject, PartialObjectMeta};

use crate::Lazy;

/// A form of objects that decodes from their metadata alone, so that the server may leave out the
/// rest ([`metadata_only`](crate::InformerOptions::metadata_only)). A kind such as `Pod` is not
/// one: the server sends `PartialObjectMetadata` of `meta.k8s.io/v1`, with another `apiVersion` and
/// `kind`, and [`factory.metadata::<Pod>(…)`](crate::SharedInformerFactory::metadata) gives it.
/// Implement this for a struct of your own that has no other field than `metadata`.
///
/// # Examples
/// ```
/// use informer::{InformerOptions, MetadataOnly};
///
/// #[derive(serde::Deserialize)]
/// struct Labelled { metadata: Labels }
/// #[derive(serde::Deserialize)]
/// struct Labels { #[serde(default)] labels: std::collections::BTreeMap<String, String> }
///
/// impl MetadataOnly for Labelled {}
///
/// let options = InformerOptions::<Labelled>::new().metadata_only();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not decode from metadata alone",
    label = "with `metadata_only` the server would send objects that are no `{Self}`",
    note = "for the metadata of a kind, use `factory.metadata::<Kind>(…)` or `InformerOptions<PartialObjectMeta<Kind>>`",
    note = "for a struct of your own with no other field than `metadata`, implement `informer::MetadataOnly`"
)]
pub trait MetadataOnly {}

impl<K> MetadataOnly for PartialObjectMeta<K> {}
impl MetadataOnly for DynamicObject {}
impl MetadataOnly for serde_json::Value {}
impl<K: MetadataOnly> MetadataOnly for Lazy<K> {}
