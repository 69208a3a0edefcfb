//! JSON objects, as far as they are taken apart here.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::object::WriteError;

/// The object without the `apiVersion` and `kind` that it may begin with, and without its opening
/// brace.
pub(crate) fn without_types(json: &[u8]) -> &[u8] {
    let mut rest = json.strip_prefix(b"{").unwrap_or(json);
    while let Some(behind) = type_member(rest) {
        rest = behind;
    }
    rest
}

/// What follows a member `apiVersion` or `kind` and its comma.
fn type_member(members: &[u8]) -> Option<&[u8]> {
    let value = members
        .strip_prefix(b"\"kind\":\"")
        .or_else(|| members.strip_prefix(b"\"apiVersion\":\""))?;
    // Neither has escapes.
    let end = value.iter().position(|byte| *byte == b'"')?;
    let rest = &value[end + 1..];
    Some(rest.strip_prefix(b",").unwrap_or(rest))
}

/// The value of `metadata`.
pub(crate) fn metadata(json: &[u8]) -> Result<&str, WriteError> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    let object: Object<'_> = serde_json::from_slice(json).map_err(|_| malformed())?;
    Ok(object.metadata.get())
}

/// The object with another `resourceVersion`.
pub(crate) fn at_version(json: &[u8], version: u64) -> Result<Vec<u8>, WriteError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(borrow)]
        resource_version: &'a RawValue,
    }
    let metadata: Metadata<'_> = serde_json::from_str(metadata(json)?).map_err(|_| malformed())?;
    let old = metadata.resource_version.get();
    // The value is a slice of the object.
    let start = old.as_ptr() as usize - json.as_ptr() as usize;
    let mut out = Vec::with_capacity(json.len() + 20);
    out.extend_from_slice(&json[..start]);
    out.extend_from_slice(format!("\"{version}\"").as_bytes());
    out.extend_from_slice(&json[start + old.len()..]);
    Ok(out)
}

/// JSON with the characters escaped that Go escapes for the sake of HTML. They occur in strings
/// only.
pub(crate) fn go_escaped(json: &str) -> Cow<'_, str> {
    let is_special = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    if !json.contains(is_special) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_special(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Indents JSON as Go does, chunk by chunk.
#[derive(Debug, Default)]
pub(crate) struct Indenter {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// An opening bracket was the last token: whether it is empty is not known yet.
    opened: bool,
}

impl Indenter {
    /// Appends the next part.
    pub(crate) fn push(&mut self, json: &[u8], out: &mut Vec<u8>) {
        for &byte in json {
            if self.in_string {
                out.push(byte);
                self.in_string = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
                continue;
            }
            if byte.is_ascii_whitespace() {
                continue;
            }
            let closes = matches!(byte, b'}' | b']');
            let was_opened = std::mem::replace(&mut self.opened, matches!(byte, b'{' | b'['));
            if was_opened && !closes {
                self.depth += 1;
                self.line(out);
            } else if closes && !was_opened {
                self.depth = self.depth.saturating_sub(1);
                self.line(out);
            }
            out.push(byte);
            match byte {
                b'"' => self.in_string = true,
                b',' => self.line(out),
                b':' => out.push(b' '),
                _ => {}
            }
        }
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', 2 * self.depth));
    }
}

fn malformed() -> WriteError {
    WriteError::new("it is no JSON object with metadata")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_taken_off_in_either_order() {
        for (json, rest) in [
            (r#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#, r#""metadata":{}}"#),
            (r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#, r#""metadata":{}}"#),
            (r#"{"metadata":{},"kind":"Pod"}"#, r#""metadata":{},"kind":"Pod"}"#),
            (r#"{"kind":"Pod"}"#, "}"),
            ("{}", "}"),
        ] {
            assert_eq!(without_types(json.as_bytes()), rest.as_bytes(), "{json}");
        }
    }

    #[test]
    fn indented_json_is_as_go_indents_it() {
        let json = r#"{"a":{},"b":[],"c":[1,{"d":"{[,:\\\""}],"e":null}
"#;
        let pretty = "{\n  \"a\": {},\n  \"b\": [],\n  \"c\": [\n    1,\n    {\n      \"d\": \"{[,:\\\\\\\"\"\n    }\n  ],\n  \"e\": null\n}";
        for cut in 0..json.len() {
            let (mut indenter, mut out) = (Indenter::default(), Vec::new());
            indenter.push(&json.as_bytes()[..cut], &mut out);
            indenter.push(&json.as_bytes()[cut..], &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), pretty, "{cut}");
        }
    }

    #[test]
    fn characters_of_html_are_escaped() {
        assert_eq!(go_escaped("\"a<b>&\u{2028}\""), "\"a\\u003cb\\u003e\\u0026\\u2028\"");
        assert!(matches!(go_escaped("\"a\""), Cow::Borrowed(_)));
    }

    #[test]
    fn the_version_is_found_wherever_it_is_and_nothing_else_is_taken_for_it() {
        for (json, changed) in [
            (
                r#"{"data":{"resourceVersion":"1"},"metadata":{"labels":{"resourceVersion":"1"},"resourceVersion":"99"}}"#,
                r#"{"data":{"resourceVersion":"1"},"metadata":{"labels":{"resourceVersion":"1"},"resourceVersion":"100"}}"#,
            ),
            (
                r#"{"metadata":{"resourceVersion":"1","name":"a"},"resourceVersion":"1"}"#,
                r#"{"metadata":{"resourceVersion":"100","name":"a"},"resourceVersion":"1"}"#,
            ),
        ] {
            assert_eq!(at_version(json.as_bytes(), 100).unwrap(), changed.as_bytes());
        }
        for json in ["", "[]", "{}", r#"{"metadata":{}}"#] {
            assert!(at_version(json.as_bytes(), 1).is_err(), "{json}");
        }
    }
}
