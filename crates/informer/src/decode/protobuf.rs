//! Decoding protobuf messages.

use std::marker::PhantomData;

use k8s_protobuf::{Error, Kind};
use kube::core::{PartialObjectMeta, TypeMeta};
use serde::de::DeserializeOwned;

use super::{RawObject, Wire};
use crate::error::DecodeError;

/// Decodes the message of an object of this kind.
pub(super) fn from_message<T: DeserializeOwned + 'static>(
    kind: Kind,
    message: &[u8],
) -> Result<T, DecodeError> {
    k8s_protobuf::from_message(kind, message).map_err(describe)
}

/// The metadata of an object, if it is sent alone, and nothing about it is unusual.
pub(crate) fn partial_metadata<K>(raw: &RawObject<'_>) -> Option<PartialObjectMeta<K>> {
    let Wire::Protobuf(kind, message) = raw.wire else { return None };
    let metadata = k8s_protobuf::partial_metadata(kind, message)?;
    let types = TypeMeta { api_version: kind.api_version().to_owned(), kind: kind.name().to_owned() };
    Some(PartialObjectMeta { types: Some(types), metadata, _phantom: PhantomData })
}

fn describe(error: Error) -> DecodeError {
    match error {
        // Without the value, which it never has.
        Error::Type { path, message } => DecodeError { path, message },
        other => DecodeError { path: ".".to_owned(), message: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::Decode;

    #[test]
    fn metadata_alone_is_decoded_as_by_serde() {
        let kind = Kind::of("meta.k8s.io/v1", "PartialObjectMetadata").unwrap();
        // metadata { name: "a", labels: { "k": "v" } }
        let raw = RawObject::protobuf(kind, b"\x0a\x0b\x0a\x01a\x5a\x06\x0a\x01k\x12\x01v");
        let quickly: PartialObjectMeta<Pod> = partial_metadata(&raw).unwrap();
        let by_serde = PartialObjectMeta::<Pod>::decode(raw).unwrap();
        assert_eq!((&quickly.types, &quickly.metadata), (&by_serde.types, &by_serde.metadata));
        assert_eq!(quickly.metadata.labels.unwrap()["k"], "v");
        assert!(partial_metadata::<Pod>(&RawObject::new(b"{}", "v1", "Pod")).is_none());
        assert!(partial_metadata::<Pod>(&RawObject::protobuf(kind, b"\x0a\x05")).is_none());
    }
}
