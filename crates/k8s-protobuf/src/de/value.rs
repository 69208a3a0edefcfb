//! The one deserializer: a value that is not decoded yet.
//!
//! Types are generic over their deserializer, and those of Kubernetes are large: generic code here
//! is compiled once for each of them. So every method first reduces the value in a function that is
//! not generic, then calls the visitor. There is one type each for values, objects and arrays:
//! [`De`], [`Fields`] and [`Items`].

use std::borrow::Cow;

use serde::de::{Deserializer, Expected, Visitor};

use super::json::{self, Parts};
use super::key::Key;
use super::map::{Fields, Map, Variant};
use super::seq::{Items, Seq};
use super::text::{self, Short};
use super::{Fault, MAX_DEPTH};
use crate::schema::{FieldDef, FieldKind, LeftOut};
use crate::special::{self, IntOrText, Schema};
use crate::wire::{Reader, lossy};
use crate::{Envelope, Error, Kind, MAGIC, utf8};

/// A value that is not decoded yet: its position in the bytes, and its form.
#[derive(Clone, Copy)]
pub(crate) struct De<'de> {
    pub(super) bytes: &'de [u8],
    /// The field's definition, where `form` does not say all.
    pub(super) field: &'static FieldDef,
    /// Of a run the number of elements, of an object the place of its kind.
    pub(super) count: u32,
    pub(super) form: Form,
    /// The number of enclosing objects and arrays.
    pub(super) depth: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One value of the field's kind. No bytes mean its zero.
    One,
    /// An absent field for which Go writes `null`.
    Null,
    /// All elements of a repeated field, with their tags.
    Run,
    /// All entries of a map, with their tags.
    Entries,
    /// The message of an object, with its kind.
    Object,
    /// The same, without a version.
    Unversioned,
    /// The message of the field's table entry, whatever the field's kind.
    Message,
    /// A string, whatever the field's kind.
    Text,
    /// A JSON text.
    Json,
}

/// The definition used where there is no field.
pub(super) static NO_FIELD: FieldDef = FieldDef::text();

/// A number, of the type with which serde_json would call the visitor.
enum Number {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

enum Text<'de> {
    Input(&'de [u8]),
    Checked(&'de str),
    Short(Short),
    Owned(String),
}

/// One level of a value of any type.
enum Any<'de> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text<'de>),
    Map(Map<'de>),
    Seq(Seq<'de>),
    Json(&'de [u8]),
}

impl<'de> De<'de> {
    pub(super) fn object(kind: Kind, is_versioned: bool, message: &'de [u8], depth: u8) -> Self {
        let form = if is_versioned { Form::Object } else { Form::Unversioned };
        De { bytes: message, field: &NO_FIELD, count: kind.place().into(), form, depth }
    }

    /// A string of the table.
    pub(super) fn text_of(text: &'static str, depth: u8) -> Self {
        De { bytes: text.as_bytes(), field: &NO_FIELD, count: 0, form: Form::Text, depth }
    }

    pub(super) fn json(self, text: &'de [u8]) -> Self {
        De { bytes: text, form: Form::Json, ..self }
    }

    /// The depth of the contents of this object or array.
    fn inner_depth(&self) -> Result<u8, Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::TooDeep { limit: MAX_DEPTH.into() }.into());
        }
        Ok(self.depth + 1)
    }

    #[inline]
    pub(super) fn is_null(&self) -> Result<bool, Fault> {
        match self.form {
            Form::One => Ok(self.field.kind.may_be_null() && self.is_null_inside()?),
            Form::Null => Ok(true),
            Form::Json => Ok(json::shape(self.bytes)? == json::Shape::Null),
            _ => Ok(false),
        }
    }

    fn is_null_inside(&self) -> Result<bool, Fault> {
        Ok(match self.field.kind {
            kind @ (FieldKind::Time | FieldKind::MicroTime) => {
                special::time(kind, self.bytes)?.is_none()
            }
            FieldKind::RawJson => {
                let text = special::raw(self.bytes)?;
                text.is_empty() || json::trimmed(text) == b"null"
            }
            FieldKind::PropsOrArray | FieldKind::PropsOrBool | FieldKind::PropsOrStringArray => {
                matches!(self.schema()?, Schema::Null)
            }
            _ => false,
        })
    }

