//! The metadata of objects in any representation.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource as KubeResource;
use kube::api::ObjectMeta;

use crate::{Lazy, Resource};

/// An object whose metadata can be read: its owners, generation, labels, annotations, finalizers.
/// Every kind of k8s-openapi, `DynamicObject`, `PartialObjectMeta`, derived custom resources and
/// [`Lazy`] have it, which decodes its metadata each time (2 µs of a Pod). A struct of your own
/// implements it with what it keeps.
///
/// # Examples
/// ```
/// use std::borrow::Cow;
/// use informer::HasMetadata;
/// use kube::api::ObjectMeta;
///
/// #[derive(serde::Deserialize)]
/// struct Slim { metadata: ObjectMeta }
///
/// impl HasMetadata for Slim {
///     fn metadata(&self) -> Cow<'_, ObjectMeta> {
///         Cow::Borrowed(&self.metadata)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the metadata of `{Self}` cannot be read",
    label = "this needs `{Self}: informer::HasMetadata`",
    note = "implement `informer::HasMetadata` for a struct of your own; its documentation has an example"
)]
pub trait HasMetadata {
    /// The metadata, as far as this representation keeps it.
    fn metadata(&self) -> Cow<'_, ObjectMeta>;
}

#[diagnostic::do_not_recommend]
impl<K: KubeResource> HasMetadata for K {
    fn metadata(&self) -> Cow<'_, ObjectMeta> {
        Cow::Borrowed(self.meta())
    }
}

/// Empty where the bytes are no object.
impl<K> HasMetadata for Lazy<K> {
    fn metadata(&self) -> Cow<'_, ObjectMeta> {
        #[derive(serde::Deserialize)]
        struct OnlyMetadata {
            metadata: ObjectMeta,
        }
        Cow::Owned(self.decode_as::<OnlyMetadata>().map(|it| it.metadata).unwrap_or_default())
    }
}

/// The owner that controls an object.
pub(crate) fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether `reference` is to an object of the given group and kind, in whatever version.
pub(crate) fn is_of(reference: &OwnerReference, owner: &Resource) -> bool {
    let group = reference.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    reference.kind == owner.kind && group == owner.group
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_the_same_in_every_representation() {
        let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1", "controller": true });
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "web-0", "namespace": "default", "generation": 3, "labels": { "a": "b" },
                "finalizers": ["example.com/f"], "deletionTimestamp": "2026-11-02T08:00:00Z", "ownerReferences": [owner] },
            "spec": { "containers": [] },
        });
        let typed: Pod = serde_json::from_value(object.clone()).unwrap();
        let lazy = Lazy::<Pod>::from_json(object.to_string().as_bytes()).unwrap();
        assert_eq!(typed.metadata(), lazy.metadata());
        assert_eq!(controller_of(&lazy.metadata()).map(|owner| owner.name.as_str()), Some("web"));
    }
}
