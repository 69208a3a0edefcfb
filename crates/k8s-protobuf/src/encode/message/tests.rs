use serde_json::{Value, json};

use crate::wire::{Reader, Value as Wire, put_bytes};
use crate::{Error, Kind, encode};

fn encoded(api_version: &str, kind: &str, object: &Value) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    encode::message(Kind::of(api_version, kind).unwrap(), object, &mut out)?;
    Ok(out)
}

/// The fields at a place: numbers of messages, each the last of its number.
fn at<'a>(mut message: &'a [u8], path: &[u32]) -> Vec<(u32, Wire<'a>)> {
    let fields = |message: &'a [u8]| {
        let (mut reader, mut fields) = (Reader::new(message), Vec::new());
        while let Some(field) = reader.next().unwrap() {
            fields.push(field);
        }
        fields
    };
    for number in path {
        let found = fields(message).into_iter().rfind(|(found, _)| found == number);
        message = found.expect("the field is there").1.bytes().unwrap();
    }
    fields(message)
}

#[test]
fn what_is_no_pointer_in_go_is_written_even_when_it_is_empty() {
    let lease = encoded("coordination.k8s.io/v1", "Lease", &json!({})).unwrap();
    // metadata { name, generateName, namespace, selfLink, uid, resourceVersion, generation,
    // creationTimestamp }, spec {}
    let mut metadata = Vec::new();
    (1..=6).for_each(|number| put_bytes(number, b"", &mut metadata));
    metadata.extend_from_slice(&[7 << 3, 0]);
    put_bytes(8, b"", &mut metadata);
    let mut expected = Vec::new();
    put_bytes(1, &metadata, &mut expected);
    put_bytes(2, b"", &mut expected);
    assert_eq!(lease, expected);
}

#[test]
fn null_is_as_absent() {
    let with = json!({ "metadata": { "labels": null, "name": null }, "spec": { "renewTime": null, "leaseTransitions": null } });
    let kind = ("coordination.k8s.io/v1", "Lease");
    assert_eq!(encoded(kind.0, kind.1, &with), encoded(kind.0, kind.1, &json!({})));
}

#[test]
fn a_pointer_to_zero_is_written() {
    let scale = encoded("apps/v1", "Deployment", &json!({ "spec": { "replicas": 0 } })).unwrap();
    assert_eq!(at(&scale, &[2])[0], (1, Wire::Varint(0)));
}

#[test]
fn maps_are_sorted() {
    let object = json!({ "data": { "b": "2", "a": "1" }, "binaryData": { "z": "", "n": null } });
    let message = encoded("v1", "ConfigMap", &object).unwrap();
    let entries: Vec<_> = at(&message, &[])[1..]
        .iter()
        .map(|(number, value)| (*number, value.bytes().unwrap()))
        .collect();
    assert_eq!(
        entries,
        [
            (2, &b"\x0a\x01a\x12\x011"[..]),
            (2, b"\x0a\x01b\x12\x012"),
            // Bytes that are nil are not written, others are.
            (3, b"\x0a\x01n"),
            (3, b"\x0a\x01z\x12\x00"),
        ]
    );
}

#[test]
fn texts_of_json_become_what_protobuf_has() {
    let lease = json!({
        "metadata": { "creationTimestamp": "2026-11-21T16:40:35.9Z" },
        "spec": { "renewTime": "2026-11-21T16:40:35.123456Z" },
    });
    let message = encoded("coordination.k8s.io/v1", "Lease", &lease).unwrap();
    assert_eq!(at(&message, &[1, 8]), [(1, Wire::Varint(1_795_279_235)), (2, Wire::Varint(0))]);
    assert_eq!(
        at(&message, &[2, 4]),
        [(1, Wire::Varint(1_795_279_235)), (2, Wire::Varint(123_456_000))]
    );

    let pod = json!({ "spec": { "containers": [{
        "resources": { "limits": { "cpu": "500m" } },
        "livenessProbe": { "httpGet": { "port": "http" }, "tcpSocket": { "port": 80 } },
    }] } });
    let message = encoded("v1", "Pod", &pod).unwrap();
    assert_eq!(at(&message, &[2, 2, 8, 1, 2]), [(1, Wire::Bytes(b"500m"))]);
    let port =
        |kind, int, text| [(1, Wire::Varint(kind)), (2, Wire::Varint(int)), (3, Wire::Bytes(text))];
    assert_eq!(at(&message, &[2, 2, 10, 1, 2, 2]), port(1, 0, b"http"));
    assert_eq!(at(&message, &[2, 2, 10, 1, 3, 1]), port(0, 80, b""));
}

