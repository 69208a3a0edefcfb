use informer::{FieldSelector, Resource};
use informer_testkit::generate;
use k8s_protobuf::encode;
use serde_json::{Value, json};

use super::*;
use crate::table::{TableOptions, table};

fn pods() -> Resource {
    resource("", "pods", "Pod")
}

fn resource(group: &str, plural: &str, kind: &str) -> Resource {
    Resource {
        group: group.into(),
        version: "v1".into(),
        plural: plural.into(),
        kind: kind.into(),
        namespaced: true,
    }
}

/// A Pod of JSON.
fn pod(mut value: Value) -> Object {
    value["apiVersion"] = json!("v1");
    value["kind"] = json!("Pod");
    Object::from_json(value.to_string().as_bytes()).unwrap()
}

/// The object in protobuf.
fn message(value: &Value) -> Object {
    let mut bytes = Vec::new();
    encode::object(value, &mut bytes).unwrap();
    Object::from_protobuf(&bytes).unwrap()
}

/// In JSON and in protobuf.
fn both(value: &Value) -> [Object; 2] {
    [Object::from_json(value.to_string().as_bytes()).unwrap(), message(value)]
}

fn matches(object: &Object, resource: &Resource, selector: &str) -> bool {
    Fields::new(&selector.parse().unwrap(), resource).match_object(object)
}

#[test]
fn fields_at_any_path() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "x", "generation": 3, "labels": {"app.io/tier": "db"},
            "annotations": {"a.b/c[0]": "note"}},
        "spec": {"nodeName": "n", "hostNetwork": true, "nodeSelector": {"disk": "ssd", "odd[*]": "y"},
            "containers": [{"name": "c", "image": "i"}]}
    });
    for object in both(&pod) {
        for (path, expected) in [
            ("metadata.name", "a"),
            ("metadata.namespace", "x"),
            ("metadata.generation", "3"),
            ("metadata.labels.app.io/tier", "db"),
            ("metadata.labels.none", ""),
            ("metadata.annotations.a.b/c[0]", "note"),
            ("metadata.labels", ""),
            ("metadata.uid", ""),
            ("spec.nodeName", "n"),
            ("spec.hostNetwork", "true"),
            ("spec.nodeSelector.disk", "ssd"),
            ("spec.nodeSelector.odd[*]", "y"),
            ("spec", ""),
            ("kind", "Pod"),
            ("apiVersion", "v1"),
            ("status.phase", ""),
            // Arrays have no fields.
            ("spec.containers.name", ""),
            ("spec.containers[*].name", ""),
            ("spec.containers.0.name", ""),
            ("no.such", ""),
            ("spec..x", ""),
            ("[x", ""),
            ("spec.a']\"]b", ""),
        ] {
            assert!(matches(&object, &pods(), &format!("{path}={expected}")), "{path} of {object:?}");
            assert!(!matches(&object, &pods(), &format!("{path}={expected}!")), "{path} of {object:?}");
        }
        assert!(matches(&object, &pods(), "spec.nodeName=n,metadata.name!=b"));
        assert!(!matches(&object, &pods(), "spec.nodeName=m"));
    }
}

#[test]
fn fields_within_json_within_protobuf_are_found_too() {
    let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"},
        "data": {"spec": {"size": 3}}, "revision": 7});
    for object in both(&revision) {
        let resource = resource("apps", "controllerrevisions", "ControllerRevision");
        assert!(matches(&object, &resource, "data.spec.size=3,revision=7"), "{object:?}");
        assert!(!matches(&object, &resource, "data.spec.size=4"), "{object:?}");
    }
}

#[test]
fn every_field_of_generated_objects_reads_the_same_in_protobuf_and_in_json() {
    fn scalars(path: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members.iter().filter(|(name, _)| !name.contains(['.', '[', '='])) {
                    let dot = if path.is_empty() { "" } else { "." };
                    scalars(&format!("{path}{dot}{name}"), value, found);
                }
            }
            Value::Null | Value::Array(_) => {}
            _ => found.push(path.to_owned()),
        }
    }
    for (resource, text) in [
        (pods(), generate::pods(1).next().unwrap()),
        (resource("apps", "deployments", "Deployment"), generate::deployments(1).next().unwrap()),
        (resource("", "nodes", "Node"), generate::nodes(1).next().unwrap()),
    ] {
        let object = message(&serde_json::from_str(&text).unwrap());
        // With what Go writes though it was not there.
        let value = value(&object).unwrap();
        let mut paths = Vec::new();
        scalars("", &value, &mut paths);
        assert!(paths.len() > 15, "{paths:?}");
        for path in paths {
            let expected = informer::selector::field_value(&value, &path);
            let selector = FieldSelector::everything().with_equal(&path, &expected).unwrap();
            assert!(Fields::new(&selector, &resource).match_object(&object), "{path}");
        }
    }
}

