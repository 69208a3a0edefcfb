//! Maps, whose keys Go sorts.

use super::{Out, Written, deeper, run, value, zero};
use crate::Error;
use crate::error::malformed;
use crate::schema::{FieldDef, FieldKind};
use crate::wire::{Reader, Value};

pub(super) fn map(
    field: &FieldDef,
    first: Value<'_>,
    reader: &mut Reader<'_>,
    depth: usize,
    out: &mut Out<'_>,
) -> Written {
    let depth = deeper(depth)?;
    out.key(field);
    out.json.push(b'{');
    if !matches!(field.kind, FieldKind::Str | FieldKind::Bytes | FieldKind::Quantity) {
        // Sorts the keys before any value is written that may hold a map: writing twice at every
        // level would take exponential time.
        let mut rest = *reader;
        let mut last = entry(field, first)?.0;
        while let Some(next) = run(field, &mut rest)? {
            let (next, _) = entry(field, next)?;
            if next <= last {
                return unsorted(field, first, reader, depth, out);
            }
            last = next;
        }
    }
    let (start, entries) = (out.json.len(), *reader);
    let held = entry(field, first)?;
    let mut last = held.0;
    map_entry(field, held, depth, out)?;
    while let Some(next) = run(field, reader)? {
        let held = entry(field, next)?;
        if held.0 <= last {
            out.json.truncate(start);
            *reader = entries;
            return unsorted(field, first, reader, depth, out);
        }
        last = held.0;
        out.json.push(b',');
        map_entry(field, held, depth, out)?;
    }
    out.json.push(b'}');
    Ok(())
}

/// The entries of a map whose keys are not sorted as Go sorts them, so that keys may repeat: the
/// last counts, but each is checked.
fn unsorted(
    field: &FieldDef,
    first: Value<'_>,
    reader: &mut Reader<'_>,
    depth: usize,
    out: &mut Out<'_>,
) -> Written {
    let mut entries = vec![entry(field, first)?];
    while let Some(next) = run(field, reader)? {
        entries.push(entry(field, next)?);
    }
    // Stable, so that equal keys keep their order.
    entries.sort_by_key(|(key, _)| *key);
    let mut entries = entries.into_iter().peekable();
    while let Some(entry) = entries.next() {
        let before = out.json.len();
        out.comma();
        map_entry(field, entry, depth, out)?;
        if entries.peek().is_some_and(|next| next.0 == entry.0) {
            out.json.truncate(before);
        }
    }
    out.json.push(b'}');
    Ok(())
}

/// The key and value of an entry.
fn entry<'a>(field: &FieldDef, value: Value<'a>) -> Result<(&'a [u8], Option<Value<'a>>), Error> {
    // Usually two texts, one after the other.
    if let Value::Bytes(bytes) = value {
        let mut reader = Reader::new(bytes);
        if let Some(key) = reader.next_of(1 << 3 | 2)
            && let Some(value) = reader.next_of(2 << 3 | 2)
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
    out: &mut Out<'_>,
) -> Written {
    out.json.push(b'"');
    if !out.plain(key) {
        out.other(key);
    }
    out.json.push(b':');
    match held {
        Some(Value::Bytes(text)) if field.kind == FieldKind::Str => {
            out.text(text);
            Ok(())
        }
        Some(held) => value(field, held, depth, out),
        None => zero(field, depth, out),
    }
}
