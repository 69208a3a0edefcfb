use informer_testkit::generate;
use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::core::{DynamicObject, PartialObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::{Lazy, TypedResource};

/// An object in every representation.
struct Forms<K> {
    typed: K,
    dynamic: DynamicObject,
    json: Lazy<K>,
    protobuf: Lazy<K>,
}

impl<K: TypedResource + DeserializeOwned + Serialize> Forms<K> {
    fn of(value: &Value) -> Self {
        let text = value.to_string();
        let mut bytes = Vec::new();
        k8s_protobuf::encode::object(value, &mut bytes).unwrap();
        Self {
            typed: serde_json::from_str(&text).unwrap(),
            dynamic: serde_json::from_str(&text).unwrap(),
            json: Lazy::from_json(text.as_bytes()).unwrap(),
            protobuf: Lazy::from_protobuf(&bytes).unwrap(),
        }
    }

    /// The value of a field, the same in all of them.
    fn read(&self, label: &str) -> String {
        let field = Field::of(&Resource::of::<K>(), label);
        let [typed, dynamic, json, protobuf] = [
            field.read(&self.typed),
            field.read(&self.dynamic),
            field.read(&self.json),
            field.read(&self.protobuf),
        ];
        for other in [dynamic, json, protobuf] {
            assert_eq!(typed, other, "{label}");
        }
        typed.into_owned()
    }
}

#[test]
fn a_field_reads_the_same_in_every_representation() {
    let pod = Forms::<Pod>::of(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "x", "generation": 3, "labels": {"app.io/tier": "db"},
            "annotations": {"a.b/c[0]": "note"}},
        "spec": {"nodeName": "n", "hostNetwork": true, "nodeSelector": {"disk": "ssd", "odd[*]": "y"},
            "containers": [{"name": "c", "image": "i"}]}
    }));
    for (label, expected) in [
        ("metadata.name", "a"),
        ("metadata.namespace", "x"),
        ("metadata.generation", "3"),
        ("metadata.labels.app.io/tier", "db"),
        ("metadata.labels.none", ""),
        ("metadata.annotations.a.b/c[0]", "note"),
        ("metadata.labels", ""),
        ("metadata.uid", ""),
        ("spec.nodeName", "n"),
        ("spec.host", "n"),
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
        assert_eq!(pod.read(label), expected, "{label}");
    }
}

#[test]
fn what_the_object_lacks_has_the_default_of_the_server() {
    let node = |spec| {
        Forms::<Node>::of(
            &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "spec": spec}),
        )
    };
    assert_eq!(node(json!({})).read("spec.unschedulable"), "false");
    assert_eq!(node(json!({"unschedulable": true})).read("spec.unschedulable"), "true");
    let event = |value: &mut Value| {
        value["apiVersion"] = "v1".into();
        value["kind"] = "Event".into();
        value["metadata"] = json!({"name": "a", "namespace": "x"});
        value["involvedObject"] = json!({"kind": "Pod", "name": "p"});
        Forms::<Event>::of(value)
    };
    assert_eq!(event(&mut json!({"source": {"component": "kubelet"}})).read("source"), "kubelet");
    assert_eq!(event(&mut json!({"reportingComponent": "x"})).read("source"), "x");
    assert_eq!(event(&mut json!({})).read("source"), "");
    assert_eq!(event(&mut json!({})).read("involvedObject.kind"), "Pod");
}

#[test]
fn fields_within_json_within_protobuf_are_found_too() {
    let revision = Forms::<ControllerRevision>::of(&json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a"},
        "data": {"spec": {"size": 3, "ratio": 1.5}}, "revision": 7
    }));
    for (label, expected) in
        [("data.spec.size", "3"), ("data.spec.ratio", "1.5"), ("revision", "7"), ("data.spec", "")]
    {
        assert_eq!(revision.read(label), expected, "{label}");
    }
}

#[test]
fn every_field_of_generated_objects_reads_the_same() {
    fn scalars(path: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members.iter().filter(|(name, _)| !name.contains(['.', '='])) {
                    let dot = if path.is_empty() { "" } else { "." };
                    scalars(&format!("{path}{dot}{name}"), value, found);
                }
            }
            Value::Null | Value::Array(_) => {}
            Value::String(_) | Value::Number(_) | Value::Bool(_) => found.push(path.to_owned()),
        }
    }
    fn check<K: TypedResource + DeserializeOwned + Serialize>(text: &str) {
        let forms = Forms::<K>::of(&serde_json::from_str(text).unwrap());
        // With what Go writes though it was not there.
        let mut json = Vec::new();
        forms.protobuf.write_json(&mut json).unwrap();
        let value: Value = serde_json::from_slice(&json).unwrap();
        let forms = Forms::<K>::of(&value);
        let mut paths = Vec::new();
        scalars("", &value, &mut paths);
        assert!(paths.len() > 15, "{paths:?}");
        for path in paths {
            // Quantities and times may be written in other words.
            if !path.contains("capacity")
                && !path.contains("allocatable")
                && !path.contains("Timestamp")
            {
                assert_eq!(
                    forms.read(&path),
                    informer_core::selector::field_value(&value, &path),
                    "{path}"
                );
            }
        }
    }
    check::<Pod>(&generate::pods(1).next().unwrap());
    check::<Deployment>(&generate::deployments(1).next().unwrap());
    check::<Node>(&generate::nodes(1).next().unwrap());
}

#[test]
fn metadata_alone_has_the_fields_of_metadata() {
    let json = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": "a", "namespace": "x", "labels": {"app": "web"}}});
    let held: PartialObjectMeta<Pod> = serde_json::from_value(json).unwrap();
    let pods = Resource::of::<Pod>();
    assert_eq!(Field::of(&pods, "metadata.namespace").read(&held), "x");
    assert_eq!(Field::of(&pods, "metadata.labels.app").read(&held), "web");
    assert_eq!(Field::of(&pods, "spec.nodeName").read(&held), "");
}

#[test]
fn what_is_no_object_within_has_no_fields() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "broken"},
        "spec": {"nodeName": "hunter2", "containers": []}});
    let mut bytes = Vec::new();
    k8s_protobuf::encode::object(&pod, &mut bytes).unwrap();
    let at = bytes.windows(9).position(|it| it == b"\x52\x07hunter2").unwrap();
    // A length beyond the end of the spec.
    bytes[at + 1] = 0x7f;
    let broken = Lazy::<Pod>::from_protobuf(&bytes).unwrap();
    for label in ["spec.nodeName", "spec.no.such"] {
        assert_eq!(Field::of(&Resource::of::<Pod>(), label).read(&broken), "");
    }
}