#[test]
fn objects_in_protobuf_have_the_json_and_the_table_of_those_in_json() {
    let now = "2026-06-01T00:00:00Z".parse().unwrap();
    let wide = TableOptions { wide: true, with_namespace: true, ..TableOptions::default() };
    for (resource, text) in [
        (pods(), generate::pods(3).collect::<Vec<_>>()),
        (resource("apps", "deployments", "Deployment"), generate::deployments(3).collect()),
        (resource("", "nodes", "Node"), generate::nodes(3).collect()),
    ] {
        let values: Vec<Value> = text.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
        let [in_json, in_protobuf] = [0, 1].map(|form| {
            let objects = values.iter().map(|it| {
                let object = &both(it)[form];
                assert!(value(object).unwrap() == *it, "{object:?}");
                object.decode_as::<DynamicObject>().unwrap()
            });
            table(&resource, objects, &[], wide, now)
        });
        assert_eq!(in_json, in_protobuf);
    }
}

#[test]
fn documents_begin_with_what_they_are_and_have_every_field() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "2", "a": "1"},
        "metadata": {"name": "m", "namespace": "x", "labels": {"z": "1", "a": "2"}}});
    for object in both(&map) {
        let text = serde_json::to_string(&Document(&object)).unwrap();
        let keys: Vec<usize> =
            ["apiVersion", "kind", "metadata", "data"].iter().map(|key| text.find(key).unwrap()).collect();
        assert!(keys.is_sorted(), "{text}");
        assert_eq!(text.matches("apiVersion").count(), 1, "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), map);
    }
}

#[test]
fn what_is_no_object_within_is_an_error_with_its_name_and_without_its_values() {
    let broken = broken();
    let error = serde_json::to_string(&Document(&broken)).unwrap_err().to_string();
    assert!(error.starts_with("x/broken: ") && !error.contains("hunter2"), "{error}");
    assert!(changed_paths(&broken, &broken, 1).is_err());
    assert!(!matches(&broken, &pods(), "spec.no.such=x"));
}

#[test]
fn changes_are_named_and_their_values_are_not() {
    let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {"x": "1"}},
        "spec": {"nodeSelector": {"c": "1"}}, "status": {"phase": "Pending"}});
    let new = json!({"metadata": {"name": "a", "resourceVersion": "2", "labels": {"x": "2", "y": "1"}},
        "spec": {"nodeSelector": {"c": "2"}}, "status": {"phase": "Running", "podIP": "10.0.0.1"}});
    let expected =
        ["metadata.labels.x", "metadata.labels.y", "spec.nodeSelector.c", "status.phase", "status.podIP"];
    let (old, new) = (pod(old), pod(new));
    assert_eq!(changed_paths(&old, &new, 10).unwrap(), expected);
    let in_protobuf = |object| message(&value(object).unwrap());
    assert_eq!(changed_paths(&in_protobuf(&old), &in_protobuf(&new), 10).unwrap(), expected);
    assert_eq!(changed_paths(&old, &new, 2).unwrap(), ["metadata.labels.x", "metadata.labels.y", "3 more"]);
    assert!(changed_paths(&new, &new, 10).unwrap().is_empty());
    let deep = |value: u8| pod(json!({"metadata": {"name": "a"}, "spec": {"a": {"b": {"c": value}}}}));
    assert_eq!(changed_paths(&deep(1), &deep(2), 10).unwrap(), ["spec.a.b"]);
}

/// A Pod whose metadata can be read, and whose spec is no message.
pub(crate) fn broken() -> Object {
    let mut bytes = Vec::new();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "broken", "namespace": "x"},
        "spec": {"nodeName": "hunter2", "containers": []}});
    encode::object(&pod, &mut bytes).unwrap();
    let at = bytes.windows(9).position(|it| it == b"\x52\x07hunter2").unwrap();
    // A length beyond the end of the spec.
    bytes[at + 1] = 0x7f;
    Object::from_protobuf(&bytes).unwrap()
}
