//! Finding things in a JSON text without decoding it. The text is known to be JSON; of what is not, something is found or
//! nothing, and never a panic.

use std::borrow::Cow;

/// The text of the member `key` of the object `text`: the first one of that name.
pub(super) fn member<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    members(text).find(|(name, _)| is_key(name, key)).map(|(_, value)| value)
}

/// The members of the object `text`, as they stand there: keys (without their quotes) and values.
pub(super) fn members(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut at = content(text, b'{');
    std::iter::from_fn(move || {
        let start = next(text, at?)?;
        let key_end = string_end(text, start)?;
        let colon = skip_white_space(text, key_end);
        let value = skip_white_space(text, colon + 1);
        let end = value_end(text, value)?;
        at = Some(end);
        Some((text.get(start + 1..key_end - 1)?, text.get(value..end)?))
    })
}

/// The elements of the array `text`, as they stand there.
pub(super) fn elements(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = content(text, b'[');
    std::iter::from_fn(move || {
        let start = next(text, at?)?;
        let end = value_end(text, start)?;
        at = Some(end);
        text.get(start..end)
    })
}

/// The string, number or boolean `text` as a field selector sees it; `None` for anything else.
pub(super) fn scalar(text: &[u8]) -> Option<Cow<'_, str>> {
    match text.first()? {
        b'"' => string(text),
        b'{' | b'[' | b'n' => None,
        _ => std::str::from_utf8(text).ok().map(Cow::Borrowed),
    }
}

/// The string that the literal `text`, quotes included, stands for.
pub(super) fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    unquoted(text.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// The string that what stands between two quotes stands for.
pub(super) fn unquoted(inner: &[u8]) -> Option<Cow<'_, str>> {
    match memchr::memchr(b'\\', inner) {
        None => std::str::from_utf8(inner).ok().map(Cow::Borrowed),
        Some(_) => serde_json::from_slice(&[b"\"", inner, b"\""].concat()).ok().map(Cow::Owned),
    }
}

/// Whether the key with this text, without quotes, is `key`.
fn is_key(text: &[u8], key: &str) -> bool {
    text == key.as_bytes()
        || memchr::memchr(b'\\', text).is_some() && unquoted(text).is_some_and(|name| name == key)
}

/// Where what stands between the brackets begins.
fn content(text: &[u8], open: u8) -> Option<usize> {
    let start = skip_white_space(text, 0);
    (text.get(start) == Some(&open)).then_some(start + 1)
}

/// Where the next member or element begins, after a comma if there is one; `None` at the closing bracket.
fn next(text: &[u8], at: usize) -> Option<usize> {
    let mut at = skip_white_space(text, at);
    if text.get(at) == Some(&b',') {
        at = skip_white_space(text, at + 1);
    }
    text.get(at).filter(|byte| !matches!(byte, b'}' | b']')).map(|_| at)
}

fn skip_white_space(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The end of the value that begins at `start`.
fn value_end(text: &[u8], start: usize) -> Option<usize> {
    match text.get(start)? {
        b'"' => string_end(text, start),
        b'{' | b'[' => {
            let (mut at, mut depth) = (start, 0usize);
            loop {
                match text.get(at)? {
                    b'"' => {
                        at = string_end(text, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth == 1 => return Some(at + 1),
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
            }
        }
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            let length = text[start..].iter().position(ends).unwrap_or(text.len() - start);
            // Something that is no value would be found again and again.
            (length > 0).then_some(start + length)
        }
    }
}

/// The end of the string whose opening quote stands at `start`.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_are_found_wherever_white_space_stands() {
        let text = br#" { "a" : [ 1 , "]" , { "b" : "}\"" } ] , "c\u0064" : null, "e":-1.5e3 } "#;
        let all: Vec<_> = members(text).map(|(_, value)| std::str::from_utf8(value).unwrap()).collect();
        assert_eq!(all, [r#"[ 1 , "]" , { "b" : "}\"" } ]"#, "null", "-1.5e3"]);
        assert_eq!(member(text, "cd"), Some(&b"null"[..]));
        assert_eq!(member(text, "b"), None);
        let array: Vec<_> = elements(member(text, "a").unwrap()).collect();
        assert_eq!(array, [&b"1"[..], br#""]""#, br#"{ "b" : "}\"" }"#]);
        assert_eq!(elements(b"[]").count() + members(b"{}").count() + members(b"[1]").count(), 0);
    }

    #[test]
    fn scalars_are_as_field_selectors_see_them() {
        for (text, expected) in [
            (r#""a\nb""#, Some("a\nb")),
            ("12", Some("12")),
            ("true", Some("true")),
            (r#""""#, Some("")),
            ("null", None),
            ("{}", None),
            ("[1]", None),
        ] {
            assert_eq!(scalar(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_json_find_nothing_and_end() {
        for text in [
            &b"{"[..],
            b"{\"a",
            b"{\"a\":",
            b"{\"a\":}",
            b"{\"a\":1,,}",
            b"[1",
            b"[,,",
            b"",
            b"{\"\\",
            b"\"",
            b"[[[",
            b"{:::}",
            b"{a:1}",
        ] {
            assert!(members(text).count() < 4 && elements(text).count() < 4, "{text:?}");
            let _ = (scalar(text), string(text));
        }
    }
}
