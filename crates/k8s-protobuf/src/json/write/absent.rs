//! Absent fields.

use std::ops::Range;

use super::{Out, Written, fields, message};
use crate::schema::{FieldDef, FieldKind, MessageDef, flags};

/// Writes the fields in these places, which are absent: Go's types have all of them.
#[inline]
pub(super) fn absent(
    def: &MessageDef,
    places: Range<usize>,
    depth: usize,
    out: &mut Out<'_>,
) -> Written {
    // Most fields.
    if def.are_left_out(places.start, places.end) {
        return Ok(());
    }
    def.fields[places].iter().try_for_each(|field| empty(field, depth, out))
}

/// Writes an absent field.
pub(super) fn empty(field: &FieldDef, depth: usize, out: &mut Out<'_>) -> Written {
    let omitted = flags::POINTER | flags::OMIT_EMPTY;
    if field.has(flags::OMIT_ZERO) || field.flags & omitted == omitted {
        return Ok(());
    }
    if field.has(flags::INLINE) {
        return fields(field.message(), &[], depth, out);
    }
    if field.has(flags::POINTER) {
        out.key(field);
        // Servers write a list without items as an empty array.
        out.put(if field.has(flags::LIST_ITEMS) { b"[]" } else { b"null" });
        return Ok(());
    }
    if field.has(flags::OMIT_EMPTY) && is_scalar(field.kind) {
        return Ok(());
    }
    out.key(field);
    zero(field, depth, out)
}

/// Whether Go's `omitempty` omits the zero value: not for structs.
fn is_scalar(kind: FieldKind) -> bool {
    use FieldKind::{Bool, Bytes, F64, I32, I64, Str, StrList};
    matches!(kind, Str | Bytes | Bool | I32 | I64 | F64 | StrList)
}

/// Writes the value that has no fields.
pub(super) fn zero(field: &FieldDef, depth: usize, out: &mut Out<'_>) -> Written {
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
    out.put(written);
    Ok(())
}
