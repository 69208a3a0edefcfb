//! Stored JSON texts, and reading them without decoding the object. Results for a text that is not
//! JSON are unspecified.

use std::borrow::Cow;

use k8s_protobuf::Segment;
use serde::de::{IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use super::members::{self, Members, next_text, unquoted};
use crate::wire::DecodeError;

/// The text to store: the object on one line and in UTF-8, with labels that can be borrowed from
/// it. `apiVersion` and `kind` are added, since items of lists of built-in kinds lack them.
pub(super) fn keep(json: &[u8], api_version: &str, kind: &str) -> Result<Box<[u8]>, DecodeError> {
    // Stored texts are returned to callers, so they must be JSON.
    serde_json::from_slice::<IgnoredAny>(json)
        .map_err(|_| DecodeError { path: ".".to_owned(), message: "invalid JSON".to_owned() })?;
    let text = String::from_utf8_lossy(json.trim_ascii());
    let missing: Vec<_> = [("apiVersion", api_version), ("kind", kind)]
        .into_iter()
        .filter(|(key, value)| !value.is_empty() && member(text.as_bytes(), key).is_none())
        .map(|(key, value)| format!("\"{key}\":{},", serde_json::Value::from(value)))
        .collect();
    let mut all = Vec::with_capacity(text.len() + missing.iter().map(String::len).sum::<usize>());
    match text.strip_prefix('{') {
        Some(rest) if !missing.is_empty() => {
            all.push(b'{');
            missing.iter().for_each(|member| all.extend_from_slice(member.as_bytes()));
            if rest.trim_ascii_start().starts_with('}') {
                all.pop(); // No member follows the comma.
            }
            all.extend_from_slice(rest.as_bytes());
        }
        _ => all.extend_from_slice(text.as_bytes()),
    }
    if metadata(&all, "labels").is_some_and(|labels| labels.get().contains('\\'))
        && !k8s_protobuf::hides_levels(&all)
        && let Ok(value) = serde_json::from_slice::<serde_json::Value>(&all)
    {
        // No character of a label needs an escape, so none are left.
        all = value.to_string().into_bytes();
    }
    // Line ends only occur between tokens, which do not need them.
    if memchr::memchr2(b'\n', b'\r', &all).is_some() {
        all.retain(|byte| !matches!(byte, b'\n' | b'\r'));
    }
    Ok(all.into_boxed_slice())
}

/// A string member of the object; empty if there is none.
pub(super) fn text<'a>(json: &'a [u8], key: &str) -> Cow<'a, str> {
    member(json, key).and_then(unquoted).unwrap_or_default()
}

/// The value of a key in a string map in the metadata.
pub(super) fn entry<'a>(json: &'a [u8], map: &str, key: &str) -> Option<Cow<'a, str>> {
    unquoted(member(metadata(json, map)?.get().as_bytes(), key)?)
}

/// A string map in the metadata, in the order of the text.
pub(super) fn entries<'a>(json: &'a [u8], map: &str) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    let mut all = Entries::default();
    if let Some(map) = metadata(json, map) {
        // What comes before something else than a text is there.
        _ = members::read(map.get().as_bytes(), &mut all);
    }
    all.0
}

/// The scalars at a path.
pub(super) fn fields<'a>(json: &'a [u8], path: &[Segment], found: &mut dyn FnMut(Cow<'a, str>)) {
    match path {
        [] => scalar(json).into_iter().for_each(found),
        [Segment::Name(key) | Segment::Key(key), rest @ ..] => {
            if let Some(value) = member(json, key) {
                fields(value.get().as_bytes(), rest, found);
            }
        }
        [Segment::Each, rest @ ..] => {
            let elements = serde_json::from_slice::<Vec<&'a RawValue>>(json).unwrap_or_default();
            elements.iter().for_each(|element| fields(element.get().as_bytes(), rest, found));
        }
        // There may be other segments one day.
        _ => {}
    }
}

