//! What a server writes in protobuf.

use bytes::Bytes;
use k8s_protobuf::{Envelope, Kind, encode};
use serde_json::{Value, json};

use super::Object;
use crate::status::Status;
use crate::wire;

/// An object's message, from its JSON.
///
/// The test kit keeps what it is given, where a real server refuses what does not fit its kind.
/// Such an object has here as much of its metadata as can be, and a field that no decoder takes:
/// what its JSON is to a typed decoder.
pub(super) fn message(kind: Kind, json: &[u8], object: &Object) -> Bytes {
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

/// A failure as a body.
pub(super) fn status(status: &Status) -> Vec<u8> {
    document(&serde_json::from_str(&status.to_json()).unwrap_or_default())
}

/// Something that says what it is, as a body.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    // All that is written here is in the table and fits its kind.
    match Kind::of("v1", "APIVersions").filter(|kind| document["kind"] == kind.name()) {
        None => drop(encode::object(document, &mut out)),
        // The oldest document of discovery has no `apiVersion`.
        Some(kind) => {
            let mut raw = Vec::new();
            let _ = encode::message(kind, document, &mut raw);
            Envelope::write("", kind.name(), &raw, &mut out);
        }
    }
    out
}

/// Appends one frame of a watch; `object` has its envelope.
pub(super) fn event(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    // It would have to be larger than the test kit keeps.
    let _ = encode::watch_event(kind, object, out);
}
