//! Decoding into k8s-openapi's types field by field.
//!
//! Through serde, each field is told by its name, which the type compares with those it has, and each struct is put together
//! from variables of its own and moved. Here the field's number says where its value goes, in place. What is read this way is
//! what servers write: fields in the order of their numbers, in their shortest form, all of them known. At anything else it
//! gives up, and serde decodes the object from its beginning, so that there is one place that knows the exceptions, and
//! that makes the errors.

use std::collections::BTreeMap;
use std::ops::Range;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, FieldsV1, MicroTime, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::{ByteString, Resource};
use serde::Deserialize;

use super::text::ZERO_TIME;
use super::value::{De, Form};
use crate::schema::flags::{INLINE, MAP, OMIT_EMPTY, POINTER};
use crate::schema::{FieldDef, FieldKind, LeftOut, MessageDef};
use crate::special::{self, IntOrText};
use crate::wire::Reader;
use crate::{Kind, utf8};

/// A struct that a message is read into.
trait Message {
    /// Reads the value into the field with this number, from 0x100 on of the message with that number whose fields JSON has
    /// in this one. `None` if there is no such field here, or the value is to be left to serde.
    fn set(&mut self, key: u16, value: De<'_>) -> Option<()>;
}

/// A value that is there, and not null. Each way to read it is `None` if it is to be left to serde.
trait Read: Sized {
    /// Where the type has no null, and has its default instead.
    const NULL_IS_DEFAULT: bool = false;

    fn read(value: De<'_>) -> Option<Self>;

    /// Reads it in place, where the default is so far. Structs are large to be moved.
    fn read_into(&mut self, value: De<'_>) -> Option<()> {
        *self = Self::read(value)?;
        Some(())
    }

    /// Reads it into what is `None` so far.
    fn read_some(slot: &mut Option<Self>, value: De<'_>) -> Option<()> {
        *slot = Some(Self::read(value)?);
        Some(())
    }

    /// Reads it behind the others.
    fn push(items: &mut Vec<Self>, value: De<'_>) -> Option<()> {
        items.push(Self::read(value)?);
        Some(())
    }
}

/// A field of a struct.
trait Field {
    fn fill(&mut self, value: De<'_>) -> Option<()>;
}

impl<T: Read> Field for T {
    fn fill(&mut self, value: De<'_>) -> Option<()> {
        if is_null(value)? { T::NULL_IS_DEFAULT.then_some(()) } else { self.read_into(value) }
    }
}

impl<T: Read> Field for Option<T> {
    fn fill(&mut self, value: De<'_>) -> Option<()> {
        if is_null(value)? { Some(()) } else { T::read_some(self, value) }
    }
}

fn is_null(value: De<'_>) -> Option<bool> {
    if value.form == Form::One && !value.field.kind.may_be_null() {
        Some(false)
    } else {
        value.is_null().ok()
    }
}

/// The object, if its type is one of those read here, of the same kind, and nothing is unusual about it.
fn object<T: Message + Default + Resource>(kind: Kind, message: &[u8]) -> Option<T> {
    if (kind.api_version(), kind.name()) != (T::API_VERSION, T::KIND) {
        return None;
    }
    let mut object = T::default();
    fill(&mut object, message, kind.message(), 0, 1)?;
    Some(object)
}

fn message(object: &mut dyn Message, name: &'static str, value: De<'_>) -> Option<()> {
    if (value.form, value.field.kind) != (Form::One, FieldKind::Message) {
        return None;
    }
    let def = value.field.message();
    debug_assert_eq!(def.name, name);
    fill(object, value.bytes, def, 0, value.depth + 1)
}

/// Reads the fields of a message, which stand at this depth. `outer` is the number of the message within its parent's JSON.
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
        object.set(outer | u16::from(value.field.number), value)?;
    }
    absent(object, def, at..def.fields.len(), outer, depth)
}

/// What JSON has of these fields, which are absent.
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
        object.set(outer | u16::from(field.number), value)?;
    }
    Some(())
}

