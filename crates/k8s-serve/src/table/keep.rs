//! Which fields of objects the cells need: reading no others makes a table of Pods several times
//! cheaper.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// What is kept of a value.
#[derive(Debug)]
pub(super) enum Keep {
    All,
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
pub struct Needed<'a>(pub(super) Kept<'a>);

#[derive(Debug, Clone, Copy)]
pub(super) enum Kept<'a> {
    Of(&'static Keep),
    /// These members of an object, and its name.
    Top(&'a [String]),
}

impl<'de> DeserializeSeed<'de> for Needed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0 {
            // Objects are seldom wanted whole, but parts of them are.
            Kept::Of(Keep::All) => serde::Deserialize::deserialize(deserializer),
            kept => deserializer.deserialize_any(Self(kept)),
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
            let kept = match self.0 {
                Kept::Of(Keep::All) => Some(&Keep::All),
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
                    let value = map.next_value_seed(Needed(Kept::Of(keep)))?;
                    members.insert(key, value);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element_seed(self)? {
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
