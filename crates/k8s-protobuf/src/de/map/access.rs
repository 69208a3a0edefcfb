//! serde's access to the keys and values of an object.

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, VariantAccess, Visitor};

use super::{Map, Mode, not_one_key};
use crate::de::Fault;

/// Borrowed, so that calling a visitor moves only a pointer.
pub(in crate::de) struct Fields<'a, 'de>(pub(in crate::de) &'a mut Map<'de>);

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        if self.0.advance()? { seed.deserialize(self.0.key()).map(Some) } else { Ok(None) }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        match seed.deserialize(self.0.value) {
            Ok(value) => Ok(value),
            Err(fault) => Err(self.0.failed(fault)),
        }
    }

    /// Exact where known: for the entries of a map, each of at least two bytes.
    fn size_hint(&self) -> Option<usize> {
        matches!(self.0.mode, Mode::Entries | Mode::Json).then_some(self.0.left as usize)
    }
}

/// An object with one key, which is the variant of an enum.
pub(in crate::de) struct Variant<'a, 'de>(pub(in crate::de) &'a mut Map<'de>);

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        if !self.0.advance()? {
            return Err(not_one_key());
        }
        let variant = seed.deserialize(self.0.key())?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        self.newtype_variant_seed(std::marker::PhantomData::<()>)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        Fields(self.0).next_value_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Fault> {
        self.0.value.deserialize_tuple(length, visitor).map_err(|fault| self.0.failed(fault))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.0.value.deserialize_map(visitor).map_err(|fault| self.0.failed(fault))
    }
}
