//! From a message to the values at a path.

use std::borrow::Cow;

use super::{Leaf, Step};
use crate::Error;
use crate::de::text;
use crate::error::malformed;
use crate::schema::FieldKind;
use crate::special::{self, Moment};
use crate::wire::{Reader, Value, lossy};

/// A scalar value, borrowed from the bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Scalar<'a> {
    /// A text, or a quantity such as `500m`.
    Str(&'a str),
    /// A text that is not UTF-8: servers accept it from clients that write protobuf.
    NotUtf8(&'a [u8]),
    /// A boolean.
    Bool(bool),
    /// An integer of 32 or 64 bits.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Bytes, which JSON has as base64.
    Bytes(&'a [u8]),
    /// A time to the second.
    Time {
        /// Since 1970 in UTC.
        seconds: i64,
    },
    /// A time to the microsecond.
    MicroTime {
        /// Since 1970 in UTC.
        seconds: i64,
        /// Of the second, below 1,000,000.
        micros: u32,
    },
    /// A span of time.
    Duration {
        /// How long it is.
        nanos: i64,
    },
}

impl<'a> Scalar<'a> {
    /// The value as in JSON, without quotes: times as `2026-11-21T16:40:35Z`, bytes as base64,
    /// `U+FFFD` for each byte that is not UTF-8.
    #[must_use]
    pub fn text(&self) -> Cow<'a, str> {
        match *self {
            Self::Str(text) => Cow::Borrowed(text),
            Self::NotUtf8(bytes) => lossy(bytes),
            Self::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
            Self::Int(value) => Cow::Owned(value.to_string()),
            Self::Float(value) => Cow::Owned(text::float(value)),
            Self::Bytes(bytes) => Cow::Owned(text::base64(bytes)),
            Self::Time { seconds } => Cow::Owned(text::time(seconds, None).as_str().to_owned()),
            Self::MicroTime { seconds, micros } => {
                Cow::Owned(text::time(seconds, Some(micros)).as_str().to_owned())
            }
            Self::Duration { nanos } => Cow::Owned(text::duration(nanos).as_str().to_owned()),
        }
    }
}

/// What was found of a value: the last occurrence of each part.
#[derive(Default)]
struct Found<'a> {
    /// Whether JSON has the value.
    there: bool,
    value: Option<Value<'a>>,
    /// Of values that are messages: their fields.
    parts: [Option<Value<'a>>; 3],
}

/// The value at the end of steps without a `[*]`, some of which were taken before.
#[inline]
pub(super) fn one<'a>(
    steps: &[Step],
    taken: usize,
    leaf: Leaf,
    message: &'a [u8],
) -> Result<Option<Scalar<'a>>, Error> {
    let mut found = Found::default();
    find(steps, taken, leaf, message, &mut found)?;
    scalar(leaf, &found)
}