    fn schema(&self) -> Result<Schema<'de>, Fault> {
        special::schema(self.field.kind, self.bytes)?.ok_or_else(Fault::unordered)
    }

    /// The content of a `RawExtension`: JSON, or an object with its envelope.
    fn unwrapped(self) -> Result<Self, Fault> {
        let raw = special::raw(self.bytes)?;
        if !raw.starts_with(&MAGIC) {
            return Ok(self.json(raw));
        }
        let envelope = Envelope::parse(raw)?;
        let (kind, message) = envelope.message()?;
        Ok(Self::object(kind, !envelope.api_version.is_empty(), message, self.depth))
    }

    fn to_map(self, expected: &dyn Expected) -> Result<Map<'de>, Fault> {
        let depth = self.inner_depth()?;
        match (self.form, self.field.kind) {
            (Form::One, FieldKind::Message) | (Form::Message, _) => {
                Ok(Map::message(self.bytes, self.field.message(), depth))
            }
            (Form::Entries, _) => Ok(Map::entries(self, depth)),
            (Form::Object | Form::Unversioned, _) => Ok(Map::object(
                self.bytes,
                Kind::at(self.count as u16),
                self.form == Form::Object,
                depth,
            )),
            (Form::Json, _) if json::shape(self.bytes)? == json::Shape::Object => {
                Ok(Map::json(Parts::of(self.bytes)?, depth))
            }
            (Form::One, FieldKind::RawJson) => self.unwrapped()?.to_map(expected),
            (
                Form::One,
                FieldKind::PropsOrArray | FieldKind::PropsOrBool | FieldKind::PropsOrStringArray,
            ) => match self.schema()? {
                Schema::One(schema) => Ok(Map::message(schema, self.field.message(), depth)),
                _ => Err(self.mismatch(expected)),
            },
            _ => Err(self.mismatch(expected)),
        }
    }

    fn to_seq(self, expected: &dyn Expected) -> Result<Seq<'de>, Fault> {
        let depth = self.inner_depth()?;
        match (self.form, self.field.kind) {
            (Form::Run, _) => Ok(Seq::run(self, depth)),
            (Form::One, FieldKind::StrList) => {
                let mut count = 0u32;
                let mut fields = Reader::new(self.bytes);
                while let Some((number, item)) = fields.next()? {
                    if number == 1 {
                        item.bytes()?;
                        count = count.saturating_add(1);
                    }
                }
                Ok(Seq::fields(self.bytes, 1, Form::Text, self.field, count, depth))
            }
            (Form::One, FieldKind::PropsOrArray | FieldKind::PropsOrStringArray) => {
                match self.schema()? {
                    Schema::Many(count) => {
                        let is_schemas = self.field.kind == FieldKind::PropsOrArray;
                        let form = if is_schemas { Form::Message } else { Form::Text };
                        Ok(Seq::fields(self.bytes, 2, form, self.field, count, depth))
                    }
                    _ => Err(self.mismatch(expected)),
                }
            }
            (Form::Json, _) if json::shape(self.bytes)? == json::Shape::Array => {
                Ok(Seq::json(Parts::of(self.bytes)?, self.field, depth))
            }
            (Form::One, FieldKind::RawJson) => self.unwrapped()?.to_seq(expected),
            _ => Err(self.mismatch(expected)),
        }
    }

    #[inline]
    pub(super) fn varint(&self) -> Result<u64, Fault> {
        // Nearly all numbers take one byte.
        match self.bytes {
            [] => Ok(0),
            [byte] if *byte < 0x80 => Ok((*byte).into()),
            bytes => Ok(Reader::new(bytes).varint()?),
        }
    }

    fn float(&self) -> Result<f64, Fault> {
        match self.bytes {
            [] => Ok(0.0),
            bytes => match bytes.try_into() {
                Ok(bytes) => Ok(f64::from_le_bytes(bytes)),
                Err(_) => Err(Error::Truncated.into()),
            },
        }
    }

    /// Whether this is the zero of a kind that is a plain value in Go.
    pub(super) fn is_zero(&self) -> Result<bool, Fault> {
        Ok(match self.field.kind {
            FieldKind::Str | FieldKind::Bytes => self.bytes.is_empty(),
            FieldKind::Bool | FieldKind::I64 => self.varint()? == 0,
            FieldKind::I32 => self.varint()? as i32 == 0,
            FieldKind::F64 => self.float()? == 0.0,
            _ => false,
        })
    }

    /// Whether Go omits this value, which is present, because it is zero.
    pub(super) fn is_left_out(&self) -> Result<bool, Fault> {
        match self.field.left_out {
            LeftOut::Never | LeftOut::Many => Ok(false),
            LeftOut::Empty => Ok(self.bytes.is_empty()),
            LeftOut::Told if self.field.kind.may_be_null() => self.is_null(),
            LeftOut::Zero | LeftOut::Told => self.is_zero(),
        }
    }

    fn to_number(self, expected: &dyn Expected) -> Result<Number, Fault> {
        match (self.form, self.field.kind) {
            (Form::One, FieldKind::I32) => Ok(Number::of((self.varint()? as i32).into())),
            (Form::One, FieldKind::I64) => Ok(Number::of(self.varint()? as i64)),
            (Form::One, FieldKind::F64) => Ok(Number::of_float(self.float()?)),
            (Form::One, FieldKind::IntOrString) => match special::int_or_text(self.bytes)? {
                IntOrText::Int(int) => Ok(Number::of(int.into())),
                IntOrText::Text(_) => Err(self.mismatch(expected)),
            },
            (Form::One, FieldKind::RawJson) => self.unwrapped()?.to_number(expected),
            (Form::Json, _) if json::shape(self.bytes)? == json::Shape::Number => {
                let number: serde_json::Number = json::parse(self.bytes)?;
                Ok(match (number.as_u64(), number.as_i64()) {
                    (Some(number), _) => Number::Unsigned(number),
                    (None, Some(number)) => Number::Signed(number),
                    (None, None) => Number::Float(number.as_f64().unwrap_or(f64::NAN)),
                })
            }
            _ => Err(self.mismatch(expected)),
        }
    }

    fn to_bool(self, expected: &dyn Expected) -> Result<bool, Fault> {
        match (self.form, self.field.kind) {
            (Form::One, FieldKind::Bool) => Ok(self.varint()? != 0),
            (Form::One, FieldKind::PropsOrBool) => match self.schema()? {
                Schema::Bool(value) => Ok(value),
                _ => Err(self.mismatch(expected)),
            },
            (Form::One, FieldKind::RawJson) => self.unwrapped()?.to_bool(expected),
            (Form::Json, _) if json::shape(self.bytes)? == json::Shape::Bool => {
                json::parse(self.bytes)
            }
            _ => Err(self.mismatch(expected)),
        }
    }

    fn to_text(self, expected: &dyn Expected) -> Result<Text<'de>, Fault> {
        match (self.form, self.field.kind) {
            (Form::One, FieldKind::Str) | (Form::Text, _) => Ok(Text::Input(self.bytes)),
            (Form::One, FieldKind::Bytes) => Ok(Text::Owned(text::base64(self.bytes))),
            (Form::One, kind @ (FieldKind::Time | FieldKind::MicroTime)) => {
                match special::time(kind, self.bytes)? {
                    Some(time) => Ok(Text::Short(time.text())),
                    None => Err(self.mismatch(expected)),
                }
            }
            (Form::One, FieldKind::Duration) => Ok(Text::Short(special::duration(self.bytes)?)),
            (Form::One, FieldKind::Quantity) => Ok(Text::Input(special::quantity(self.bytes)?)),
            (Form::One, FieldKind::IntOrString) => match special::int_or_text(self.bytes)? {
                IntOrText::Text(text) => Ok(Text::Input(text)),
                IntOrText::Int(_) => Err(self.mismatch(expected)),
            },
            (Form::One, FieldKind::RawJson) => self.unwrapped()?.to_text(expected),
            (Form::Json, _) if json::shape(self.bytes)? == json::Shape::Text => {
                Ok(match json::parse::<json::Text<'de>>(self.bytes)?.0 {
                    Cow::Borrowed(text) => Text::Checked(text),
                    Cow::Owned(text) => Text::Owned(text),
                })
            }
            _ => Err(self.mismatch(expected)),
        }
    }

    fn to_any(self) -> Result<Any<'de>, Fault> {
        // These forms always have the type asked for, so the expectation is never reported.
        let expected = &"a value";
        Ok(match (self.form, self.field.kind) {
            _ if self.is_null()? => Any::Null,
            (Form::Json, _) => Any::Json(self.bytes),
            (Form::Text, _) => Any::Text(self.to_text(expected)?),
            (Form::Run, _) => Any::Seq(self.to_seq(expected)?),
            (Form::Entries | Form::Object | Form::Unversioned | Form::Message, _) => {
                Any::Map(self.to_map(expected)?)
            }
            (Form::One | Form::Null, kind) => match kind {
                FieldKind::Bool => Any::Bool(self.to_bool(expected)?),
                FieldKind::I32 | FieldKind::I64 | FieldKind::F64 => {
                    Any::Number(self.to_number(expected)?)
                }
                FieldKind::Message => Any::Map(self.to_map(expected)?),
                FieldKind::StrList => Any::Seq(self.to_seq(expected)?),
                FieldKind::IntOrString => match special::int_or_text(self.bytes)? {
                    IntOrText::Int(int) => Any::Number(Number::of(int.into())),
                    IntOrText::Text(text) => Any::Text(Text::Input(text)),
                },
                FieldKind::RawJson => self.unwrapped()?.to_any()?,
                FieldKind::PropsOrArray
                | FieldKind::PropsOrBool
                | FieldKind::PropsOrStringArray => match self.schema()? {
                    Schema::Null => Any::Null,
                    Schema::Bool(value) => Any::Bool(value),
                    Schema::One(_) => Any::Map(self.to_map(expected)?),
                    Schema::Many(_) => Any::Seq(self.to_seq(expected)?),
                },
                FieldKind::Str
                | FieldKind::Bytes
                | FieldKind::Time
                | FieldKind::MicroTime
                | FieldKind::Duration
                | FieldKind::Quantity => Any::Text(self.to_text(expected)?),
            },
        })
    }

    /// The raw bytes, for fields of bytes.
    fn to_bytes(self) -> Option<&'de [u8]> {
        matches!((self.form, self.field.kind), (Form::One, FieldKind::Bytes)).then_some(self.bytes)
    }

    /// The error for a value of another type than expected.
    #[cold]
    fn mismatch(self, expected: &dyn Expected) -> Fault {
        // An error inside the value takes precedence.
        let found = match self.to_any_parsed() {
            Ok(Any::Null) => "null",
            Ok(Any::Bool(_)) => "boolean",
            Ok(Any::Number(Number::Float(_))) => "floating point",
            Ok(Any::Number(_)) => "integer",
            Ok(Any::Text(_)) => "string",
            Ok(Any::Map(_)) => "map",
            Ok(Any::Seq(_)) => "sequence",
            Ok(Any::Json(_)) => "JSON",
            Err(fault) => return fault,
        };
        Fault::mismatch(found, expected)
    }

    /// Any value; JSON by its type.
    fn to_any_parsed(self) -> Result<Any<'de>, Fault> {
        let any = self.to_any()?;
        let Any::Json(text) = any else { return Ok(any) };
        let (json, expected) = (self.json(text), &"a value");
        Ok(match json::shape(text)? {
            json::Shape::Null => Any::Null,
            json::Shape::Bool => Any::Bool(json.to_bool(expected)?),
            json::Shape::Number => Any::Number(json.to_number(expected)?),
            json::Shape::Text => Any::Text(json.to_text(expected)?),
            json::Shape::Array => Any::Seq(json.to_seq(expected)?),
            json::Shape::Object => Any::Map(json.to_map(expected)?),
        })
    }
}

