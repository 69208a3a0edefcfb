//! JSON objects, as far as they are taken apart here.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::object::WriteError;

/// The object without the `apiVersion` and `kind` that it may begin with, and without its opening
/// brace.
pub(crate) fn without_types(json: &[u8]) -> &[u8] {
    let mut rest = json.strip_prefix(b"{").unwrap_or(json);
    while let Some(behind) = type_member(rest) {
        rest = behind;
    }
    rest
}

/// What follows a member `apiVersion` or `kind` and its comma.
fn type_member(members: &[u8]) -> Option<&[u8]> {
    let value = members
        .strip_prefix(b"\"kind\":\"")
        .or_else(|| members.strip_prefix(b"\"apiVersion\":\""))?;
    // Neither has escapes.
    let end = value.iter().position(|byte| *byte == b'"')?;
    let rest = &value[end + 1..];
    Some(rest.strip_prefix(b",").unwrap_or(rest))
}

/// The value of `metadata`.
pub(crate) fn metadata(json: &[u8]) -> Result<&str, WriteError> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let object: Object<'_> = serde_json::from_slice(json).map_err(|_| malformed())?;
    Ok(object.metadata.get())
}

/// The object with another `resourceVersion`.
pub(crate) fn at_version(json: &[u8], version: u64) -> Result<Vec<u8>, WriteError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(borrow)]
        resource_version: &'a RawValue,
    }
    let metadata: Metadata<'_> = serde_json::from_str(metadata(json)?).map_err(|_| malformed())?;
    let old = metadata.resource_version.get();
    // The value is a slice of the object.
    let start = old.as_ptr() as usize - json.as_ptr() as usize;
    let mut out = Vec::with_capacity(json.len() + 20);
    out.extend_from_slice(&json[..start]);
    out.extend_from_slice(format!("\"{version}\"").as_bytes());
    out.extend_from_slice(&json[start + old.len()..]);
    Ok(out)
}

fn malformed() -> WriteError {
    WriteError::new("it is no JSON object with metadata")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_taken_off_in_either_order() {
        for (json, rest) in [
            (r#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#, r#""metadata":{}}"#),
            (r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#, r#""metadata":{}}"#),
            (r#"{"metadata":{},"kind":"Pod"}"#, r#""metadata":{},"kind":"Pod"}"#),
            (r#"{"kind":"Pod"}"#, "}"),
            ("{}", "}"),
        ] {
            assert_eq!(without_types(json.as_bytes()), rest.as_bytes(), "{json}");
        }
    }

    #[test]
    fn the_version_is_found_wherever_it_is_and_nothing_else_is_taken_for_it() {
        for (json, changed) in [
            (
                r#"{"data":{"resourceVersion":"1"},"metadata":{"labels":{"resourceVersion":"1"},"resourceVersion":"99"}}"#,
                r#"{"data":{"resourceVersion":"1"},"metadata":{"labels":{"resourceVersion":"1"},"resourceVersion":"100"}}"#,
            ),
            (
                r#"{"metadata":{"resourceVersion":"1","name":"a"},"resourceVersion":"1"}"#,
                r#"{"metadata":{"resourceVersion":"100","name":"a"},"resourceVersion":"1"}"#,
            ),
        ] {
            assert_eq!(at_version(json.as_bytes(), 100).unwrap(), changed.as_bytes());
        }
        for json in ["", "[]", "{}", r#"{"metadata":{}}"#] {
            assert!(at_version(json.as_bytes(), 1).is_err(), "{json}");
        }
    }
}
