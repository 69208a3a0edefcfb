use informer::Resource;
use informer::decode::Encoding;
use informer_testkit::generate;
use k8s_protobuf::{encode, from_message_seed};
use k8s_serve::table::Columns;
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
        let columns = Columns::of_kind(&resource.group, &resource.kind);
        for it in &values {
            let object = message(it);
            let Encoding::Protobuf(kind) = object.wire().encoding else { panic!("it is protobuf") };
            let needed = from_message_seed(kind, object.wire().bytes, columns.needed()).unwrap();
            assert_eq!(columns.row(&needed, now), columns.row(it, now));
        }
        let [in_json, in_protobuf] = [0, 1].map(|form| {
            let objects = values.iter().map(|it| {
                let object = &both(it)[form];
                assert!(value(object).unwrap() == *it, "{object:?}");
                value(object).unwrap()
            });
            table(&resource, objects, &columns, wide, now)
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
        let keys: Vec<usize> = ["apiVersion", "kind", "metadata", "data"]
            .iter()
            .map(|key| text.find(key).unwrap())
            .collect();
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
}

#[test]
fn changes_are_named_and_their_values_are_not() {
    let old = json!({"metadata": {"name": "a", "resourceVersion": "1", "labels": {"x": "1"}},
        "spec": {"nodeSelector": {"c": "1"}}, "status": {"phase": "Pending"}});
    let new = json!({"metadata": {"name": "a", "resourceVersion": "2", "labels": {"x": "2", "y": "1"}},
        "spec": {"nodeSelector": {"c": "2"}}, "status": {"phase": "Running", "podIP": "10.0.0.1"}});
    let expected = [
        "metadata.labels.x",
        "metadata.labels.y",
        "spec.nodeSelector.c",
        "status.phase",
        "status.podIP",
    ];
    let (old, new) = (pod(old), pod(new));
    assert_eq!(changed_paths(&old, &new, 10).unwrap(), expected);
    let in_protobuf = |object| message(&value(object).unwrap());
    assert_eq!(changed_paths(&in_protobuf(&old), &in_protobuf(&new), 10).unwrap(), expected);
    assert_eq!(
        changed_paths(&old, &new, 2).unwrap(),
        ["metadata.labels.x", "metadata.labels.y", "3 more"]
    );
    assert!(changed_paths(&new, &new, 10).unwrap().is_empty());
    let deep =
        |value: u8| pod(json!({"metadata": {"name": "a"}, "spec": {"a": {"b": {"c": value}}}}));
    assert_eq!(changed_paths(&deep(1), &deep(2), 10).unwrap(), ["spec.a.b.c"]);
}

/// A Pod with readable metadata and a malformed spec.
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
