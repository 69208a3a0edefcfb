//! One object in the encoding in which it was received.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::format::Format;
use super::{DecodeError, Encoding, FieldPath, HeadError, ObjectHead};

/// One object as received, cut out of its list or frame.
///
/// # Examples
/// ```
/// use bytes::Bytes;
/// use informer_core::wire::{ObjectHead, WireObject};
///
/// let object = WireObject::from(Bytes::from_static(br#"{"metadata":{"name":"a"}}"#));
/// assert_eq!(ObjectHead::of(object.wire())?.name, "a");
/// # Ok::<(), informer_core::wire::HeadError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct WireObject {
    /// Its encoding.
    pub encoding: Encoding,
    /// Its bytes.
    pub bytes: Bytes,
}

/// A borrowed [`WireObject`]. As cheap to copy as a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Wire<'a> {
    /// Its encoding.
    pub encoding: Encoding,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl WireObject {
    /// The object, borrowed.
    #[must_use]
    pub fn wire(&self) -> Wire<'_> {
        Wire { encoding: self.encoding, bytes: &self.bytes }
    }
}

/// The JSON text of an object.
impl From<Bytes> for WireObject {
    fn from(json: Bytes) -> Self {
        Self { encoding: Encoding::Json, bytes: json }
    }
}

impl<'a> Wire<'a> {
    /// The JSON text of an object.
    #[must_use]
    pub fn json(text: &'a [u8]) -> Self {
        Self { encoding: Encoding::Json, bytes: text }
    }

    pub(super) fn format(&self) -> &dyn Format {
        self.encoding.format()
    }

    /// Fails if the object is malformed, to distinguish that from an object of another shape than
    /// the type it is decoded into (G30).
    ///
    /// # Errors
    /// If the bytes are not one object, or a field of its [`ObjectHead`] has the wrong type.
    pub fn check(self) -> Result<(), HeadError> {
        self.format().whole_head(self.bytes).map(drop)
    }

    /// The object without its managed fields: itself if there are none, else assembled in
    /// `scratch`, whose content is replaced.
    ///
    /// # Panics
    /// May panic if `head` was not read from this object.
    #[must_use]
    pub fn without_managed_fields(self, head: &ObjectHead<'_>, scratch: &'a mut Vec<u8>) -> Self {
        let bytes = self.format().without_managed_fields(self.bytes, head, scratch);
        Self { encoding: self.encoding, bytes }
    }

    /// `apiVersion` and `kind`; empty in items of JSON lists of built-in kinds, which lack them.
    #[must_use]
    pub fn types(self) -> (Cow<'a, str>, Cow<'a, str>) {
        self.format().types(self.bytes)
    }

    /// Decodes the object.
    ///
    /// # Errors
    /// If it is malformed, or has another shape than `T`. The error has the path and type, and no
    /// value (G34).
    ///
    /// # Examples
    /// ```
    /// use informer_core::wire::Wire;
    ///
    /// let object = Wire::json(br#"{"spec":{"replicas":"three"}}"#);
    /// #[derive(Debug, serde::Deserialize)]
    /// struct Scale { spec: Spec }
    /// #[derive(Debug, serde::Deserialize)]
    /// struct Spec { replicas: i32 }
    /// let error = object.decode::<Scale>().unwrap_err();
    /// assert_eq!(error.to_string(), "spec.replicas: invalid type: string, expected i32");
    /// ```
    pub fn decode<T: DeserializeOwned + 'static>(self) -> Result<T, DecodeError> {
        self.encoding.deserialize(self.bytes)
    }

    /// The bytes to store for an object of a collection with this `apiVersion` and `kind`: the
    /// whole object in the same encoding, including both.
    ///
    /// # Errors
    /// If the object is malformed.
    pub fn keep(self, api_version: &str, kind: &str) -> Result<Box<[u8]>, DecodeError> {
        self.format().keep(self.bytes, api_version, kind)
    }

    /// The value of one label. `None` also if it cannot be borrowed from the bytes, which occurs
    /// only if they were not [kept](Self::keep).
    #[must_use]
    pub fn label(self, key: &str) -> Option<&'a str> {
        self.format().label(self.bytes, key)
    }

    /// The labels, in the order of the bytes.
    #[must_use]
    pub fn labels(self) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        self.format().labels(self.bytes)
    }

    /// The value of one annotation.
    #[must_use]
    pub fn annotation(self, key: &str) -> Option<Cow<'a, str>> {
        self.format().annotation(self.bytes, key)
    }

    /// Calls `found` with each text, number or boolean at a path.
    pub fn fields(self, path: &FieldPath, found: &mut dyn FnMut(Cow<'a, str>)) {
        self.format().fields(self.bytes, path, found);
    }

    /// Appends the object as JSON, on one line if its bytes were [kept](Self::keep).
    ///
    /// # Errors
    /// If the bytes are not an object of their kind. `out` is then unchanged.
    pub fn write_json(self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let before = out.len();
        self.format().write_json(self.bytes, out).inspect_err(|_| out.truncate(before))
    }
}

