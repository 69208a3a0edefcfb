//! JSON within JSON, which serde_json reads on its own.

use memchr::{memchr_iter, memmem};

use crate::encode::RAW_JSON;

/// Whether reading this JSON, or this message, as a [`serde_json::Value`] may take stack without a
/// limit. Such an object is to be refused: a stack that overflows ends the process.
///
/// serde_json has a limit of 128 levels, but it reads an object with a [key](RAW_JSON) of its own as
/// the JSON in the text under that key, with a new limit, and so on: 10 KB of JSON become thousands
/// of levels. Servers accept such objects wherever keys are free. True is returned of what has the
/// key at least twice, however it is escaped; once is harmless.
///
/// # Examples
/// ```
/// use k8s_protobuf::hides_levels;
///
/// assert!(!hides_levels(br#"{"a":[1]}"#));
/// assert!(!hides_levels(br#"{"$serde_json::private::RawValue":"[1]"}"#));
/// assert!(hides_levels(
///     br#"{"$serde_json::private::RawValue":"{\"$serde_json::private::RawValue\":\"[1]\"}"}"#
/// ));
/// ```
#[must_use]
pub fn hides_levels(text: &[u8]) -> bool {
    if memmem::find(text, RAW_JSON.as_bytes()).is_none() && !may_hide_it(text) {
        return false;
    }
    // The inner text may be escaped once within the outer, and its key once more.
    let text = unescaped(&unescaped(text));
    memmem::find_iter(&text, RAW_JSON.as_bytes()).nth(1).is_some()
}

/// Whether one of the key's characters is escaped, as no server does by itself.
fn may_hide_it(text: &[u8]) -> bool {
    memchr_iter(b'\\', text).any(|at| {
        let code = text.get(at + 1..).and_then(ascii);
        code.is_some_and(|code| RAW_JSON.as_bytes().contains(&code))
    })
}

/// The character of an escape after its backslash.
fn ascii(escape: &[u8]) -> Option<u8> {
    let digits = escape.strip_prefix(b"u00")?.get(..2)?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The text with the characters that its escapes stand for, as far as the key may have them.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(code) = ascii(rest) {
            out.push(code);
            rest = &rest[5..];
        } else if let Some((character, behind)) = rest.split_first() {
            // A quote or backslash; others are not in the key.
            out.push(*character);
            rest = behind;
        }
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::testing::within;
    use crate::{Kind, from_message, message_to_json};

    /// JSON in JSON, with the quotes and backslashes escaped in this way.
    fn bomb(levels: usize, key: &str, escapes: [&str; 2]) -> String {
        (0..levels).fold("1".to_owned(), |inner, _| {
            let inner = inner.replace('\\', "\u{1}").replace('"', escapes[0]);
            let inner = inner.replace('\u{1}', escapes[1]);
            format!("{}{{\"{key}\":\"{inner}\"}}{}", "[".repeat(120), "]".repeat(120))
        })
    }

    #[test]
    fn levels_are_found_however_they_are_hidden() {
        let hidden = RAW_JSON.replace('j', "\\u006a");
        for key in [RAW_JSON, &hidden, &RAW_JSON.replace('$', "\\u0024").replace(':', "\\u003A")] {
            assert!(!hides_levels(bomb(1, key, ["\\\"", "\\\\"]).as_bytes()), "{key}");
            for escapes in [["\\\"", "\\\\"], ["\\u0022", "\\u005c"], ["\\u0022", "\\\\"]] {
                for levels in 2..8 {
                    assert!(hides_levels(bomb(levels, key, escapes).as_bytes()), "{levels} {key}");
                }
            }
        }
        for harmless in [r#"{"a":"\u003c\u0026"}"#, r#"{"a":"\u0024"}"#, "", "\\", "\\u", "\\u00"] {
            assert!(!hides_levels(harmless.as_bytes()), "{harmless}");
        }
    }

    /// The process would end.
    #[test]
    fn an_object_that_hides_levels_is_not_decoded_but_written() {
        let text = bomb(60, RAW_JSON, ["\\u0022", "\\u005c"]);
        let revision = Kind::of("apps/v1", "ControllerRevision").unwrap();
        let message = within(&[2, 1], text.as_bytes());
        assert!(from_message::<Value>(revision, &message).is_err());
        let mut json = Vec::new();
        message_to_json(revision, &message, &mut json).unwrap();
        assert!(json.windows(text.len()).any(|part| part == text.as_bytes()));
        // Once it is what serde_json makes of it.
        let once = within(&[2, 1], bomb(1, RAW_JSON, ["", ""]).as_bytes());
        assert!(from_message::<Value>(revision, &once).is_ok());
        assert!(
            from_message::<Value>(revision, &within(&[2, 1], b"[1]"))
                .is_ok_and(|it| it["data"] == json!([1]))
        );
    }
}
