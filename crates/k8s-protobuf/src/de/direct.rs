//! Reading k8s-openapi's types field by field.
//!
//! Through serde, each field is told by its name, which the type compares with those it has, and each struct is put together
//! from variables of its own and moved. Here the table's field says where a value goes, in place. What is read this way is
//! what servers write: of protobuf, fields in the order of their numbers, in their shortest form, all of them known. At
//! anything else it gives up, and serde decodes the object from its beginning, so that there is one place that knows
//! the exceptions, and that makes the errors.

mod json;
mod protobuf;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, FieldsV1, MicroTime, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use serde::de::DeserializeOwned;

use json::Json;

use super::value::De;
use crate::Kind;
use crate::schema::FieldKind;

/// A value in the input, which is read once at most. Nothing is returned of what is to be left to serde.
trait Source: Copy {
    /// Whether it is null. It is read then.
    fn is_null(self) -> Option<bool>;
    fn text(self) -> Option<String>;
    fn bool(self) -> Option<bool>;
    fn i32(self) -> Option<i32>;
    fn i64(self) -> Option<i64>;
    fn bytes(self) -> Option<Vec<u8>>;
    fn quantity(self) -> Option<String>;
    fn int_or_string(self) -> Option<IntOrString>;
    fn time(self, kind: FieldKind) -> Option<Timestamp>;
    /// A struct through serde.
    fn by_serde<T: DeserializeOwned>(self) -> Option<T>;
    fn items(self, items: &mut dyn Items) -> Option<()>;
    fn entries(self, entries: &mut dyn Entries) -> Option<()>;
    /// Reads a message with this name in Go into its struct.
    fn message(self, object: &mut dyn Message, name: &'static str) -> Option<()>;
}

/// One type for all sources: what reads a message is not generic over them, so that it is compiled once.
#[derive(Clone, Copy)]
enum Value<'a> {
    Message(De<'a>),
    Json(Json<'a>),
}

macro_rules! of_either {
    ($($method:ident($($argument:ident: $of:ty),*) -> $type:ty;)*) => {
        $(fn $method(self, $($argument: $of),*) -> Option<$type> {
            match self {
                Self::Message(value) => Source::$method(value, $($argument),*),
                Self::Json(value) => Source::$method(value, $($argument),*),
            }
        })*
    };
}

impl Source for Value<'_> {
    of_either! {
        is_null() -> bool;
        text() -> String;
        bool() -> bool;
        i32() -> i32;
        i64() -> i64;
        bytes() -> Vec<u8>;
        quantity() -> String;
        int_or_string() -> IntOrString;
        time(kind: FieldKind) -> Timestamp;
        items(items: &mut dyn Items) -> ();
        entries(entries: &mut dyn Entries) -> ();
        message(object: &mut dyn Message, name: &'static str) -> ();
    }

    fn by_serde<T: DeserializeOwned>(self) -> Option<T> {
        match self {
            Self::Message(value) => Source::by_serde(value),
            Self::Json(value) => Source::by_serde(value),
        }
    }
}

impl Value<'_> {
    /// Any JSON. Not within JSON: how deep it may be depends on where it stands there.
    fn any<T: DeserializeOwned>(self) -> Option<T> {
        match self {
            Self::Message(value) => Source::by_serde(value),
            Self::Json(_) => None,
        }
    }
}

/// A struct that a message is read into.
trait Message {
    /// Reads the value into the field with this number, from 0x100 on of the message with that number whose fields JSON has
    /// in this one. `None` if there is no such field here, or the value is to be left to serde.
    fn set(&mut self, key: u16, value: Value<'_>) -> Option<()>;
}

/// A vector that items are read into.
trait Items {
    fn len(&self) -> usize;
    fn capacity(&self) -> usize;
    fn reserve_exact(&mut self, more: usize);
    /// Reads one that is not null behind the others.
    fn push(&mut self, value: Value<'_>) -> Option<()>;
}

impl<T: Read> Items for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn reserve_exact(&mut self, more: usize) {
        self.reserve_exact(more);
    }

    fn push(&mut self, value: Value<'_>) -> Option<()> {
        T::push(self, value)
    }
}

/// What entries of a map are read into.
trait Entries {
    fn reserve_exact(&mut self, more: usize);
    /// Reads a value that is not null.
    fn put(&mut self, key: String, value: Value<'_>) -> Option<()>;
}

impl<T: Read> Entries for Vec<(String, T)> {
    fn reserve_exact(&mut self, more: usize) {
        self.reserve_exact(more);
    }

    fn put(&mut self, key: String, value: Value<'_>) -> Option<()> {
        self.push((key, T::read(value)?));
        Some(())
    }
}

/// What a value is read into. Each way is `None` if the value is to be left to serde.
trait Read: Sized {
    /// Whether null is the default.
    const TAKES_NULL: bool = false;

    /// Reads what is not null.
    fn read(value: Value<'_>) -> Option<Self>;

    /// Reads it in place, where the default is so far. Structs are large to be moved.
    fn read_into(&mut self, value: Value<'_>) -> Option<()> {
        *self = Self::read(value)?;
        Some(())
    }

    /// Reads it into what is `None` so far.
    fn read_some(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
        *slot = Some(Self::read(value)?);
        Some(())
    }

    /// Reads it behind the others.
    fn push(items: &mut Vec<Self>, value: Value<'_>) -> Option<()> {
        items.push(Self::read(value)?);
        Some(())
    }
}

/// Reads a field, null or not.
fn fill<T: Read>(field: &mut T, value: Value<'_>, is_null: bool) -> Option<()> {
    if is_null { T::TAKES_NULL.then_some(()) } else { field.read_into(value) }
}

impl<T: Read> Read for Option<T> {
    const TAKES_NULL: bool = true;

