//! Maps, whose keys Go sorts.

use super::{Written, deeper, key, run, value, zero};
use crate::Error;
use crate::error::malformed;
use crate::json::text;
use crate::schema::FieldDef;
use crate::wire::{Reader, Value};

pub(super) fn map(
    field: &FieldDef,
    first: Value<'_>,
    reader: &mut Reader<'_>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Written {
    let depth = deeper(depth)?;
    key(field.name, out);
    let before = out.len();
    out.push(b'{');
    let mut rest = *reader;
    let mut last = entry(field, first)?;
    map_entry(field, last, depth, out)?;
    while let Some(next) = run(field, &mut rest)? {
        let next = entry(field, next)?;
        if next.0 <= last.0 {
            out.truncate(before);
            return unsorted_map(field, first, reader, depth, out);
        }
        last = next;
        out.push(b',');
        map_entry(field, next, depth, out)?;
    }
    *reader = rest;
    out.push(b'}');
    Ok(())
}

/// A map whose keys are not as Go sorts them, so that there may be two of a kind: the last counts.
fn unsorted_map(
    field: &FieldDef,
    first: Value<'_>,
    reader: &mut Reader<'_>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Written {
    let mut entries = vec![entry(field, first)?];
    while let Some(next) = run(field, reader)? {
        entries.push(entry(field, next)?);
    }
    // Stable, so that the last of a key is the first after turning all around.
    entries.reverse();
    entries.sort_by_key(|(key, _)| *key);
    entries.dedup_by_key(|(key, _)| *key);
    out.push(b'{');
    for (at, entry) in entries.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        map_entry(field, entry, depth, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Key and value of an entry.
fn entry<'a>(field: &FieldDef, value: Value<'a>) -> Result<(&'a [u8], Option<Value<'a>>), Error> {
    // Nearly all are two texts, one after the other.
    if let Value::Bytes(bytes) = value {
        let mut reader = Reader::new(bytes);
        if reader.short() == Some(1 << 3 | 2)
            && let Some(key) = reader.short_payload(2)
            && reader.short() == Some(2 << 3 | 2)
            && let Some(value) = reader.short_payload(2)
            && reader.rest().is_empty()
        {
            return Ok((key, Some(Value::Bytes(value))));
        }
    }
    let (mut key, mut held) = (&b""[..], None);
    let mut parts = Reader::new(value.bytes()?);
    while let Some((number, part)) = parts.next()? {
        match number {
            1 => key = part.bytes()?,
            2 if part.encoding() != field.kind.encoding() => {
                return Err(malformed("another encoding than that of the field"));
            }
            2 => held = Some(part),
            _ => {}
        }
    }
    Ok((key, held))
}

fn map_entry(
    field: &FieldDef,
    (key, held): (&[u8], Option<Value<'_>>),
    depth: usize,
    out: &mut Vec<u8>,
) -> Written {
    if std::str::from_utf8(key).is_err() {
        return Err(malformed("a text that is not UTF-8").into());
    }
    text::string(key, out);
    out.push(b':');
    match held {
        Some(held) => value(field, held, depth, out),
        None => zero(field, depth, out),
    }
}
