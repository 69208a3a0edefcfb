//! One pass over a message, writing JSON.

mod absent;
mod map;
mod stop;

use absent::{absent, empty, zero};
use map::map;
use stop::Stop;

use super::out::Out;
use super::raw;
use super::text;
use crate::error::malformed;
use crate::schema::{FieldDef, FieldKind, LeftOut, MessageDef, Step, WrittenAs, flags};
use crate::special::{self, IntOrText, Schema};
use crate::wire::{Pair, Reader, Value};
use crate::{Envelope, Error, Kind, is_protobuf};

/// Limit of nested messages, which are written by recursion. Only schemas are recursive, and objects
/// within objects.
const LIMIT: usize = 127;

pub(super) type Written = Result<(), Stop>;

/// Writes an object with its kind. `depth` is the number of enclosing objects and arrays.
pub(super) fn object(
    kind: Kind,
    is_versioned: bool,
    bytes: &[u8],
    depth: usize,
    out: &mut Out<'_>,
) -> Written {
    // The only kind that has neither `kind` nor `apiVersion`.
    if kind.name() == "WatchEvent" {
        return message(kind.message(), bytes, depth, out);
    }
    let depth = deeper(depth)?;
    for part in ["{\"kind\":\"", kind.name(), "\""] {
        out.put(part.as_bytes());
    }
    if is_versioned {
        for part in [",\"apiVersion\":\"", kind.api_version(), "\""] {
            out.put(part.as_bytes());
        }
    }
    fields(kind.message(), bytes, depth, out)?;
    out.json.push(b'}');
    Ok(())
}

pub(super) fn message(def: &MessageDef, bytes: &[u8], depth: usize, out: &mut Out<'_>) -> Written {
    let depth = deeper(depth)?;
    let start = out.json.len();
    fields(def, bytes, depth, out)?;
    // Every field begins with a comma.
    match out.json.get_mut(start) {
        Some(first) => *first = b'{',
        None => out.json.push(b'{'),
    }
    out.json.push(b'}');
    Ok(())
}

#[inline]
fn deeper(depth: usize) -> Result<usize, Stop> {
    if depth < LIMIT { Ok(depth + 1) } else { Err(Error::TooDeep { limit: LIMIT }.into()) }
}

fn fields(def: &MessageDef, bytes: &[u8], depth: usize, out: &mut Out<'_>) -> Written {
    let mut rest = bytes;
    // The fields of the table that were written or skipped.
    let mut done = 0;
    while !rest.is_empty() {
        let Some(Step { place, field, pair: Pair { number, .. }, mut behind }) =
            def.step(rest, done)
        else {
            rest = other(def, rest, &mut done, depth, out)?;
            continue;
        };
        absent(def, done..place, depth, out)?;
        done = place + 1;
        rest = match field.written_as {
            WrittenAs::Text => {
                let text = behind.take(number.into())?;
                if !text.is_empty() || field.left_out != LeftOut::Empty {
                    out.field(field, text);
                }
                behind.rest()
            }
            WrittenAs::Message => {
                let inner = behind.take(number.into())?;
                out.key(field);
                message(field.message(), inner, depth, out)?;
                behind.rest()
            }
            WrittenAs::Number => {
                if number != 0 || field.left_out != LeftOut::Zero {
                    out.key(field);
                    integer(field.kind, number.into(), out);
                }
                behind.rest()
            }
            WrittenAs::Other => {
                let mut reader = behind;
                let value = match field.tag & 7 {
                    2 => Value::Bytes(reader.take(number.into())?),
                    _ => Value::Varint(number.into()),
                };
                held(field, value, &mut reader, depth, out)?;
                reader.rest()
            }
        };
    }
    absent(def, done..def.fields.len(), depth, out)
}

/// Writes a field that is not a [step](MessageDef::step), and returns the rest of the input.
#[inline(never)]
fn other<'a>(
    def: &MessageDef,
    rest: &'a [u8],
    done: &mut usize,
    depth: usize,
    out: &mut Out<'_>,
) -> Result<&'a [u8], Stop> {
    let mut reader = Reader::new(rest);
    let Some((number, value)) = reader.next()? else { return Ok(reader.rest()) };
    let Some(place) = place(def, number, *done)? else { return Ok(reader.rest()) };
    absent(def, *done..place, depth, out)?;
    *done = place + 1;
    held(&def.fields[place], value, &mut reader, depth, out)?;
    Ok(reader.rest())
}

