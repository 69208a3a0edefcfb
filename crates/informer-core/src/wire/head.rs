//! The part of an object that the store needs, whatever its kind.

use std::borrow::Cow;
use std::ops::Range;

use super::Wire;
use crate::key::ObjectKey;
use crate::version::{ResourceVersion, Uid};

/// An object's identity and version, read from its bytes without decoding the rest.
///
/// Only the fields that are read here need to have the right type.
///
/// # Examples
/// ```
/// use informer_core::wire::{ObjectHead, Wire};
///
/// let pod = br#"{"kind":"Pod","metadata":{"name":"web-0","namespace":"default","resourceVersion":"7"}}"#;
/// let head = ObjectHead::of(Wire::json(pod))?;
/// assert_eq!(head.key().to_string(), "default/web-0");
/// assert_eq!(head.version, "7".into());
/// # Ok::<(), informer_core::wire::HeadError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectHead<'a> {
    /// Group and version, such as `apps/v1`; empty if the object has none, as in items of typed
    /// lists.
    pub api_version: Cow<'a, str>,
    /// The kind; empty if the object has none.
    pub kind: Cow<'a, str>,
    /// The name; empty only in bookmarks.
    pub name: Cow<'a, str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// The UID; unset if the object has none.
    pub uid: Uid,
    /// The resource version; unset if the object has none.
    pub version: ResourceVersion,
    /// Whether this is the bookmark that ends the initial events of a streaming list. Only read for
    /// bookmarks.
    pub initial_events_end: bool,
    /// The range of `metadata.managedFields` in the bytes, for removing it: in JSON the key, the
    /// value, and one adjacent comma. `None` if there are none, or more than one (which no server
    /// writes).
    pub(super) managed_fields: Option<Range<usize>>,
}

impl<'a> ObjectHead<'a> {
    /// Reads the head of an object up to the end of its metadata, for an object that will be
    /// decoded afterwards. The rest may be missing or malformed; [`Wire::check`] detects that. In
    /// JSON, `apiVersion` and `kind` are empty if they come after the metadata.
    ///
    /// # Errors
    /// If the metadata cannot be read, a field of it that is read has the wrong type, or there is
    /// no name.
    ///
    /// # Examples
    /// ```
    /// use informer_core::wire::{ObjectHead, Wire};
    ///
    /// let cut = Wire::json(br#"{"kind":"Pod","metadata":{"name":"web-0"},"spec":{"no"#);
    /// assert_eq!(ObjectHead::of(cut)?.name, "web-0");
    /// assert!(cut.check().is_err());
    /// # Ok::<(), informer_core::wire::HeadError>(())
    /// ```
    pub fn of(object: Wire<'a>) -> Result<Self, HeadError> {
        let head = object.format().head(object.bytes)?;
        match () {
            () if head.name.is_empty() => Err(HeadError::MissingName),
            () if head.namespace.contains('/') => Err(HeadError::SlashInNamespace),
            () => Ok(head),
        }
    }

    /// Reads the head of a bookmark's object, which needs no name and must be well-formed.
    ///
    /// # Errors
    /// If the bytes are not one object, or a field that is read has the wrong type.
    pub fn of_bookmark(object: Wire<'a>) -> Result<Self, HeadError> {
        object.format().whole_head(object.bytes)
    }

    /// The key under which the object is stored.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(&self.namespace, &self.name)
    }
}

/// An object without a usable head. Contains the place of the error, but no values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// The text is not valid JSON.
    #[error("the object is not valid JSON: malformed at offset {offset}")]
    Malformed {
        /// The offset in the text, in bytes.
        offset: usize,
    },
    /// The message is incomplete or malformed.
    #[error("the object cannot be read: {0}")]
    Message(#[from] k8s_protobuf::Error),
    /// A field that is read has the wrong type.
    #[error("{field} has the wrong type (at offset {offset})")]
    WrongType {
        /// The field's path, such as `metadata.name`.
        field: &'static str,
        /// The offset in the text, in bytes.
        offset: usize,
    },
    /// The object has no name, and so no key.
    #[error("the object has no metadata.name")]
    MissingName,
    /// A slash separates namespace and name in keys; no server has a namespace with one.
    #[error("metadata.namespace contains a slash")]
    SlashInNamespace,
}

/// The annotation of the bookmark that ends the initial events.
pub(super) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
