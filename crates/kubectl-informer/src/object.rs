//! Cached objects: documents of them, and what changed.

#[cfg(test)]
pub(crate) mod tests;

use informer::decode::{DecodeError, Wire};
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

/// The paths at which two states of an object differ, without the values: at most `limit` of them,
/// at most three members deep. `metadata.resourceVersion` and `metadata.managedFields` always
/// differ and are left out.
///
/// # Errors
/// When the bytes of one of them are no object.
pub(crate) fn changed_paths(
    old: &Object,
    new: &Object,
    limit: usize,
) -> Result<Vec<String>, DecodeError> {
    let parts = |object| {
        let mut value = value(object)?;
        let mut metadata = value.get_mut("metadata").map(Value::take).unwrap_or_default();
        if let Value::Object(metadata) = &mut metadata {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
        }
        Ok::<_, DecodeError>((metadata, value))
    };
    let ((old_metadata, old), (new_metadata, new)) = (parts(old)?, parts(new)?);
    let mut paths = Vec::new();
    differences("metadata", &old_metadata, &new_metadata, 2, &mut paths);
    differences("", &old, &new, 3, &mut paths);
    if paths.len() > limit {
        let more = paths.len() - limit;
        paths.truncate(limit);
        paths.push(format!("{more} more"));
    }
    Ok(paths)
}

fn differences(path: &str, old: &Value, new: &Value, depth: usize, paths: &mut Vec<String>) {
    if old == new {
        return;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) if depth > 0 => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let none = Value::Null;
                let (old, new) = (old.get(key).unwrap_or(&none), new.get(key).unwrap_or(&none));
                differences(&path, old, new, depth - 1, paths);
            }
        }
        _ => paths.push(path.to_owned()),
    }
}
