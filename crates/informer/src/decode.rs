//! The one seam where bytes become objects.
//!
//! How an object is kept decides memory, CPU and what can be served from the cache, so it is a type
//! parameter of the whole pipeline: any k8s-openapi kind or derived custom resource, `DynamicObject`,
//! metadata only, or a struct of your own with just the fields you use.

mod exact;
mod path;
mod protobuf;

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;

pub use informer_core::wire::Wire;
pub use k8s_protobuf::Kind;

pub use crate::error::DecodeError;
pub(crate) use protobuf::partial_metadata;

/// One object as the server sent it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct RawObject<'a> {
    /// The object, without `metadata.managedFields` unless they were asked for: a JSON text, in which items of lists of
    /// built-in kinds have neither `apiVersion` nor `kind`, or a protobuf message and what it is. Of the bytes,
    /// name, namespace, UID and version were read; the rest may be broken, which is then to be told from
    /// [`decode`](Decode::decode).
    pub wire: Wire<'a>,
    /// Group and version of the collection, such as `apps/v1`.
    pub api_version: &'a str,
    /// The kind of the collection's objects.
    pub kind: &'a str,
}

/// A form in which objects can be kept. Implemented for everything that serde can deserialize.
///
/// Called once for each received version of an object, item by item from the stream.
///
/// # Examples
/// A struct of your own takes a fraction of the memory of the full type; serde skips the rest of the object
/// while decoding:
/// ```
/// #[derive(serde::Deserialize)]
/// struct PodPhase { status: Status }
///
/// #[derive(serde::Deserialize)]
/// struct Status { phase: String }
///
/// fn is_representation<T: informer::Decode>() {}
/// is_representation::<PodPhase>();
/// is_representation::<k8s_openapi::api::core::v1::Pod>();
/// is_representation::<kube::core::DynamicObject>();
/// ```
pub trait Decode: Sized + Send + Sync + 'static {
    /// Decodes one object.
    ///
    /// # Errors
    /// When the object does not have the shape of the type. The error must not carry values (G34).
    fn decode(raw: RawObject<'_>) -> Result<Self, DecodeError>;
}

impl<T: DeserializeOwned + Send + Sync + 'static> Decode for T {
    fn decode(raw: RawObject<'_>) -> Result<Self, DecodeError> {
        match raw.wire {
            Wire::Json(json) => {
                // Looked at once, instead of string by string. `from_utf8_lossy` goes byte by byte: only for what is no UTF-8.
                let json = match std::str::from_utf8(json) {
                    Ok(json) => Cow::Borrowed(json),
                    Err(_) => String::from_utf8_lossy(json),
                };
                exact::from_str(&json).map_err(|error| describe(json.as_bytes(), &error))
            }
            Wire::Protobuf(kind, message) => protobuf::from_message(kind, message),
        }
    }
}

impl<'a> RawObject<'a> {
    /// An object of its JSON text, and what the collection holds.
    #[must_use]
    pub fn new(json: &'a [u8], api_version: &'a str, kind: &'a str) -> Self {
        Self { wire: Wire::Json(json), api_version, kind }
    }

    /// An object of its protobuf message, without an envelope.
    #[must_use]
    pub fn protobuf(kind: Kind, message: &'a [u8]) -> Self {
        Self { wire: Wire::Protobuf(kind, message), api_version: kind.api_version(), kind: kind.name() }
    }
}

/// Without the object's content (G34).
impl fmt::Debug for RawObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawObject")
            .field("wire", &self.wire)
            .field("api_version", &self.api_version)
            .field("kind", &self.kind)
            .finish()
    }
}

/// Path and type of what serde did not like, without the value that its own message would quote.
fn describe(json: &[u8], error: &serde_json::Error) -> DecodeError {
    let offset = path::offset(json, error.line(), error.column());
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let is_missing = text.starts_with("missing field");
    let path = if is_missing { path::container(json, offset) } else { path::at(json, offset) };
    let message = match text.split_once(", expected ") {
        Some((found, expected)) => format!("{}, expected {expected}", without_value(found)),
        None => without_value(text),
    };
    DecodeError { path, message }
}

/// The part of a message before the first quoted value; names of fields stay.
fn without_value(text: &str) -> String {
    if let Some(field) = text.strip_prefix("missing field ") {
        return format!("missing field {field}");
    }
    match text.split_once(": ") {
        // `invalid type: string "…"` and `invalid value: integer `5``
        Some((what @ ("invalid type" | "invalid value" | "invalid length"), found)) => {
            let kind = found.split(['"', '`', '(']).next().unwrap_or_default().trim_end();
            let kind = if kind.bytes().any(|byte| byte.is_ascii_digit()) { "number" } else { kind };
            format!("{what}: {kind}")
        }
        // Anything else may be a message of the type's own making, with the value inside.
        _ => "invalid value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret};

    use super::*;

    fn fails<T: Decode>(json: &str) -> DecodeError {
        T::decode(RawObject::new(json.as_bytes(), "v1", "Pod")).err().expect("it should not decode")
    }

    #[test]
    fn g34_a_decode_error_names_path_and_type_and_never_the_value() {
        let json = r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"x"},{"name":"y","ports":"hunter2"}]}}"#;
        let error = fails::<Pod>(json);
        assert_eq!(error.path, "spec.containers[1].ports");
        assert!(error.message.starts_with("invalid type: string, expected"), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");

        let error = fails::<Secret>(r#"{"metadata":{"name":"a"},"data":{"password":"%%hunter2"}}"#);
        assert_eq!(error.path, "data.password");
        assert!(!error.to_string().contains("hunter2"), "{error}");

        let error = fails::<Pod>(r#"{"metadata":{"name":"a","creationTimestamp":"hunter2"}}"#);
        assert!(!error.to_string().contains("hunter2"), "{error}");

        let error = fails::<Pod>(r#"{"metadata":{"name":"a","generation":"73571"}}"#);
        assert_eq!(error.to_string(), "metadata.generation: invalid type: string, expected i64");
    }

    #[test]
    fn g01_what_is_no_utf8_in_json_is_replaced() {
        let json = b"{\"metadata\":{\"name\":\"a\",\"annotations\":{\"b\":\"<\xff>\",\"c\":\"d\"}}}";
        let pod = Pod::decode(RawObject::new(json, "v1", "Pod")).unwrap();
        let annotations = pod.metadata.annotations.unwrap();
        assert_eq!((annotations["b"].as_str(), annotations["c"].as_str()), ("<\u{fffd}>", "d"));

        let json = b"{\"metadata\":{\"name\":\"\xff\xff\",\"generation\":\"73571\"}}";
        let error = Pod::decode(RawObject::new(json, "v1", "Pod")).unwrap_err();
        assert_eq!(error.to_string(), "metadata.generation: invalid type: string, expected i64");
    }

    #[test]
    fn a_struct_of_ones_own_says_which_field_is_missing() {
        #[derive(Debug, serde::Deserialize)]
        struct Slim {
            #[expect(dead_code, reason = "only decoded")]
            node: String,
        }
        assert_eq!(fails::<Slim>(r#"{"metadata":{}}"#).to_string(), ".: missing field `node`");
    }
}
