//! Reading k8s-openapi's types from protobuf, field by field.
//!
//! serde passes each field by name, which the type compares with all of its names, and assembles
//! each struct from temporaries that are moved at the end. Here the field number selects the
//! destination, and values are set in place. This reader accepts only what servers write: fields
//! ascending, in their shortest form, all of them known. On anything else it returns `None`, and
//! serde decodes the object from its beginning, so that exceptions and errors are handled in one
//! place.

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
    /// Reads the value into the field with this key: its number, or, for a field of an inlined
    /// message, `0x100 *` the number of that message plus its own. `None` if there is no such
    /// field, or serde has to decode the value.
    fn set(&mut self, key: u16, value: Value<'_>) -> Option<()>;
}

/// A vector that receives the items of an array.
trait Items {
    fn len(&self) -> usize;
    fn capacity(&self) -> usize;
    fn reserve_exact(&mut self, more: usize);
    /// Appends an item that is not null.
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

/// A map's entries, as they are read.
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

/// A type that a value is read into. Each method returns `None` if serde has to decode the value.
trait Read: Sized {
    /// Whether null gives the default.
    const TAKES_NULL: bool = false;

    /// Reads a value that is not null.
    fn read(value: Value<'_>) -> Option<Self>;

    /// Reads into a default in place: structs are too large to move.
    fn read_into(&mut self, value: Value<'_>) -> Option<()> {
        *self = Self::read(value)?;
        Some(())
    }

    /// Reads into an `Option` that is `None`.
    fn read_some(slot: &mut Option<Self>, value: Value<'_>) -> Option<()> {
        *slot = Some(Self::read(value)?);
        Some(())
    }

    /// Reads an item and appends it.
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
        // Usually sorted already; of equal keys the last one counts.
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
    // These types have no default, since they must have a time.
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

/// A struct that is a whole object. Instantiated here once, and not in each crate that decodes.
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

        /// The object, if its type is read here and the message is as servers write it.
        pub(in super::super) fn object<T: 'static>(kind: crate::Kind, message: &[u8]) -> Option<T> {
            let mut object = None::<T>;
            let slot: &mut dyn Any = &mut object;
            $(if TypeId::of::<T>() == TypeId::of::<k8s_openapi::$($part)::+>() {
                *slot.downcast_mut()? = <k8s_openapi::$($part)::+>::read_object(kind, message);
                return object;
            })*
            None
        }

        /// [Compares](super::tests::compare) both readers on the object; `None` for kinds that have
        /// only one.
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