/// Below this bound, a float without a fraction is written as an integer.
const TWO_TO_53: f64 = 9_007_199_254_740_992.0;

impl Number {
    fn of(value: i64) -> Self {
        u64::try_from(value).map_or(Self::Signed(value), Self::Unsigned)
    }

    /// Go writes a float without a fraction as an integer.
    fn of_float(value: f64) -> Self {
        if value.abs() >= TWO_TO_53 {
            // The fewest digits that identify the float, then zeros.
            let written = text::float(value);
            return match (written.parse(), written.parse()) {
                (Ok(value), _) => Self::Unsigned(value),
                (_, Ok(value)) => Self::Signed(value),
                _ => Self::Float(value),
            };
        }
        let integer = value as i64;
        let is_integer = integer as f64 == value && (integer != 0 || value.is_sign_positive());
        if is_integer { Self::of(integer) } else { Self::Float(value) }
    }

    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::Unsigned(value) => visitor.visit_u64(value),
            Self::Signed(value) => visitor.visit_i64(value),
            Self::Float(value) => visitor.visit_f64(value),
        }
    }
}

impl<'de> Text<'de> {
    fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::Input(text) => match lossy(text) {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            Self::Checked(text) => visitor.visit_borrowed_str(text),
            Self::Short(text) => visitor.visit_str(text.as_str()),
            Self::Owned(text) => visitor.visit_string(text),
        }
    }
}

