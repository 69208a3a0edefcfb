//! Reads selected members of a JSON object without allocating for the rest.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Handles each member of an object.
pub(super) trait Members<'de> {
    /// Reads exactly one value, that of `key`, from `map`. If members have the same key, the last
    /// one counts.
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;

    /// Whether to stop reading the object, which makes reading it fail.
    fn is_enough(&self) -> bool {
        false
    }
}

/// Reads an object, or `null` as one without members.
#[derive(Debug)]
pub(super) struct Object<'m, M>(pub(super) &'m mut M);

impl<'de, M: Members<'de>> DeserializeSeed<'de> for Object<'_, M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, M: Members<'de>> Visitor<'de> for Object<'_, M> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            self.0.member(&key.0, &mut map)?;
            if self.0.is_enough() {
                break;
            }
        }
        Ok(())
    }
}

/// A string, borrowed where it has no escapes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The next value as a string; `null` is the empty one.
pub(super) fn next_text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Cow<'de, str>, A::Error> {
    Ok(map.next_value::<Option<Text<'de>>>()?.map_or(Cow::Borrowed(""), |text| text.0))
}

/// The string of a JSON text; `None` if it is something else.
pub(super) fn unquoted(json: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(json.get()).ok().map(|text| text.0)
}

/// Reads `json` as one object.
pub(super) fn read<'de, M: Members<'de>>(
    json: &'de [u8],
    members: &mut M,
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    Object(members).deserialize(&mut deserializer)?;
    deserializer.end()
}
