//! The one seam where bytes become objects.
//!
//! How an object is kept decides memory, CPU and what can be served from the cache, so it is a type
//! parameter of the whole pipeline: any k8s-openapi kind or derived custom resource,
//! `DynamicObject`, metadata only, its bytes, or a struct of your own with just the fields you use.
//! How it becomes that is a [`Representation`](crate::Representation).

use kube::core::TypeMeta;

pub use informer_core::wire::{DecodeError, Encoding, Wire};
pub use k8s_protobuf::Kind;

/// One object as the server sent it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RawObject<'a> {
    /// The object, without `metadata.managedFields` unless they were asked for. Of the bytes, name,
    /// namespace, UID and version were read; the rest may be broken, which is then to be told when
    /// it is decoded. In JSON, items of lists of built-in kinds have neither `apiVersion` nor
    /// `kind`.
    pub wire: Wire<'a>,
    /// Group and version of the collection, such as `apps/v1`.
    pub api_version: &'a str,
    /// The kind of the collection's objects.
    pub kind: &'a str,
}

impl<'a> RawObject<'a> {
    /// An object of a collection that holds this.
    #[must_use]
    pub fn new(wire: Wire<'a>, api_version: &'a str, kind: &'a str) -> Self {
        Self { wire, api_version, kind }
    }

    pub(crate) fn types(&self) -> TypeMeta {
        TypeMeta { api_version: self.api_version.to_owned(), kind: self.kind.to_owned() }
    }
}
