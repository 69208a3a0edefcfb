//! One object in the encoding that it came in.

use std::fmt;

use bytes::Bytes;
use k8s_protobuf::Kind;

use super::ObjectHead;

/// One object as it stands on the wire, cut out of its list or frame.
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
pub enum WireObject {
    /// The JSON text of an object.
    Json(Bytes),
    /// An object's kind, and its protobuf message without an envelope.
    Protobuf(Kind, Bytes),
}

/// A [`WireObject`] that is borrowed. As cheap to copy as a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wire<'a> {
    /// The JSON text of an object.
    Json(&'a [u8]),
    /// An object's kind, and its protobuf message without an envelope.
    Protobuf(Kind, &'a [u8]),
}

impl WireObject {
    /// The object, borrowed.
    #[must_use]
    pub fn wire(&self) -> Wire<'_> {
        match self {
            Self::Json(json) => Wire::Json(json),
            Self::Protobuf(kind, message) => Wire::Protobuf(*kind, message),
        }
    }

    /// The text or the message.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Json(bytes) | Self::Protobuf(_, bytes) => bytes,
        }
    }
}

/// The JSON text of an object.
impl From<Bytes> for WireObject {
    fn from(json: Bytes) -> Self {
        Self::Json(json)
    }
}

impl<'a> Wire<'a> {
    /// The text or the message.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Json(bytes) | Self::Protobuf(_, bytes) => bytes,
        }
    }

    /// The object without its managed fields: itself if there are none, else put together in `scratch`, whose content
    /// is replaced.
    ///
    /// # Panics
    /// May panic if `head` was not read from this object.
    #[must_use]
    pub fn without_managed_fields(self, head: &ObjectHead<'a>, scratch: &'a mut Vec<u8>) -> Self {
        match (self, &head.message) {
            (Self::Json(json), _) => Self::Json(super::without_managed_fields(json, head, scratch)),
            (Self::Protobuf(kind, _), Some(metadata)) => {
                Self::Protobuf(kind, metadata.without_managed_fields(scratch))
            }
            (Self::Protobuf(..), None) => self,
        }
    }
}

/// Without the object's content.
impl fmt::Debug for WireObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wire().fmt(f)
    }
}

/// Without the object's content.
impl fmt::Debug for Wire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(json) => write!(f, "Json({} bytes)", json.len()),
            Self::Protobuf(kind, message) => write!(f, "Protobuf({kind}, {} bytes)", message.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_protobuf::encode;
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::HeadError;

    fn both(object: &Value) -> [WireObject; 2] {
        let kind = Kind::of("v1", "Pod").unwrap();
        let mut message = Vec::new();
        encode::message(kind, object, &mut message).unwrap();
        [Bytes::from(object.to_string()).into(), WireObject::Protobuf(kind, message.into())]
    }

    #[test]
    fn the_head_is_the_same_in_either_encoding() {
        for object in
            both(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "b",
            "uid": "c", "resourceVersion": "7", "labels": { "name": "no" } }, "spec": { "nodeName": "d" } }))
        {
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
    fn g30_a_message_that_is_not_whole_has_no_head() {
        let [_, WireObject::Protobuf(kind, message)] = both(&json!({ "metadata": { "name": "hunter2" } }))
        else {
            unreachable!("the second is protobuf")
        };
        // Its first field is the metadata.
        for end in 1..usize::from(message[1]) + 2 {
            let error = ObjectHead::of(Wire::Protobuf(kind, &message[..end])).unwrap_err();
            assert!(!error.to_string().contains("hunter"), "{error}");
        }
    }

    #[test]
    fn g30_who_an_object_is_shows_in_its_beginning() {
        for object in
            both(&json!({ "metadata": { "name": "a", "namespace": "b", "uid": "c", "resourceVersion": "7" },
            "spec": { "nodeName": "x".repeat(100) } }))
        {
            let bytes = object.bytes();
            for end in bytes.len() - 90..bytes.len() {
                let cut = match object.wire() {
                    Wire::Json(json) => Wire::Json(&json[..end]),
                    Wire::Protobuf(kind, message) => Wire::Protobuf(kind, &message[..end]),
                };
                let head = ObjectHead::of_beginning(cut).unwrap();
                assert_eq!((&*head.namespace, &*head.name), ("b", "a"));
                assert_eq!((head.uid, head.version), ("c".into(), "7".into()));
            }
            let cut = match object.wire() {
                Wire::Json(json) => Wire::Json(&json[..30]),
                Wire::Protobuf(kind, message) => Wire::Protobuf(kind, &message[..6]),
            };
            assert!(ObjectHead::of_beginning(cut).is_err());
        }
    }

    #[test]
    fn g30_a_namespace_with_a_slash_is_none() {
        for object in both(&json!({ "metadata": { "name": "a", "namespace": "b/c" } })) {
            assert_eq!(ObjectHead::of(object.wire()), Err(HeadError::SlashInNamespace));
            assert_eq!(ObjectHead::glance(object.wire()), Err(HeadError::SlashInNamespace));
        }
    }

    #[test]
    fn managed_fields_are_cut_in_either_encoding() {
        let managed = json!([{ "manager": "m", "fieldsV1": { "f:spec": {} } }]);
        let object =
            |managed: &Value| both(&json!({ "metadata": { "name": "a", "managedFields": managed } }));
        let expected = both(&json!({ "metadata": { "name": "a" } }));
        for (object, expected) in object(&managed).iter().zip(&expected) {
            let (head, mut scratch) = (ObjectHead::of(object.wire()).unwrap(), Vec::new());
            assert_eq!(object.wire().without_managed_fields(&head, &mut scratch), expected.wire());
        }
    }

    #[test]
    fn g34_debug_shows_lengths_only() {
        let shown = both(&json!({ "metadata": { "name": "hunter2" } })).map(|object| format!("{object:?}"));
        assert_eq!(shown[0], r#"Json(31 bytes)"#);
        assert!(shown[1].starts_with("Protobuf(v1 Pod, ") && !shown[1].contains("hunter2"), "{}", shown[1]);
    }
}
