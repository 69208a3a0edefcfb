//! Decoding into any type that serde can deserialize.

#[cfg(feature = "k8s-openapi")]
mod direct;
mod fault;
mod json;
mod key;
mod map;
mod seq;
pub(crate) mod text;
mod value;

use serde::de::{DeserializeOwned, DeserializeSeed};

use crate::error::malformed;
use crate::{Envelope, Error, Kind, hides_levels};
use fault::Fault;
use value::De;

/// Limit of nested objects and arrays; serde_json has the same.
pub(crate) const MAX_DEPTH: u8 = 128;

/// Decodes an object or a list with its envelope, as in the body of an answer, into any type that
/// decodes from the object's JSON: those of k8s-openapi, kube's `PartialObjectMeta` and
/// `DynamicObject`, `serde_json::Value`, a struct of your own. The outcome is the same as from
/// JSON. A struct with few fields costs only these; other fields are skipped without decoding.
///
/// `apiVersion` and `kind` are those of the envelope. Fields that the table does not know are
/// skipped. Fields out of the order of their numbers, or repeated though they are singular, are an
/// error wherever they are read: protobuf allows them, and no server writes them.
///
/// # Errors
/// When the bytes have no envelope or are malformed, the kind is not in the table, or the object
/// does not fit the type: then with the path of the field, and without its value.
///
/// # Examples
/// ```
/// use k8s_protobuf::Error;
///
/// #[derive(serde::Deserialize)]
/// struct Pod {
///     kind: String,
///     metadata: Meta,
/// }
///
/// #[derive(serde::Deserialize)]
/// struct Meta {
///     name: String,
/// }
///
/// // v1 Pod, metadata { name: "a" }
/// let body = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x05\x0a\x03\x0a\x01a";
/// let pod: Pod = k8s_protobuf::from_slice(body)?;
/// assert_eq!((&*pod.kind, &*pod.metadata.name), ("Pod", "a"));
///
/// let error = k8s_protobuf::from_slice::<Vec<u8>>(body).unwrap_err();
/// assert_eq!(error.to_string(), ".: invalid type: map, expected a sequence");
/// # Ok::<(), Error>(())
/// ```
pub fn from_slice<T: DeserializeOwned + 'static>(bytes: &[u8]) -> Result<T, Error> {
    let envelope = Envelope::parse(bytes)?;
    let (kind, message) = envelope.message()?;
    decode(kind, !envelope.api_version.is_empty(), message)
}

/// Decodes the message of an object of this kind without an envelope: an item of a list, or what
/// [`Envelope::message`] returned. Otherwise as [`from_slice`]; `apiVersion` and `kind` are those
/// of `kind`.
///
/// # Errors
/// When the message is malformed, or the object does not fit the type: then with the path of the
/// field, and without its value.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use k8s_protobuf::Kind;
///
/// // metadata { name: "a" }, spec { containers: [{ name: "web" }] }
/// let message = b"\x0a\x03\x0a\x01a\x12\x07\x12\x05\x0a\x03web";
/// let kind = Kind::of("v1", "Pod").expect("it is built in");
/// let pod: Pod = k8s_protobuf::from_message(kind, message)?;
/// assert_eq!(pod.spec.unwrap().containers[0].name, "web");
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
pub fn from_message<T: DeserializeOwned + 'static>(kind: Kind, message: &[u8]) -> Result<T, Error> {
    decode(kind, true, message)
}

/// [`from_message`] with a seed, which may for example skip what it does not need. Whether it can
/// read what [hides levels](hides_levels) is left to the seed.
///
/// # Errors
/// As [`from_message`].
///
/// # Examples
/// ```
/// use std::marker::PhantomData;
///
/// use k8s_protobuf::Kind;
///
/// // metadata { name: "a" }, spec { containers: [{ name: "web" }] }
/// let message = b"\x0a\x03\x0a\x01a\x12\x07\x12\x05\x0a\x03web";
/// let kind = Kind::of("v1", "Pod").expect("it is built in");
/// let seed = PhantomData::<serde_json::Value>;
/// let pod = k8s_protobuf::from_message_seed(kind, message, seed)?;
/// assert_eq!(pod["spec"]["containers"][0]["name"], "web");
/// # Ok::<(), k8s_protobuf::Error>(())
/// ```
pub fn from_message_seed<'de, S: DeserializeSeed<'de>>(
    kind: Kind,
    message: &'de [u8],
    seed: S,
) -> Result<S::Value, Error> {
    Ok(seed.deserialize(De::object(kind, true, message, 0))?)
}

/// The metadata of a `PartialObjectMetadata`, from its message. `None` if the message is not as
/// servers write it: [`from_message`] then decodes it, or says what is wrong.
///
/// # Examples
/// ```
/// use k8s_protobuf::Kind;
///
/// // metadata { name: "a" }
/// let message = b"\x0a\x03\x0a\x01a";
/// let kind = Kind::of("meta.k8s.io/v1", "PartialObjectMetadata").expect("it is built in");
/// let metadata = k8s_protobuf::partial_metadata(kind, message).expect("nothing is unusual");
/// assert_eq!(metadata.name.as_deref(), Some("a"));
/// ```
#[cfg(feature = "k8s-openapi")]
#[must_use]
pub fn partial_metadata(
    kind: Kind,
    message: &[u8],
) -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta> {
    if hides_levels(message) { None } else { direct::partial_metadata(kind, message) }
}

fn decode<T: DeserializeOwned + 'static>(
    kind: Kind,
    is_versioned: bool,
    message: &[u8],
) -> Result<T, Error> {
    // Most types have a part that is a `serde_json::Value`.
    if hides_levels(message) {
        return Err(malformed("JSON in the texts of JSON is nested too deep"));
    }
    #[cfg(feature = "k8s-openapi")]
    if let Some(object) = direct::object(kind, message) {
        return Ok(object);
    }
    by_serde(kind, is_versioned, message)
}

fn by_serde<T: DeserializeOwned>(
    kind: Kind,
    is_versioned: bool,
    message: &[u8],
) -> Result<T, Error> {
    Ok(T::deserialize(De::object(kind, is_versioned, message, 0))?)
}

#[cfg(test)]
mod tests;