/// Reads a message whose fields JSON has in this one.
fn inline(
    object: &mut dyn Message,
    bytes: &[u8],
    field: &'static FieldDef,
    outer: u16,
    depth: u8,
) -> Option<()> {
    // No key is within two.
    if outer != 0 {
        return None;
    }
    fill(object, bytes, field.message(), u16::from(field.number) << 8, depth)
}

/// Behind the next value of the same field, if one follows.
fn next_of_run<'de>(mut reader: Reader<'de>, number: u32, encoding: u8) -> Option<Option<Reader<'de>>> {
    if reader.rest().is_empty() || reader.tag().ok()? != (number, encoding) {
        return Some(None);
    }
    reader.payload(encoding).ok()?;
    Some(Some(reader))
}

impl<T: Read> Read for Vec<T> {
    const NULL_IS_DEFAULT: bool = true;

    fn read(value: De<'_>) -> Option<Self> {
        if value.form != Form::Run {
            return None;
        }
        let mut items = Self::with_capacity(value.count as usize);
        let mut reader = Reader::new(value.bytes);
        let mut item = De { form: Form::One, count: 0, depth: value.depth + 1, ..value };
        while !reader.rest().is_empty() {
            let (_, encoding) = reader.tag().ok()?;
            item.bytes = reader.payload(encoding).ok()?;
            if is_null(item)? {
                return None;
            }
            T::push(&mut items, item)?;
        }
        Some(items)
    }
}

impl<T: Read> Read for BTreeMap<String, T> {
    const NULL_IS_DEFAULT: bool = true;

