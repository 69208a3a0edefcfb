//! Object keys: the (namespace, name) under which an object is stored.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::sorted_map::{SearchKey, common_prefix_of, head_of};

/// The namespace and name of an object, in one allocation; cloning copies a pointer.
///
/// Cluster-scoped objects have an empty namespace. Keys order by namespace first, then by name, so all
/// keys of a namespace are neighbours. Follows client-go's `ObjectName` / `MetaNamespaceKeyFunc`.
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

/// Separates namespace and name. NUL sorts below every character of a name, so that comparing whole keys
/// as strings compares the namespaces first (`a/x` before `a-b/x`, which `/` would reverse).
const SEPARATOR: u8 = 0;

/// Of a namespace and a name as servers allow them, which are 63 and 253 bytes long.
const LONGEST: usize = 63 + 1 + 253;

impl ObjectKey {
    /// The key of a namespaced object; an empty `namespace` makes it the key of a cluster-scoped one.
    #[must_use]
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        // Put together on the stack, so that there is one allocation only.
        let mut buffer = [0; LONGEST];
        let length = namespace.len() + 1 + name.len();
        if let Some(text) = buffer.get_mut(..length) {
            // What lies between them is the separator.
            text[..namespace.len()].copy_from_slice(namespace.as_bytes());
            text[namespace.len() + 1..].copy_from_slice(name.as_bytes());
            if let Ok(text) = str::from_utf8(text) {
                return Self(text.into());
            }
        }
        Self([namespace, name].join("\0").into())
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
    pub fn cmp_parts(&self, namespace: &str, name: &str) -> Ordering {
        let (own, length) = (self.0.as_bytes(), namespace.len());
        // Not split: the separator is where the namespaces are equal, and else sorts before what the longer one has.
        let (head, tail) = own.split_at(length.min(own.len()));
        head.cmp(namespace.as_bytes()).then_with(|| match tail.split_first() {
            Some((&SEPARATOR, own_name)) => own_name.cmp(name.as_bytes()),
            Some(_) => Ordering::Greater,
            None => Ordering::Less,
        })
    }

    /// The [head](SearchKey::head) of the key with these parts.
    pub(crate) fn head_of_parts(namespace: &str, name: &str, at: usize) -> u64 {
        match at.checked_sub(namespace.len() + 1) {
            Some(at) => head_of(name.as_bytes(), at),
            None => {
                let text = [namespace.as_bytes(), &[SEPARATOR], name.as_bytes()].into_iter().flatten();
                let mut eight = [0; 8];
                eight.iter_mut().zip(text.skip(at)).for_each(|(byte, of_text)| *byte = *of_text);
                u64::from_be_bytes(eight)
            }
        }
    }

    /// Whether both are clones of one key; equal keys may not be.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Bytes of the key's text, as counted by memory reports.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.0.len()
    }

    fn split(&self) -> (&str, &str) {
        self.0.split_once(char::from(SEPARATOR)).unwrap_or(("", &self.0))
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

impl SearchKey for ObjectKey {
    fn common_prefix(&self, other: &Self) -> usize {
        common_prefix_of(self.0.as_bytes(), other.0.as_bytes())
    }

    fn head(&self, at: usize) -> u64 {
        head_of(self.0.as_bytes(), at)
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
            Some((_, name)) if name.contains('/') => Err(ParseObjectKeyError { text: text.to_owned() }),
            Some((namespace, name)) => Ok(Self::namespaced(namespace, name)),
        }
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
    fn orders_by_namespace_before_name() {
        let a = ObjectKey::namespaced("a", "x");
        let ab = ObjectKey::namespaced("a-b", "a");
        assert!(a < ab);
        assert!(ObjectKey::cluster("zzz") < a);
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
        fn heads_are_of_the_text(
            a in ("[a-b.]{0,12}", "[a-b.]{0,12}"),
            b in ("[a-b.]{0,12}", "[a-b.]{0,12}"),
            at in 0usize..30,
        ) {
            let (x, y) = (ObjectKey::namespaced(&a.0, &a.1), ObjectKey::namespaced(&b.0, &b.1));
            let text = format!("{}\0{}\0\0\0\0{:\0<40}", a.0, a.1, "");
            let eight: [u8; 8] = text.as_bytes()[at..at + 8].try_into().unwrap();
            prop_assert_eq!(x.head(at), u64::from_be_bytes(eight));
            prop_assert_eq!(ObjectKey::head_of_parts(&a.0, &a.1, at), x.head(at));
            let common = x.common_prefix(&y);
            prop_assert_eq!(&x.0.as_bytes()[..common], &y.0.as_bytes()[..common]);
            prop_assert!(x == y || x.0.as_bytes().get(common) != y.0.as_bytes().get(common));
            if at <= common {
                prop_assert!(x.head(at).cmp(&y.head(at)).is_eq() || x.head(at).cmp(&y.head(at)) == x.cmp(&y));
            }
        }

        #[test]
        fn orders_as_the_pair_does(a in ("[a-c.-]{0,3}", "[a-c.-]{1,3}"), b in ("[a-c.-]{0,3}", "[a-c.-]{1,3}")) {
            let (x, y) = (ObjectKey::namespaced(&a.0, &a.1), ObjectKey::namespaced(&b.0, &b.1));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x.cmp_parts(&b.0, &b.1), a.cmp(&b));
        }
    }
}
