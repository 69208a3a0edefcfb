//! Deserializing JSON with the length of every array known beforehand.
//!
//! serde_json does not know how long an array will be, so a `Vec` doubles as it grows, and starts with room for
//! four elements. Kubernetes' types are large and its arrays short (a `Volume` takes 3.2 kB, whatever it is): a
//! quarter of what a decoded Pod occupied was room for elements that never came. Here a look at the text tells
//! each array's length, and every `Vec` gets just the room that it needs.
//!
//! The text is looked at when the first array is decoded: a type without any pays nothing.

use std::cell::{Cell, OnceCell};
use std::fmt;

use informer_core::wire::structure;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde_json::value::RawValue;

/// As `serde_json::from_str`, with exact `Vec`s.
pub(super) fn from_str<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    let lengths = Lengths::of(json.as_bytes());
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = T::deserialize(Exact { inner: &mut deserializer, lengths: &lengths })?;
    deserializer.end()?;
    Ok(value)
}

/// The lengths of a text's arrays, asked for in the order of the text.
struct Lengths<'de> {
    json: &'de [u8],
    arrays: OnceCell<Vec<Array>>,
    /// The first array that was not asked for.
    next: Cell<usize>,
    /// Arrays before this byte were skipped.
    position: Cell<usize>,
    /// The place in the text is unknown: something was read past us.
    lost: Cell<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Array {
    start: usize,
    length: usize,
}

impl<'de> Lengths<'de> {
    fn of(json: &'de [u8]) -> Self {
        let (next, position, lost) = (Cell::new(0), Cell::new(0), Cell::new(false));
        Self { json, arrays: OnceCell::new(), next, position, lost }
    }

    /// The length of the array that begins now.
    fn begin(&self) -> Option<usize> {
        if self.lost.get() {
            return None;
        }
        let arrays = self.arrays.get_or_init(|| arrays(self.json));
        let mut next = self.next.get();
        while arrays.get(next)?.start < self.position.get() {
            next += 1;
        }
        self.next.set(next + 1);
        Some(arrays[next].length)
    }

    /// Nothing of `value`, a part of the text, will be asked for.
    fn skip(&self, value: &str) {
        match value.as_ptr().addr().checked_sub(self.json.as_ptr().addr()) {
            Some(start) if start <= self.json.len() => self.position.set(start + value.len()),
            _ => self.lost.set(true),
        }
    }
}

/// All arrays in the order in which they begin. Of a malformed text, something.
fn arrays(json: &[u8]) -> Vec<Array> {
    const OBJECT: usize = usize::MAX;
    let (mut found, mut open) = (Vec::with_capacity(64), Vec::with_capacity(16));
    // Where the innermost that is open has its place in `found`.
    let mut innermost = OBJECT;
    for at in structure(json) {
        match json[at] {
            b'[' => {
                let first = json[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
                open.push(std::mem::replace(&mut innermost, found.len()));
                found.push(Array { start: at, length: usize::from(first != Some(&b']')) });
            }
            b'{' => open.push(std::mem::replace(&mut innermost, OBJECT)),
            b',' => {
                if let Some(array) = found.get_mut(innermost) {
                    array.length += 1;
                }
            }
            _ => innermost = open.pop().unwrap_or(OBJECT),
        }
    }
    found
}

/// Any of serde's parts, which adds the lengths to what it passes on.
struct Exact<'a, 'de, I> {
    inner: I,
    lengths: &'a Lengths<'de>,
}

impl<'a, 'de, I> Exact<'a, 'de, I> {
    fn and<J>(&self, inner: J) -> Exact<'a, 'de, J> {
        Exact { inner, lengths: self.lengths }
    }
}

/// Scalars are passed through as they are; what may have arrays inside is followed.
macro_rules! deserialize {
    (through: $($scalar:ident)*; follow: $($method:ident($($name:ident: $type:ty),*))*) => {
        $(fn $scalar<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.inner.$scalar(visitor)
        })*
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Self::Error> {
            let visitor = self.and(visitor);
            self.inner.$method($($name,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Exact<'_, 'de, D> {
    type Error = D::Error;

    deserialize! {
        through: deserialize_bool deserialize_char deserialize_str deserialize_string deserialize_identifier
            deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
            deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
            deserialize_unit;
        follow: deserialize_any() deserialize_option() deserialize_seq() deserialize_map() deserialize_bytes()
            deserialize_byte_buf() deserialize_tuple(length: usize)
            deserialize_tuple_struct(name: &'static str, length: usize)
            deserialize_struct(name: &'static str, fields: &'static [&'static str])
            deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        if name.starts_with('$') {
            // A `RawValue` takes its text without us.
            self.lengths.lost.set(true);
            return self.inner.deserialize_newtype_struct(name, visitor);
        }
        let visitor = self.and(visitor);
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        // Costs no more than skipping does, and tells where it ended.
        let skipped = <&'de RawValue>::deserialize(self.inner)?;
        self.lengths.skip(skipped.get());
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($type:ty))*) => {
        $(fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Exact<'_, 'de, V> {
    type Value = V::Value;

    visit! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128) visit_u8(u8)
        visit_u16(u16) visit_u32(u32) visit_u64(u64) visit_u128(u128) visit_f32(f32) visit_f64(f64)
        visit_char(char) visit_str(&str) visit_borrowed_str(&'de str) visit_string(String) visit_bytes(&[u8])
        visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.and(deserializer);
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.and(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        let left = self.lengths.begin();
        let seq = Elements { seq: self.and(seq), left };
        self.inner.visit_seq(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let map = self.and(map);
        self.inner.visit_map(map)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        let data = self.and(data);
        self.inner.visit_enum(data)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Exact<'_, 'de, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.and(deserializer);
        self.inner.deserialize(deserializer)
    }
}

/// The elements of an array, and how many are left.
struct Elements<'a, 'de, A> {
    seq: Exact<'a, 'de, A>,
    left: Option<usize>,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<'_, 'de, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.left = self.left.map(|left| left.saturating_sub(1));
        let seed = self.seq.and(seed);
        self.seq.inner.next_element_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.left
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Exact<'_, 'de, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        // There are no arrays in keys.
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.and(seed);
        self.inner.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Exact<'a, 'de, A> {
    type Error = A::Error;
    type Variant = Exact<'a, 'de, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let lengths = self.lengths;
        let (name, variant) = self.inner.variant_seed(seed)?;
        Ok((name, Exact { inner: variant, lengths }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Exact<'_, 'de, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.and(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.and(visitor);
        self.inner.tuple_variant(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.and(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}

#[cfg(test)]
mod tests;
