//! Field selectors.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::{Grammar, Operator, ParseSelectorError};

/// A field selector: requirements that must all hold for an object's fields.
///
/// `metadata.name=x,spec.nodeName!=y`, with `=`, `==` or `!=`, joined by commas. In values a
/// backslash escapes `\`, `,` and `=`; white space counts. The empty text selects everything. An
/// absent field has the empty value. Field paths here have no white space, `=`, `!`, `,` or `\`,
/// which no field of Kubernetes has.
///
/// `a==b` is kept as `a=b`; requirements are sorted and repeated ones dropped.
///
/// # Examples
/// ```
/// use informer_core::selector::{FieldSelector, field_value};
/// use serde_json::json;
///
/// let selector: FieldSelector = "spec.nodeName==node-1,status.phase!=Failed".parse()?;
/// assert_eq!(selector.to_string(), "spec.nodeName=node-1,status.phase!=Failed");
/// let pod = json!({"spec": {"nodeName": "node-1"}});
/// assert!(selector.matches(|path| Some(field_value(&pod, path))));
/// # Ok::<(), informer_core::selector::ParseSelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    /// Sorted, without repetitions.
    requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Whether every object matches because nothing is required.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// This selector, requiring also that the field at `path` is `value`.
    ///
    /// # Errors
    /// If `path` is not a field path; the error's text is `path=value`.
    pub fn with_equal(mut self, path: &str, value: &str) -> Result<Self, ParseSelectorError> {
        let requirement = FieldRequirement::new(path, Operator::Equals, value.to_owned());
        check_path(path, 0, &requirement.to_string())?;
        if let Err(at) = self.requirements.binary_search(&requirement) {
            self.requirements.insert(at, requirement);
        }
        Ok(self)
    }

    /// The requirements, sorted by field.
    #[must_use]
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// The value that the field at `path` must have, from its first `=` requirement.
    #[must_use]
    pub fn required_value(&self, path: &str) -> Option<&str> {
        let names_value =
            |it: &&FieldRequirement| it.field == path && it.operator == Operator::Equals;
        self.requirements.iter().find(names_value).map(FieldRequirement::value)
    }

    /// Whether fields match. `lookup` returns the value for a path; `None` (absent) counts as
    /// empty.
    pub fn matches<'v>(&self, lookup: impl Fn(&str) -> Option<Cow<'v, str>>) -> bool {
        self.requirements.iter().all(|it| it.matches(&lookup(&it.field).unwrap_or_default()))
    }

    #[cfg(test)]
    fn matches_value(&self, object: &Value) -> bool {
        self.matches(|path| Some(field_value(object, path)))
    }
}

/// The canonical text, which parses back to an equal selector.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl FromStr for FieldSelector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut requirements = Vec::new();
        let mut start = 0;
        while start <= text.len() {
            let end = term_end(text, start);
            if start < end {
                requirements.push(parse_term(text, start, end)?);
            }
            start = end + 1;
        }
        requirements.sort_unstable();
        requirements.dedup();
        Ok(Self { requirements })
    }
}

/// One condition on one field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldRequirement {
    field: String,
    operator: Operator,
    value: String,
}

impl FieldRequirement {
    /// The field's path, such as `spec.nodeName`.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// [`Operator::Equals`] or [`Operator::NotEquals`].
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The value that the field is compared with, without escapes.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether an object whose [`field`](Self::field) is `value` matches; an absent field is empty.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        (self.value == value) == (self.operator == Operator::Equals)
    }

    fn new(field: &str, operator: Operator, value: String) -> Self {
        Self { field: field.to_owned(), operator, value }
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.operator == Operator::Equals { "=" } else { "!=" };
        write!(f, "{}{operator}", self.field)?;
        for character in self.value.chars() {
            if is_escaped(character) {
                f.write_str("\\")?;
            }
            write!(f, "{character}")?;
        }
        Ok(())
    }
}

/// The field of `object` at `path` (members joined by dots) as a field selector compares it: a
/// string, or a number or boolean as written; otherwise empty.
///
/// # Examples
/// ```
/// use informer_core::selector::field_value;
/// use serde_json::json;
///
/// let pod = json!({"spec": {"nodeName": "node-1", "hostNetwork": true}});
/// assert_eq!(field_value(&pod, "spec.nodeName"), "node-1");
/// assert_eq!(field_value(&pod, "spec.hostNetwork"), "true");
/// assert_eq!(field_value(&pod, "status.phase"), "");
/// ```
#[must_use]
pub fn field_value<'v>(object: &'v Value, path: &str) -> Cow<'v, str> {
    match path.split('.').try_fold(object, Value::get) {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(scalar @ (Value::Number(_) | Value::Bool(_))) => Cow::Owned(scalar.to_string()),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => Cow::Borrowed(""),
    }
}

const FIELD_PATH: &str = "a field path such as spec.nodeName";

/// The end of the term that begins at `start`: the next comma without a backslash before it.
fn term_end(text: &str, start: usize) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => return at,
            _ => {}
        }
    }
    text.len()
}

fn parse_term(
    text: &str,
    start: usize,
    end: usize,
) -> Result<FieldRequirement, ParseSelectorError> {
    let term = &text[start..end];
    let ends_path =
        |(at, character): &(usize, char)| *character == '=' || term[*at..].starts_with("!=");
    let path_end = term.char_indices().find(ends_path).map_or(term.len(), |(at, _)| at);
    let (path, rest) = term.split_at(path_end);
    check_path(path, start, text)?;
    let (operator, length) = match rest.as_bytes() {
        [b'!', ..] => (Operator::NotEquals, 2),
        [b'=', b'=', ..] => (Operator::Equals, 2),
        [b'=', ..] => (Operator::Equals, 1),
        _ => return Err(error(text, end, "'=', '==' or '!='")),
    };
    let value = unescape(text, start + path_end + length, end)?;
    Ok(FieldRequirement::new(path, operator, value))
}

/// Checks the path that is at `start` in `text`.
fn check_path(path: &str, start: usize, text: &str) -> Result<(), ParseSelectorError> {
    let is_wrong =
        |character: char| character.is_whitespace() || matches!(character, '=' | '!' | ',' | '\\');
    match path.find(is_wrong) {
        None if path.is_empty() => Err(error(text, start, FIELD_PATH)),
        None => Ok(()),
        Some(0) => Err(error(text, start, FIELD_PATH)),
        Some(at) => Err(error(text, start + at, "'=', '==' or '!='")),
    }
}

fn unescape(text: &str, start: usize, end: usize) -> Result<String, ParseSelectorError> {
    let mut value = String::with_capacity(end - start);
    let mut escaped = false;
    for (at, character) in text[start..end].char_indices() {
        match character {
            _ if escaped => {
                if !is_escaped(character) {
                    return Err(error(text, start + at, r"'\', ',' or '=' after '\'"));
                }
                value.push(character);
                escaped = false;
            }
            '\\' => escaped = true,
            '=' => return Err(error(text, start + at, r"a value, in which '=' is written '\='")),
            _ => value.push(character),
        }
    }
    if escaped { Err(error(text, end, r"'\', ',' or '=' after '\'")) } else { Ok(value) }
}

fn is_escaped(character: char) -> bool {
    matches!(character, '\\' | ',' | '=')
}

fn error(text: &str, offset: usize, expected: &'static str) -> ParseSelectorError {
    let found = text[offset..].chars().next().map(String::from).unwrap_or_default();
    ParseSelectorError::new(Grammar::Field, text, offset, expected, &found)
}

#[cfg(test)]
mod tests;
