//! Bringing a message into the order in which Go writes it.
//!
//! Protobuf allows fields in any order, and one that cannot be repeated more than once: messages are then put together,
//! and of all else the last counts. Nobody is known to send such bytes, so decoding expects them in order, and asks for
//! this when they are not.

use crate::error::malformed;
use crate::schema::flags::{MAP, REPEATED};
use crate::schema::{FieldDef, FieldKind, MessageDef};
use crate::wire::{Reader, put_bytes, put_varint};
use crate::{Envelope, Error, MAGIC, special};

/// The limit of messages in one another: what is decoded afterwards has it for objects and arrays.
const MAX_DEPTH: usize = crate::de::MAX_DEPTH as usize;

/// The same message with its fields ascending and each field in one run, through and through. Fields that the table does
/// not have are left out.
///
/// # Errors
/// When the bytes are malformed, or messages are nested too deep.
pub(crate) fn message(def: &'static MessageDef, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(bytes.len());
    parts(Def::Message(def), &[bytes], 0, &mut out)?;
    Ok(out)
}

/// What a message consists of.
#[derive(Clone, Copy)]
enum Def {
    Message(&'static MessageDef),
    /// One of the three that are a schema or something else: the field that holds it.
    Schema(&'static FieldDef),
    /// One entry of this map.
    Entry(&'static FieldDef),
}

/// What to do with one field of a message.
#[derive(Clone, Copy)]
enum Plan {
    /// All, each by itself, or the last only. Of this kind each is, whether it counts or not.
    Values { kind: FieldKind, all: bool },
    /// A message whose order is of no account: all of it as one.
    Joined,
    /// All, each by itself, or all of them as one.
    Messages { def: Def, all: bool },
    /// One `RawExtension` or all, which may have an object in it.
    Raw { all: bool },
}

struct Part<'a> {
    number: u32,
    encoding: u8,
    bytes: &'a [u8],
}

/// Writes one message whose bytes are these, one after the other. It takes memory for the places of the fields only, not
/// for copies of them.
fn parts(def: Def, bytes: &[&[u8]], depth: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep { limit: MAX_DEPTH });
    }
    let mut found: Vec<Part<'_>> = Vec::new();
    for bytes in bytes {
        let mut reader = Reader::new(bytes);
        while !reader.rest().is_empty() {
            let (number, encoding) = reader.tag()?;
            found.push(Part { number, encoding, bytes: reader.payload(encoding)? });
        }
    }
    // Stable: what has the same number stays in its order.
    found.sort_by_key(|part| part.number);
    for run in found.chunk_by(|a, b| a.number == b.number) {
        let number = run[0].number;
        let Some(plan) = plan(def, number) else { continue };
        let last = &run[run.len() - 1..];
        run.iter().try_for_each(|part| part.check(plan))?;
        // Go makes the value of a map's entry anew each time.
        let joined = if matches!(def, Def::Entry(_)) { last } else { run };
        let messages = || joined.iter().map(Part::message).collect::<Result<Vec<_>, _>>();
        match plan {
            Plan::Values { all, .. } => {
                (if all { run } else { last }).iter().for_each(|part| part.write(out));
            }
            Plan::Joined => {
                let bytes = messages()?;
                put_varint(u64::from(number) << 3 | 2, out);
                put_varint(bytes.iter().map(|part| part.len() as u64).sum(), out);
                bytes.iter().for_each(|part| out.extend_from_slice(part));
            }
            Plan::Messages { def, all: true } => {
                for part in run {
                    let bytes = [part.message()?];
                    nested(number, out, |out| parts(def, &bytes, depth + 1, out))?;
                }
            }
            Plan::Messages { def, all: false } => {
                let bytes = messages()?;
                nested(number, out, |out| parts(def, &bytes, depth + 1, out))?;
            }
            Plan::Raw { all: true } => {
                for part in run {
                    let bytes = [part.message()?];
                    nested(number, out, |out| raw(&bytes, depth + 1, out))?;
                }
            }
            Plan::Raw { all: false } => {
                let bytes = messages()?;
                nested(number, out, |out| raw(&bytes, depth + 1, out))?;
            }
        }
    }
    Ok(())
}

