//! Maps, whose keys Go sorts.

use super::{Written, deeper, key, run, value, zero};
use crate::Error;
use crate::error::malformed;
use crate::json::text::{self, parts};
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
    let mut last = entry(first)?;
    map_entry(field, last, depth, out)?;
    while let Some(next) = run(field, &mut rest)? {
        let next = entry(next)?;
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
    let mut entries = vec![entry(first)?];
    while let Some(next) = run(field, reader)? {
        entries.push(entry(next)?);
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
fn entry(value: Value<'_>) -> Result<(&[u8], Option<Value<'_>>), Error> {
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
    let [key, value, _] = parts(value.bytes()?)?;
    Ok((key.map_or(Ok(&[][..]), Value::bytes)?, value))
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
