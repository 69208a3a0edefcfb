//! Which fields of objects the cells need: reading no others makes a table of Pods several times
//! cheaper.

use std::fmt;

use k8s_protobuf::encode::RAW_JSON;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What is kept of a value.
#[derive(Debug)]
pub(super) enum Keep {
    All,
    /// All but managed fields, at any depth: their JSON is the client's, and deep at will.
    Typed,
    /// The keys of a map, as only their number is needed.
    Keys,
    /// Some members of a map, or of each map in a list.
    Members(&'static [(&'static str, Self)]),
}

/// The members that are kept: `keep! { metadata { name } data }`.
macro_rules! keep {
    (@) => { $crate::table::keep::Keep::All };
    (@ (keys)) => { $crate::table::keep::Keep::Keys };
    (@ { $($inner:tt)* }) => { $crate::table::keep::keep!($($inner)*) };
    ($($name:ident $(($keys:ident))? $({ $($inner:tt)* })?)*) => {
        $crate::table::keep::Keep::Members(&[$((
            stringify!($name),
            $crate::table::keep::keep!(@ $(($keys))? $({ $($inner)* })?),
        )),*])
    };
}
pub(super) use keep;

/// The fields of an object that the cells need: a seed that reads these, and skips the others.
#[derive(Debug, Clone, Copy)]
pub struct Needed<'a> {
    kept: Kept<'a>,
    /// After how many more levels the text of what is further in is kept, if the deserializer can
    /// give it.
    levels: Option<usize>,
}

/// How deep JSON becomes values: reading, dropping and printing these takes stack for each level,
/// and JSON may have 10,000. serde_json has a limit of 128.
const LEVELS: usize = 100;

/// The text of an object or array that is too far in to be a value.
pub(super) fn text_of(object: &Map<String, Value>) -> Option<&str> {
    if object.len() == 1 { object.get(RAW_JSON)?.as_str() } else { None }
}

/// Stands for an object or array.
fn from_text(text: &str) -> Value {
    Value::Object(Map::from_iter([(RAW_JSON.into(), text.into())]))
}

/// A JSON text as a value, with the texts of what is too far in, under the only key [`RAW_JSON`].
pub(crate) fn value(json: &[u8]) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_slice(json);
    let value = Needed::new(Kept::Of(&Keep::All)).of_text().deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kept<'a> {
    Of(&'static Keep),
    /// These members of an object, and its name.
    Top(&'a [String]),
}

impl<'a> Needed<'a> {
    pub(super) fn new(kept: Kept<'a>) -> Self {
        Self { kept, levels: None }
    }

    /// For serde_json's deserializer of a text.
    pub(super) fn of_text(self) -> Self {
        Self { levels: Some(LEVELS), ..self }
    }

    /// For what is one level further in.
    fn within(self, kept: Kept<'a>) -> Self {
        Self { kept, levels: self.levels.map(|levels| levels.saturating_sub(1)) }
    }
}

impl<'de> DeserializeSeed<'de> for Needed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.levels != Some(0) {
            // `Value` itself would read the text of an object with serde_json's own key, and so on.
            return deserializer.deserialize_any(self);
        }
        let text = <&RawValue>::deserialize(deserializer)?.get();
        match text.as_bytes() {
            [b'{' | b'[', ..] => Ok(from_text(text)),
            _ => serde_json::from_str(text).map_err(D::Error::custom),
        }
    }
}

impl<'de> Visitor<'de> for Needed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let kept = match self.kept {
                Kept::Of(Keep::All) => Some(&Keep::All),
                Kept::Of(Keep::Typed) => (key != "managedFields").then_some(&Keep::Typed),
                Kept::Of(Keep::Keys) => {
                    map.next_value::<IgnoredAny>()?;
                    members.insert(key, Value::Null);
                    continue;
                }
                Kept::Of(Keep::Members(kept)) => {
                    kept.iter().find(|(name, _)| *name == key).map(|(_, keep)| keep)
                }
                Kept::Top(_) if key == "metadata" => Some(&METADATA),
                Kept::Top(names) => names.contains(&key).then_some(&Keep::All),
            };
            match kept {
                Some(keep) => {
                    let value = map.next_value_seed(self.within(Kept::Of(keep)))?;
                    members.insert(key, value);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        match text_of(&members) {
            // Not what that key means here.
            Some(_) if self.levels.is_some() => {
                serde_json::to_string(&members).map(|it| from_text(&it)).map_err(A::Error::custom)
            }
            _ => Ok(Value::Object(members)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element_seed(self.within(self.kept))? {
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }
}

/// What columns show of metadata, without what servers note for themselves.
static METADATA: Keep = keep! {
    annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers
    generateName generation labels name namespace ownerReferences resourceVersion selfLink uid
};
