use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{encode, message_to_json};

fn kind(api_version: &str, name: &str) -> Kind {
    Kind::of(api_version, name).unwrap()
}

fn encoded(kind: Kind, object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode::message(kind, object, &mut out).unwrap();
    out
}

fn found(kind: Kind, path: &str, message: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let path = FieldPath::of(kind, path).unwrap();
    path.each(message, |value| found.push(value.text().into_owned())).unwrap();
    assert_eq!(
        path.read(message).unwrap().map(|value| value.text().into_owned()).as_ref(),
        found.first()
    );
    found
}

#[test]
fn values_of_every_kind_are_read() {
    let pods = kind("v1", "Pod");
    let pod = encoded(
        pods,
        &json!({
            "metadata": {
                "name": "a",
                "creationTimestamp": "2026-11-21T16:40:35Z",
                "labels": { "app": "web", "app.kubernetes.io/name": "x", "empty": "" },
                "finalizers": ["one", "two"],
            },
            "spec": {
                "nodeName": "node-1",
                "priority": -5,
                "terminationGracePeriodSeconds": 0,
                "hostNetwork": true,
                "containers": [
                    {
                        "name": "c", "image": "i", "ports": [{ "containerPort": 80 }, { "containerPort": 81 }],
                        "resources": { "limits": { "cpu": "500m" } },
                        "livenessProbe": { "httpGet": { "port": "http" } },
                    },
                    { "name": "d", "ports": [{ "containerPort": 90 }], "livenessProbe": { "httpGet": { "port": 8080 } } },
                ],
                "volumes": [{ "name": "v", "configMap": { "name": "settings" } }],
            },
        }),
    );
    for (path, values) in [
        ("metadata.name", &["a"][..]),
        ("metadata.uid", &[]),
        ("metadata.creationTimestamp", &["2026-11-21T16:40:35Z"]),
        ("metadata.deletionTimestamp", &[]),
        ("metadata.labels.app", &["web"]),
        ("metadata.labels['app.kubernetes.io/name']", &["x"]),
        ("metadata.labels[\"empty\"]", &[""]),
        ("metadata.labels.none", &[]),
        ("metadata.annotations.none", &[]),
        ("metadata.finalizers[*]", &["one", "two"]),
        ("spec.nodeName", &["node-1"]),
        ("spec['nodeName']", &["node-1"]),
        ("spec.priority", &["-5"]),
        ("spec.terminationGracePeriodSeconds", &["0"]),
        ("spec.hostNetwork", &["true"]),
        ("spec.hostPID", &[]),
        ("spec.containers[*].name", &["c", "d"]),
        // Not omitted when it is empty, as it is in the port's other fields.
        ("spec.containers[*].image", &["i"]),
        ("spec.containers[*].ports[*].containerPort", &["80", "81", "90"]),
        ("spec.containers[*].ports[*].hostPort", &[]),
        ("spec.containers[*].resources.limits.cpu", &["500m"]),
        ("spec.containers[*].livenessProbe.httpGet.port", &["http", "8080"]),
        // A field of an inline message, in an inline message.
        ("spec.volumes[*].configMap.name", &["settings"]),
        ("status.phase", &[]),
    ] {
        assert_eq!(found(pods, path, &pod), values, "{path}");
    }

    let leases = kind("coordination.k8s.io/v1", "Lease");
    let lease = encoded(leases, &json!({ "spec": { "renewTime": "2026-11-21T16:40:35.123456Z" } }));
    assert_eq!(found(leases, "spec.renewTime", &lease), ["2026-11-21T16:40:35.123456Z"]);

    let secrets = kind("v1", "Secret");
    let secret = encoded(secrets, &json!({ "data": { "a": "YQ==" }, "type": "Opaque" }));
    assert_eq!(found(secrets, "data.a", &secret), ["YQ=="]);
    let a = FieldPath::of(secrets, "data.a").unwrap();
    assert_eq!(a.read(&secret).unwrap(), Some(Scalar::Bytes(b"a")));

    let reviews = kind("authorization.k8s.io/v1", "SubjectAccessReview");
    let review = encoded(reviews, &json!({ "spec": { "extra": { "k": ["x", "y"], "l": ["z"] } } }));
    assert_eq!(found(reviews, "spec.extra['k'][*]", &review), ["x", "y"]);

    let metrics = kind("metrics.k8s.io/v1beta1", "PodMetrics");
    let metric = encoded(metrics, &json!({ "window": "1m30s" }));
    assert_eq!(found(metrics, "window", &metric), ["1m30s"]);
}

