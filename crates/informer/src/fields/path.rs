//! Paths to fields, for reading them without decoding the object.

use std::fmt;
use std::str::FromStr;

use informer_core::wire;
use k8s_protobuf::{Kind, Segment};

use crate::{Resource, TypedResource};

pub use informer_core::wire::FieldPathError;

/// The place of a field in an object, such as `spec.nodeName`: read by
/// [`Lazy::field`](crate::Lazy::field), whatever the object's bytes are. Make it once, and use it
/// for many objects.
///
/// Names are those of JSON. A key that has dots stands in brackets:
/// `metadata.labels['app.kubernetes.io/name']`; `[*]` goes through all elements of an array:
/// `spec.containers[*].image`.
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
#[derive(Clone)]
pub struct FieldPath(pub(crate) wire::FieldPath);

impl FieldPath {
    /// A path in objects of kind `K`. For built-in kinds its names are checked.
    ///
    /// # Errors
    /// When the text is malformed, a built-in kind has no such field, or what stands there is
    /// neither text, number nor boolean; the error names what there is. Of other kinds, such as
    /// custom resources, any well-formed path is taken.
    pub fn of<K: TypedResource>(path: &str) -> Result<Self, FieldPathError> {
        Self::of_resource(&Resource::of::<K>(), path)
    }

    /// A path in objects of a resource. For built-in kinds its names are checked.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_resource(resource: &Resource, path: &str) -> Result<Self, FieldPathError> {
        let parsed: Self = path.parse()?;
        if let Some(kind) = Kind::of(&resource.api_version(), &resource.kind) {
            parsed.0.check(kind)?;
        }
        Ok(parsed)
    }

    /// The path as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The path of a field as field selectors name it.
    pub(crate) fn of_label(label: &str) -> Self {
        Self(wire::FieldPath::of_label(label))
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        self.0.segments()
    }
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    /// A path for objects of any kind; whether they have such a field shows when it is read.
    fn from_str(path: &str) -> Result<Self, FieldPathError> {
        path.parse().map(Self)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