fn find<'a>(
    steps: &[Step],
    taken: usize,
    leaf: Leaf,
    message: &'a [u8],
    found: &mut Found<'a>,
) -> Result<(), Error> {
    found.there |= leaf.implied == Some(taken);
    let Some(step) = steps.get(taken) else { return Ok(()) };
    let last = taken + 1 == steps.len();
    let mut fields = Reader::new(message);
    match step {
        // Each part of a message that is split into parts.
        Step::Field(wanted) | Step::Each(wanted) => {
            while let Some((number, value)) = fields.next()? {
                if number != u32::from(*wanted) {
                    continue;
                }
                if last {
                    found.put(leaf, value)?;
                } else {
                    find(steps, taken + 1, leaf, value.bytes()?, found)?;
                }
            }
        }
        // The last entry of a key replaces those before.
        Step::Entry(wanted, key) => {
            while let Some((number, value)) = fields.next()? {
                if number != u32::from(*wanted) {
                    continue;
                }
                let [found_key, value, _] = parts(value.bytes()?)?;
                if found_key.map_or(Ok(&[][..]), Value::bytes)? != key.as_bytes() {
                    continue;
                }
                *found = Found { there: last, ..Found::default() };
                match value {
                    Some(value) if last => found.put(leaf, value)?,
                    None if last => {}
                    value => {
                        find(
                            steps,
                            taken + 1,
                            leaf,
                            value.map_or(Ok(&[][..]), Value::bytes)?,
                            found,
                        )?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// All values at the end of the steps.
pub(super) fn each<'a>(
    steps: &[Step],
    taken: usize,
    leaf: Leaf,
    message: &'a [u8],
    call: &mut dyn FnMut(Scalar<'a>),
) -> Result<(), Error> {
    if !steps[taken..].iter().any(|step| matches!(step, Step::Each(_))) {
        if let Some(value) = one(steps, taken, leaf, message)? {
            call(value);
        }
        return Ok(());
    }
    let mut fields = Reader::new(message);
    let step = &steps[taken];
    let mut entry = None;
    while let Some((number, value)) = fields.next()? {
        match step {
            Step::Field(wanted) | Step::Each(wanted) if number == u32::from(*wanted) => {
                if taken + 1 == steps.len() {
                    let mut found = Found::default();
                    found.put(leaf, value)?;
                    if let Some(value) = scalar(leaf, &found)? {
                        call(value);
                    }
                } else {
                    each(steps, taken + 1, leaf, value.bytes()?, call)?;
                }
            }
            Step::Entry(wanted, key) if number == u32::from(*wanted) => {
                let [found_key, value, _] = parts(value.bytes()?)?;
                if found_key.map_or(Ok(&[][..]), Value::bytes)? == key.as_bytes() {
                    entry = Some(value.map_or(Ok(&[][..]), Value::bytes)?);
                }
            }
            _ => {}
        }
    }
    entry.map_or(Ok(()), |message| each(steps, taken + 1, leaf, message, call))
}

impl<'a> Found<'a> {
    fn put(&mut self, leaf: Leaf, value: Value<'a>) -> Result<(), Error> {
        self.there = true;
        self.value = Some(value);
        if let FieldKind::Quantity | FieldKind::IntOrString | FieldKind::Duration = leaf.kind {
            // Several occurrences of a singular message are one message.
            for (part, new) in self.parts.iter_mut().zip(parts(value.bytes()?)?) {
                *part = new.or(*part);
            }
        }
        Ok(())
    }

    fn text(value: Option<Value<'a>>) -> Result<Scalar<'a>, Error> {
        let bytes = value.map_or(Ok(&[][..]), Value::bytes)?;
        Ok(std::str::from_utf8(bytes).map_or(Scalar::NotUtf8(bytes), Scalar::Str))
    }
}

/// The last occurrences of the fields 1 to 3 of a small message.
fn parts(message: &[u8]) -> Result<[Option<Value<'_>>; 3], Error> {
    let mut parts = [None; 3];
    let mut reader = Reader::new(message);
    while let Some((number, value)) = reader.next()? {
        if let Some(part) = parts.get_mut(number as usize - 1) {
            *part = Some(value);
        }
    }
    Ok(parts)
}

/// The value as JSON has it; `None` if it is omitted or `null`.
fn scalar<'a>(leaf: Leaf, found: &Found<'a>) -> Result<Option<Scalar<'a>>, Error> {
    if !found.there {
        return Ok(None);
    }
    let number = |value: Option<Value<'a>>| value.map_or(Ok(0), Value::varint);
    let scalar = match leaf.kind {
        FieldKind::Str => Found::text(found.value)?,
        FieldKind::Bytes => Scalar::Bytes(found.value.map_or(Ok(&[][..]), Value::bytes)?),
        FieldKind::Bool => Scalar::Bool(number(found.value)? != 0),
        FieldKind::I32 => Scalar::Int((number(found.value)? as i32).into()),
        FieldKind::I64 => Scalar::Int(number(found.value)? as i64),
        FieldKind::F64 => match found.value {
            None => Scalar::Float(0.0),
            Some(Value::Fixed64(bits)) => Scalar::Float(f64::from_bits(bits)),
            Some(_) => return Err(malformed("another encoding where a float should be")),
        },
        FieldKind::Time | FieldKind::MicroTime => {
            let message = found.value.map_or(Ok(&[][..]), Value::bytes)?;
            return Ok(special::time(leaf.kind, message)?.map(|time| match time {
                Moment { seconds, micros: Some(micros) } => Scalar::MicroTime { seconds, micros },
                Moment { seconds, micros: None } => Scalar::Time { seconds },
            }));
        }
        FieldKind::Duration => {
            return Ok(Some(Scalar::Duration { nanos: number(found.parts[0])? as i64 }));
        }
        FieldKind::Quantity => {
            let text = Found::text(found.parts[0])?;
            return Ok(Some(if text == Scalar::Str("") { Scalar::Str("0") } else { text }));
        }
        FieldKind::IntOrString => {
            return match number(found.parts[0])? {
                0 => Ok(Some(Scalar::Int((number(found.parts[1])? as i32).into()))),
                1 => Ok(Some(Found::text(found.parts[2])?)),
                _ => Err(malformed("neither an integer nor a string")),
            };
        }
        // No path ends with these kinds.
        _ => return Ok(None),
    };
    let zero = match scalar {
        Scalar::Str(text) => text.is_empty(),
        Scalar::Bytes(bytes) => bytes.is_empty(),
        Scalar::Bool(value) => !value,
        Scalar::Int(value) => value == 0,
        Scalar::Float(value) => value == 0.0,
        _ => false,
    };
    Ok(Some(scalar).filter(|_| !(leaf.omitted && zero)))
}
