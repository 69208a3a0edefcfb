//! Paths to fields, for reading them without decoding the object.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use k8s_protobuf::{Kind, Segment};

use crate::{Resource, TypedResource};

/// The place of a field in an object, such as `spec.nodeName`: read by [`Lazy::field`](crate::Lazy::field), whatever the
/// object's bytes are. Make it once, and use it for many objects.
///
/// Names are those of JSON. A key that has dots stands in brackets: `metadata.labels['app.kubernetes.io/name']`; `[*]` goes
/// through all elements of an array: `spec.containers[*].image`.
///
/// # Examples
/// ```
/// use informer::FieldPath;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let image = FieldPath::of::<Pod>("spec.containers[*].image")?;
/// assert_eq!(image.to_string(), "spec.containers[*].image");
/// let error = FieldPath::of::<Pod>("spec.nodename").unwrap_err();
/// assert!(error.to_string().contains("did you mean nodeName"), "{error}");
/// # Ok::<(), informer::FieldPathError>(())
/// ```
pub struct FieldPath {
    text: Box<str>,
    segments: Box<[Segment]>,
    /// The path in messages of the kind that it was read from first.
    in_messages: OnceLock<(Kind, InMessage)>,
}

/// How a path is read from the messages of one kind.
#[derive(Clone)]
enum InMessage {
    /// Protobuf has no kind and no API version within.
    Same(&'static str),
    Numbers(k8s_protobuf::FieldPath),
    /// The kind has no such field.
    Nowhere,
}

/// A text that is no path, or one that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct FieldPathError {
    why: String,
}

impl FieldPath {
    /// A path in objects of kind `K`. For built-in kinds its names are checked.
    ///
    /// # Errors
    /// When the text is malformed, a built-in kind has no such field, or what stands there is neither text, number nor
    /// boolean; the error names what there is. Of other kinds, such as custom resources, any well-formed path is taken.
    pub fn of<K: TypedResource>(path: &str) -> Result<Self, FieldPathError> {
        Self::of_resource(&Resource::of::<K>(), path)
    }

    /// A path in objects of a resource. For built-in kinds its names are checked.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_resource(resource: &Resource, path: &str) -> Result<Self, FieldPathError> {
        let parsed: Self = path.parse()?;
        match Kind::of(&resource.api_version(), &resource.kind) {
            Some(kind) => parsed.in_messages_of(kind).map(|_| parsed).map_err(|error| why(&error)),
            None => Ok(parsed),
        }
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Calls `found` with each scalar at the path in the message of an object of this kind.
    pub(crate) fn read_message<'a>(
        &self,
        kind: Kind,
        message: &'a [u8],
        found: &mut dyn FnMut(Cow<'a, str>),
    ) {
        let resolve = || self.in_messages_of(kind).unwrap_or(InMessage::Nowhere);
        let (known, path) = self.in_messages.get_or_init(|| (kind, resolve()));
        let resolved;
        let path = if *known == kind {
            path
        } else {
            // Rare: one path for objects of several kinds.
            resolved = resolve();
            &resolved
        };
        match path {
            InMessage::Same(text) => found(Cow::Borrowed(text)),
            // The bytes were checked, as far as it matters, when they came; what is broken reads as absent.
            InMessage::Numbers(path) => _ = path.each(message, |value| found(value.text())),
            InMessage::Nowhere => {}
        }
    }

    fn in_messages_of(&self, kind: Kind) -> Result<InMessage, k8s_protobuf::Error> {
        Ok(match &*self.text {
            "kind" => InMessage::Same(kind.name()),
            "apiVersion" => InMessage::Same(kind.api_version()),
            _ => InMessage::Numbers(k8s_protobuf::FieldPath::from_segments(
                kind,
                self.segments.iter().cloned(),
            )?),
        })
    }
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    /// A path for objects of any kind; whether they have such a field shows when it is read.
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn a_path_that_leads_nowhere_says_what_there_is() {
        for (path, said) in [
            ("spec.nodename", "did you mean nodeName"),
            ("spec", "spec:"),
            ("spec..a", "must be a name"),
            ("spec.containers[0].image", "in brackets must be *"),
        ] {
            let error = FieldPath::of::<Pod>(path).unwrap_err().to_string();
            assert!(error.contains(said), "{path}: {error}");
        }
        // What is not built in has the fields that it has.
        let widgets = Resource {
            group: "example.com".into(),
            version: "v1".into(),
            plural: "widgets".into(),
            kind: "Widget".into(),
            namespaced: true,
        };
        assert!(FieldPath::of_resource(&widgets, "spec.anything").is_ok());
    }
}