/// The text of the member `key` of an object: the first one of that name.
fn member<'a>(json: &'a [u8], key: &str) -> Option<&'a RawValue> {
    let mut one = One { key, found: None };
    // Ends at what was found, or at what is no JSON.
    _ = members::read(json, &mut one);
    one.found
}

/// The text of a member of the metadata.
fn metadata<'a>(json: &'a [u8], key: &str) -> Option<&'a RawValue> {
    member(member(json, "metadata")?.get().as_bytes(), key)
}

/// A string, number or boolean as a field selector sees it; `None` for anything else.
fn scalar(json: &[u8]) -> Option<Cow<'_, str>> {
    let value: &RawValue = serde_json::from_slice(json).ok()?;
    match value.get().as_bytes().first()? {
        b'"' => unquoted(value),
        b'{' | b'[' | b'n' => None,
        _ => Some(Cow::Borrowed(value.get())),
    }
}

struct One<'k, 'a> {
    key: &'k str,
    found: Option<&'a RawValue>,
}

impl<'de> Members<'de> for One<'_, 'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        if key == self.key {
            self.found = Some(map.next_value()?);
        } else {
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn is_enough(&self) -> bool {
        self.found.is_some()
    }
}

#[derive(Default)]
struct Entries<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'de> Members<'de> for Entries<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let key = key.to_owned();
        self.0.push((Cow::Owned(key), next_text(map)?));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(json: &'a str, path: &str) -> Vec<Cow<'a, str>> {
        let (mut all, path) = (Vec::new(), Segment::parse(path).unwrap());
        fields(json.as_bytes(), &path, &mut |value| all.push(value));
        all
    }

    #[test]
    fn members_and_elements_are_found_wherever_white_space_stands() {
        let text = r#" { "a" : [ 1 , "]" , { "b" : "}\"" } ] , "c\u0064" : -1.5e3, "e":null } "#;
        assert_eq!(found(text, "a[*]"), ["1", "]"]);
        assert_eq!(found(text, "a[*].b"), ["}\""]);
        assert_eq!(found(text, "cd"), ["-1.5e3"]);
        for path in ["b", "e", "a", "a.b", "cd[*]", "e.f"] {
            assert!(found(text, path).is_empty(), "{path}");
        }
    }

    #[test]
    fn scalars_are_as_field_selectors_see_them() {
        for (text, expected) in [
            (r#""a\nb""#, Some("a\nb")),
            ("12", Some("12")),
            (" true ", Some("true")),
            (r#""""#, Some("")),
            ("null", None),
            ("{}", None),
            ("[1]", None),
        ] {
            assert_eq!(scalar(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_json_find_nothing_and_are_not_kept() {
        for text in
            ["{", "{\"a", "{\"a\":", "{\"a\":}", "[1", "[,,", "", "\"", "[[[", "{:::}", "{a:1}"]
        {
            for path in
                ["a", "a.b", "[*]", "a[*]"].iter().filter_map(|path| Segment::parse(path).ok())
            {
                fields(text.as_bytes(), &path, &mut |value| panic!("{text}: {value}"));
            }
            assert_eq!(entries(text.as_bytes(), "labels"), []);
            assert!(keep(text.as_bytes(), "v1", "Pod").is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_kept_has_its_kind_and_is_on_one_line_and_in_utf8() {
        for (json, expected) in [
            ("{ }", r#"{"apiVersion":"v1","kind":"Pod" }"#),
            ("{\r\n\"a\": 1\n}\n", r#"{"apiVersion":"v1","kind":"Pod","a": 1}"#),
            (r#"{"kind":"Own","a":1}"#, r#"{"apiVersion":"v1","kind":"Own","a":1}"#),
            (
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"\u0061":"b"}}}"#,
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}}}"#,
            ),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&keep(json.as_bytes(), "v1", "Pod").unwrap()),
                expected
            );
        }
        let kept = keep(b"{\"metadata\":{\"annotations\":{\"a\":\"<\xff>\"}}}", "", "").unwrap();
        assert_eq!(entry(&kept, "annotations", "a").as_deref(), Some("<\u{fffd}>"));
    }
}