    fn read(value: Value<'_>) -> Option<Self> {
        T::read(value).map(Some)
    }

    fn read_into(&mut self, value: Value<'_>) -> Option<()> {
        T::read_some(self, value)
    }
}

impl<T: Read> Read for Vec<T> {
    const TAKES_NULL: bool = true;

    fn read(value: Value<'_>) -> Option<Self> {
        let mut items = Self::new();
        value.items(&mut items)?;
        items.shrink_to_fit();
        Some(items)
    }
}

impl<T: Read> Read for BTreeMap<String, T> {
    const TAKES_NULL: bool = true;

    fn read(value: Value<'_>) -> Option<Self> {
        let mut entries = Vec::<(String, T)>::new();
        value.entries(&mut entries)?;
        // Sorted already, mostly; of equal keys the last one counts.
        Some(entries.into_iter().collect())
    }
}

macro_rules! values {
    ($($type:ty: $value:ident => $read:expr,)*) => {
        $(impl Read for $type {
            #[inline]
            fn read($value: Value<'_>) -> Option<Self> {
                $read
            }
        })*
    };
}

values! {
    String: value => value.text(),
    bool: value => value.bool(),
    i32: value => value.i32(),
    i64: value => value.i64(),
    ByteString: value => value.bytes().map(Self),
    Quantity: value => value.quantity().map(Self),
    IntOrString: value => value.int_or_string(),
    Time: value => value.time(FieldKind::Time).map(Self),
    MicroTime: value => value.time(FieldKind::MicroTime).map(Self),
    FieldsV1: value => value.any(),
    RawExtension: value => value.any(),
    // They must have a time, so there is no default to begin with.
    Condition: value => value.by_serde(),
    k8s_openapi::api::events::v1::EventSeries: value => value.by_serde(),
}

macro_rules! message {
    (
        $name:literal, $($part:ident)::+ { $($key:literal $field:ident),* }
        $($since:ident { $($late_key:literal $late:ident),* })*
    ) => {
        impl Message for k8s_openapi::$($part)::+ {
            fn set(&mut self, key: u16, value: Value<'_>) -> Option<()> {
                let is_null = value.is_null()?;
                match key {
                    $($key => fill(&mut self.$field, value, is_null),)*
                    _ => {
                        $(k8s_openapi::$since! {
                            $(if key == $late_key {
                                return fill(&mut self.$late, value, is_null);
                            })*
                        })*
                        None
                    }
                }
            }
        }

        impl Read for k8s_openapi::$($part)::+ {
            fn read(value: Value<'_>) -> Option<Self> {
                let mut object = Self::default();
                value.message(&mut object, $name)?;
                Some(object)
            }

            fn read_into(&mut self, value: Value<'_>) -> Option<()> {
                value.message(self, $name)
            }

            fn read_some(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
                value.message(slot.insert(Self::default()), $name)
            }

            fn push(items: &mut Vec<Self>, value: Value<'_>) -> Option<()> {
                items.push(Self::default());
                value.message(items.last_mut()?, $name)
            }
        }
    };
}

/// What an object is read from.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    Message(Kind, &'a [u8]),
    Json(&'a str),
}

/// A struct that is an object. Not generic over its input, so that it is compiled here, once, and not where objects are decoded.
trait Object: Sized {
    fn read_object(input: Input<'_>) -> Option<Self>;
}

macro_rules! objects {
    ($($($part:ident)::+)*) => {
        $(impl Object for k8s_openapi::$($part)::+ {
            fn read_object(input: Input<'_>) -> Option<Self> {
                match input {
                    Input::Message(kind, message) => protobuf::object(kind, message),
                    Input::Json(text) => json::object(text),
                }
            }
        })*

        /// The object, if its type is one of those read here, and nothing is unusual about it.
        pub(in super::super) fn object<T: 'static>(input: Input<'_>) -> Option<T> {
            let mut object = None::<T>;
            let slot: &mut dyn Any = &mut object;
            $(if TypeId::of::<T>() == TypeId::of::<k8s_openapi::$($part)::+>() {
                *slot.downcast_mut()? = <k8s_openapi::$($part)::+>::read_object(input);
                return object;
            })*
            None
        }

        /// [Compares](super::tests::compare) the ways of the object in both encodings; `None` for kinds that have but one.
        #[cfg(test)]
        pub(super) fn compare(kind: crate::Kind, message: &[u8], json: &[u8]) -> Option<super::tests::Direct> {
            use k8s_openapi::Resource;

            $(if (kind.api_version(), kind.name())
                == (k8s_openapi::$($part)::+::API_VERSION, k8s_openapi::$($part)::+::KIND)
            {
                return Some(super::tests::compare::<k8s_openapi::$($part)::+>(kind, message, json));
            })*
            None
        }
    };
}

#[rustfmt::skip]
mod messages;

pub(super) use messages::object;
pub(super) use protobuf::partial_metadata;

#[cfg(test)]
mod tests;
