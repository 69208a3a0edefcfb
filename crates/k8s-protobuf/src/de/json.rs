//! JSON that stands in a message as a text.
//!
//! What takes anything is streamed by serde_json. All else goes through the one deserializer of this crate, so that
//! types are not compiled once more: objects and arrays are then cut into the texts of their parts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Fault;

/// What a JSON text is, told by its first byte; `null` wholly.
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

/// Without what JSON takes as white space around it: less than Rust does.
pub(super) fn trimmed(text: &[u8]) -> &[u8] {
    let is_dark = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    match (text.iter().position(is_dark), text.iter().rposition(is_dark)) {
        (Some(first), Some(last)) => &text[first..=last],
        _ => b"",
    }
}

/// One value, whole and with nothing behind it.
pub(super) fn parse<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, Fault> {
    serde_json::from_slice(text).map_err(|_| malformed())
}

/// A text, without a copy where nothing in it is escaped.
#[derive(serde::Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Streams the value to a visitor that takes anything.
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
    // What the type says may have the value in it.
    if error.is_data() { Fault::new("invalid value in the JSON of the protobuf") } else { malformed() }
}

/// The parts of an object or array, and the key of the part whose turn it is.
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
