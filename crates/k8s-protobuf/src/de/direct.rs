//! Reading k8s-openapi's types from protobuf, field by field.
//!
//! Through serde, each field is told by its name, which the type compares with those it has, and each struct is put together
//! from variables of its own and moved. Here the table's field says where a value goes, in place. What is read this way is
//! what servers write: fields in the order of their numbers, in their shortest form, all of them known. At
//! anything else it gives up, and serde decodes the object from its beginning, so that there is one place that knows
//! the exceptions, and that makes the errors.

mod protobuf;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, FieldsV1, MicroTime, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use protobuf::Value;

use crate::Kind;
use crate::schema::FieldKind;

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
    FieldsV1: value => value.by_serde(),
    RawExtension: value => value.by_serde(),
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

/// A struct that is an object. Compiled here, once, and not where objects are decoded.
trait Object: Sized {
    fn read_object(kind: Kind, message: &[u8]) -> Option<Self>;
}

macro_rules! objects {
    ($($($part:ident)::+)*) => {
        $(impl Object for k8s_openapi::$($part)::+ {
            fn read_object(kind: crate::Kind, message: &[u8]) -> Option<Self> {
                protobuf::object(kind, message)
            }
        })*

        /// The object, if its type is one of those read here, and nothing is unusual about it.
        pub(in super::super) fn object<T: 'static>(kind: crate::Kind, message: &[u8]) -> Option<T> {
            let mut object = None::<T>;
            let slot: &mut dyn Any = &mut object;
            $(if TypeId::of::<T>() == TypeId::of::<k8s_openapi::$($part)::+>() {
                *slot.downcast_mut()? = <k8s_openapi::$($part)::+>::read_object(kind, message);
                return object;
            })*
            None
        }

        /// [Compares](super::tests::compare) both ways of reading the object; `None` for kinds that have but one.
        #[cfg(test)]
        pub(super) fn compare(kind: crate::Kind, message: &[u8]) -> Option<bool> {
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

pub(super) use messages::object;
pub(super) use protobuf::partial_metadata;

#[cfg(test)]
mod tests;