#[test]
fn what_is_not_in_the_bytes_is_what_json_says() {
    let sets = kind("apps/v1", "DaemonSet");
    // Without omitempty, and no pointer on the way.
    assert_eq!(found(sets, "status.numberReady", b""), ["0"]);
    // With it.
    assert_eq!(found(sets, "status.numberAvailable", b""), [""; 0]);
    // A pointer on the way.
    assert_eq!(found(sets, "spec.updateStrategy.type", b""), [""; 0]);
    let pods = kind("v1", "Pod");
    let probe = |probe: Value| {
        encoded(pods, &json!({ "spec": { "containers": [{ "livenessProbe": probe }] } }))
    };
    let port = "spec.containers[*].livenessProbe.httpGet.port";
    assert_eq!(found(pods, port, &probe(json!({ "tcpSocket": { "port": 7 } }))), [""; 0]);
    // spec { containers: [{ livenessProbe { handler { httpGet {} } } }] }
    assert_eq!(found(pods, port, b"\x12\x08\x12\x06\x52\x04\x0a\x02\x12\x00"), ["0"]);
}

#[test]
fn the_last_counts_whatever_the_order() {
    let pods = kind("v1", "Pod");
    let parts = [
        json!({ "metadata": { "labels": { "a": "1", "b": "2" } }, "spec": { "nodeName": "x" } }),
        json!({ "metadata": { "labels": { "a": "3" } }, "spec": { "nodeName": "y" } }),
    ];
    let joined: Vec<u8> = parts.iter().flat_map(|part| encoded(pods, part)).collect();
    assert_eq!(found(pods, "metadata.labels.a", &joined), ["3"]);
    assert_eq!(found(pods, "metadata.labels.b", &joined), ["2"]);
    assert_eq!(found(pods, "spec.nodeName", &joined), ["y"]);
}

#[test]
fn what_is_no_path_says_what_there_is() {
    for (path, error) in [
        (
            "spec.nodename",
            "spec.nodename: no such field in v1 Pod; did you mean nodeName, hostname or volumes?",
        ),
        ("sepc.nodeName", "sepc: no such field in v1 Pod; did you mean spec, status or metadata?"),
        ("kind", "kind: the bytes do not say it again: all objects read with this path are v1 Pod"),
        (
            "spec",
            "spec: this is an object: name one of its fields, such as volumes, containers and restartPolicy",
        ),
        ("spec.containers", "spec.containers: this is an array: add [*] to read all its items"),
        (
            "spec.containers.image",
            "spec.containers.image: spec.containers is an array: add [*] to read all its items",
        ),
        (
            "metadata.labels",
            "metadata.labels: this is a map: name one of its keys, as in metadata.labels['app']",
        ),
        (
            "metadata.labels[*]",
            "metadata.labels[*]: metadata.labels is a map: name one of its keys, as in metadata.labels['app']",
        ),
        ("metadata.name.x", "metadata.name.x: metadata.name is a value, which has nothing in it"),
        ("metadata.name[*]", "metadata.name[*]: metadata.name is a value, which has nothing in it"),
        (
            "metadata.managedFields[*].fieldsV1",
            "metadata.managedFields[*].fieldsV1: this is JSON of any form, which cannot be read field by field",
        ),
        ("", ": there must be a name at the beginning and after each dot, as in spec.nodeName"),
        (
            ".spec",
            ".spec: there must be a name at the beginning and after each dot, as in spec.nodeName",
        ),
        (
            "spec..x",
            "spec..x: there must be a name at the beginning and after each dot, as in spec.nodeName",
        ),
        ("a[0]", "a[0]: in brackets must be * for all items, or a key in quotes"),
        ("a['b", "a['b: a key in brackets does not end"),
        ("a['b']c", "a['b']c: after a bracket must be a dot, another bracket or nothing"),
    ] {
        assert_eq!(FieldPath::of(kind("v1", "Pod"), path).unwrap_err().to_string(), error);
    }
    let empty = FieldPath::from_segments(kind("v1", "Pod"), []).unwrap_err();
    assert!(empty.to_string().starts_with(": this is an object"));
}

