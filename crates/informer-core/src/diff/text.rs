//! Writes changes as text for a terminal.

use std::fmt::{self, Write};

use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use super::{Change, Diff, Shown};

/// How changes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextStyle {
    /// Whether ANSI escape sequences color old values red and new values green.
    pub color: bool,
    /// Width of the terminal in columns. The values of a change that does not fit are written on
    /// separate lines. A line that does not fit then is cut.
    pub width: Option<usize>,
    /// Columns of space at the start of each line.
    pub indent: usize,
}

/// A color of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// The default color of the terminal.
    Plain,
    /// Red, for old values.
    Old,
    /// Green, for new values.
    New,
    /// Faint, for less important text.
    Dim,
}

impl TextStyle {
    /// Writes text in a color if `color` is set. The text is not escaped.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn paint(&self, out: &mut impl Write, color: Color, text: &str) -> fmt::Result {
        let code = match color {
            Color::Plain => return out.write_str(text),
            Color::Old => "31",
            Color::New => "32",
            Color::Dim => "2",
        };
        if self.color { write!(out, "\x1b[{code}m{text}\x1b[0m") } else { out.write_str(text) }
    }
}

impl Diff {
    /// Writes a line for each change: `~` for changed, `+` for added and `-` for removed fields.
    /// Control characters in values and names are escaped, so that no object can control the
    /// terminal.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write_text(&self, out: &mut impl Write, style: &TextStyle) -> fmt::Result {
        let mut lines = Lines { out, style };
        for change in &self.changes {
            lines.change(change)?;
        }
        if self.more > 0 {
            lines.line(&[(Color::Dim, &format!("and {} more", self.more))])?;
        }
        if self.folded > 0 && self.is_quiet() {
            let fields = if self.folded == 1 { "field" } else { "fields" };
            lines.line(&[(Color::Dim, &format!("{} {fields} of noise", self.folded))])?;
        }
        Ok(())
    }
}

/// Escapes control characters, and characters that change the direction of text, as in `\u001b`.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    // Writing to a `String` never fails.
    let _ = escape_into(&mut escaped, text);
    escaped
}

/// Writes text as in a JSON string, but escapes more characters.
pub(super) fn escape_into(out: &mut impl Write, text: &str) -> fmt::Result {
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            it if is_unsafe(it) => write!(out, "\\u{:04x}", u32::from(it))?,
            it => out.write_char(it)?,
        }
    }
    Ok(())
}

/// Whether a character is a control character, or an invisible one that reorders or joins its
/// neighbours.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

struct Lines<'a, W> {
    out: &'a mut W,
    style: &'a TextStyle,
}

impl<W: Write> Lines<'_, W> {
    fn change(&mut self, change: &Change) -> fmt::Result {
        let path = change.path().to_string();
        match change {
            Change::Added { new, .. } => {
                self.with_value(&path, ("+", Color::New), &new.to_string())
            }
            Change::Removed { old, .. } => {
                self.with_value(&path, ("-", Color::Old), &old.to_string())
            }
            Change::Changed { old, new, .. } => {
                let (old, new) = (old.to_string(), new.to_string());
                let line: [(Color, &str); 5] = [
                    (Color::Plain, "~ "),
                    (Color::Plain, &path),
                    (Color::Plain, ": "),
                    (Color::Old, &old),
                    (Color::Plain, " -> "),
                ];
                let line = [&line[..], &[(Color::New, &new)]].concat();
                if self.fits(&line) {
                    return self.line(&line);
                }
                self.line(&[(Color::Plain, "~ "), (Color::Plain, &path)])?;
                self.line(&[(Color::Plain, "    "), (Color::Old, "- "), (Color::Old, &old)])?;
                self.line(&[(Color::Plain, "    "), (Color::New, "+ "), (Color::New, &new)])
            }
            Change::Reordered { .. } => self.line(&[
                (Color::Plain, "~ "),
                (Color::Plain, &path),
                (Color::Plain, ": reordered"),
            ]),
        }
    }

    fn with_value(&mut self, path: &str, (mark, color): (&str, Color), value: &str) -> fmt::Result {
        let line = [
            (color, mark),
            (Color::Plain, " "),
            (Color::Plain, path),
            (Color::Plain, ": "),
            (color, value),
        ];
        if self.fits(&line) {
            return self.line(&line);
        }
        self.line(&line[..3])?;
        self.line(&[(Color::Plain, "    "), (color, value)])
    }

    fn fits(&self, parts: &[(Color, &str)]) -> bool {
        let needed: usize = parts.iter().map(|(_, text)| columns(text)).sum();
        self.style.width.is_none_or(|width| self.style.indent + needed <= width)
    }

    /// Writes one line of colored parts, cut at the width of the terminal.
    fn line(&mut self, parts: &[(Color, &str)]) -> fmt::Result {
        let indent = self.style.indent;
        write!(self.out, "{:indent$}", "")?;
        let cut = !self.fits(parts);
        // A cut line needs one column for the ellipsis.
        let mut left =
            self.style.width.map_or(usize::MAX, |it| it.saturating_sub(indent + usize::from(cut)));
        for (color, text) in parts {
            let end = prefix(text, left);
            left -= columns(&text[..end]);
            let is_cut = end < text.len();
            let ellipsis = if is_cut { "…" } else { "" };
            self.style.paint(self.out, *color, &format!("{}{ellipsis}", &text[..end]))?;
            if is_cut {
                break;
            }
        }
        self.out.write_char('\n')
    }
}

/// Writes the value for people: as JSON, with a note if it is hidden or cut. Control characters are
/// escaped.
impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { value } => write_json(f, value),
            Self::Part { text, from, bytes } => {
                let before = if *from > 0 { "…" } else { "" };
                write!(f, "\"{before}")?;
                escape_into(f, text)?;
                let after = if from + text.len() < *bytes { "…" } else { "" };
                write!(f, "{after}\" ({bytes} bytes)")
            }
            Self::Hidden { hidden_bytes: 1 } => f.write_str("(hidden, 1 byte)"),
            Self::Hidden { hidden_bytes } => write!(f, "(hidden, {hidden_bytes} bytes)"),
        }
    }
}

fn write_json(out: &mut impl Write, value: &Value) -> fmt::Result {
    match value {
        Value::String(text) => {
            out.write_char('"')?;
            escape_into(out, text)?;
            out.write_char('"')
        }
        Value::Array(elements) => {
            out.write_char('[')?;
            for (at, element) in elements.iter().enumerate() {
                out.write_str(if at > 0 { "," } else { "" })?;
                write_json(out, element)?;
            }
            out.write_char(']')
        }
        Value::Object(members) => {
            out.write_char('{')?;
            for (at, (name, value)) in members.iter().enumerate() {
                out.write_str(if at > 0 { ",\"" } else { "\"" })?;
                escape_into(out, name)?;
                out.write_str("\":")?;
                write_json(out, value)?;
            }
            out.write_char('}')
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => write!(out, "{value}"),
    }
}

/// The number of terminal columns of a text.
fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// The end of the longest prefix that fits into this number of columns.
fn prefix(text: &str, columns: usize) -> usize {
    let mut taken = 0;
    let over = text.char_indices().find(|(_, it)| {
        taken += width(*it);
        taken > columns
    });
    over.map_or(text.len(), |(at, _)| at)
}

fn width(character: char) -> usize {
    match character {
        // This variation selector widens the previous character to an emoji of two columns.
        '\u{fe0f}' => 1,
        it => it.width().unwrap_or(0),
    }
}