/// Writes a field whose first value is `value`, with its further values.
fn held(
    field: &FieldDef,
    value: Value<'_>,
    reader: &mut Reader<'_>,
    depth: usize,
    out: &mut Out<'_>,
) -> Written {
    if field.has(flags::REPEATED) {
        repeated(field, value, reader, depth, out)
    } else if field.has(flags::MAP) {
        map(field, value, reader, depth, out)
    } else {
        single(field, value, depth, out)
    }
}

/// The place of the field with this number; `None` if it is not in the table.
#[inline]
fn place(def: &MessageDef, number: u32, done: usize) -> Result<Option<usize>, Stop> {
    match def.place(number) {
        // The field was written before.
        Some(place) if place < done => Err(Stop::order()),
        place => Ok(place),
    }
}

fn repeated(
    field: &FieldDef,
    first: Value<'_>,
    reader: &mut Reader<'_>,
    depth: usize,
    out: &mut Out<'_>,
) -> Written {
    let within = deeper(depth)?;
    let before = out.json.len();
    out.key(field);
    out.json.push(b'[');
    let start = out.json.len();
    items(field, first, within, out)?;
    while let Some(more) = run(field, reader)? {
        items(field, more, within, out)?;
    }
    if out.json.len() == start {
        // A packed field without numbers.
        out.json.truncate(before);
        return empty(field, depth, out);
    }
    out.json.push(b']');
    Ok(())
}

/// Writes the items in one occurrence of a field: one item, or packed numbers.
#[inline]
fn items(field: &FieldDef, held: Value<'_>, depth: usize, out: &mut Out<'_>) -> Written {
    let encoding = field.kind.encoding();
    match held {
        Value::Bytes(packed) if encoding != 2 => {
            let mut packed = Reader::new(packed);
            while !packed.rest().is_empty() {
                out.comma();
                value(field, packed.value(encoding)?, depth, out)?;
            }
            Ok(())
        }
        Value::Bytes(bytes) if field.kind == FieldKind::Message => {
            out.comma();
            message(field.message(), bytes, depth, out)
        }
        Value::Bytes(text) if field.kind == FieldKind::Str => {
            out.comma();
            out.text(text);
            Ok(())
        }
        held => {
            out.comma();
            value(field, held, depth, out)
        }
    }
}

/// The next value of the same field, if it follows.
#[inline]
fn run<'a>(field: &FieldDef, reader: &mut Reader<'a>) -> Result<Option<Value<'a>>, Stop> {
    if reader.rest().is_empty() {
        return Ok(None);
    }
    // Usually the next value is a text or a message, and short.
    let mut ahead = *reader;
    match ahead.pair() {
        Some(pair) if pair.tag == field.tag && pair.tag & 7 == 2 => {
            let bytes = ahead.take(pair.number.into())?;
            *reader = ahead;
            Ok(Some(Value::Bytes(bytes)))
        }
        // Field number 0 is invalid.
        Some(pair) if pair.tag > 7 && pair.tag >> 3 != u16::from(field.number) => Ok(None),
        _ => slow_run(field, reader),
    }
}

#[inline(never)]
fn slow_run<'a>(field: &FieldDef, reader: &mut Reader<'a>) -> Result<Option<Value<'a>>, Stop> {
    let mut ahead = *reader;
    match ahead.next()? {
        Some((number, value)) if number == u32::from(field.number) => {
            *reader = ahead;
            Ok(Some(value))
        }
        _ => Ok(None),
    }
}

/// Writes a field that is present: its name and value, unless it is omitted when empty.
fn single(field: &FieldDef, held: Value<'_>, depth: usize, out: &mut Out<'_>) -> Written {
    if field.has(flags::INLINE) {
        return fields(field.message(), held.bytes()?, depth, out);
    }
    if field.flags & (flags::OMIT_EMPTY | flags::OMIT_ZERO) != 0 {
        let pointer = field.has(flags::POINTER);
        let empty = match (field.kind, held) {
            // A slice without items is empty, whether it is a pointer or not.
            (FieldKind::Bytes | FieldKind::StrList, Value::Bytes(bytes)) => bytes.is_empty(),
            (kind @ (FieldKind::Time | FieldKind::MicroTime), Value::Bytes(bytes)) => {
                field.has(flags::OMIT_ZERO) && !pointer && special::time(kind, bytes)?.is_none()
            }
            (FieldKind::Str, Value::Bytes(bytes)) => !pointer && bytes.is_empty(),
            (FieldKind::Bool | FieldKind::I64, Value::Varint(value)) => !pointer && value == 0,
            (FieldKind::I32, Value::Varint(value)) => !pointer && value as i32 == 0,
            (FieldKind::F64, Value::Fixed64(bits)) => !pointer && f64::from_bits(bits) == 0.0,
            _ => false,
        };
        if empty {
            return Ok(());
        }
    }
    out.key(field);
    value(field, held, depth, out)
}

