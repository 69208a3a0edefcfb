//! Protobuf, as far as it is written and taken apart here.

use k8s_protobuf::{Envelope, Kind, encode};
use serde_json::Value;

use crate::json;
use crate::object::WriteError;
use crate::status::Status;
use crate::table::keep;

/// The message of an object that is JSON.
pub(crate) fn message(kind: Kind, json: &[u8]) -> Result<Vec<u8>, WriteError> {
    let value = keep::value(json).map_err(|_| WriteError::new("it is no JSON object"))?;
    let mut out = Vec::with_capacity(json.len());
    encode::message(kind, &value, &mut out)?;
    Ok(out)
}

/// The `PartialObjectMetadata` of an object that is JSON.
pub(crate) fn metadata_message(kind: Kind, json: &[u8]) -> Result<Vec<u8>, WriteError> {
    message(kind, format!("{{\"metadata\":{}}}", json::metadata(json)?).as_bytes())
}

/// The `PartialObjectMetadata` of a message: all kinds have their metadata in the first field.
pub(crate) fn metadata(message: &[u8]) -> Result<&[u8], WriteError> {
    let field = Fields(message).next().ok_or_else(malformed)?;
    if field.number == METADATA { Ok(field.whole) } else { Err(malformed()) }
}

/// The message of the same object at another version.
pub(crate) fn at_version(message: &[u8], version: u64) -> Result<Vec<u8>, WriteError> {
    let whole = metadata(message)?;
    let old = Fields(whole).next().and_then(|field| field.bytes).ok_or_else(malformed)?;
    let mut new = Vec::with_capacity(old.len() + 24);
    let mut version = Some(version.to_string());
    for field in Fields(old) {
        if field.number >= RESOURCE_VERSION
            && let Some(version) = version.take()
        {
            put_bytes(RESOURCE_VERSION, version.as_bytes(), &mut new);
        }
        if field.number != RESOURCE_VERSION {
            new.extend_from_slice(field.whole);
        }
    }
    if let Some(version) = version {
        put_bytes(RESOURCE_VERSION, version.as_bytes(), &mut new);
    }
    let mut out = Vec::with_capacity(message.len() + 24);
    put_bytes(METADATA, &new, &mut out);
    out.extend_from_slice(&message[whole.len()..]);
    Ok(out)
}

/// A failure as a body.
pub(crate) fn status(status: &Status) -> Vec<u8> {
    document(&serde_json::from_str(&status.to_json()).unwrap_or_default())
}

/// Something that says what it is, as a body.
pub(crate) fn document(document: &Value) -> Vec<u8> {
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
pub(crate) fn event(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    // It would have to be larger than any API server keeps.
    let _ = encode::watch_event(kind, object, out);
}

/// The number of the field that holds an object's metadata.
const METADATA: u64 = 1;

/// The number of the field of the metadata that holds the version.
const RESOURCE_VERSION: u64 = 6;

/// One field of a message.
struct Field<'a> {
    number: u64,
    /// Tag, length and value.
    whole: &'a [u8],
    /// The value of a text, of bytes or of a message; `None` for numbers.
    bytes: Option<&'a [u8]>,
}

/// The fields of a message, up to its end or to what is no field.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let message = self.0;
        let mut rest = message;
        let tag = take_varint(&mut rest)?;
        let mut bytes = None;
        let length = match tag & 7 {
            0 => {
                take_varint(&mut rest)?;
                0
            }
            1 => 8,
            2 => usize::try_from(take_varint(&mut rest)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (value, behind) = rest.split_at_checked(length)?;
        if tag & 7 == 2 {
            bytes = Some(value);
        }
        self.0 = behind;
        let whole = &message[..message.len() - behind.len()];
        Some(Field { number: tag >> 3, whole, bytes })
    }
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Appends a text, bytes or a message.
fn put_bytes(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(number << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn malformed() -> WriteError {
    WriteError::new("it is no protobuf message with metadata")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(metadata: &Value) -> Vec<u8> {
        let kind = Kind::of("v1", "Pod").unwrap();
        let object = json!({ "metadata": metadata, "spec": { "nodeName": "n" } });
        message(kind, object.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_message_at_another_version_is_that_of_the_object_with_this_version() {
        for version in [5, 1 << 40] {
            let metadata = |version: Option<String>| {
                json!({ "name": "a", "namespace": "b", "uid": "u", "resourceVersion": version,
                    "labels": { "app": "x".repeat(110) } })
            };
            let wanted = pod(&metadata(Some(version.to_string())));
            for old in [Some("7".to_owned()), None] {
                assert_eq!(at_version(&pod(&metadata(old)), version).unwrap(), wanted);
            }
        }
    }

    #[test]
    fn metadata_alone_are_the_first_field() {
        let kind = Kind::of("meta.k8s.io/v1", "PartialObjectMetadata").unwrap();
        let metadata_only = json!({ "metadata": { "name": "a" } }).to_string();
        let message = pod(&json!({ "name": "a" }));
        assert_eq!(
            metadata(&message).unwrap(),
            super::message(kind, metadata_only.as_bytes()).unwrap()
        );
        for broken in [&message[..5], b"", b"\x12\x00", &[0xff; 12]] {
            assert!(metadata(broken).is_err() && at_version(broken, 1).is_err());
        }
    }
}
