//! Object keys: the (namespace, name) under which an object is stored.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The namespace and name of an object, in one allocation; cloning copies a pointer.
///
/// Cluster-scoped objects have an empty namespace. Keys order as API servers order their lists:
/// `namespace/name` compared as one text, so `team-a/x` comes before `team/x`. All keys of a
/// namespace are neighbours. Follows client-go's `ObjectName` / `MetaNamespaceKeyFunc`.
///
/// # Examples
/// ```
/// use informer_core::ObjectKey;
///
/// let key = ObjectKey::namespaced("default", "web-0");
/// assert_eq!((key.namespace(), key.name()), ("default", "web-0"));
/// assert_eq!(key.to_string(), "default/web-0");
/// assert_eq!("default/web-0".parse::<ObjectKey>()?, key);
/// assert_eq!(ObjectKey::cluster("node-1").to_string(), "node-1");
/// # Ok::<(), informer_core::ParseObjectKeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ObjectKey(Arc<str>);

/// Separates namespace and name; that of a cluster-scoped object comes first in its key.
const SEPARATOR: char = '/';

impl ObjectKey {
    /// The key of a namespaced object; an empty `namespace` makes it the key of a cluster-scoped
    /// one. A namespace has no slash: what follows one in it counts as the name.
    #[must_use]
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push(SEPARATOR);
        text.push_str(name);
        Self(text.into())
    }

    /// The key of a cluster-scoped object.
    #[must_use]
    pub fn cluster(name: &str) -> Self {
        Self::namespaced("", name)
    }

    /// The namespace; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.split().0
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.split().1
    }

    /// Compares this key with a namespace and name without building a key of them.
    #[must_use]
    pub(crate) fn cmp_parts(&self, namespace: &str, name: &str) -> Ordering {
        let own = self.0.as_bytes();
        let (head, tail) = own.split_at(namespace.len().min(own.len()));
        head.cmp(namespace.as_bytes()).then_with(|| match tail.split_first() {
            Some((separator, own_name)) => {
                separator.cmp(&(SEPARATOR as u8)).then_with(|| own_name.cmp(name.as_bytes()))
            }
            None => Ordering::Less,
        })
    }

    fn split(&self) -> (&str, &str) {
        self.0.split_once(SEPARATOR).expect("every key has a separator")
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// `namespace/name`, or `name` for cluster-scoped objects.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.split() {
            ("", name) => f.write_str(name),
            (namespace, name) => write!(f, "{namespace}/{name}"),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({self})")
    }
}

/// Reads `namespace/name` or `name`.
impl FromStr for ObjectKey {
    type Err = ParseObjectKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            None => Ok(Self::cluster(text)),
            Some((_, name)) if name.contains('/') => {
                Err(ParseObjectKeyError { text: text.to_owned() })
            }
            Some((namespace, name)) => Ok(Self::namespaced(namespace, name)),
        }
    }
}

/// As `namespace/name`, or `name`.
impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The text has more than one slash, so it is no `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no object key: write `namespace/name`, or `name` for a cluster-scoped object")]
pub struct ParseObjectKeyError {
    text: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn orders_as_an_api_server_does() {
        let mut keys = ["team/x", "team-a/a", "team/b", "node-1", "a/z"]
            .map(|key| key.parse::<ObjectKey>().unwrap());
        keys.sort();
        assert_eq!(
            keys.map(|key| key.to_string()),
            ["node-1", "a/z", "team-a/a", "team/b", "team/x"]
        );
    }

    #[test]
    fn a_nul_or_a_slash_in_a_name_makes_no_key_of_another_object() {
        let key = ObjectKey::cluster("a/b\0c");
        assert_eq!((key.namespace(), key.name()), ("", "a/b\0c"));
        assert_ne!(key, ObjectKey::namespaced("a", "b\0c"));
        assert_ne!(ObjectKey::namespaced("a\0", "b"), ObjectKey::namespaced("a", "\0b"));
    }

    #[test]
    fn more_than_one_slash_is_an_error() {
        assert!("a/b/c".parse::<ObjectKey>().is_err());
        assert_eq!("/b".parse::<ObjectKey>().unwrap(), ObjectKey::cluster("b"));
    }

    proptest! {
        #[test]
        fn prints_and_parses_back(namespace in "[a-z0-9.-]{0,8}", name in "[a-z0-9.-]{1,8}") {
            let key = ObjectKey::namespaced(&namespace, &name);
            prop_assert_eq!(key.cmp_parts(&namespace, &name), Ordering::Equal);
            prop_assert_eq!(key.to_string().parse::<ObjectKey>().unwrap(), key);
        }

        #[test]
        fn orders_as_the_text_does(a in ("[a-c.-]{0,3}", "[a-c.-]{1,3}"), b in ("[a-c.-]{0,3}", "[a-c.-]{1,3}")) {
            let (x, y) = (ObjectKey::namespaced(&a.0, &a.1), ObjectKey::namespaced(&b.0, &b.1));
            let text = |(namespace, name): &(String, String)| format!("{namespace}/{name}");
            prop_assert_eq!(x.cmp(&y), text(&a).cmp(&text(&b)));
            prop_assert_eq!(x.cmp_parts(&b.0, &b.1), x.cmp(&y));
        }
    }
}
