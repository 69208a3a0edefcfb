//! What is read from the JSON text of an object without decoding it.

use std::borrow::Cow;

use k8s_protobuf::Segment;

use super::text;

/// The text to keep: the object on one line, with its `apiVersion` and `kind`, which items of lists of built-in kinds
/// lack, and with labels that can be lent out as they stand there.
pub(super) fn complete(json: &[u8], api_version: &str, kind: &str) -> Box<[u8]> {
    let json = json.trim_ascii();
    let missing: Vec<_> = [("apiVersion", api_version), ("kind", kind)]
        .into_iter()
        .filter(|(key, value)| !value.is_empty() && text::member(json, key).is_none())
        .map(|(key, value)| format!("\"{key}\":{},", serde_json::Value::from(value)))
        .collect();
    let mut all = Vec::with_capacity(json.len() + missing.iter().map(String::len).sum::<usize>());
    match json.split_first() {
        Some((b'{', rest)) if !missing.is_empty() => {
            all.push(b'{');
            missing.iter().for_each(|member| all.extend_from_slice(member.as_bytes()));
            if rest.trim_ascii_start().first() == Some(&b'}') {
                all.pop(); // No member follows the comma.
            }
            all.extend_from_slice(rest);
        }
        _ => all.extend_from_slice(json),
    }
    let has_escapes = |key| metadata(&all, key).is_some_and(|value| memchr::memchr(b'\\', value).is_some());
    if has_escapes("labels")
        && let Ok(value) = serde_json::from_slice::<serde_json::Value>(&all)
    {
        // Nothing that a label may hold needs an escape, so that none are left.
        all = value.to_string().into_bytes();
    }
    // Line ends stand between parts only, which need none.
    if memchr::memchr2(b'\n', b'\r', &all).is_some() {
        all.retain(|byte| !matches!(byte, b'\n' | b'\r'));
    }
    all.into_boxed_slice()
}

/// The text of a member of the metadata.
fn metadata<'a>(json: &'a [u8], key: &str) -> Option<&'a [u8]> {
    text::member(text::member(json, "metadata")?, key)
}

/// A text of the metadata; empty if there is none.
pub(super) fn metadata_text<'a>(json: &'a [u8], key: &str) -> Cow<'a, str> {
    metadata(json, key).and_then(text::string).unwrap_or_default()
}

pub(super) fn label<'a>(json: &'a [u8], key: &str) -> Option<&'a str> {
    match text::string(text::member(metadata(json, "labels")?, key)?)? {
        Cow::Borrowed(value) => Some(value),
        Cow::Owned(_) => None,
    }
}

pub(super) fn annotation<'a>(json: &'a [u8], key: &str) -> Option<Cow<'a, str>> {
    text::string(text::member(metadata(json, "annotations")?, key)?)
}

/// A map of texts in the metadata, in the order of the text.
pub(super) fn metadata_map<'a>(json: &'a [u8], key: &str) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    let entries = metadata(json, key).map(text::members).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((text::unquoted(key)?, text::string(value)?))).collect()
}

/// The scalars at a path.
pub(super) fn fields<'a>(json: &'a [u8], path: &[Segment], found: &mut dyn FnMut(Cow<'a, str>)) {
    match path {
        [] => text::scalar(json).into_iter().for_each(found),
        [Segment::Name(key) | Segment::Key(key), rest @ ..] => {
            if let Some(value) = text::member(json, key) {
                fields(value, rest, found);
            }
        }
        [Segment::Each, rest @ ..] => {
            text::elements(json).for_each(|element| fields(element, rest, found));
        }
        // There may be other segments one day.
        _ => {}
    }
}
