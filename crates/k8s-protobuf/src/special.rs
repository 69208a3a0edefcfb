//! Messages that are not objects in JSON. Decoding and writing JSON share these functions, so that
//! both refuse the same bytes: every occurrence of a field is checked, and the last one counts.

use crate::Error;
use crate::de::text::{self, Short};
use crate::error::malformed;
use crate::schema::FieldKind;
use crate::wire::Reader;

/// A `Time` or `MicroTime`.
pub(crate) struct Moment {
    pub(crate) seconds: i64,
    /// `None` in a `Time`, which has no fractions.
    pub(crate) micros: Option<u32>,
}

impl Moment {
    pub(crate) fn text(&self) -> Short {
        text::time(self.seconds, self.micros)
    }
}

/// A `Time` or `MicroTime`; `None` for Go's zero, which is `null`.
pub(crate) fn time(kind: FieldKind, message: &[u8]) -> Result<Option<Moment>, Error> {
    if message.is_empty() {
        return Ok(None);
    }
    if let Some(seconds) = text::whole_seconds(message) {
        let micros = (kind == FieldKind::MicroTime).then_some(0);
        return Ok((seconds != text::ZERO_TIME).then_some(Moment { seconds, micros }));
    }
    let (mut seconds, mut nanos) = (0i64, 0i32);
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => seconds = value.varint()? as i64,
            2 => nanos = value.varint()? as i32,
            _ => {}
        }
    }
    if kind == FieldKind::Time {
        // Go ignores the fraction here.
        return Ok((seconds != text::ZERO_TIME).then_some(Moment { seconds, micros: None }));
    }
    let micros = nanos / 1000;
    let seconds = seconds.saturating_add(micros.div_euclid(1_000_000).into());
    let micros = micros.rem_euclid(1_000_000) as u32;
    let is_zero = seconds == text::ZERO_TIME && micros == 0;
    Ok((!is_zero).then_some(Moment { seconds, micros: Some(micros) }))
}

/// A `Duration`.
pub(crate) fn duration(message: &[u8]) -> Result<Short, Error> {
    let mut nanos = 0;
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            nanos = value.varint()? as i64;
        }
    }
    Ok(text::duration(nanos))
}

/// A `Quantity`.
pub(crate) fn quantity(message: &[u8]) -> Result<&[u8], Error> {
    Ok(match first(message)? {
        b"" => b"0",
        text => text,
    })
}

/// The text within a `RawExtension`, a `FieldsV1` or JSON; empty for an absent one, which is
/// `null`.
pub(crate) fn raw(message: &[u8]) -> Result<&[u8], Error> {
    first(message)
}

/// The bytes of field 1; empty if it is absent.
fn first(message: &[u8]) -> Result<&[u8], Error> {
    let mut found = &b""[..];
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            found = value.bytes()?;
        }
    }
    Ok(found)
}

pub(crate) enum IntOrText<'de> {
    Int(i32),
    Text(&'de [u8]),
}

pub(crate) fn int_or_text(message: &[u8]) -> Result<IntOrText<'_>, Error> {
    let (mut is_text, mut int, mut text) = (0, 0, &b""[..]);
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => is_text = value.varint()?,
            2 => int = value.varint()? as i32,
            3 => text = value.bytes()?,
            _ => {}
        }
    }
    match is_text {
        0 => Ok(IntOrText::Int(int)),
        1 => Ok(IntOrText::Text(text)),
        _ => Err(malformed("neither an integer nor a text")),
    }
}

/// A schema, or one of its alternatives.
pub(crate) enum Schema<'de> {
    Null,
    Bool(bool),
    One(&'de [u8]),
    /// The number of schemas or texts, which are the fields 2 of the message.
    Many(u32),
}

/// A schema or one of its alternatives; `None` if it is split into parts, which have to be joined
/// first.
pub(crate) fn schema(kind: FieldKind, message: &[u8]) -> Result<Option<Schema<'_>>, Error> {
    let (mut schema, mut allows, mut many) = (None, false, 0u32);
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        let is_bool = kind == FieldKind::PropsOrBool;
        match number {
            1 if is_bool => allows = value.varint()? != 0,
            1 | 2 if is_bool == (number == 2) => {
                let before = schema.replace(value.bytes()?);
                if before.is_some() {
                    return Ok(None);
                }
            }
            2 => {
                value.bytes()?;
                many = many.saturating_add(1);
            }
            _ => {}
        }
    }
    Ok(Some(match (schema, kind) {
        (None, FieldKind::PropsOrBool) => Schema::Bool(allows),
        (_, FieldKind::PropsOrArray | FieldKind::PropsOrStringArray) if many > 0 => {
            Schema::Many(many)
        }
        (Some(schema), _) => Schema::One(schema),
        (None, _) => Schema::Null,
    }))
}

#[cfg(test)]
mod tests;