#[test]
fn a_path_is_written_as_it_is_read() {
    for (path, written) in [
        ("spec.containers[*].image", "spec.containers[*].image"),
        ("metadata.labels.app", "metadata.labels['app']"),
        ("metadata.labels['a.b/c']", "metadata.labels['a.b/c']"),
        ("metadata.labels[\"']\"]", "metadata.labels[\"']\"]"),
    ] {
        let path = FieldPath::of(kind("v1", "Pod"), path).unwrap();
        assert_eq!(path.to_string(), written);
        assert_eq!(FieldPath::of(path.kind(), written).unwrap(), path);
    }
    let path = FieldPath::of(kind("v1", "Pod"), "metadata.labels.app").unwrap();
    let name = |name: &str| Segment::Name(name.to_owned());
    assert_eq!(path.segments(), [name("metadata"), name("labels"), Segment::Key("app".to_owned())]);
}

#[test]
fn bytes_that_are_broken_are_an_error() {
    let node = FieldPath::of(kind("v1", "Pod"), "spec.nodeName").unwrap();
    for broken in [&b"\x12\x05\x52"[..], b"\x10\x01", b"\x12\x02\x50\x01", b"\x12\x03\x52\x02\xff"]
    {
        assert!(node.read(broken).is_err(), "{broken:?}");
    }
}

/// Paths of all scalars in some JSON, with what stands there.
pub(crate) fn scalars(
    value: &Value,
    path: &mut Vec<Segment>,
    out: &mut Vec<(Vec<Segment>, String)>,
) {
    match value {
        Value::Null => {}
        Value::Object(object) => {
            for (key, value) in object {
                // Maps have keys, which a name becomes by itself.
                path.push(Segment::Name(key.clone()));
                scalars(value, path, out);
                path.pop();
            }
        }
        Value::Array(items) => {
            for value in items {
                path.push(Segment::Each);
                scalars(value, path, out);
                path.pop();
            }
        }
        Value::String(text) => out.push((path.clone(), text.clone())),
        Value::Number(number) if number.is_f64() => {
            out.push((path.clone(), number.as_f64().unwrap_or_default().to_string()));
        }
        other => out.push((path.clone(), other.to_string())),
    }
}

proptest! {
    #[test]
    fn any_path_is_read_or_refused(path in r#"[a-z.\[\]'"*]{0,20}"#) {
        if let Ok(segments) = text::parse(&path) {
            prop_assert_eq!(text::parse(&text::written(&segments)).unwrap(), segments);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        for path in ["metadata.labels.a", "spec.containers[*].ports[*].name", "spec.volumes[*].emptyDir.sizeLimit"] {
            let path = FieldPath::of(kind("v1", "Pod"), path).unwrap();
            let mut count = 0;
            let each = path.each(&bytes, |_| count += 1);
            let read = path.read(&bytes);
            prop_assert_eq!(each.is_ok(), read.is_ok());
        }
    }
}

/// All that stands in JSON is found by its path, in the pairs that are checked in.
#[test]
fn all_that_json_has_is_found_by_its_path() {
    let mut bytes = &include_bytes!("../../tests/fixtures/pairs.bin")[..];
    let mut next = || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        bytes = rest;
        Some(part)
    };
    let mut count = 0;
    while let Some(name) = next() {
        let (protobuf, _) = (next().unwrap(), next().unwrap());
        let (kind, message) = crate::Envelope::parse(protobuf).unwrap().message().unwrap();
        let mut json = Vec::new();
        message_to_json(kind, message, &mut json).unwrap();
        let mut expected = Vec::new();
        let mut json: Value = serde_json::from_slice(&json).unwrap();
        json.as_object_mut().unwrap().retain(|key, _| key != "kind" && key != "apiVersion");
        scalars(&json, &mut Vec::new(), &mut expected);
        let mut paths: Vec<Vec<Segment>> = expected.iter().map(|(path, _)| path.clone()).collect();
        paths.sort_by_key(|path| format!("{path:?}"));
        paths.dedup();
        for segments in paths {
            let path = match FieldPath::from_segments(kind, segments.clone()) {
                Ok(path) => path,
                // What has no fields of its own.
                Err(error) => {
                    assert!(error.to_string().contains("field by field"), "{name:?}: {error}");
                    continue;
                }
            };
            let mut found = Vec::new();
            path.each(message, |value| found.push(value.text().into_owned())).unwrap();
            let values: Vec<_> = expected
                .iter()
                .filter(|(path, _)| *path == segments)
                .map(|(_, value)| value)
                .collect();
            assert_eq!(found.iter().collect::<Vec<_>>(), values, "{name:?}: {path}");
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
}
