//! Values as Go writes them.

use std::io;

use serde::ser::{Error, Serialize};
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::keep;
use crate::json::go_escaped;

/// A value as text: texts as they are, lists and maps as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => number(value),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => json(value),
    }
}

/// Integers of 64 bits as such, anything else as by `%g`.
fn number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(number)) => float(number, -4, 6),
        (None, None) => number.to_string(),
    }
}

/// The shortest decimal digits of a number; with an exponent of two digits at least if it is not in
/// a range.
fn float(number: f64, lowest: i32, above: i32) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if (lowest..above).contains(&exponent) => number.to_string(),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        Err(_) => scientific,
    }
}

/// JSON as Go's encoder writes it, fit for HTML.
fn json(value: &Value) -> String {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, GoFormatter);
    // Maps have texts as keys, and memory does not fail.
    let _ = Printed(value).serialize(&mut serializer);
    String::from_utf8(text).unwrap_or_default()
}

/// A value, with the texts of what is too far in to be one.
struct Printed<'a>(&'a Value);

impl Serialize for Printed<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(object) => match keep::text_of(object) {
                Some(text) => RawValue::from_string(go_escaped(text).into_owned())
                    .map_err(S::Error::custom)?
                    .serialize(serializer),
                None => serializer.collect_map(object.iter().map(|(key, it)| (key, Printed(it)))),
            },
            Value::Array(list) => serializer.collect_seq(list.iter().map(Printed)),
            other => other.serialize(serializer),
        }
    }
}

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let text = float(value, -6, 21);
        // Of one digit here.
        writer.write_all(text.replace("e-0", "e-").as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        let is_escaped = |it| matches!(it, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        while let Some(at) = rest.find(is_escaped) {
            let (plain, after) = rest.split_at(at);
            CompactFormatter.write_string_fragment(writer, plain)?;
            let mut characters = after.chars();
            if let Some(character) = characters.next() {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}
