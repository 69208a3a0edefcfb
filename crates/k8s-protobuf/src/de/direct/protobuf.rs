//! Protobuf as servers write it: fields ascending, in their shortest form.

use std::ops::Range;

use k8s_openapi::Resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::super::text::ZERO_TIME;
use super::super::value::{De, Form};
use super::{Entries, Items, Message};
use crate::schema::flags::{INLINE, MAP, OMIT_EMPTY, POINTER};
use crate::schema::{FieldDef, FieldKind, LeftOut, MessageDef};
use crate::special::{self, IntOrText};
use crate::wire::Reader;
use crate::{Kind, utf8};

/// Capacity reserved for an array before its first item is read.
const AT_FIRST: usize = 64;

/// The object, if the type is that of its kind.
pub(super) fn object<T: Message + Default + Resource>(kind: Kind, message: &[u8]) -> Option<T> {
    if (kind.api_version(), kind.name()) != (T::API_VERSION, T::KIND) {
        return None;
    }
    let mut object = T::default();
    fill(&mut object, message, kind.message(), 0, 1)?;
    Some(object)
}

/// The metadata of a `PartialObjectMetadata`.
pub(in super::super) fn partial_metadata(kind: Kind, message: &[u8]) -> Option<ObjectMeta> {
    struct Partial(ObjectMeta);

    impl Message for Partial {
        fn set(&mut self, key: u16, value: Value<'_>) -> Option<()> {
            if key == 1 { super::fill(&mut self.0, value, value.is_null()?) } else { None }
        }
    }

    if kind.name() != "PartialObjectMetadata" {
        return None;
    }
    let mut object = Partial(ObjectMeta::default());
    fill(&mut object, message, kind.message(), 0, 1)?;
    Some(object.0)
}

/// Reads the fields of a message at this depth. `outer` is the number of an inlined message within
/// its parent, shifted by 8; 0 for others.
fn fill(
    object: &mut dyn Message,
    bytes: &[u8],
    def: &'static MessageDef,
    outer: u16,
    depth: u8,
) -> Option<()> {
    let (mut rest, mut at) = (bytes, 0);
    while !rest.is_empty() {
        let value = match def.take(rest, at) {
            Some(taken) => {
                (rest, at) = (taken.rest, taken.next);
                if taken.is_left_out {
                    continue;
                }
                De { bytes: taken.bytes, field: taken.field, count: 0, form: Form::One, depth }
            }
            None => {
                let mut reader = Reader::new(rest);
                let (number, encoding) = reader.tag().ok()?;
                let place = def.place(number)?;
                let field = &def.fields[place];
                if place < at || field.tag & 7 != u16::from(encoding) {
                    return None;
                }
                absent(object, def, at..place, outer, depth)?;
                at = place + 1;
                let bytes = reader.payload(encoding).ok()?;
                let mut value = De { bytes, field, count: 0, form: Form::One, depth };
                if field.has(INLINE) {
                    rest = reader.rest();
                    inline(object, bytes, field, outer, depth)?;
                    continue;
                }
                if field.left_out == LeftOut::Many {
                    value.count = 1;
                    while let Some(next) = next_of_run(reader, number, encoding)? {
                        reader = next;
                        value.count = value.count.saturating_add(1);
                    }
                    value.bytes = &rest[..rest.len() - reader.rest().len()];
                    value.form = if field.has(MAP) { Form::Entries } else { Form::Run };
                }
                rest = reader.rest();
                if value.is_left_out().ok()? {
                    continue;
                }
                value
            }
        };
        object.set(outer | u16::from(value.field.number), Value(value))?;
    }
    absent(object, def, at..def.fields.len(), outer, depth)
}

/// Sets the fields in these places, which are absent, to the values that JSON has for them.
fn absent(
    object: &mut dyn Message,
    def: &'static MessageDef,
    places: Range<usize>,
    outer: u16,
    depth: u8,
) -> Option<()> {
    if def.are_left_out(places.start, places.end) {
        return Some(());
    }
    for field in def.fields[places].iter().filter(|field| !field.is_left_out()) {
        if field.has(INLINE) {
            inline(object, &[], field, outer, depth)?;
            continue;
        }
        let is_null = field.has(POINTER) && !field.has(OMIT_EMPTY);
        let form = if is_null { Form::Null } else { Form::One };
        let value = De { bytes: &[], field, count: 0, form, depth };
        object.set(outer | u16::from(field.number), Value(value))?;
    }
    Some(())
}

/// Reads an inlined message: JSON has its fields in the parent object.
fn inline(
    object: &mut dyn Message,
    bytes: &[u8],
    field: &'static FieldDef,
    outer: u16,
    depth: u8,
) -> Option<()> {
    // Messages are inlined one level deep at most.
    if outer != 0 {
        return None;
    }
    fill(object, bytes, field.message(), u16::from(field.number) << 8, depth)
}

/// The position after the next value of the same field; `None` inside if none follows.
fn next_of_run<'de>(
    mut reader: Reader<'de>,
    number: u32,
    encoding: u8,
) -> Option<Option<Reader<'de>>> {
    if reader.rest().is_empty() || reader.tag().ok()? != (number, encoding) {
        return Some(None);
    }
    reader.payload(encoding).ok()?;
    Some(Some(reader))
}