/// Writes a field with the message that `write` writes.
fn nested(
    number: u32,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut message = Vec::new();
    write(&mut message)?;
    put_bytes(number, &message, out);
    Ok(())
}

/// Writes a message with JSON or an object in its field 1, of which the last counts.
fn raw(bytes: &[&[u8]], depth: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut found = None;
    for bytes in bytes {
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next()? {
            if number == 1 {
                found = Some(value.bytes()?);
            }
        }
    }
    match found {
        Some(object) if object.starts_with(&MAGIC) => {
            let envelope = Envelope::parse(object)?;
            let (kind, message) = envelope.message()?;
            let mut ordered = Vec::new();
            parts(Def::Message(kind.message()), &[message], depth, &mut ordered)?;
            nested(1, out, |out| {
                Envelope::write(envelope.api_version, envelope.kind, &ordered, out);
                Ok(())
            })
        }
        Some(json) => {
            put_bytes(1, json, out);
            Ok(())
        }
        None => Ok(()),
    }
}

fn plan(def: Def, number: u32) -> Option<Plan> {
    Some(match def {
        Def::Message(def) => {
            let field = def.field(number)?;
            if field.has(MAP) {
                return Some(Plan::Messages { def: Def::Entry(field), all: true });
            }
            value(field, field.has(REPEATED))
        }
        Def::Schema(field) => {
            let schema = Def::Message(field.message());
            match (field.kind, number) {
                (FieldKind::PropsOrBool, 1) => Plan::Values { kind: FieldKind::Bool, all: false },
                (FieldKind::PropsOrBool, 2) | (_, 1) => Plan::Messages { def: schema, all: false },
                (FieldKind::PropsOrArray, 2) => Plan::Messages { def: schema, all: true },
                (_, 2) => Plan::Values { kind: FieldKind::Str, all: true },
                _ => return None,
            }
        }
        Def::Entry(_) if number == 1 => Plan::Values { kind: FieldKind::Str, all: false },
        Def::Entry(field) if number == 2 => value(field, false),
        Def::Entry(_) => return None,
    })
}

/// What to do with a field, or the value of a map's entry, of this kind.
fn value(field: &'static FieldDef, all: bool) -> Plan {
    match field.kind {
        FieldKind::Message => Plan::Messages { def: Def::Message(field.message()), all },
        FieldKind::PropsOrArray | FieldKind::PropsOrBool | FieldKind::PropsOrStringArray => {
            Plan::Messages { def: Def::Schema(field), all }
        }
        FieldKind::RawJson => Plan::Raw { all },
        FieldKind::IntOrString | FieldKind::Quantity | FieldKind::Duration | FieldKind::StrList if !all => {
            Plan::Joined
        }
        // Of times, too, Go takes the last.
        kind => Plan::Values { kind, all },
    }
}

impl<'a> Part<'a> {
    /// An error if this cannot be part of it: those who read fields in order look at each as well.
    fn check(&self, plan: Plan) -> Result<(), Error> {
        let Plan::Values { kind, all } = plan else { return self.message().map(drop) };
        // Numbers that are repeated may stand together.
        if self.encoding != kind.encoding() && !(all && self.encoding == 2) {
            return Err(malformed("another encoding than that of the field"));
        }
        match kind {
            FieldKind::Time | FieldKind::MicroTime => special::time(kind, self.bytes).map(drop),
            _ => Ok(()),
        }
    }

    fn message(&self) -> Result<&'a [u8], Error> {
        if self.encoding == 2 { Ok(self.bytes) } else { Err(malformed("a number where bytes should be")) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.encoding == 2 {
            put_bytes(self.number, self.bytes, out);
        } else {
            put_varint(u64::from(self.number) << 3 | u64::from(self.encoding), out);
            out.extend_from_slice(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests;
