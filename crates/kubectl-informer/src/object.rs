//! Cached objects: documents of them, and what changed.

#[cfg(test)]
pub(crate) mod tests;

use informer::decode::{DecodeError, Wire};
use informer::diff::{self, Diff, DiffOptions, Limits};
use serde::Serialize;
use serde::ser::{Error, SerializeMap, Serializer};
use serde_json::Value;

pub(crate) use informer_serve::Object;

/// Namespace and name, as they are said: `web/web-0`, or the name alone.
pub(crate) fn full_name(object: &Object) -> String {
    let (namespace, name) = (object.namespace(), object.name());
    if namespace.is_empty() { name.into_owned() } else { format!("{namespace}/{name}") }
}

/// An object as a document for people: `apiVersion`, `kind` and `metadata`, then the rest in the
/// order of the alphabet. It is read while it is serialised.
pub(crate) struct Document<'a>(pub(crate) &'a Object);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const FIRST: [&str; 3] = ["apiVersion", "kind", "metadata"];
        let value = value(self.0)
            .map_err(|error| S::Error::custom(format_args!("{}: {error}", full_name(self.0))))?;
        let Value::Object(members) = value else { return value.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(members.len()))?;
        for key in FIRST {
            if let Some(value) = members.get(key) {
                map.serialize_entry(key, value)?;
            }
        }
        for (key, value) in members.iter().filter(|(key, _)| !FIRST.contains(&key.as_str())) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The object as the server's JSON has it, whatever its bytes are.
pub(crate) fn value(object: &Object) -> Result<Value, DecodeError> {
    let mut json = Vec::new();
    object.write_json(&mut json)?;
    Wire::json(&json).decode()
}

/// The paths at which two states of an object differ, without the values and without noise: at most
/// `limit` of them.
///
/// # Errors
/// When the bytes of one of them are no object.
pub(crate) fn changed_paths(
    old: &Object,
    new: &Object,
    limit: usize,
) -> Result<Vec<String>, DecodeError> {
    let limits = Limits { changes: limit, bytes: 0 };
    let options = DiffOptions { limits, ..DiffOptions::default() };
    let diff = changes(old, new, &options)?;
    let paths = diff.changes.iter().map(|it| it.path().to_string());
    let more = (diff.more > 0).then(|| format!("{} more", diff.more));
    Ok(paths.chain(more).collect())
}

/// What changed between two states of an object.
///
/// # Errors
/// When the bytes of one of them are no object.
pub(crate) fn changes(
    old: &Object,
    new: &Object,
    options: &DiffOptions,
) -> Result<Diff, DecodeError> {
    Ok(diff::between(&value(old)?, &value(new)?, options))
}
