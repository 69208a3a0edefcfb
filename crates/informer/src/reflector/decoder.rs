//! From the bytes of one object to what the sink is given.

use std::panic::{AssertUnwindSafe, catch_unwind};

use informer_core::ingest::{Decoder, Phase, Undecodable};
use informer_core::wire::{ObjectHead, Wire};

use crate::Representation;
use crate::Resource;
use crate::decode::RawObject;
use crate::options::{InformerOptions, Transform};

/// Decodes and transforms the objects of one collection.
pub(crate) struct ObjectDecoder<T> {
    api_version: String,
    kind: String,
    keep_managed_fields: bool,
    transforms: Vec<Transform<T>>,
    representation: Representation<T>,
    scratch: Vec<u8>,
}

/// What a transform must leave alone.
pub(crate) struct Identity<'a> {
    name: Option<&'a str>,
    namespace: Option<&'a str>,
    uid: Option<&'a str>,
    version: Option<&'a str>,
}

impl<T> ObjectDecoder<T> {
    pub(crate) fn new(resource: &Resource, options: InformerOptions<T>) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            keep_managed_fields: options.wire.keep_managed_fields,
            transforms: options.transforms,
            representation: options.representation,
            scratch: Vec::new(),
        }
    }

    fn decode_and_transform(
        &mut self,
        object: Wire<'_>,
        head: &ObjectHead<'_>,
    ) -> Result<T, Undecodable> {
        let wire = match self.keep_managed_fields {
            true => object,
            false => object.without_managed_fields(head, &mut self.scratch),
        };
        let raw = RawObject::new(wire, &self.api_version, &self.kind);
        // The text of a panic may quote the value (G34), so it is left to the panic hook.
        let mut object = catch_unwind(AssertUnwindSafe(|| (self.representation.decode)(raw)))
            .map_err(|_| "the decoder panicked".to_owned())
            .and_then(|decoded| decoded.map_err(|error| error.to_string()))
            .map_err(|cause| Undecodable { phase: Phase::Decode, cause: explained(cause, wire) })?;
        self.transform(&mut object, head)
            .map_err(|cause| Undecodable { phase: Phase::Transform, cause })?;
        Ok(object)
    }

    fn transform(&self, object: &mut T, head: &ObjectHead<'_>) -> Result<(), String> {
        if self.transforms.is_empty() {
            return Ok(());
        }
        for transform in &self.transforms {
            transform.run(object)?;
        }
        match self.representation.identity.map(|identity| identity(object)) {
            Some(identity) if !identity.is_of(head) => Err(
                "a transform changed name, namespace, UID or version, which identify the object"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

impl<T> Decoder for ObjectDecoder<T> {
    type Object = T;

    fn decode(&mut self, object: Wire<'_>, head: &ObjectHead<'_>) -> Result<T, Undecodable> {
        self.decode_and_transform(object, head)
    }
}

/// Why an object does not decode, and what to do if only its metadata was asked for.
fn explained(cause: String, object: Wire<'_>) -> String {
    let is_metadata = object.types().1 == PARTIAL_METADATA;
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
