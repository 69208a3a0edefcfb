//! Writes objects in protobuf as JSON, without decoding them into a type.
//!
//! The text equals what Go writes for the same object, as a value: it has the same fields, also
//! absent ones that Go's types write as `null`, zero or empty. It is not equal byte for byte: keys
//! stand in the order of their protobuf numbers after `kind` and `apiVersion`, and `<`, `>` and `&`
//! are not escaped. It has no line ends, so it can be a line of its own.

mod out;
mod raw;
mod text;
mod write;

use self::out::Out;
use crate::{Envelope, Error, Kind};

/// Appends the object in these bytes to `out` as JSON.
///
/// `kind` and `apiVersion` come first, then the fields in the order of their numbers. Raw JSON
/// within the object, such as managed fields, is checked and copied without white space. Objects
/// within the object that have an envelope of their own, as in a `v1` `List`, are written in the
/// same way.
///
/// The JSON is at most 400 times as long as the bytes, plus 1,000 bytes, for any input; for what
/// servers send it is about twice as long. Raw JSON within it may be nested 10,000 levels deep, as
/// in Go; the rest can be read with a recursion limit of 128, as serde_json has. What is not UTF-8
/// becomes `U+FFFD`.
///
/// # Errors
/// When the kind is not in the table, the protobuf is malformed or its fields are not in the order
/// of their numbers, or what should be JSON is not. `out` is then as it was before.
///
/// # Examples
/// ```
/// let bytes = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x05\x0a\x03\x0a\x01a";
/// let mut json = Vec::new();
/// k8s_protobuf::to_json(bytes, &mut json)?;
/// assert_eq!(
///     String::from_utf8_lossy(&json),
///     r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"containers":null},"status":{}}"#
/// );
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
pub fn to_json(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let envelope = Envelope::parse(bytes)?;
    let (kind, message) = envelope.message()?;
    write(kind, !envelope.api_version.is_empty(), message, out)
}

/// Appends the object of this kind with this message to `out` as JSON. See [`to_json`]: this is for
/// messages without an envelope, such as the items of lists.
///
/// # Errors
/// When the protobuf is malformed or its fields are not in the order of their numbers, or what
/// should be JSON is not. `out` is then as it was before.
pub fn message_to_json(kind: Kind, message: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    write(kind, true, message, out)
}

/// Appends what [`message_to_json`] does, without `kind` and `apiVersion`: API servers leave them
/// out of the items of lists.
///
/// # Errors
/// Those of [`message_to_json`].
///
/// # Examples
/// ```
/// use k8s_protobuf::{Kind, item_to_json};
///
/// let mut json = Vec::new();
/// item_to_json(Kind::of("v1", "ConfigMap").unwrap(), b"\x0a\x03\x0a\x01a", &mut json)?;
/// assert_eq!(json, br#"{"metadata":{"name":"a"}}"#);
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
pub fn item_to_json(kind: Kind, message: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    append(message, out, |json| write::message(kind.message(), message, 0, json))
}

fn write(kind: Kind, is_versioned: bool, message: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    append(message, out, |json| write::object(kind, is_versioned, message, 0, json))
}

fn append<'a>(
    message: &'a [u8],
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Out<'a>) -> write::Written,
) -> Result<(), Error> {
    let before = out.len();
    out.reserve(message.len() * 2);
    let mut json = Out::new(std::mem::take(out), message);
    let written = write(&mut json);
    *out = json.json;
    written.map_err(|stop| {
        out.truncate(before);
        stop.into()
    })
}

#[cfg(test)]
mod tests;
