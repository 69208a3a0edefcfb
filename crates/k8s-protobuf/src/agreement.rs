//! Decoding and writing JSON accept the same bytes and read the same values from them.

use serde_json::{Value, json};

use crate::wire::put_varint;
use crate::wire::testing::{fields, within};
use crate::{Envelope, Error, FieldPath, Kind, from_message, from_slice, message_to_json, to_json};

fn number(field: u8, value: u64) -> Vec<u8> {
    let mut message = vec![field << 3];
    put_varint(value, &mut message);
    message
}

/// The value that both read from the message; `None` if both refuse it.
fn both(api_version: &str, kind: &str, message: &[u8]) -> Option<Value> {
    let kind = Kind::of(api_version, kind).unwrap();
    let mut json = Vec::new();
    let written = message_to_json(kind, message, &mut json);
    let decoded = from_message::<Value>(kind, message);
    assert_eq!(written.is_ok(), decoded.is_ok(), "{written:?} {decoded:?}");
    let decoded = decoded.ok()?;
    assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), decoded);
    Some(decoded)
}

#[test]
fn a_part_encoded_otherwise_is_refused_wherever_it_stands() {
    let label = |parts: &[&[u8]]| within(&[1, 11], &parts.concat());
    let (key, value) = (fields(&[(1, b"a")]), fields(&[(2, b"b")]));
    let twice_unsorted = |first: &[u8], last: &[u8]| {
        let quantity = |key: &[u8], bytes: &[u8]| within(&[4], &fields(&[(1, key), (2, bytes)]));
        [quantity(b"b", b""), quantity(b"a", first), quantity(b"a", last)].concat()
    };
    let cases: [(&str, &str, Vec<u8>, bool); 11] = [
        ("v1", "Pod", within(&[1, 8], &[8, 1, 16, 1]), true),
        // The fraction of a creationTimestamp is not used, but must not be a text.
        ("v1", "Pod", within(&[1, 8], &[8, 1, 18, 0]), false),
        ("v1", "Pod", label(&[&key, &value]), true),
        ("v1", "Pod", label(&[&key, &value, &value]), true),
        ("v1", "Pod", label(&[&key, &number(2, 1), &value]), false),
        // The first of two values for one key must be a quantity too.
        ("metrics.k8s.io/v1beta1", "NodeMetrics", twice_unsorted(&fields(&[(1, b"1")]), b""), true),
        ("metrics.k8s.io/v1beta1", "NodeMetrics", twice_unsorted(&number(1, 1), b""), false),
        // Verbs.
        ("v1", "APIResourceList", within(&[2, 4], &fields(&[(1, b"get")])), true),
        ("v1", "APIResourceList", within(&[2, 4], &number(1, 1)), false),
        // What begins as null does, and what only Rust takes as white space.
        ("apps/v1", "ControllerRevision", within(&[2, 1], b" null\n"), true),
        ("apps/v1", "ControllerRevision", within(&[2, 1], b"nope"), false),
    ];
    for (api_version, kind, message, is_taken) in cases {
        assert_eq!(both(api_version, kind, &message).is_some(), is_taken, "{kind} {message:?}");
    }
    assert_eq!(both("apps/v1", "ControllerRevision", &within(&[2, 1], b"\x0cnull")), None);
}

/// A regression test: each level was written twice once its keys were found unsorted, so that 768
/// bytes took exponential time.
#[test]
fn unsorted_maps_in_one_another_are_written_once() {
    let mut schema = Vec::new();
    for _ in 0..60 {
        schema = fields(&[(29, &fields(&[(1, b"b"), (2, &schema)])), (29, b"")]);
    }
    let value = both(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &within(&[2, 7, 4, 1], &schema),
    );
    let mut value = &value.unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    for _ in 0..60 {
        assert_eq!(value["properties"][""], json!({}));
        value = &value["properties"]["b"];
    }
}

#[test]
fn an_object_that_does_not_say_its_version_has_none() {
    let mut pod = Vec::new();
    Envelope::write("", "Pod", b"", &mut pod);
    let list = both("v1", "List", &within(&[2, 1], &pod)).unwrap();
    assert_eq!(
        (&list["items"][0]["kind"], &list["items"][0]["apiVersion"]),
        (&json!("Pod"), &Value::Null)
    );
    let mut json = Vec::new();
    to_json(&pod, &mut json).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), from_slice::<Value>(&pod).unwrap());
    assert!(!String::from_utf8(json).unwrap().contains("apiVersion"));
}

/// Here without fractions that JSON's reader rounds otherwise.
#[test]
fn floats_are_those_of_the_json() {
    let crd = Kind::of("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let path = FieldPath::of(crd, "spec.versions[*].schema.openAPIV3Schema.maximum").unwrap();
    for (value, written) in [
        (0.0, "0"),
        (-1.5, "-1.5"),
        (9_007_199_254_740_993.0, "9007199254740992"),
        (144_115_188_075_855_872.0, "144115188075855870"),
        (9_223_372_036_854_775_808.0, "9223372036854776000"),
        (-9_223_372_036_854_775_808.0, "-9223372036854776000"),
        (1e19, "10000000000000000000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e21"),
        (1e-7, "1e-7"),
    ] {
        let value: f64 = value;
        let mut schema = vec![9 << 3 | 1];
        schema.extend_from_slice(&value.to_le_bytes());
        let message = within(&[2, 7, 4, 1], &schema);
        assert!(both("apiextensions.k8s.io/v1", "CustomResourceDefinition", &message).is_some());
        assert_eq!(path.read(&message).unwrap().unwrap().text(), written);
    }
}

#[test]
fn numbers_may_stand_together() {
    let groups = |parts: &[&[u8]]| {
        let pod = within(&[2, 14], &parts.concat());
        let pod = both("v1", "Pod", &pod).unwrap();
        pod["spec"]["securityContext"]["supplementalGroups"].clone()
    };
    let (together, alone, none) = (fields(&[(4, &[1, 2])]), number(4, 3), fields(&[(4, b"")]));
    assert_eq!(groups(&[&together]), json!([1, 2]));
    assert_eq!(groups(&[&none, &together, &alone, &none]), json!([1, 2, 3]));
    assert_eq!(groups(&[&none]), Value::Null);
    assert_eq!(groups(&[&alone, &together]), json!([3, 1, 2]));
    let cut = within(&[2, 14], &fields(&[(4, &[0x80])]));
    let pod = Kind::of("v1", "Pod").unwrap();
    assert_eq!(message_to_json(pod, &cut, &mut Vec::new()), Err(Error::Truncated));
}