    fn read(value: De<'_>) -> Option<Self> {
        if value.form != Form::Entries {
            return None;
        }
        let mut entries = Vec::with_capacity(value.count as usize);
        let mut reader = Reader::new(value.bytes);
        let mut item = De { form: Form::One, count: 0, depth: value.depth + 1, ..value };
        while !reader.rest().is_empty() {
            let (_, encoding) = reader.tag().ok()?;
            let mut entry = Reader::new(reader.payload(encoding).ok()?);
            let key = part(&mut entry, 1, 2)?;
            item.bytes = part(&mut entry, 2, item.field.kind.encoding())?;
            if !entry.rest().is_empty() || is_null(item)? {
                return None;
            }
            entries.push((text(key)?, T::read(item)?));
        }
        // Sorted already, mostly; of equal keys the last one counts.
        Some(entries.into_iter().collect())
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

impl Read for String {
    fn read(value: De<'_>) -> Option<Self> {
        bytes_of(value, FieldKind::Str).and_then(text)
    }
}

impl Read for bool {
    fn read(value: De<'_>) -> Option<Self> {
        number(value, FieldKind::Bool).map(|value| value != 0)
    }
}

impl Read for i32 {
    fn read(value: De<'_>) -> Option<Self> {
        number(value, FieldKind::I32).map(|value| value as Self)
    }
}

impl Read for i64 {
    fn read(value: De<'_>) -> Option<Self> {
        number(value, FieldKind::I64).map(|value| value as Self)
    }
}

fn number(value: De<'_>, kind: FieldKind) -> Option<u64> {
    bytes_of(value, kind)?;
    value.varint().ok()
}

impl Read for ByteString {
    fn read(value: De<'_>) -> Option<Self> {
        bytes_of(value, FieldKind::Bytes).map(|bytes| Self(bytes.to_vec()))
    }
}

impl Read for Quantity {
    fn read(value: De<'_>) -> Option<Self> {
        text(special::quantity(bytes_of(value, FieldKind::Quantity)?).ok()?).map(Self)
    }
}

impl Read for IntOrString {
    fn read(value: De<'_>) -> Option<Self> {
        match special::int_or_text(bytes_of(value, FieldKind::IntOrString)?).ok()? {
            IntOrText::Int(int) => Some(Self::Int(int)),
            IntOrText::Text(bytes) => text(bytes).map(Self::String),
        }
    }
}

impl Read for Time {
    fn read(value: De<'_>) -> Option<Self> {
        timestamp(bytes_of(value, FieldKind::Time)?, FieldKind::Time).map(Self)
    }
}

impl Read for MicroTime {
    fn read(value: De<'_>) -> Option<Self> {
        timestamp(bytes_of(value, FieldKind::MicroTime)?, FieldKind::MicroTime).map(Self)
    }
}

/// From the year 1 on, and as far as the type goes; how times beyond that are written is left to serde.
fn timestamp(message: &[u8], kind: FieldKind) -> Option<Timestamp> {
    let moment = special::time(kind, message).ok()??;
    if moment.seconds < ZERO_TIME {
        return None;
    }
    let nanos = moment.micros.unwrap_or(0).checked_mul(1_000)?;
    Timestamp::new(moment.seconds, nanos.try_into().ok()?).ok()
}

macro_rules! by_serde {
    ($($type:ty),*) => {
        $(impl Read for $type {
            fn read(value: De<'_>) -> Option<Self> {
                Self::deserialize(value).ok()
            }
        })*
    };
}

// JSON, floats, and structs without a default to begin with.
by_serde!(Condition, FieldsV1, RawExtension, f64, k8s_openapi::api::events::v1::EventSeries);

macro_rules! message {
    (
        $name:literal, $($part:ident)::+ { $($key:literal $field:ident),* }
        $($since:ident { $($late_key:literal $late:ident),* })*
    ) => {
        impl Message for k8s_openapi::$($part)::+ {
            fn set(&mut self, key: u16, value: De<'_>) -> Option<()> {
                match key {
                    $($key => self.$field.fill(value),)*
                    _ => {
                        $(k8s_openapi::$since! {
                            $(if key == $late_key {
                                return self.$late.fill(value);
                            })*
                        })*
                        None
                    }
                }
            }
        }

        impl Read for k8s_openapi::$($part)::+ {
            fn read(value: De<'_>) -> Option<Self> {
                let mut object = Self::default();
                message(&mut object, $name, value)?;
                Some(object)
            }

            fn read_into(&mut self, value: De<'_>) -> Option<()> {
                message(self, $name, value)
            }

            fn read_some(slot: &mut Option<Self>, value: De<'_>) -> Option<()> {
                message(slot.insert(Self::default()), $name, value)
            }

            fn push(items: &mut Vec<Self>, value: De<'_>) -> Option<()> {
                items.push(Self::default());
                message(items.last_mut()?, $name, value)
            }
        }
    };
}

macro_rules! objects {
    ($($($part:ident)::+)*) => {
        /// The object, if its type is one of those read here, and nothing is unusual about it.
        pub(in super::super) fn decode<T: 'static>(kind: Kind, message: &[u8]) -> Option<T> {
            let mut decoded = None::<T>;
            let slot: &mut dyn Any = &mut decoded;
            $(if TypeId::of::<T>() == TypeId::of::<k8s_openapi::$($part)::+>() {
                *slot.downcast_mut()? = object::<k8s_openapi::$($part)::+>(kind, message);
                return decoded;
            })*
            None
        }

        /// [Compares](super::tests::compare) the object's two ways; `None` for kinds that have but one.
        #[cfg(test)]
        pub(super) fn compare(kind: Kind, message: &[u8]) -> Option<bool> {
            use k8s_openapi::Resource;

            $(if (kind.api_version(), kind.name())
                == (k8s_openapi::$($part)::+::API_VERSION, k8s_openapi::$($part)::+::KIND)
            {
                return Some(super::tests::compare::<k8s_openapi::$($part)::+>(kind, message));
            })*
            None
        }
    };
}

#[rustfmt::skip]
mod messages;

pub(super) use messages::decode;

#[cfg(test)]
mod tests;