/// A value in a message, read at most once. Its methods return `None` if serde has to decode it.
#[derive(Clone, Copy)]
pub(super) struct Value<'a>(De<'a>);

impl Value<'_> {
    /// Whether it is null. This consumes a null.
    #[inline]
    pub(super) fn is_null(self) -> Option<bool> {
        if self.0.form == Form::One && !self.0.field.kind.may_be_null() {
            Some(false)
        } else {
            self.0.is_null().ok()
        }
    }

    pub(super) fn text(self) -> Option<String> {
        text(bytes_of(self.0, FieldKind::Str)?)
    }

    pub(super) fn bool(self) -> Option<bool> {
        number(self.0, FieldKind::Bool).map(|value| value != 0)
    }

    pub(super) fn i32(self) -> Option<i32> {
        number(self.0, FieldKind::I32).map(|value| value as i32)
    }

    pub(super) fn i64(self) -> Option<i64> {
        number(self.0, FieldKind::I64).map(|value| value as i64)
    }

    pub(super) fn bytes(self) -> Option<Vec<u8>> {
        bytes_of(self.0, FieldKind::Bytes).map(<[u8]>::to_vec)
    }

    pub(super) fn quantity(self) -> Option<String> {
        text(special::quantity(bytes_of(self.0, FieldKind::Quantity)?).ok()?)
    }

    pub(super) fn int_or_string(self) -> Option<IntOrString> {
        match special::int_or_text(bytes_of(self.0, FieldKind::IntOrString)?).ok()? {
            IntOrText::Int(int) => Some(IntOrString::Int(int)),
            IntOrText::Text(bytes) => text(bytes).map(IntOrString::String),
        }
    }

    /// From the year 1 up to the limit of the type; serde handles other times.
    pub(super) fn time(self, kind: FieldKind) -> Option<Timestamp> {
        let moment = special::time(kind, bytes_of(self.0, kind)?).ok()??;
        if moment.seconds < ZERO_TIME {
            return None;
        }
        let nanos = moment.micros.unwrap_or(0).checked_mul(1_000)?;
        Timestamp::new(moment.seconds, nanos.try_into().ok()?).ok()
    }

    /// A struct, or any JSON, through serde.
    pub(super) fn by_serde<T: DeserializeOwned>(self) -> Option<T> {
        T::deserialize(self.0).ok()
    }

    pub(super) fn items(self, items: &mut dyn Items) -> Option<()> {
        if self.0.form != Form::Run {
            return None;
        }
        let count = self.0.count as usize;
        let mut reader = Reader::new(self.0.bytes);
        let mut item = De { form: Form::One, count: 0, depth: self.0.depth + 1, ..self.0 };
        while !reader.rest().is_empty() {
            let (_, encoding) = reader.tag().ok()?;
            item.bytes = reader.payload(encoding).ok()?;
            if Value(item).is_null()? {
                return None;
            }
            let length = items.len();
            if length == items.capacity() {
                // Exact, except for structs not read before: a message of two bytes may become a
                // struct of kilobytes.
                items.reserve_exact((count - length).min(length.max(AT_FIRST)));
            }
            items.push(Value(item))?;
        }
        Some(())
    }

    pub(super) fn entries(self, entries: &mut dyn Entries) -> Option<()> {
        if self.0.form != Form::Entries {
            return None;
        }
        entries.reserve_exact(self.0.count as usize);
        let mut reader = Reader::new(self.0.bytes);
        let mut item = De { form: Form::One, count: 0, depth: self.0.depth + 1, ..self.0 };
        while !reader.rest().is_empty() {
            let (_, encoding) = reader.tag().ok()?;
            let mut entry = Reader::new(reader.payload(encoding).ok()?);
            let key = part(&mut entry, 1, 2)?;
            item.bytes = part(&mut entry, 2, item.field.kind.encoding())?;
            if !entry.rest().is_empty() || Value(item).is_null()? {
                return None;
            }
            entries.put(text(key)?, Value(item))?;
        }
        Some(())
    }

    /// Reads a message with this Go name into its struct.
    pub(super) fn message(self, object: &mut dyn Message, name: &'static str) -> Option<()> {
        if (self.0.form, self.0.field.kind) != (Form::One, FieldKind::Message) {
            return None;
        }
        let def = self.0.field.message();
        debug_assert_eq!(def.name, name);
        fill(object, self.0.bytes, def, 0, self.0.depth + 1)
    }
}

/// The field with this number, if it is the next one.
fn part<'de>(reader: &mut Reader<'de>, number: u32, encoding: u8) -> Option<&'de [u8]> {
    if reader.tag().ok()? != (number, encoding) {
        return None;
    }
    reader.payload(encoding).ok()
}

fn text(bytes: &[u8]) -> Option<String> {
    utf8::checked(bytes).map(str::to_owned)
}

/// The value, if it is of this kind.
fn bytes_of(value: De<'_>, kind: FieldKind) -> Option<&[u8]> {
    ((value.form, value.field.kind) == (Form::One, kind)).then_some(value.bytes)
}

fn number(value: De<'_>, kind: FieldKind) -> Option<u64> {
    bytes_of(value, kind)?;
    value.varint().ok()
}
