//! The path of a change.

use std::fmt::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::text::escape_into;

/// Maximum number of characters of a path in text. A longer path is cut.
const MAX_CHARS: usize = 500;

/// The path from an object to a field. `Display` and `Serialize` write it for people: they escape
/// control characters and cut long paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    segments: Vec<Segment>,
}

/// A segment of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// The member of an object with this name.
    Name(String),
    /// The element of a list at this position. For a removed element, the position is the one in
    /// the old list.
    Index(usize),
    /// The element of a list with these values of its key fields; `null` stands for a missing
    /// field.
    Key(Vec<(&'static str, Value)>),
    /// An element of a list of distinct scalars. The value of the element is its key.
    Element,
}

impl Path {
    /// The segments, starting at the object. The path of the object itself has none.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl FromIterator<Segment> for Path {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self { segments: segments.into_iter().collect() }
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Cut { out: f, left: MAX_CHARS };
        if self.segments.is_empty() {
            out.write_char('.')?;
        }
        for (at, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Name(name) if is_plain_name(name) => {
                    if at > 0 {
                        out.write_char('.')?;
                    }
                    out.write_str(name)?;
                }
                Segment::Name(name) => {
                    out.write_char('[')?;
                    quote(&mut out, name)?;
                    out.write_char(']')?;
                }
                Segment::Index(index) => write!(out, "[{index}]")?,
                Segment::Element => out.write_str("[]")?,
                Segment::Key(parts) => {
                    out.write_char('[')?;
                    key(&mut out, parts)?;
                    out.write_char(']')?;
                }
            }
        }
        Ok(())
    }
}

/// Writes a key as `app` or `80/TCP`, or as `name="a b"` if the values alone would be ambiguous.
fn key(out: &mut impl Write, parts: &[(&'static str, Value)]) -> fmt::Result {
    let present = || parts.iter().filter(|(_, value)| !value.is_null());
    let is_number = parts.len() == 1 && parts[0].1.is_number();
    let is_plain =
        !is_number && present().next().is_some() && present().all(|(_, value)| is_plain_key(value));
    for (at, (field, value)) in present().enumerate() {
        if at > 0 {
            out.write_char(if is_plain { '/' } else { ',' })?;
        }
        if !is_plain {
            write!(out, "{field}=")?;
        }
        match value {
            Value::String(text) if is_plain => out.write_str(text)?,
            Value::String(text) => quote(out, text)?,
            other => write!(out, "{other}")?,
        }
    }
    Ok(())
}

fn is_plain_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_$".contains(it);
    name.chars().all(is_plain) && name.starts_with(|it: char| !it.is_ascii_digit())
}

fn is_plain_key(value: &Value) -> bool {
    let Value::String(text) = value else { return true };
    let is_plain = |it: char| it.is_ascii_graphic() && !"[]\"\\=,".contains(it);
    // A key of digits alone would look like a position.
    text.chars().all(is_plain) && !text.chars().all(|it| it.is_ascii_digit())
}

fn quote(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    escape_into(out, text)?;
    out.write_char('"')
}

/// Writes a limited number of characters, followed by an ellipsis if the text is longer.
struct Cut<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    left: usize,
}

impl Write for Cut<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.left == 0 {
            return Ok(());
        }
        match text.char_indices().nth(self.left) {
            None => {
                self.left -= text.chars().count();
                self.out.write_str(text)?;
                // Whether more text follows is unknown here, so a text of exactly the maximum
                // length gets an ellipsis too.
                if self.left == 0 { self.out.write_char('…') } else { Ok(()) }
            }
            Some((end, _)) => {
                self.left = 0;
                self.out.write_str(&text[..end])?;
                self.out.write_char('…')
            }
        }
    }
}
