//! Objects in protobuf.

use bytes::Bytes;
use k8s_protobuf::{Kind, encode};
use serde_json::{Value, json};

use crate::object::Object;
use crate::wire;

/// An object's message, from its JSON.
///
/// The test kit keeps what it is given, where a real server refuses what does not fit its kind.
/// Such an object has here as much of its metadata as can be, and a field that no decoder takes:
/// what its JSON is to a typed decoder.
pub(crate) fn message(kind: Kind, json: &[u8], object: &Object) -> Bytes {
    let mut out = Vec::with_capacity(json.len());
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    if encode::message(kind, &value, &mut out).is_ok() {
        out.shrink_to_fit();
        return out.into();
    }
    let metadata = json!({ "metadata": value["metadata"] });
    let identity = json!({ "metadata": {
        "name": object.key().name(),
        "namespace": object.key().namespace(),
        "uid": object.uid().to_string(),
        "resourceVersion": object.version().to_string(),
    } });
    // The identity fits any kind.
    let _ = encode::message(kind, &metadata, &mut out)
        .or_else(|_| encode::message(kind, &identity, &mut out));
    wire::undecodable(&out).into()
}
