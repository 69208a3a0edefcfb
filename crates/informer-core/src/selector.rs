//! Label and field selectors, which select objects of a collection.
//!
//! [`LabelSelector`] parses the whole grammar of `k8s.io/apimachinery/pkg/labels`,
//! [`FieldSelector`] that of `pkg/fields`. Both have a canonical text: equal selectors print the
//! same text, and it parses back to an equal selector. So a selector can be part of a collection's
//! identity.

use std::convert::Infallible;
use std::fmt;

mod field;
mod label;
mod selectable;
mod syntax;

pub use field::{FieldRequirement, FieldSelector, field_value};
pub use label::{LabelSelector, Operator, Requirement};
pub use selectable::{SelectableField, SelectableFields, UnsupportedField};

/// A text is not a selector: the text, the offset, and what was expected there.
///
/// The `Display` form quotes the text at the offset, for the author of the selector.
///
/// # Examples
/// ```
/// use informer_core::selector::LabelSelector;
///
/// let error = "a in (x".parse::<LabelSelector>().unwrap_err();
/// assert_eq!(error.offset, 7);
/// assert_eq!(
///     error.to_string(),
///     r#"label selector "a in (x": at offset 7: expected ',' or ')', found the end"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseSelectorError {
    grammar: Grammar,
    /// The text that was parsed.
    pub text: String,
    /// The offset in the text, in bytes; the length of the text if more was expected at its end.
    pub offset: usize,
    /// What could have stood there.
    pub expected: &'static str,
    found: String,
}

impl ParseSelectorError {
    fn new(
        grammar: Grammar,
        text: &str,
        offset: usize,
        expected: &'static str,
        found: &str,
    ) -> Self {
        Self { grammar, text: text.to_owned(), offset, expected, found: found.to_owned() }
    }
}

impl fmt::Display for ParseSelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { grammar, text, offset, expected, found } = self;
        write!(f, "{grammar} selector {text:?}: at offset {offset}: expected {expected}, found ")?;
        if *offset == text.len() { f.write_str("the end") } else { write!(f, "{found:?}") }
    }
}

impl std::error::Error for ParseSelectorError {}

/// A function that takes a text or a selector has this error, which a selector never causes.
impl From<Infallible> for ParseSelectorError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Conversions for functions that take a text or a selector.
macro_rules! convert {
    ($selector:ty) => {
        impl TryFrom<&str> for $selector {
            type Error = ParseSelectorError;

            fn try_from(text: &str) -> Result<Self, ParseSelectorError> {
                text.parse()
            }
        }

        impl TryFrom<&String> for $selector {
            type Error = ParseSelectorError;

            fn try_from(text: &String) -> Result<Self, ParseSelectorError> {
                text.parse()
            }
        }

        impl TryFrom<String> for $selector {
            type Error = ParseSelectorError;

            fn try_from(text: String) -> Result<Self, ParseSelectorError> {
                text.parse()
            }
        }

        impl From<&Self> for $selector {
            fn from(selector: &Self) -> Self {
                selector.clone()
            }
        }
    };
}

convert!(LabelSelector);
convert!(FieldSelector);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grammar {
    Label,
    Field,
}

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Label => "label",
            Self::Field => "field",
        })
    }
}
