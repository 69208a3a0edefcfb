//! Reading and writing cached objects: fields by path, and JSON without copying the object.

use std::borrow::Cow;

use informer::{FieldSelector, Resource};
use kube::core::DynamicObject;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

/// A cached object as the API server would send it alone: lists leave `apiVersion` and `kind` out of their
/// items, this puts them in again. Serialises straight from the cache.
#[derive(Clone, Copy)]
pub struct Full<'a> {
    resource: &'a Resource,
    object: &'a DynamicObject,
}

impl<'a> Full<'a> {
    /// An object of `resource`.
    #[must_use]
    pub fn new(resource: &'a Resource, object: &'a DynamicObject) -> Self {
        Self { resource, object }
    }

    /// What a field selector compares the field at `path` with: a string, number or boolean as written, and empty
    /// where there is none of these. Any path will do, `metadata.…` included.
    #[must_use]
    pub fn field(&self, path: &str) -> Cow<'a, str> {
        let metadata = &self.object.metadata;
        let text = |it: &'a Option<String>| Cow::Borrowed(it.as_deref().unwrap_or_default());
        match path {
            "apiVersion" => Cow::Owned(self.resource.api_version()),
            "kind" => Cow::Borrowed(&self.resource.kind),
            "metadata.name" => text(&metadata.name),
            "metadata.namespace" => text(&metadata.namespace),
            "metadata.uid" => text(&metadata.uid),
            "metadata.resourceVersion" => text(&metadata.resource_version),
            _ => match path.strip_prefix("metadata.") {
                Some(rest) => self.metadata_field(rest),
                None => informer::selector::field_value(&self.object.data, path),
            },
        }
    }

    /// Whether the object's fields match.
    #[must_use]
    pub fn matches(&self, selector: &FieldSelector) -> bool {
        selector.matches(|path| Some(self.field(path)))
    }

    /// The rarer fields of the metadata: a label or annotation (whose key may have dots), or anything else by way
    /// of JSON.
    fn metadata_field(&self, path: &str) -> Cow<'a, str> {
        let metadata = &self.object.metadata;
        let maps = [("labels.", &metadata.labels), ("annotations.", &metadata.annotations)];
        for (prefix, map) in maps {
            if let Some(key) = path.strip_prefix(prefix) {
                let value = map.as_ref().and_then(|map| map.get(key));
                return Cow::Borrowed(value.map(String::as_str).unwrap_or_default());
            }
        }
        let Ok(metadata) = serde_json::to_value(metadata) else { return Cow::Borrowed("") };
        Cow::Owned(informer::selector::field_value(&metadata, path).into_owned())
    }
}

impl std::fmt::Debug for Full<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Full({} {:?})", self.resource, self.object.metadata.name)
    }
}

impl Serialize for Full<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", &self.resource.api_version())?;
        map.serialize_entry("kind", &self.resource.kind)?;
        map.serialize_entry("metadata", &self.object.metadata)?;
        if let Value::Object(data) = &self.object.data {
            for (key, value) in data.iter().filter(|(key, _)| *key != "apiVersion" && *key != "kind") {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

/// The paths at which two states of an object differ, without the values: at most `limit` of them, at most
/// three members deep. `metadata.resourceVersion` and `metadata.managedFields` always differ and are left out.
#[must_use]
pub fn changed_paths(old: &DynamicObject, new: &DynamicObject, limit: usize) -> Vec<String> {
    let mut paths = Vec::new();
    let without_noise = |object: &DynamicObject| {
        let mut metadata = object.metadata.clone();
        metadata.resource_version = None;
        metadata.managed_fields = None;
        serde_json::to_value(&metadata).unwrap_or_default()
    };
    if old.metadata != new.metadata {
        differences("metadata", &without_noise(old), &without_noise(new), 2, &mut paths);
    }
    differences("", &old.data, &new.data, 3, &mut paths);
    if paths.len() > limit {
        let more = paths.len() - limit;
        paths.truncate(limit);
        paths.push(format!("{more} more"));
    }
    paths
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pods() -> Resource {
        Resource {
            group: String::new(),
            version: "v1".into(),
            plural: "pods".into(),
            kind: "Pod".into(),
            namespaced: true,
        }
    }

    fn pod(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn type_and_kind_are_there_whether_or_not_the_server_sent_them() {
        let bare = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}});
        let mut full = bare.clone();
        full["apiVersion"] = json!("v1");
        full["kind"] = json!("Pod");
        for sent in [bare, full.clone()] {
            let object = pod(sent);
            let text = serde_json::to_string(&Full::new(&pods(), &object)).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), full);
            assert_eq!(text.matches("apiVersion").count(), 1, "{text}");
        }
    }

    #[test]
    fn fields_at_any_path() {
        let object = pod(json!({
            "metadata": {"name": "a", "namespace": "x", "generation": 3, "labels": {"app.io/tier": "db"}},
            "spec": {"nodeName": "n", "hostNetwork": true}
        }));
        let resource = pods();
        let full = Full::new(&resource, &object);
        for (path, expected) in [
            ("metadata.name", "a"),
            ("metadata.namespace", "x"),
            ("metadata.generation", "3"),
            ("metadata.labels.app.io/tier", "db"),
            ("metadata.uid", ""),
            ("spec.nodeName", "n"),
            ("spec.hostNetwork", "true"),
            ("spec", ""),
            ("kind", "Pod"),
            ("apiVersion", "v1"),
            ("status.phase", ""),
        ] {
            assert_eq!(full.field(path), expected, "{path}");
        }
        assert!(full.matches(&"spec.nodeName=n,metadata.name!=b".parse().unwrap()));
        assert!(!full.matches(&"spec.nodeName=m".parse().unwrap()));
    }

    #[test]
    fn changes_are_named_and_their_values_are_not() {
        let old = pod(json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {"x": "1"}},
            "spec": {"a": {"b": {"c": 1}}}, "status": {"phase": "Pending"}}));
        let new =
            pod(json!({"metadata": {"name": "a", "resourceVersion": "2", "labels": {"x": "2", "y": "1"}},
            "spec": {"a": {"b": {"c": 2}}}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}));
        let all = changed_paths(&old, &new, 10);
        assert_eq!(
            all,
            ["metadata.labels.x", "metadata.labels.y", "spec.a.b", "status.phase", "status.podIP"]
        );
        assert_eq!(changed_paths(&old, &new, 2), ["metadata.labels.x", "metadata.labels.y", "3 more"]);
        assert!(changed_paths(&new, &new, 10).is_empty());
    }
}
