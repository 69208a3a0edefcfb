//! Paths to fields, to read them without decoding the object.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use k8s_protobuf::{Kind, Segment};

use super::protobuf::MessagePath;

/// The path of a field in an object, such as `spec.nodeName`, in any encoding.
///
/// Names are those of JSON. A key with dots is in brackets:
/// `metadata.labels['app.kubernetes.io/name']`. `[*]` selects all elements of an array:
/// `spec.containers[*].image`.
///
/// # Examples
/// ```
/// use informer_core::wire::{FieldPath, Wire};
///
/// let path: FieldPath = "spec.containers[*].image".parse()?;
/// let mut images = Vec::new();
/// let pod = Wire::json(br#"{"spec":{"containers":[{"image":"a"},{"image":"b"}]}}"#);
/// pod.fields(&path, &mut |image| images.push(image));
/// assert_eq!(images, ["a", "b"]);
/// # Ok::<(), informer_core::wire::FieldPathError>(())
/// ```
pub struct FieldPath {
    text: Box<str>,
    segments: Box<[Segment]>,
    /// The path resolved for the message of a kind, namely the first kind that was read.
    in_messages: OnceLock<(Kind, MessagePath)>,
}

/// A text that is not a path, or a path to no scalar field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct FieldPathError {
    why: String,
}

impl FieldPath {
    /// The path of a field as field selectors write it: names separated by dots. The rest after
    /// `metadata.labels.` or `metadata.annotations.` is one key, and brackets are part of names.
    #[must_use]
    pub fn of_label(label: &str) -> Self {
        let name = |text: &str| Segment::Name(text.to_owned());
        let key = |map: &str| label.strip_prefix(map).filter(|key| !key.is_empty());
        let segments = if let Some(key) = key("metadata.labels.") {
            vec![name("metadata"), name("labels"), Segment::Key(key.to_owned())]
        } else if let Some(key) = key("metadata.annotations.") {
            vec![name("metadata"), name("annotations"), Segment::Key(key.to_owned())]
        } else {
            label.split('.').map(name).collect()
        };
        Self { text: label.into(), segments: segments.into(), in_messages: OnceLock::new() }
    }

    /// The path as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The steps of the path.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Checks that a built-in kind has this field, and that it is a string, number or boolean.
    ///
    /// # Errors
    /// If not; the error names the fields that exist.
    pub fn check(&self, kind: Kind) -> Result<(), FieldPathError> {
        MessagePath::of(self, kind).map(drop).map_err(|error| why(&error))
    }

    /// Calls `read` with the path resolved for messages of this kind.
    pub(super) fn in_messages_of(&self, kind: Kind, read: impl FnOnce(&MessagePath)) {
        let resolve = || MessagePath::of(self, kind).unwrap_or(MessagePath::Nowhere);
        match self.in_messages.get_or_init(|| (kind, resolve())) {
            (known, path) if *known == kind => read(path),
            // Rare: one path for objects of several kinds.
            _ => read(&resolve()),
        }
    }
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    /// A path for objects of any kind. Whether an object has the field is only known when it is
    /// read.
    fn from_str(path: &str) -> Result<Self, FieldPathError> {
        let segments = Segment::parse(path).map_err(|error| why(&error))?;
        Ok(Self { text: path.into(), segments: segments.into(), in_messages: OnceLock::new() })
    }
}

fn why(error: &k8s_protobuf::Error) -> FieldPathError {
    FieldPathError { why: error.to_string() }
}

impl Clone for FieldPath {
    fn clone(&self) -> Self {
        let Self { text, segments, in_messages } = self;
        Self { text: text.clone(), segments: segments.clone(), in_messages: in_messages.clone() }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldPath({self})")
    }
}