/// Writes one value.
fn value(field: &FieldDef, held: Value<'_>, depth: usize, out: &mut Out<'_>) -> Written {
    match field.kind {
        FieldKind::Message => message(field.message(), held.bytes()?, depth, out)?,
        FieldKind::Str => out.text(held.bytes()?),
        FieldKind::Bytes => text::base64(held.bytes()?, &mut out.json),
        kind @ (FieldKind::Bool | FieldKind::I32 | FieldKind::I64) => {
            integer(kind, held.varint()?, out)
        }
        FieldKind::F64 => match held {
            Value::Fixed64(bits) => text::float(f64::from_bits(bits), &mut out.json)?,
            _ => return Err(malformed("another encoding where a float should be").into()),
        },
        kind @ (FieldKind::Time | FieldKind::MicroTime) => {
            match special::time(kind, held.bytes()?)? {
                Some(time) => text::quoted(&time.text(), &mut out.json),
                None => out.put(b"null"),
            }
        }
        FieldKind::Duration => text::quoted(&special::duration(held.bytes()?)?, &mut out.json),
        FieldKind::Quantity => out.text(special::quantity(held.bytes()?)?),
        FieldKind::IntOrString => match special::int_or_text(held.bytes()?)? {
            IntOrText::Int(int) => text::integer(int.into(), &mut out.json),
            IntOrText::Text(string) => out.text(string),
        },
        FieldKind::RawJson => raw_json(held.bytes()?, depth, out)?,
        FieldKind::StrList => strings(1, Reader::new(held.bytes()?), depth, out)?,
        FieldKind::PropsOrArray | FieldKind::PropsOrBool | FieldKind::PropsOrStringArray => {
            props(field, held.bytes()?, depth, out)?;
        }
    }
    Ok(())
}

/// Writes an integer or bool given by its bits.
#[inline]
fn integer(kind: FieldKind, bits: u64, out: &mut Out<'_>) {
    match kind {
        FieldKind::Bool => out.put(if bits != 0 { b"true" } else { b"false" }),
        FieldKind::I32 => text::integer((bits as i32).into(), &mut out.json),
        _ => text::integer(bits as i64, &mut out.json),
    }
}

fn raw_json(bytes: &[u8], depth: usize, out: &mut Out<'_>) -> Written {
    match special::raw(bytes)? {
        b"" => out.put(b"null"),
        object if is_protobuf(object) => {
            let envelope = Envelope::parse(object)?;
            let (kind, message) = envelope.message()?;
            self::object(kind, !envelope.api_version.is_empty(), message, depth, out)?;
        }
        json => raw::copy(json, &mut out.json)?,
    }
    Ok(())
}

/// Writes the texts with this number as an array.
fn strings(number: u32, mut reader: Reader<'_>, depth: usize, out: &mut Out<'_>) -> Written {
    deeper(depth)?;
    out.json.push(b'[');
    while let Some((found, value)) = reader.next()? {
        if found == number {
            out.comma();
            out.text(value.bytes()?);
        }
    }
    out.json.push(b']');
    Ok(())
}

/// Writes a JSON schema, or one of its alternatives.
fn props(field: &FieldDef, bytes: &[u8], depth: usize, out: &mut Out<'_>) -> Written {
    match special::schema(field.kind, bytes)?.ok_or_else(Stop::order)? {
        Schema::Null => out.put(b"null"),
        Schema::Bool(allows) => out.put(if allows { b"true" } else { b"false" }),
        Schema::One(schema) => message(field.message(), schema, depth, out)?,
        Schema::Many(_) if field.kind == FieldKind::PropsOrStringArray => {
            strings(2, Reader::new(bytes), depth, out)?;
        }
        Schema::Many(_) => {
            let (mut reader, depth) = (Reader::new(bytes), deeper(depth)?);
            out.json.push(b'[');
            while let Some((number, value)) = reader.next()? {
                if number == 2 {
                    out.comma();
                    message(field.message(), value.bytes()?, depth, out)?;
                }
            }
            out.json.push(b']');
        }
    }
    Ok(())
}
