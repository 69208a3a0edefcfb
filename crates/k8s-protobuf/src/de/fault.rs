//! Errors while a type is decoded: small, and with the path of the field, which is collected on the
//! way out.

use std::fmt::{self, Display, Write as _};

use serde::de::{Expected, Unexpected};

use crate::Error;
use crate::error::UNORDERED;
use crate::wire::Broken;

/// An [`Error`] under construction.
#[derive(Debug)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Debug)]
struct Inner {
    what: What,
    /// Innermost first.
    steps: Vec<Step>,
}

#[derive(Debug)]
enum What {
    /// The bytes do not fit the type, or the type refuses them.
    Type(String),
    Bytes(Error),
}

#[derive(Debug)]
enum Step {
    Name(String),
    Index(u32),
}

impl Fault {
    #[cold]
    pub(super) fn new(message: impl Into<String>) -> Self {
        What::Type(message.into()).into()
    }

    #[cold]
    pub(super) fn unordered() -> Self {
        Self::new(UNORDERED)
    }

    #[cold]
    pub(super) fn mismatch(found: &str, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid type: {found}, expected {expected}"))
    }

    /// Prepends the field of this name to the path.
    #[cold]
    pub(super) fn within(mut self, name: &str) -> Self {
        self.0.steps.push(Step::Name(name.chars().take(256).collect()));
        self
    }

    /// Prepends this element to the path.
    #[cold]
    pub(super) fn at(mut self, index: u32) -> Self {
        self.0.steps.push(Step::Index(index));
        self
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in self.0.steps.iter().rev() {
            match step {
                Step::Name(name) if path.is_empty() => path.push_str(name),
                Step::Name(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                // Writing to a string cannot fail.
                Step::Index(index) => _ = write!(path, "[{index}]"),
            }
        }
        if path.is_empty() { ".".to_owned() } else { path }
    }
}

impl From<What> for Fault {
    fn from(what: What) -> Self {
        Self(Box::new(Inner { what, steps: Vec::new() }))
    }
}

impl From<Error> for Fault {
    #[cold]
    fn from(error: Error) -> Self {
        What::Bytes(error).into()
    }
}

impl From<Broken> for Fault {
    #[cold]
    fn from(broken: Broken) -> Self {
        Error::from(broken).into()
    }
}

impl From<Fault> for Error {
    #[cold]
    fn from(fault: Fault) -> Self {
        let path = fault.path();
        match fault.0.what {
            What::Type(message) => Self::Type { path, message },
            What::Bytes(error) => error,
        }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.what {
            What::Type(message) => write!(f, "{}: {message}", self.path()),
            What::Bytes(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Fault {}

/// Messages never contain a value: serde's own would quote it, and a type's message may.
impl serde::de::Error for Fault {
    #[cold]
    fn custom<T: Display>(_: T) -> Self {
        Self::new("invalid value")
    }

    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::mismatch(word(found), expected)
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid value: {}, expected {expected}", word(found)))
    }

    #[cold]
    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid length {length}, expected {expected}"))
    }

    #[cold]
    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("unknown variant, expected {}", OneOf(expected)))
    }

    #[cold]
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let field: String = field.chars().take(256).collect();
        Self::new(format!("unknown field `{field}`, expected {}", OneOf(expected)))
    }

    #[cold]
    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("missing field `{field}`"))
    }

    #[cold]
    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("duplicate field `{field}`"))
    }
}

/// Describes a value by its type, without the value itself.
fn word(found: Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "integer",
        Unexpected::Float(_) => "floating point",
        Unexpected::Char(_) => "character",
        Unexpected::Str(_) => "string",
        Unexpected::Bytes(_) => "byte array",
        Unexpected::Unit => "null",
        Unexpected::Option => "Option value",
        Unexpected::NewtypeStruct => "newtype struct",
        Unexpected::Seq => "sequence",
        Unexpected::Map => "map",
        Unexpected::Enum => "enum",
        Unexpected::UnitVariant => "unit variant",
        Unexpected::NewtypeVariant => "newtype variant",
        Unexpected::TupleVariant => "tuple variant",
        Unexpected::StructVariant => "struct variant",
        Unexpected::Other(_) => "other value",
    }
}

/// The names that a type knows.
struct OneOf(&'static [&'static str]);

impl Display for OneOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            write!(f, "{}`{name}`", if at == 0 { "" } else { ", " })?;
        }
        if self.0.is_empty() { f.write_str("nothing") } else { Ok(()) }
    }
}
