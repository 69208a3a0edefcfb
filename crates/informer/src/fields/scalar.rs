//! Reading one field of a decoded object by way of `Serialize`.

use std::fmt;

use k8s_protobuf::Segment;
use serde::Serialize;
use serde::ser::{
    Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// The first text, number or boolean at `path`; `None` if there is none, or only an empty text.
pub(super) fn first<T: Serialize + ?Sized>(value: &T, path: &[Segment]) -> Option<String> {
    match value.serialize(Search::At(path)) {
        Err(End::Found(text)) => Some(text),
        Ok(()) | Err(End::Failed) => None,
    }
}

/// What is looked for in the value that comes.
#[derive(Clone, Copy)]
enum Search<'p> {
    /// A scalar at this path.
    At(&'p [Segment]),
    /// Whether the value is this text.
    Equal(&'p str),
    Nothing,
}

/// Ends the walk.
#[derive(Debug)]
enum End {
    Found(String),
    /// The object cannot be serialised.
    Failed,
}

/// The members of an object, or the items of an array, while they come.
struct Within<'p> {
    search: Search<'p>,
    /// Whether the key of a map that came last is the one to go into.
    is_here: bool,
}

impl<'p> Search<'p> {
    /// A scalar has come.
    fn scalar(self, text: impl fmt::Display) -> Result<(), End> {
        match self {
            Self::At([]) => Err(End::Found(text.to_string())),
            Self::At(_) | Self::Equal(_) | Self::Nothing => Ok(()),
        }
    }

    fn within(self) -> Within<'p> {
        Within { search: self, is_here: false }
    }

    /// What to look for in the member `key`.
    fn member(self, key: &str) -> Self {
        match self {
            Self::At([Segment::Name(name) | Segment::Key(name), rest @ ..]) if name == key => {
                Self::At(rest)
            }
            Self::At(_) | Self::Equal(_) | Self::Nothing => Self::Nothing,
        }
    }

    /// What to look for in each item.
    fn item(self) -> Self {
        match self {
            Self::At([Segment::Each, rest @ ..]) => Self::At(rest),
            Self::At(_) | Self::Equal(_) | Self::Nothing => Self::Nothing,
        }
    }

    fn go_on<T: Serialize + ?Sized>(self, value: &T) -> Result<(), End> {
        match self {
            // Nothing below is visited.
            Self::Nothing => Ok(()),
            Self::At(_) | Self::Equal(_) => value.serialize(self),
        }
    }
}

macro_rules! scalars {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, value: $type) -> Result<(), End> {
            self.scalar(value)
        })*
    };
}

impl<'p> Serializer for Search<'p> {
    type Ok = ();
    type Error = End;
    type SerializeSeq = Within<'p>;
    type SerializeTuple = Within<'p>;
    type SerializeTupleStruct = Within<'p>;
    type SerializeTupleVariant = Within<'p>;
    type SerializeMap = Within<'p>;
    type SerializeStruct = Within<'p>;
    type SerializeStructVariant = Within<'p>;

    scalars! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64
    }

    fn serialize_f32(self, value: f32) -> Result<(), End> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), End> {
        // As JSON writes it.
        serde_json::Number::from_f64(value).map_or(Ok(()), |number| self.scalar(number))
    }

    fn serialize_char(self, value: char) -> Result<(), End> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), End> {
        match self {
            Self::At([]) if !value.is_empty() => Err(End::Found(value.to_owned())),
            Self::Equal(wanted) if wanted == value => Err(End::Found(String::new())),
            Self::At(_) | Self::Equal(_) | Self::Nothing => Ok(()),
        }
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), End> {
        Ok(())
    }

    fn serialize_none(self) -> Result<(), End> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), End> {
        self.go_on(value)
    }

    fn serialize_unit(self) -> Result<(), End> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), End> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), End> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), End> {
        self.go_on(value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), End> {
        self.member(variant).go_on(value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Within<'p>, End> {
        Ok(self.within())
    }

    fn serialize_tuple(self, _: usize) -> Result<Within<'p>, End> {
        Ok(self.within())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Within<'p>, End> {
        Ok(self.within())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Within<'p>, End> {
        Ok(self.member(variant).within())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Within<'p>, End> {
        Ok(self.within())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Within<'p>, End> {
        Ok(self.within())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Within<'p>, End> {
        Ok(self.member(variant).within())
    }
}

impl SerializeMap for Within<'_> {
    type Ok = ();
    type Error = End;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), End> {
        self.is_here = match self.search {
            Search::At([Segment::Name(name) | Segment::Key(name), ..]) => {
                matches!(key.serialize(Search::Equal(name)), Err(End::Found(_)))
            }
            Search::At(_) | Search::Equal(_) | Search::Nothing => false,
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), End> {
        match self.search {
            Search::At([_, rest @ ..]) if self.is_here => Search::At(rest).go_on(value),
            Search::At(_) | Search::Equal(_) | Search::Nothing => Ok(()),
        }
    }

    fn end(self) -> Result<(), End> {
        Ok(())
    }
}

macro_rules! fields {
    ($($of:ident),*) => {
        $(impl $of for Within<'_> {
            type Ok = ();
            type Error = End;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), End> {
                self.search.member(key).go_on(value)
            }

            fn end(self) -> Result<(), End> {
                Ok(())
            }
        })*
    };
}

macro_rules! items {
    ($($of:ident: $method:ident),*) => {
        $(impl $of for Within<'_> {
            type Ok = ();
            type Error = End;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), End> {
                self.search.item().go_on(value)
            }

            fn end(self) -> Result<(), End> {
                Ok(())
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);
items!(
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);

impl Error for End {
    fn custom<M: fmt::Display>(_: M) -> Self {
        Self::Failed
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the value (G34).
        f.write_str("the end of a search")
    }
}

impl std::error::Error for End {}
