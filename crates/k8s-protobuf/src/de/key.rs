//! The name of a field, the key of a map, or a variant: a string in memory.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserializer, EnumAccess, Unexpected, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::Fault;

#[derive(Clone, Copy)]
pub(super) struct Key<'a, 'de> {
    pub(super) text: &'a str,
    /// The same, borrowed from the input or from the table.
    pub(super) input: Option<&'de str>,
}

impl<'a, 'de: 'a> Key<'a, 'de> {
    pub(super) fn input(text: &'de str) -> Self {
        Self { text, input: Some(text) }
    }
}

impl Key<'_, '_> {
    /// A numeric key: JSON has only strings there.
    fn number<T: FromStr>(self) -> Option<T> {
        // Rust accepts a leading plus, JSON does not.
        self.text.parse().ok().filter(|_| !self.text.starts_with('+'))
    }

    #[cold]
    fn mismatch(self, visitor: &dyn serde::de::Expected) -> Fault {
        serde::de::Error::invalid_type(Unexpected::Str(self.text), visitor)
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match self.number() {
                Some(number) => visitor.$visit(number),
                None => Err(self.mismatch(&visitor)),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Key<'_, 'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.input {
            Some(text) => visitor.visit_borrowed_str(text),
            None => visitor.visit_str(self.text),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    numbers! {
        deserialize_bool visit_bool
        deserialize_i8 visit_i8
        deserialize_i16 visit_i16
        deserialize_i32 visit_i32
        deserialize_i64 visit_i64
        deserialize_i128 visit_i128
        deserialize_u8 visit_u8
        deserialize_u16 visit_u16
        deserialize_u32 visit_u32
        deserialize_u64 visit_u64
        deserialize_u128 visit_u128
        deserialize_f32 visit_f32
        deserialize_f64 visit_f64
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
    }
}

/// A string as a unit variant of an enum.
impl<'de> EnumAccess<'de> for Key<'_, 'de> {
    type Error = Fault;
    type Variant = UnitOnly;

    fn variant_seed<S: serde::de::DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, UnitOnly), Fault> {
        Ok((seed.deserialize(self)?, UnitOnly))
    }
}

pub(super) struct UnitOnly;

impl UnitOnly {
    #[cold]
    fn mismatch(expected: impl Display) -> Fault {
        Fault::new(format!("invalid type: unit variant, expected {expected}"))
    }
}

impl<'de> VariantAccess<'de> for UnitOnly {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<S: serde::de::DeserializeSeed<'de>>(
        self,
        _: S,
    ) -> Result<S::Value, Fault> {
        Err(Self::mismatch("newtype variant"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Self::mismatch("tuple variant"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fault> {
        Err(Self::mismatch("struct variant"))
    }
}
