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
    pub fn without_managed_fields(self, head: &ObjectHead<'_>, scratch: &'a mut Vec<u8>) -> Self {
        match self {
            Self::Json(json) => Self::Json(super::without_managed_fields(json, head, scratch)),
            // Who has read the head knows that the message is whole.
            Self::Protobuf(kind, message) => Self::Protobuf(
                kind,
                k8s_protobuf::without_managed_fields(message, scratch).unwrap_or(message),
            ),
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