pub(super) fn utf8(text: &[u8]) -> Result<&str, Fault> {
    utf8::checked(text).ok_or_else(|| Fault::new("a text that is not UTF-8"))
}

macro_rules! numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.to_number(&visitor)?.visit(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for De<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.to_any()? {
            Any::Null => visitor.visit_unit(),
            Any::Bool(value) => visitor.visit_bool(value),
            Any::Number(number) => number.visit(visitor),
            Any::Text(text) => text.visit(visitor),
            Any::Map(mut map) => visitor.visit_map(Fields(&mut map)),
            Any::Seq(mut seq) => visitor.visit_seq(Items(&mut seq)),
            Any::Json(text) => json::any(text, visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let value = self.to_bool(&visitor)?;
        visitor.visit_bool(value)
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // Nearly all strings are borrowed from the bytes.
        if self.form == Form::One
            && self.field.kind == FieldKind::Str
            && let Some(text) = utf8::checked(self.bytes)
        {
            return visitor.visit_borrowed_str(text);
        }
        self.to_text(&visitor)?.visit(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.to_bytes() {
            Some(bytes) => visitor.visit_borrowed_bytes(bytes),
            None => match self.to_any_parsed()? {
                Any::Text(text) => text.visit(visitor),
                Any::Seq(mut seq) => visitor.visit_seq(Items(&mut seq)),
                _ => Err(self.mismatch(&visitor)),
            },
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.is_null()? { visitor.visit_unit() } else { Err(self.mismatch(&visitor)) }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.to_seq(&visitor) {
            Ok(ref mut seq) => visitor.visit_seq(Items(seq)),
            Err(fault) => Err(fault),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let mut seq = self.to_seq(&visitor)?;
        let value = visitor.visit_seq(Items(&mut seq))?;
        seq.end(length)?;
        Ok(value)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // Borrowed: it is too large to move.
        match self.to_map(&visitor) {
            Ok(ref mut map) => visitor.visit_map(Fields(map)),
            Err(fault) => Err(fault),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.to_any_parsed()? {
            Any::Text(Text::Input(text)) => visitor.visit_enum(Key::input(utf8(text)?)),
            Any::Text(Text::Checked(text)) => visitor.visit_enum(Key::input(text)),
            Any::Text(Text::Short(text)) => {
                visitor.visit_enum(Key { text: text.as_str(), input: None })
            }
            Any::Text(Text::Owned(text)) => visitor.visit_enum(Key { text: &text, input: None }),
            Any::Map(mut map) => {
                let value = visitor.visit_enum(Variant(&mut map))?;
                map.end()?;
                Ok(value)
            }
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    /// Skips without reading: the end of a run is known from its beginning.
    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        true
    }
}
