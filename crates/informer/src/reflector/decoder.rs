//! From the bytes of one object to what the sink is given.

use std::any::{Any, TypeId};
use std::panic::{AssertUnwindSafe, catch_unwind};

use informer_core::wire::{ObjectHead, Wire};
use kube::core::{DynamicObject, TypeMeta};

use crate::Resource;
use crate::decode::{Decode, RawObject};
use crate::options::{InformerOptions, Transform};

/// Decodes and transforms the objects of one collection.
pub(crate) struct Decoder<T> {
    api_version: String,
    kind: String,
    keep_managed_fields: bool,
    pub(super) strict: bool,
    transforms: Vec<Transform<T>>,
    decode_quickly: Option<fn(&RawObject<'_>) -> Option<T>>,
    identity: Option<fn(&T) -> Identity<'_>>,
    scratch: Vec<u8>,
}

/// Why an object cannot be used.
pub(crate) struct Undecodable {
    /// `decode` or `transform`.
    pub(crate) phase: &'static str,
    pub(crate) cause: String,
}

/// What a transform must leave alone.
pub(crate) struct Identity<'a> {
    name: Option<&'a str>,
    namespace: Option<&'a str>,
    uid: Option<&'a str>,
    version: Option<&'a str>,
}

impl<T: Decode> Decoder<T> {
    pub(crate) fn new(resource: &Resource, options: InformerOptions<T>) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            keep_managed_fields: options.wire.keep_managed_fields,
            strict: options.wire.strict,
            transforms: options.transforms,
            decode_quickly: options.decode_quickly,
            identity: options.identity.or_else(dynamic_identity),
            scratch: Vec::new(),
        }
    }

    /// Decodes the object with this head.
    pub(crate) fn decode(&mut self, object: Wire<'_>, head: &ObjectHead<'_>) -> Result<T, Undecodable> {
        let wire = match self.keep_managed_fields {
            true => object,
            false => object.without_managed_fields(head, &mut self.scratch),
        };
        let raw = RawObject { wire, api_version: &self.api_version, kind: &self.kind };
        // The text of a panic may quote the value (G34), so it is left to the panic hook.
        let decode = || match self.decode_quickly.and_then(|decode| decode(&raw)) {
            Some(object) => Ok(object),
            None => T::decode(raw),
        };
        let mut object = catch_unwind(AssertUnwindSafe(decode))
            .map_err(|_| "the decoder panicked".to_owned())
            .and_then(|decoded| decoded.map_err(|error| error.to_string()))
            .map_err(|cause| Undecodable { phase: "decode", cause: explained(cause, wire) })?;
        match wire {
            Wire::Json(_) => complete_types(&mut object, &self.api_version, &self.kind),
            Wire::Protobuf(kind, _) => complete_types(&mut object, kind.api_version(), kind.name()),
        }
        self.transform(&mut object, head).map_err(|cause| Undecodable { phase: "transform", cause })?;
        Ok(object)
    }

    fn transform(&self, object: &mut T, head: &ObjectHead<'_>) -> Result<(), String> {
        if self.transforms.is_empty() {
            return Ok(());
        }
        for transform in &self.transforms {
            transform.run(object)?;
        }
        match self.identity.map(|identity| identity(object)) {
            Some(identity) if !identity.is_of(head) => {
                Err("a transform changed name, namespace, UID or version, which identify the object"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Why an object does not decode, and what to do if only its metadata was asked for.
fn explained(cause: String, object: Wire<'_>) -> String {
    let is_metadata = match object {
        Wire::Json(json) => {
            serde_json::from_slice::<TypeMeta>(json).is_ok_and(|types| types.kind == PARTIAL_METADATA)
        }
        Wire::Protobuf(kind, _) => kind.name() == PARTIAL_METADATA,
    };
    match is_metadata {
        true => format!(
            "{cause}; the server sent metadata only, with the apiVersion meta.k8s.io/v1 and the kind {PARTIAL_METADATA}: keep it as `PartialObjectMeta`, or ask for whole objects"
        ),
        false => cause,
    }
}

const PARTIAL_METADATA: &str = "PartialObjectMetadata";

impl Identity<'_> {
    fn is_of(&self, head: &ObjectHead<'_>) -> bool {
        self.name.unwrap_or_default() == head.name
            && self.namespace.unwrap_or_default() == head.namespace
            && head.uid == self.uid.unwrap_or_default().into()
            && head.version == self.version.unwrap_or_default().into()
    }
}

/// For dynamic objects, whoever asked for them.
fn dynamic_identity<T: 'static>() -> Option<fn(&T) -> Identity<'_>> {
    fn identity<T: 'static>(object: &T) -> Identity<'_> {
        let object: &dyn Any = object;
        object.downcast_ref::<DynamicObject>().map(identity_of).expect("it is one")
    }
    (TypeId::of::<T>() == TypeId::of::<DynamicObject>()).then_some(identity)
}

/// The identity that a Kubernetes object carries.
pub(crate) fn identity_of<K: kube::Resource>(object: &K) -> Identity<'_> {
    let meta = object.meta();
    Identity {
        name: meta.name.as_deref(),
        namespace: meta.namespace.as_deref(),
        uid: meta.uid.as_deref(),
        version: meta.resource_version.as_deref(),
    }
}

/// Items of lists of built-in kinds come without `apiVersion` and `kind`, and messages do; a dynamic object needs them
/// to be printed or sent on.
fn complete_types<T: 'static>(object: &mut T, api_version: &str, kind: &str) {
    let object: &mut dyn Any = object;
    if let Some(object) = object.downcast_mut::<DynamicObject>()
        && object.types.is_none()
    {
        object.types = Some(TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() });
    }
}