/// Prints no contents of the object (G34).
impl fmt::Debug for WireObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wire().fmt(f)
    }
}

/// Prints no contents of the object (G34).
impl fmt::Debug for Wire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({} bytes)", self.encoding, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use k8s_protobuf::{Kind, encode};
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::HeadError;

    fn both(object: &Value) -> [WireObject; 2] {
        let kind = Kind::of("v1", "Pod").unwrap();
        let mut message = Vec::new();
        encode::message(kind, object, &mut message).unwrap();
        let message = WireObject { encoding: Encoding::Protobuf(kind), bytes: message.into() };
        [Bytes::from(object.to_string()).into(), message]
    }

    #[test]
    fn the_head_is_the_same_in_either_encoding() {
        for object in both(
            &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "b",
            "uid": "c", "resourceVersion": "7", "labels": { "name": "no" } }, "spec": { "nodeName": "d" } }),
        ) {
            let head = ObjectHead::of(object.wire()).unwrap();
            assert_eq!((&*head.api_version, &*head.kind), ("v1", "Pod"));
            assert_eq!((&*head.namespace, &*head.name), ("b", "a"));
            assert_eq!((head.uid, head.version), ("c".into(), "7".into()));
        }
    }

    #[test]
    fn g30_an_object_needs_a_name_and_a_bookmark_does_not() {
        for (value, ends) in [("true", true), ("false", false)] {
            for object in both(&json!({ "metadata": { "resourceVersion": "7",
                "annotations": { "k8s.io/initial-events-end": value } } }))
            {
                assert_eq!(ObjectHead::of(object.wire()), Err(HeadError::MissingName));
                let head = ObjectHead::of_bookmark(object.wire()).unwrap();
                assert_eq!((head.initial_events_end, head.version), (ends, "7".into()));
            }
        }
    }

    #[test]
    fn g30_an_object_that_is_cut_within_its_metadata_has_no_head() {
        for object in both(&json!({ "metadata": { "name": "hunter2", "uid": "u" } })) {
            // A message's first field is the metadata, whose length follows the tag.
            let end = if object.encoding == Encoding::Json {
                33
            } else {
                usize::from(object.bytes[1]) + 2
            };
            for end in 0..end {
                let error = ObjectHead::of(Wire { bytes: &object.bytes[..end], ..object.wire() })
                    .unwrap_err();
                assert!(!error.to_string().contains("hunter"), "{error}");
            }
        }
    }

    #[test]
    fn g30_who_an_object_is_shows_in_its_beginning_and_that_it_is_broken_in_all_of_it() {
        for object in both(
            &json!({ "metadata": { "name": "a", "namespace": "b", "uid": "c", "resourceVersion": "7" },
            "spec": { "nodeName": "x".repeat(100) } }),
        ) {
            assert_eq!(object.wire().check(), Ok(()));
            // Within the spec: a message could end before its last field, a status of empty texts.
            for end in object.bytes.len() - 90..object.bytes.len() - 40 {
                let cut = Wire { bytes: &object.bytes[..end], ..object.wire() };
                let head = ObjectHead::of(cut).unwrap();
                assert_eq!((&*head.namespace, &*head.name), ("b", "a"));
                assert_eq!((head.uid, head.version), ("c".into(), "7".into()));
                assert!(cut.check().is_err() && cut.keep("v1", "Pod").is_err());
            }
        }
    }

    #[test]
    fn g30_a_namespace_with_a_slash_is_none() {
        for object in both(&json!({ "metadata": { "name": "a", "namespace": "b/c" } })) {
            assert_eq!(ObjectHead::of(object.wire()), Err(HeadError::SlashInNamespace));
        }
    }

    #[test]
    fn managed_fields_are_cut_in_either_encoding() {
        let managed = json!([{ "manager": "m", "fieldsV1": { "f:spec": {} } }]);
        let object = |managed: &Value| {
            both(&json!({ "metadata": { "name": "a", "managedFields": managed } }))
        };
        let expected = both(&json!({ "metadata": { "name": "a" } }));
        for (object, expected) in object(&managed).iter().zip(&expected) {
            let (head, mut scratch) = (ObjectHead::of(object.wire()).unwrap(), Vec::new());
            assert_eq!(object.wire().without_managed_fields(&head, &mut scratch), expected.wire());
        }
    }

    #[test]
    fn g34_debug_shows_lengths_only() {
        let shown =
            both(&json!({ "metadata": { "name": "hunter2" } })).map(|object| format!("{object:?}"));
        assert_eq!(shown[0], "JSON(31 bytes)");
        assert!(
            shown[1].starts_with("protobuf v1 Pod(") && !shown[1].contains("hunter2"),
            "{}",
            shown[1]
        );
    }
}
