//! What tests must know of an object, however it is kept.

use std::borrow::Cow;

use informer::{
    Error, InformerOptions, Lazy, SharedInformer, SharedInformerFactory, TypedResource,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::core::DynamicObject;

use crate::fixtures::Widget;

/// An object in whatever form. Kinds of a test's own get it, and [`Kept`], by
/// [`kept_decoded!`](crate::kept_decoded).
pub trait Identified: Send + Sync + 'static {
    /// Who the object is.
    fn identity(&self) -> Identity<'_>;
}

/// A form in which a factory keeps the objects of a kind: the kind's type itself, or [`Lazy`].
pub trait Kept: Identified + Sized {
    /// The factory's informer of the kind in this form.
    ///
    /// # Errors
    ///
    /// As [`SharedInformerFactory::informer_with`].
    fn informer(
        factory: &SharedInformerFactory,
        options: InformerOptions<Self>,
    ) -> Result<SharedInformer<Self>, Error>;
}

/// Who an object is, and in which state; a text is empty where the object has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its namespace.
    pub namespace: Cow<'a, str>,
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its UID.
    pub uid: Cow<'a, str>,
    /// Its version.
    pub version: Cow<'a, str>,
}

impl<'a> Identity<'a> {
    /// That of a decoded object.
    #[must_use]
    pub fn of<K: kube::Resource>(object: &'a K) -> Self {
        let metadata = object.meta();
        let text = |value: &'a Option<String>| Cow::Borrowed(value.as_deref().unwrap_or_default());
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            version: text(&metadata.resource_version),
        }
    }
}

impl<K: 'static> Identified for Lazy<K> {
    fn identity(&self) -> Identity<'_> {
        let (namespace, name) = (self.namespace(), self.name());
        Identity { namespace, name, uid: self.uid(), version: self.resource_version() }
    }
}

impl Identified for DynamicObject {
    fn identity(&self) -> Identity<'_> {
        Identity::of(self)
    }
}

impl<K: TypedResource + 'static> Kept for Lazy<K> {
    fn informer(
        factory: &SharedInformerFactory,
        options: InformerOptions<Self>,
    ) -> Result<SharedInformer<Self>, Error> {
        factory.lazy_with(options)
    }
}

/// Implements [`Identified`](crate::observe::Identified) and [`Kept`](crate::observe::Kept) for
/// types of kinds.
// Not for all of them at once: kube might have its trait for `Lazy` too, as far as the compiler
// knows.
#[macro_export]
macro_rules! kept_decoded {
    ($($kind:ty),* $(,)?) => {$(
        impl $crate::observe::Identified for $kind {
            fn identity(&self) -> $crate::observe::Identity<'_> {
                $crate::observe::Identity::of(self)
            }
        }

        impl $crate::observe::Kept for $kind {
            fn informer(
                factory: &::informer::SharedInformerFactory,
                options: ::informer::InformerOptions<Self>,
            ) -> Result<::informer::SharedInformer<Self>, ::informer::Error> {
                factory.informer_with(options)
            }
        }
    )*};
}

kept_decoded!(ConfigMap, Pod, Widget);
