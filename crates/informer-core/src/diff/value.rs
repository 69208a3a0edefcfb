//! Values in a diff: whole, cut or hidden.

use std::io;

use serde::Serialize;
use serde_json::Value;

use super::place::Coding;

/// Number of bytes shown before the first difference of two long texts.
const CONTEXT: usize = 24;

/// A value in a [`Change`](super::Change), which may be cut or hidden.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Shown {
    /// The whole value.
    Whole {
        /// The value in the object.
        value: Value,
    },
    /// A part of a long text, or of the JSON of a large value.
    Part {
        /// The part.
        text: String,
        /// The offset of the part, in bytes.
        from: usize,
        /// The length of the whole text, in bytes.
        bytes: usize,
    },
    /// A value that is not shown.
    #[serde(rename_all = "camelCase")]
    Hidden {
        /// Its length in bytes.
        hidden_bytes: usize,
    },
}

impl Shown {
    pub(super) fn of(value: &Value, max: usize) -> Self {
        Self::from_byte(value, 0, max)
    }

    /// The old and the new value of a change. Long texts are cut around their first difference.
    pub(super) fn pair(old: &Value, new: &Value, max: usize) -> [Self; 2] {
        let from = match (old, new) {
            (Value::String(old), Value::String(new)) if old.len().max(new.len()) > max => {
                let common = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
                common.saturating_sub(CONTEXT)
            }
            _ => 0,
        };
        [Self::from_byte(old, from, max), Self::from_byte(new, from, max)]
    }

    pub(super) fn hidden(value: &Value, coding: Coding) -> Self {
        let hidden_bytes = match (value, coding) {
            (Value::String(text), Coding::Base64) => decoded_length(text).unwrap_or(text.len()),
            (Value::String(text), Coding::Plain) => text.len(),
            (other, _) => Head::of(other, 0).bytes,
        };
        Self::Hidden { hidden_bytes }
    }

    fn from_byte(value: &Value, from: usize, max: usize) -> Self {
        if max == usize::MAX {
            return Self::Whole { value: value.clone() };
        }
        match value {
            Value::String(text) if text.len() <= max => Self::Whole { value: value.clone() },
            Value::String(text) => {
                let from = boundary(text, from);
                let end = boundary(text, from.saturating_add(max));
                Self::Part { text: text[from..end].to_owned(), from, bytes: text.len() }
            }
            Value::Array(_) | Value::Object(_) => {
                let Head { kept, bytes, .. } = Head::of(value, max);
                if bytes <= max {
                    return Self::Whole { value: value.clone() };
                }
                // The text may be cut within a character, whose bytes are dropped.
                let text = kept.utf8_chunks().next().map_or("", |it| it.valid()).to_owned();
                Self::Part { text, from: 0, bytes }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Whole { value: value.clone() },
        }
    }
}

/// The last character boundary that is not after `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The length of the data that base64 text encodes, computed without decoding it.
fn decoded_length(text: &str) -> Option<usize> {
    let padding = text.bytes().rev().take_while(|it| *it == b'=').count();
    let is_valid = text.len().is_multiple_of(4) && padding <= 2;
    is_valid.then(|| (text.len() / 4 * 3).saturating_sub(padding))
}

/// A writer that keeps the first `max` bytes and counts all bytes.
struct Head {
    kept: Vec<u8>,
    max: usize,
    bytes: usize,
}

impl Head {
    /// The first bytes of a value's JSON, and its length.
    fn of(value: &Value, max: usize) -> Self {
        let mut head = Self { kept: Vec::new(), max, bytes: 0 };
        // Serialization fails only if the writer fails, and this one never does.
        let _ = serde_json::to_writer(&mut head, value);
        head
    }
}

impl io::Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.max - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.bytes += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
