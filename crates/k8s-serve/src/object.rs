//! What the read side needs of an object.

use std::borrow::Cow;

use informer_core::ObjectKey;
use informer_core::wire::{DecodeError, Encoding, Wire};
use k8s_protobuf::Kind;

use crate::protobuf;

/// An object of a [`Backend`](crate::Backend): its bytes, and what selectors and lists need of it.
/// Cloning it should copy a pointer.
///
/// The read side writes it in all forms from its bytes. It does not matter in which encoding they
/// are, and whether JSON has `apiVersion` and `kind`.
pub trait Object: Clone + Send + Sync + 'static {
    /// Namespace and name.
    fn key(&self) -> &ObjectKey;

    /// The version at which the object got this state.
    fn version(&self) -> u64;

    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;

    /// The text, number or boolean at a path such as `spec.nodeName`; empty if there is none.
    fn field(&self, path: &str) -> Cow<'_, str>;

    /// The bytes: JSON on one line, or a protobuf message without envelope.
    fn wire(&self) -> Wire<'_>;

    /// The object as a protobuf message of a kind, without envelope. An object that is not kept as
    /// one is encoded for each call; implementations may keep the result.
    ///
    /// # Errors
    /// If it does not fit the kind.
    fn message(&self, kind: Kind) -> Result<Cow<'_, [u8]>, WriteError> {
        let wire = self.wire();
        match wire.encoding {
            Encoding::Protobuf(_) => Ok(Cow::Borrowed(wire.bytes)),
            Encoding::Json => protobuf::message(kind, wire.bytes).map(Cow::Owned),
        }
    }

    /// The object's metadata as the message of this kind, which is `PartialObjectMetadata`.
    ///
    /// # Errors
    /// If they cannot be read.
    fn metadata_message(&self, kind: Kind) -> Result<Cow<'_, [u8]>, WriteError> {
        let wire = self.wire();
        match wire.encoding {
            Encoding::Protobuf(_) => protobuf::metadata(wire.bytes).map(Cow::Borrowed),
            Encoding::Json => protobuf::metadata_message(kind, wire.bytes).map(Cow::Owned),
        }
    }
}

/// An object cannot be written in the form that was asked for. Contains no value of the object but
/// its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object} cannot be written: {reason}")]
pub struct WriteError {
    object: String,
    reason: String,
}

impl WriteError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { object: "the object".to_owned(), reason: reason.into() }
    }

    /// Says which object it is.
    pub(crate) fn about(self, object: &impl Object) -> Self {
        Self { object: format!("the object {:?}", object.key().to_string()), ..self }
    }
}

impl From<DecodeError> for WriteError {
    fn from(error: DecodeError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<k8s_protobuf::Error> for WriteError {
    fn from(error: k8s_protobuf::Error) -> Self {
        Self::new(error.to_string())
    }
}
