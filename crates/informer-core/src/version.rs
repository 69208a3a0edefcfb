//! Resource versions and UIDs: what tells one state, and one object, from another.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A resource version, as the API server wrote it.
///
/// Compare with [`compare`](Self::compare): versions that are decimal numbers of any length are
/// ordered, others only equal or not (KEP-5504). An empty version means "not known", or in a
/// request "the newest".
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Repr);

/// Invariant: a version that fits `Number` is never kept as `Text`, so derived equality is right.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Number(u64),
    Text(Arc<str>),
}

impl ResourceVersion {
    /// The empty version.
    #[must_use]
    pub(crate) fn unset() -> Self {
        Self::new("")
    }

    /// The version written as `text`.
    #[must_use]
    pub(crate) fn new(text: &str) -> Self {
        match text.parse::<u64>() {
            Ok(number) if is_decimal(text) => Self(Repr::Number(number)),
            _ => Self(Repr::Text(text.into())),
        }
    }

    /// Whether this is the empty version.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        matches!(&self.0, Repr::Text(text) if text.is_empty())
    }

    /// Whether this is a decimal number, as the API defines versions, so that it can be ordered.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        match &self.0 {
            Repr::Number(_) => true,
            Repr::Text(text) => is_decimal(text),
        }
    }

    /// The version as a number; `None` if it is not a decimal number of up to 64 bits. API servers
    /// send such numbers.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match &self.0 {
            Repr::Number(number) => Some(*number),
            Repr::Text(_) => None,
        }
    }

    /// Orders two versions: `None` where either is not a decimal number, unless they are equal.
    ///
    /// # Examples
    /// ```
    /// use std::cmp::Ordering;
    /// use informer_core::ResourceVersion;
    ///
    /// let v = |text: &str| ResourceVersion::from(text);
    /// assert_eq!(v("9").compare(&v("10")), Some(Ordering::Less));
    /// assert_eq!(v("99999999999999999999999").compare(&v("100000000000000000000000")), Some(Ordering::Less));
    /// assert_eq!(v("abc").compare(&v("10")), None);
    /// ```
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Repr::Number(a), Repr::Number(b)) => Some(a.cmp(b)),
            (a, b) if a == b => Some(Ordering::Equal),
            _ => {
                let (a, b) = (self.to_string(), other.to_string());
                (is_decimal(&a) && is_decimal(&b))
                    .then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(&b)))
            }
        }
    }

    /// Whether a store that stands at this version has reached `wanted`; versions that cannot be
    /// ordered count as reached only when equal.
    #[must_use]
    pub fn has_reached(&self, wanted: &Self) -> bool {
        self.compare(wanted).is_some_and(Ordering::is_ge)
    }
}

impl Default for ResourceVersion {
    fn default() -> Self {
        Self::unset()
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(number) => write!(f, "{number}"),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceVersion({self})")
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for ResourceVersion {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

/// As its text.
impl Serialize for ResourceVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ResourceVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(Repr::Number(number))
    }
}

/// Without leading zeros, so that the text and the number say the same.
fn is_decimal(text: &str) -> bool {
    let digits = text.as_bytes();
    !digits.is_empty()
        && digits.iter().all(u8::is_ascii_digit)
        && (digits[0] != b'0' || digits.len() == 1)
}

/// The UID of an object: the identity that a name only borrows (G5).
///
/// Canonical UUIDs, which is what API servers write, take 16 bytes and no allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Uid(UidRepr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum UidRepr {
    Uuid([u8; 16]),
    Text(Arc<str>),
}

impl Uid {
    /// The UID written as `text`; empty means that the object has none.
    #[must_use]
    pub(crate) fn new(text: &str) -> Self {
        Self(parse_uuid(text).map_or_else(|| UidRepr::Text(text.into()), UidRepr::Uuid))
    }

    /// Whether the object had no UID.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        matches!(&self.0, UidRepr::Text(text) if text.is_empty())
    }
}

impl Default for Uid {
    fn default() -> Self {
        Self::new("")
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            UidRepr::Text(text) => f.write_str(text),
            UidRepr::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

/// As its text.
impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// Reads the canonical lower-case form only, so that printing gives back the same text.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut uuid = [0u8; 16];
    let mut at = 0;
    for (slot, byte) in uuid.iter_mut().enumerate() {
        if matches!(slot, 4 | 6 | 8 | 10) {
            if bytes[at] != b'-' {
                return None;
            }
            at += 1;
        }
        *byte = (hex_digit(bytes[at])? << 4) | hex_digit(bytes[at + 1])?;
        at += 2;
    }
    Some(uuid)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_with_leading_zeros_are_opaque() {
        assert_eq!(ResourceVersion::new("007").compare(&"7".into()), None);
        assert!(
            !ResourceVersion::new("007").is_ordered() && !ResourceVersion::unset().is_ordered()
        );
        assert!(ResourceVersion::from(7).is_ordered());
        assert_ne!(ResourceVersion::new("007"), "7".into());
    }

    #[test]
    fn unset_is_reached_by_nothing_but_itself() {
        assert!(ResourceVersion::unset().is_unset());
        assert!(!ResourceVersion::from(5).has_reached(&ResourceVersion::unset()));
        assert!(ResourceVersion::from(5).has_reached(&ResourceVersion::from(5)));
    }

    proptest! {
        #[test]
        fn versions_print_as_they_came(text in "[0-9]{0,30}|[a-z0-9]{0,5}") {
            prop_assert_eq!(ResourceVersion::new(&text).to_string(), text);
        }

        #[test]
        fn versions_order_as_numbers(a in any::<u128>(), b in any::<u128>()) {
            let (x, y) = (ResourceVersion::new(&a.to_string()), ResourceVersion::new(&b.to_string()));
            prop_assert_eq!(x.compare(&y), Some(a.cmp(&b)));
        }

        #[test]
        fn uids_print_as_they_came(text in "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9A-F-]{36}|[a-z]{0,9}") {
            prop_assert_eq!(Uid::new(&text).to_string(), text);
        }
    }
}