#[test]
fn fields_of_inline_messages_come_from_the_parent() {
    let pod =
        json!({ "spec": { "volumes": [{ "name": "v", "emptyDir": { "medium": "Memory" } }] } });
    let message = encoded("v1", "Pod", &pod).unwrap();
    assert_eq!(at(&message, &[2, 1])[0], (1, Wire::Bytes(b"v")));
    assert_eq!(at(&message, &[2, 1, 2, 2]), [(1, Wire::Bytes(b"Memory"))]);
}

#[test]
fn schemas_have_three_forms() {
    let schema = json!({ "spec": { "versions": [{ "schema": { "openAPIV3Schema": {
        "items": [{ "id": "a" }, { "id": "b" }],
        "additionalProperties": { "id": "c" },
        "dependencies": { "d": ["e"] },
        "default": { "b": [1.5, "x"] },
    } } }] } });
    let message = encoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", &schema).unwrap();
    let schema = at(&message, &[2, 7, 4, 1]);
    let field =
        |number| schema.iter().find(|(found, _)| *found == number).unwrap().1.bytes().unwrap();
    assert_eq!(at(field(8), &[]), [(1, Wire::Bytes(br#"{"b":[1.5,"x"]}"#))]);
    assert_eq!(at(field(24), &[]).iter().map(|field| field.0).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(at(field(30), &[])[0], (1, Wire::Varint(1)));
    assert_eq!(at(field(32), &[2]), [(2, Wire::Bytes(b"e"))]);
}

#[test]
fn what_does_not_fit_is_an_error_with_its_path() {
    for (object, error) in [
        (json!([]), ".: expected an object, found an array"),
        (json!({ "spec": "x" }), "spec: expected an object, found a string"),
        (
            json!({ "spec": { "containers": [{}, { "name": 1 }] } }),
            "spec.containers[1].name: expected a string, found a number",
        ),
        (
            json!({ "spec": { "containers": {} } }),
            "spec.containers: expected an array, found an object",
        ),
        (
            json!({ "spec": { "priority": 2147483648u32 } }),
            "spec.priority: expected an integer of 32 bits",
        ),
        (json!({ "spec": { "priority": 1.5 } }), "spec.priority: expected an integer of 64 bits"),
        (
            json!({ "spec": { "hostNetwork": "true" } }),
            "spec.hostNetwork: expected a boolean, found a string",
        ),
        (
            json!({ "metadata": { "labels": { "a/b": 1 } } }),
            "metadata.labels['a/b']: expected a string, found a number",
        ),
        (
            json!({ "metadata": { "creationTimestamp": "today" } }),
            "metadata.creationTimestamp: expected a time of RFC 3339",
        ),
        (
            json!({ "spec": { "volumes": [{ "emptyDir": 1 }] } }),
            "spec.volumes[0].emptyDir: expected an object, found a number",
        ),
    ] {
        assert_eq!(encoded("v1", "Pod", &object).unwrap_err().to_string(), error);
    }
    let secret = encoded("v1", "Secret", &json!({ "data": { "a": "?" } })).unwrap_err();
    assert_eq!(secret.to_string(), "data['a']: expected base64");
}

#[test]
fn what_is_deeper_than_anything_real_is_refused() {
    let mut schema = json!({});
    for _ in 0..200 {
        schema = json!({ "not": schema });
    }
    let crd = json!({ "spec": { "versions": [{ "schema": { "openAPIV3Schema": schema } }] } });
    let error = encoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", &crd).unwrap_err();
    assert_eq!(error, Error::TooDeep { limit: 128 });
}
