//! One pass over a message, writing JSON.

mod map;

use map::map;

use super::raw;
use super::text::{self, LIMIT};
use crate::error::malformed;
use crate::schema::{FieldDef, FieldKind, MessageDef, flags};
use crate::special::{self, IntOrText, Schema};
use crate::wire::{Reader, Value};
use crate::{Envelope, Error, Kind, is_protobuf};

/// Why writing stops.
pub(super) enum Stop {
    /// Fields are not in the order in which Kubernetes writes them, or repeated.
    Order,
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Order => malformed("fields in an order that cannot be read"),
            Stop::Error(error) => error,
        }
    }
}

type Written = Result<(), Stop>;

/// Writes an object with what it is. `depth` is how many objects and arrays are around it.
pub(super) fn object(
    kind: Kind,
    is_versioned: bool,
    bytes: &[u8],
    depth: usize,
    out: &mut Vec<u8>,
) -> Written {
    // The only kind that does not say what it is.
    if kind.name() == "WatchEvent" {
        return message(kind.message(), bytes, depth, out);
    }
    let depth = deeper(depth)?;
    for part in ["{\"kind\":\"", kind.name(), "\""] {
        out.extend_from_slice(part.as_bytes());
    }
    if is_versioned {
        for part in [",\"apiVersion\":\"", kind.api_version(), "\""] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    fields(kind.message(), bytes, depth, out)?;
    out.push(b'}');
    Ok(())
}

pub(super) fn message(def: &MessageDef, bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Written {
    let depth = deeper(depth)?;
    let start = out.len();
    fields(def, bytes, depth, out)?;
    // Every field begins with a comma.
    match out.get_mut(start) {
        Some(first) => *first = b'{',
        None => out.push(b'{'),
    }
    out.push(b'}');
    Ok(())
}

fn deeper(depth: usize) -> Result<usize, Error> {
    if depth < LIMIT { Ok(depth + 1) } else { Err(Error::TooDeep { limit: LIMIT }) }
}

fn fields(def: &MessageDef, bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Written {
    let mut rest = bytes;
    // The fields of the table that were written or passed over.
    let mut done = 0;
    loop {
        while let Some(taken) = def.take(rest, done) {
            (rest, done) = (taken.rest, taken.next);
            if !taken.is_left_out {
                one(taken.field, taken.bytes, depth, out)?;
            }
        }
        let mut reader = Reader::new(rest);
        let Some((number, value)) = reader.next()? else { break };
        let Some(place) = place(def, number, done)? else {
            rest = reader.rest();
            continue;
        };
        if !def.are_left_out(done, place) {
            def.fields[done..place].iter().try_for_each(|field| absent(field, depth, out))?;
        }
        done = place + 1;
        let field = &def.fields[place];
        if field.has(flags::REPEATED) {
            repeated(field, value, &mut reader, depth, out)?;
        } else if field.has(flags::MAP) {
            map(field, value, &mut reader, depth, out)?;
        } else {
            single(field, value, depth, out)?;
        }
        rest = reader.rest();
    }
    if !def.are_left_out(done, def.fields.len()) {
        def.fields[done..].iter().try_for_each(|field| absent(field, depth, out))?;
    }
    Ok(())
}

/// Writes a field of one value that is not left out; `bytes` are its [payload](Reader::payload).
#[inline]
fn one(field: &FieldDef, bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Written {
    match field.kind {
        FieldKind::Str => {
            key(field.name, out);
            text::string(bytes, out);
            Ok(())
        }
        FieldKind::Message => {
            key(field.name, out);
            message(field.message(), bytes, depth, out)
        }
        FieldKind::Bool | FieldKind::I32 | FieldKind::I64 => {
            key(field.name, out);
            value(field, Value::Varint(Reader::new(bytes).varint().map_err(Error::from)?), depth, out)
        }
        _ => single(field, Value::Bytes(bytes), depth, out),
    }
}

/// Where the field with this number stands; `None` if there is none.
#[inline]
fn place(def: &MessageDef, number: u32, done: usize) -> Result<Option<usize>, Stop> {
    match def.place(number) {
        // It was there before.
        Some(place) if place < done => Err(Stop::Order),
        place => Ok(place),
    }
}

fn repeated(
    field: &FieldDef,
    first: Value<'_>,
    reader: &mut Reader<'_>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Written {
    let within = deeper(depth)?;
    let before = out.len();
    key(field.name, out);
    out.push(b'[');
    let start = out.len();
    items(field, first, within, out)?;
    while let Some(more) = run(field, reader)? {
        items(field, more, within, out)?;
    }
    if out.len() == start {
        // Numbers that stand together, but there are none.
        out.truncate(before);
        return absent(field, depth, out);
    }
    out.push(b']');
    Ok(())
}

/// Writes the items in one field: one, or numbers that stand together.
#[inline]
fn items(field: &FieldDef, held: Value<'_>, depth: usize, out: &mut Vec<u8>) -> Written {
    let encoding = field.kind.encoding();
    match held {
        Value::Bytes(packed) if encoding != 2 => {
            let mut packed = Reader::new(packed);
            while !packed.rest().is_empty() {
                comma(out);
                value(field, packed.value(encoding).map_err(Error::from)?, depth, out)?;
            }
            Ok(())
        }
        held => {
            comma(out);
            value(field, held, depth, out)
        }
    }
}

/// The next value of the field, if it follows.
#[inline]
fn run<'a>(field: &FieldDef, reader: &mut Reader<'a>) -> Result<Option<Value<'a>>, Error> {
    let mut ahead = *reader;
    match ahead.next()? {
        Some((number, value)) if number == u32::from(field.number) => {
            *reader = ahead;
            Ok(Some(value))
        }
        _ => Ok(None),
    }
}

/// Writes a field that is there: its name and value, unless it is left out when it is empty.
fn single(field: &FieldDef, held: Value<'_>, depth: usize, out: &mut Vec<u8>) -> Written {
    if field.has(flags::INLINE) {
        return fields(field.message(), held.bytes()?, depth, out);
    }
    if field.flags & (flags::OMIT_EMPTY | flags::OMIT_ZERO) != 0 {
        let pointer = field.has(flags::POINTER);
        let empty = match (field.kind, held) {
            // What has no fields is a slice without items, or the zero time: pointers or not.
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
    key(field.name, out);
    value(field, held, depth, out)
}

/// Writes a field that is not there: Go's types have all of them.
#[inline]
fn absent(field: &FieldDef, depth: usize, out: &mut Vec<u8>) -> Written {
    // Most fields.
    let omitted = flags::POINTER | flags::OMIT_EMPTY;
    if field.flags & omitted == omitted { Ok(()) } else { empty(field, depth, out) }
}

fn empty(field: &FieldDef, depth: usize, out: &mut Vec<u8>) -> Written {
    if field.has(flags::OMIT_ZERO) {
        return Ok(());
    }
    if field.has(flags::INLINE) {
        return fields(field.message(), &[], depth, out);
    }
    if field.has(flags::POINTER) {
        key(field.name, out);
        // Servers make the items of a list that has none an empty array.
        out.extend_from_slice(if field.has(flags::LIST_ITEMS) { b"[]" } else { b"null" });
        return Ok(());
    }
    if field.has(flags::OMIT_EMPTY) && is_scalar(field.kind) {
        return Ok(());
    }
    key(field.name, out);
    zero(field, depth, out)
}

/// Whether Go's `omitempty` leaves out the zero value: not so for structs.
fn is_scalar(kind: FieldKind) -> bool {
    use FieldKind::{Bool, Bytes, F64, I32, I64, Str, StrList};
    matches!(kind, Str | Bytes | Bool | I32 | I64 | F64 | StrList)
}

/// Writes the value that has no fields.
fn zero(field: &FieldDef, depth: usize, out: &mut Vec<u8>) -> Written {
    let written: &[u8] = match field.kind {
        FieldKind::Message => return message(field.message(), &[], depth, out),
        FieldKind::Str | FieldKind::Bytes => b"\"\"",
        FieldKind::Bool | FieldKind::PropsOrBool => b"false",
        FieldKind::I32 | FieldKind::I64 | FieldKind::F64 | FieldKind::IntOrString => b"0",
        FieldKind::Time | FieldKind::MicroTime => b"null",
        FieldKind::Duration => b"\"0s\"",
        FieldKind::Quantity => b"\"0\"",
        FieldKind::RawJson | FieldKind::PropsOrArray | FieldKind::PropsOrStringArray => b"null",
        FieldKind::StrList => b"[]",
    };
    out.extend_from_slice(written);
    Ok(())
}

/// Writes one value.
fn value(field: &FieldDef, held: Value<'_>, depth: usize, out: &mut Vec<u8>) -> Written {
    match field.kind {
        FieldKind::Message => message(field.message(), held.bytes()?, depth, out)?,
        FieldKind::Str => text::string(held.bytes()?, out),
        FieldKind::Bytes => text::base64(held.bytes()?, out),
        FieldKind::Bool => out.extend_from_slice(if held.varint()? != 0 { b"true" } else { b"false" }),
        FieldKind::I32 => text::integer((held.varint()? as i32).into(), out),
        FieldKind::I64 => text::integer(held.varint()? as i64, out),
        FieldKind::F64 => match held {
            Value::Fixed64(bits) => text::float(f64::from_bits(bits), out)?,
            _ => return Err(malformed("another encoding where a float should be").into()),
        },
        kind @ (FieldKind::Time | FieldKind::MicroTime) => match special::time(kind, held.bytes()?)? {
            Some(time) => text::quoted(&time.text(), out),
            None => out.extend_from_slice(b"null"),
        },
        FieldKind::Duration => text::quoted(&special::duration(held.bytes()?)?, out),
        FieldKind::Quantity => text::string(special::quantity(held.bytes()?)?, out),
        FieldKind::IntOrString => match special::int_or_text(held.bytes()?)? {
            IntOrText::Int(int) => text::integer(int.into(), out),
            IntOrText::Text(string) => text::string(string, out),
        },
        FieldKind::RawJson => raw_json(held.bytes()?, depth, out)?,
        FieldKind::StrList => strings(1, Reader::new(held.bytes()?), depth, out)?,
        FieldKind::PropsOrArray | FieldKind::PropsOrBool | FieldKind::PropsOrStringArray => {
            props(field, held.bytes()?, depth, out)?;
        }
    }
    Ok(())
}

fn raw_json(bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Written {
    match special::raw(bytes)? {
        b"" => out.extend_from_slice(b"null"),
        object if is_protobuf(object) => {
            let envelope = Envelope::parse(object)?;
            let (kind, message) = envelope.message()?;
            self::object(kind, !envelope.api_version.is_empty(), message, depth, out)?;
        }
        json => raw::copy(json, depth, out)?,
    }
    Ok(())
}

/// Writes the texts with this number as an array.
fn strings(number: u32, mut reader: Reader<'_>, depth: usize, out: &mut Vec<u8>) -> Written {
    deeper(depth)?;
    out.push(b'[');
    while let Some((found, value)) = reader.next()? {
        if found == number {
            comma(out);
            text::string(value.bytes()?, out);
        }
    }
    out.push(b']');
    Ok(())
}

/// Writes a JSON schema, or what may stand instead of one.
fn props(field: &FieldDef, bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Written {
    match special::schema(field.kind, bytes)?.ok_or(Stop::Order)? {
        Schema::Null => out.extend_from_slice(b"null"),
        Schema::Bool(allows) => out.extend_from_slice(if allows { b"true" } else { b"false" }),
        Schema::One(schema) => message(field.message(), schema, depth, out)?,
        Schema::Many(_) if field.kind == FieldKind::PropsOrStringArray => {
            strings(2, Reader::new(bytes), depth, out)?;
        }
        Schema::Many(_) => {
            let (mut reader, depth) = (Reader::new(bytes), deeper(depth)?);
            out.push(b'[');
            while let Some((number, value)) = reader.next()? {
                if number == 2 {
                    comma(out);
                    message(field.message(), value.bytes()?, depth, out)?;
                }
            }
            out.push(b']');
        }
    }
    Ok(())
}

/// A comma, unless this is the first item of an array or the first entry of a map.
#[inline]
fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'[' | b'{')) {
        out.push(b',');
    }
}

/// The name of a field, after a comma: that of the first becomes the object's opening brace.
#[inline]
fn key(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}
