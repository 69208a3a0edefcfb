use serde_json::{Value, json};

use super::out::Out;
use crate::wire::put_varint;
use crate::wire::testing::within;
use crate::{Envelope, Error, Kind, encode, from_message, message_to_json, to_json};

fn kind(api_version: &str, name: &str) -> Kind {
    Kind::of(api_version, name).unwrap()
}

fn written(kind: Kind, message: &[u8]) -> Result<Value, Error> {
    let mut out = b"before".to_vec();
    let result = message_to_json(kind, message, &mut out);
    assert_eq!(&out[..6], b"before");
    result.inspect_err(|_| assert_eq!(out, b"before"))?;
    Ok(serde_json::from_slice(&out[6..]).unwrap())
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    within(&[number], bytes)
}

fn varint(number: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(u64::from(number) << 3, &mut out);
    put_varint(value, &mut out);
    out
}

#[test]
fn what_is_absent_is_null_zero_or_empty_unless_it_is_omitted() {
    for (api_version, name, expected) in [
        // Values without omitempty, structs with it.
        ("v1", "Pod", json!({ "metadata": {}, "spec": { "containers": null }, "status": {} })),
        ("v1", "PodList", json!({ "metadata": {}, "items": [] })),
        ("v1", "ConfigMap", json!({ "metadata": {} })),
        ("v1", "Status", json!({ "metadata": {} })),
        ("coordination.k8s.io/v1", "Lease", json!({ "metadata": {}, "spec": {} })),
        (
            "apps/v1",
            "DaemonSet",
            json!({
                "metadata": {},
                "spec": {
                    "selector": null,
                    "template": { "metadata": {}, "spec": { "containers": null } },
                    "updateStrategy": {},
                },
                "status": {
                    "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
                },
            }),
        ),
        // Times are structs, and of those that are not omitted null.
        (
            "v1",
            "Event",
            json!({
                "metadata": {}, "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
                "eventTime": null, "reportingComponent": "", "reportingInstance": "",
            }),
        ),
        (
            "metrics.k8s.io/v1beta1",
            "NodeMetrics",
            json!({ "metadata": {}, "timestamp": null, "window": "0s", "usage": null }),
        ),
    ] {
        let mut expected = expected;
        expected["apiVersion"] = api_version.into();
        expected["kind"] = name.into();
        assert_eq!(written(kind(api_version, name), b"").unwrap(), expected, "{name}");
    }
    // No type.
    let event = written(kind("v1", "WatchEvent"), b"").unwrap();
    assert_eq!(event, json!({ "type": "", "object": null }));
}

#[test]
fn what_is_zero_is_omitted_only_if_it_is_no_pointer() {
    let pod = kind("v1", "Pod");
    // spec { restartPolicy: "", terminationGracePeriodSeconds: 0, hostNetwork: false,
    // shareProcessNamespace: false }
    let spec = [field(3, b""), varint(4, 0), varint(11, 0), varint(27, 0)].concat();
    let pod = written(pod, &field(2, &spec)).unwrap();
    assert_eq!(
        pod["spec"],
        json!({ "containers": null, "terminationGracePeriodSeconds": 0, "shareProcessNamespace": false })
    );
    // data { a: nothing }
    let secret = written(kind("v1", "Secret"), &within(&[2, 1], b"a")).unwrap();
    assert_eq!(secret["data"], json!({ "a": "" }));
}

#[test]
fn times_have_no_fractions_but_micro_times_six_digits() {
    let time = |nanos| [varint(1, 1_795_279_235), varint(2, nanos)].concat();
    let spec = [field(3, &time(123_456_789)), field(4, &time(120_000_000))].concat();
    let lease = [within(&[1, 8], &time(5)), field(2, &spec)].concat();
    let lease = written(kind("coordination.k8s.io/v1", "Lease"), &lease).unwrap();
    assert_eq!(lease["metadata"]["creationTimestamp"], "2026-11-21T16:40:35Z");
    assert_eq!(
        lease["spec"],
        json!({ "acquireTime": "2026-11-21T16:40:35.123456Z", "renewTime": "2026-11-21T16:40:35.120000Z" })
    );
    let zero = [varint(1, -62_135_596_800i64 as u64), varint(2, 0)].concat();
    for zero in [&b""[..], &zero] {
        // Omitted as creationTimestamp, null otherwise.
        let metadata = field(1, &[field(8, zero), field(9, zero)].concat());
        let pod = written(kind("v1", "ConfigMap"), &metadata).unwrap();
        assert_eq!(pod["metadata"], json!({ "deletionTimestamp": null }));
    }
}

