//! JSON embedded in a message as a text.
//!
//! Types that accept any value are streamed by serde_json. Others go through the deserializer of
//! this crate, so that they are not compiled a second time; objects and arrays are then split into
//! the texts of their parts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Fault;

/// The type of a JSON text by its first byte; `null` is compared as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Null,
    Bool,
    Number,
    Text,
    Array,
    Object,
}

pub(super) fn shape(text: &[u8]) -> Result<Shape, Fault> {
    Ok(match trimmed(text) {
        b"null" => Shape::Null,
        [b't' | b'f', ..] => Shape::Bool,
        [b'-' | b'0'..=b'9', ..] => Shape::Number,
        [b'"', ..] => Shape::Text,
        [b'[', ..] => Shape::Array,
        [b'{', ..] => Shape::Object,
        _ => return Err(malformed()),
    })
}

/// Trims the white space that JSON allows, which is less than Rust's.
pub(super) fn trimmed(text: &[u8]) -> &[u8] {
    let is_dark = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    match (text.iter().position(is_dark), text.iter().rposition(is_dark)) {
        (Some(first), Some(last)) => &text[first..=last],
        _ => b"",
    }
}

/// One complete value with nothing after it.
pub(super) fn parse<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, Fault> {
    serde_json::from_slice(text).map_err(|_| malformed())
}

/// A string, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Streams the value to a visitor that accepts any value.
pub(super) fn any<'de, V: Visitor<'de>>(text: &'de [u8], visitor: V) -> Result<V::Value, Fault> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = json.deserialize_any(visitor).map_err(|error| failed(&error))?;
    json.end().map_err(|error| failed(&error))?;
    Ok(value)
}

#[cold]
fn malformed() -> Fault {
    Fault::new("malformed JSON in the protobuf")
}

#[cold]
fn failed(error: &serde_json::Error) -> Fault {
    // The type's own message may quote the value.
    if error.is_data() {
        Fault::new("invalid value in the JSON of the protobuf")
    } else {
        malformed()
    }
}

/// The parts of an object or array, and the key of the current part.
#[derive(Default)]
pub(super) struct Parts<'de> {
    rest: std::vec::IntoIter<(Cow<'de, str>, &'de RawValue)>,
    pub(super) key: Cow<'de, str>,
}

impl<'de> Parts<'de> {
    pub(super) fn of(text: &'de [u8]) -> Result<Self, Fault> {
        let Cut(parts) = parse(text)?;
        Ok(Self { rest: parts.into_iter(), key: Cow::Borrowed("") })
    }

    pub(super) fn next(&mut self) -> Option<&'de [u8]> {
        let (key, text) = self.rest.next()?;
        self.key = key;
        Some(text.get().as_bytes())
    }

    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }
}

struct Cut<'de>(Vec<(Cow<'de, str>, &'de RawValue)>);

impl<'de> Deserialize<'de> for Cut<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Cutter;

        impl<'de> Visitor<'de> for Cutter {
            type Value = Cut<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or an array")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cut<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some((Text(key), value)) = map.next_entry()? {
                    parts.push((key, value));
                }
                Ok(Cut(parts))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cut<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(value) = seq.next_element()? {
                    parts.push((Cow::Borrowed(""), value));
                }
                Ok(Cut(parts))
            }
        }

        deserializer.deserialize_any(Cutter)
    }
}