#[test]
fn quantities_and_ports_are_what_their_messages_hold() {
    let limits =
        [field(1, &[field(1, b"cpu"), within(&[2, 1], b"500m")].concat()), within(&[1, 1], b"x")]
            .concat();
    let port = |parts: &[Vec<u8>]| within(&[10, 1, 2, 2], &parts.concat());
    let container = |port: &[u8]| [field(1, b"c"), field(8, &limits), port.to_vec()].concat();
    for (port, expected) in [
        (port(&[varint(1, 0), varint(2, 80), field(3, b"ignored")]), json!(80)),
        (port(&[varint(1, 1), varint(2, 80), field(3, b"http")]), json!("http")),
        (port(&[]), json!(0)),
    ] {
        let pod = written(kind("v1", "Pod"), &within(&[2, 2], &container(&port))).unwrap();
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["resources"]["limits"], json!({ "cpu": "500m", "x": "0" }));
        assert_eq!(container["livenessProbe"]["httpGet"], json!({ "port": expected }));
    }
    let wrong = written(kind("v1", "Pod"), &within(&[2, 2], &container(&port(&[varint(1, 2)]))));
    assert!(matches!(wrong, Err(Error::Malformed { .. })));
}

#[test]
fn numbers_are_as_wide_as_in_go() {
    let spec = |number, value| field(2, &varint(number, value));
    let replicas = |value| {
        written(kind("apps/v1", "Deployment"), &spec(1, value)).unwrap()["spec"]["replicas"].clone()
    };
    assert_eq!(replicas(u64::MAX), json!(-1));
    assert_eq!(replicas(1 << 32 | 7), json!(7));
    let grace = |value| {
        written(kind("v1", "Pod"), &spec(4, value)).unwrap()["spec"]["terminationGracePeriodSeconds"].clone()
    };
    assert_eq!(grace(i64::MIN as u64), json!(i64::MIN));
    assert_eq!(grace(i64::MAX as u64), json!(i64::MAX));
}

#[test]
fn raw_json_is_copied_if_it_is_json() {
    let controllers = kind("apps/v1", "ControllerRevision");
    let revision =
        |raw: &[u8]| written(controllers, &within(&[2, 1], raw)).map(|mut it| it["data"].take());
    assert_eq!(revision(br#"{"a": [1, "\u00e9\n<"]}"#).unwrap(), json!({ "a": [1, "é\n<"] }));
    assert_eq!(revision(b"").unwrap(), json!(null));
    for wrong in [&b"{"[..], b"{}{}", b"\xd9\xd9\xf7\xa0", b"nul", b"{\"a\":\"\n\"}"] {
        assert!(matches!(revision(wrong), Err(Error::Malformed { .. })), "{wrong:?}");
    }
    // The line ends that JSON may have between its parts are not there.
    let mut out = Vec::new();
    message_to_json(controllers, &within(&[2, 1], b"{\n  \"a b\": [\r\n\t1, 2 ]\n}\n"), &mut out)
        .unwrap();
    assert!(String::from_utf8(out).unwrap().contains(r#""data":{"a b":[1,2]}"#));
}

#[test]
fn objects_in_objects_with_envelopes_are_json_too() {
    let mut pod = Vec::new();
    let object = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } });
    encode::object(&object, &mut pod).unwrap();
    let list = written(kind("v1", "List"), &within(&[2, 1], &pod)).unwrap();
    assert_eq!(list["items"][0]["kind"], "Pod");
    assert_eq!(list["items"][0]["metadata"], json!({ "name": "a" }));
}

#[test]
fn depth_has_a_limit() {
    // Each schema is within the one before: `not`.
    let deep = |levels| within(&[2, 7, 4, 1], &within(&vec![28; levels], &field(1, b"x")));
    let crd = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    assert!(written(crd, &deep(100)).is_ok());
    assert_eq!(written(crd, &deep(130)), Err(Error::TooDeep { limit: 127 }));
    // Raw JSON has a limit of its own.
    let raw = |levels: usize| [b"[".repeat(levels), b"]".repeat(levels)].concat();
    let revision = |levels| {
        let (mut out, message) = (Vec::new(), within(&[2, 1], &raw(levels)));
        message_to_json(kind("apps/v1", "ControllerRevision"), &message, &mut out).map(|()| out)
    };
    assert!(revision(10_000).unwrap().windows(10_000).any(|text| text == raw(5_000)));
    assert_eq!(revision(10_001), Err(Error::TooDeep { limit: 10_000 }));
    // Objects with envelopes do not.
    let lists = |levels: usize| {
        (0..levels).fold(Vec::new(), |inner, _| {
            let mut outer = Vec::new();
            Envelope::write("v1", "List", &within(&[2, 1], &inner), &mut outer);
            outer
        })
    };
    assert!(to_json(&lists(60), &mut Vec::new()).is_ok());
    assert_eq!(to_json(&lists(100), &mut Vec::new()), Err(Error::TooDeep { limit: 127 }));
}

#[test]
fn entries_of_maps_may_stand_in_any_order_and_fields_may_not() {
    let name = |name: &[u8]| field(1, name);
    let label = |key: &[u8], value: &[u8]| field(11, &[field(1, key), field(2, value)].concat());
    let pod = |metadata: &[Vec<u8>]| {
        let message = field(1, &metadata.concat());
        let value = written(kind("v1", "Pod"), &message);
        assert_eq!(value.is_ok(), from_message::<Value>(kind("v1", "Pod"), &message).is_ok());
        value
    };
    let labels =
        [name(b"a"), label(b"y", b"1"), label(b"x", b"2"), label(b"y", b"3"), varint(900, 7)];
    assert_eq!(
        pod(&labels).unwrap()["metadata"],
        json!({ "name": "a", "labels": { "x": "2", "y": "3" } })
    );
    for metadata in [vec![field(3, b"ns"), name(b"a")], vec![name(b"a"), name(b"b")]] {
        let error = pod(&metadata).unwrap_err().to_string();
        assert!(error.contains("out of the order of their numbers"), "{error}");
    }
}

#[test]
fn a_wrong_encoding_is_an_error() {
    for message in [
        varint(1, 7),
        field(2, &varint(3, 7)),
        field(2, &field(4, b"7")),
        within(&[1, 11], b"\xff"),
    ] {
        assert!(written(kind("v1", "Pod"), &message).is_err(), "{message:?}");
    }
    // Go writes it all the same.
    let not_utf8 = written(kind("v1", "Pod"), &within(&[1, 1], b"\xff")).unwrap();
    assert_eq!(not_utf8["metadata"]["name"], "\u{fffd}");
    let key = field(1, &within(&[11, 1], b"a\xff"));
    let not_utf8 = written(kind("v1", "Pod"), &key).unwrap();
    assert_eq!(not_utf8["metadata"]["labels"], json!({ "a\u{fffd}": "" }));
}

/// What the documentation of [`to_json`] promises of the length.
#[test]
fn two_bytes_become_800_at_most() {
    for kind in Kind::all() {
        let mut out = Vec::new();
        message_to_json(kind, b"", &mut out).unwrap();
        assert!(out.len() <= 1000, "{kind}: {}", out.len());
    }
    for def in crate::schema::all_messages() {
        let mut out = Out::new(Vec::new(), b"");
        assert!(super::write::message(def, b"", 0, &mut out).is_ok());
        let out = out.json;
        for field in def.fields {
            // A message that is empty: two bytes, or one with its name, quotes, and comma.
            assert!(out.len() + field.name.len() + 4 <= 800, "{}: {}", def.name, out.len());
        }
    }
}
