use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::LazyLock;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::messages::compare as compare_kind;
use super::{Input, object, partial_metadata};
use crate::de::by_serde;
use crate::wire::testing::{fields, within};
use crate::{Envelope, Kind, Reader, corpus, encode};

fn from_message<T: 'static>(kind: Kind, message: &[u8]) -> Option<T> {
    object(Input::Message(kind, message))
}

fn from_json<T: 'static>(text: &str) -> Option<T> {
    object(Input::Json(text))
}

/// Whether an object is read directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Direct {
    protobuf: bool,
    json: bool,
}

/// Whether the object is read directly; it is what serde makes of it then.
pub(super) fn compare<T>(kind: Kind, message: &[u8], json: &[u8]) -> Direct
where
    T: DeserializeOwned + PartialEq + Debug + 'static,
{
    let protobuf = compare_protobuf::<T>(kind, message);
    Direct { protobuf, json: std::str::from_utf8(json).is_ok_and(compare_json::<T>) }
}

fn compare_protobuf<T: DeserializeOwned + PartialEq + Debug + 'static>(kind: Kind, message: &[u8]) -> bool {
    let direct = from_message::<T>(kind, message);
    if let Some(direct) = &direct {
        assert_eq!(Ok(direct), by_serde(kind, true, message).as_ref());
    }
    direct.is_some()
}

fn compare_json<T: DeserializeOwned + PartialEq + Debug + 'static>(json: &str) -> bool {
    let direct = from_json::<T>(json);
    if let Some(direct) = &direct {
        assert_eq!(direct, &serde_json::from_str::<T>(json).expect(json));
    }
    direct.is_some()
}

fn pod_kind() -> Kind {
    Kind::of("v1", "Pod").unwrap()
}

/// A pod as a server would write it.
fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-1", "namespace": "shop", "uid": "8d0b", "resourceVersion": "12",
            "creationTimestamp": "2026-01-02T03:04:05Z", "labels": { "app": "web", "tier": "front" },
            "managedFields": [{ "manager": "kubelet", "fieldsV1": { "f:status": {} }, "fieldsType": "FieldsV1" }],
        },
        "spec": {
            "volumes": [{ "name": "token", "projected": { "sources": [{ "configMap": { "name": "root" } }] } }],
            "containers": [{
                "name": "web", "image": "web:1", "ports": [{ "containerPort": 80 }],
                "resources": { "limits": { "cpu": "1", "memory": "64Mi" } },
                "livenessProbe": { "httpGet": { "path": "/", "port": "http" }, "periodSeconds": 5 },
                "env": [{ "name": "KEY", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } }],
            }],
            "securityContext": { "runAsUser": 1000, "supplementalGroups": [1, 300] },
        },
        "status": {
            "phase": "Running", "startTime": "2026-01-02T03:04:06Z", "podIPs": [{ "ip": "10.0.0.1" }],
            "containerStatuses": [{
                "name": "web", "ready": true, "restartCount": 300, "image": "web:1", "imageID": "",
                "state": { "running": { "startedAt": "2026-01-02T03:04:07Z" } }, "lastState": {},
            }],
        },
    })
}

fn message(object: &Value) -> Vec<u8> {
    let mut body = Vec::new();
    encode::object(object, &mut body).unwrap();
    Envelope::parse(&body).unwrap().raw.to_vec()
}

#[test]
fn an_object_as_servers_write_it_is_read_directly() {
    let mut object = pod();
    let bytes = message(&object);
    assert!(compare_protobuf::<Pod>(pod_kind(), &bytes));
    let pod = from_message::<Pod>(pod_kind(), &bytes).unwrap();
    // What the fields of managedFields hold may be as deep as serde_json has a say in.
    assert!(!compare_json::<Pod>(&object.to_string()));
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    for json in [object.to_string(), format!("{object:#}\n")] {
        assert!(compare_json::<Pod>(&json), "{json}");
        let pod = from_json::<Pod>(&json).unwrap();
        assert_eq!(pod.spec.unwrap().containers.capacity(), 1);
    }
    let spec = pod.spec.unwrap();
    assert_eq!(spec.containers.capacity(), 1, "the length is known beforehand");
    assert_eq!(spec.containers[0].ports.as_ref().unwrap()[0].container_port, 80);
    assert_eq!(spec.volumes.unwrap()[0].projected.as_ref().unwrap().sources.as_ref().unwrap().len(), 1);
    assert_eq!(spec.security_context.unwrap().supplemental_groups, Some(vec![1, 300]));
    assert_eq!(pod.status.unwrap().container_statuses.unwrap()[0].restart_count, 300);
}

#[test]
fn another_type_is_left_to_serde() {
    assert!(from_message::<Node>(pod_kind(), &message(&pod())).is_none());
    assert!(from_message::<Value>(pod_kind(), &message(&pod())).is_none());
    assert!(from_message::<Pod>(Kind::of("v1", "Node").unwrap(), b"").is_none());
    assert!(from_json::<Value>("{}").is_none());
    assert!(from_json::<Node>(r#"{"apiVersion":"v1","kind":"Pod"}"#).is_none());
    assert!(from_json::<Node>(r#"{"apiVersion":"v2","kind":"Node"}"#).is_none());
    assert!(from_json::<Node>(r#"{"apiVersion":"v1","kind":"Node"}"#).is_some());
    assert!(from_json::<Node>("{}").is_some());
}

#[test]
fn what_is_unusual_is_left_to_serde() {
    // Each is read by serde: the name, and the phase.
    let named = |name: &[u8]| fields(&[(1, name)]);
    let whole = |metadata: &[u8], spec: &[u8]| fields(&[(1, metadata), (2, spec), (3, b"\x0a\x01P")]);
    let spec = fields(&[(2, &fields(&[(1, b"c"), (8, b"")]))]);
    assert!(compare_protobuf::<Pod>(pod_kind(), &whole(&named(b"a"), &spec)), "this is usual");
    let group = |numbers: &[u8]| [spec.clone(), within(&[14, 4], numbers)].concat();
    for (what, message) in [
        ("a field twice", whole(&[named(b"a"), named(b"b")].concat(), &spec)),
        ("fields out of order", whole(&fields(&[(3, b"ns"), (1, b"a")]), &spec)),
        ("a field that nobody knows", whole(&[named(b"a"), fields(&[(200, b"x")])].concat(), &spec)),
        ("a text that is not UTF-8", whole(&named(b"\xff"), &spec)),
        ("an entry without a value", whole(&[named(b"a"), within(&[11, 1], b"k")].concat(), &spec)),
        ("numbers in one field", whole(&named(b"a"), &group(b"\x01\x02"))),
    ] {
        assert!(from_message::<Pod>(pod_kind(), &message).is_none(), "{what}");
        assert!(by_serde::<Pod>(pod_kind(), true, &message).is_ok(), "{what}");
    }
    let broken = whole(&named(b"a"), &[0x12, 5]);
    assert!(from_message::<Pod>(pod_kind(), &broken).is_none());
    assert!(by_serde::<Pod>(pod_kind(), true, &broken).is_err());
}

#[test]
fn what_is_absent_is_what_json_has_of_it() {
    let named = fields(&[(1, b"a")]);
    let probe = |probe: &[u8]| within(&[2, 2, 10], probe);
    for (what, message) in [
        ("nothing", Vec::new()),
        ("no status, which is empty", fields(&[(1, &named)])),
        ("no containers, which are null", fields(&[(1, &named), (2, b""), (3, b"")])),
        ("a probe without the message that is inline", probe(b"\x10\x01")),
        ("a probe whose service is null", probe(&within(&[1, 4], b"\x08\x50"))),
    ] {
        assert!(compare_protobuf::<Pod>(pod_kind(), &message), "{what}");
    }
}

#[test]
fn what_is_read_directly_is_what_serde_reads() {
    let mut kinds: BTreeMap<Kind, [usize; 3]> = BTreeMap::new();
    for pair in fixtures() {
        let Some((kind, message)) = pair.message() else { continue };
        let Some(direct) = compare_kind(kind, message, &pair.json) else { continue };
        let counts = kinds.entry(kind).or_default();
        counts[0] += usize::from(direct.protobuf);
        counts[1] += usize::from(direct.json);
        counts[2] += 1;
    }
    let [protobuf, json, all] = [0, 1, 2].map(|at| kinds.values().map(|counts| counts[at]).sum::<usize>());
    assert!(protobuf * 3 > all * 2 && json * 3 > all, "{protobuf} and {json} of {all}: {kinds:?}");
    let never: Vec<_> = kinds.iter().filter(|(_, counts)| counts[0] == 0).collect();
    assert!(never.is_empty(), "{never:?}");
}

#[test]
fn of_two_values_of_a_key_the_last_counts() {
    let entry = |value: &[u8]| fields(&[(11, &fields(&[(1, b"k"), (2, value)]))]);
    let message = within(&[1], &[entry(b"first"), entry(b"last")].concat());
    let json = r#"{"metadata":{"labels":{"k":"first","a":"b","k":"last"}}}"#;
    assert_eq!(compare::<Pod>(pod_kind(), &message, json.as_bytes()), Direct { protobuf: true, json: true });
    for pod in [from_message::<Pod>(pod_kind(), &message), from_json(json)] {
        assert_eq!(pod.unwrap().metadata.labels.unwrap()["k"], "last");
    }
}

#[test]
fn items_get_the_room_that_they_need() {
    for count in [1, 2, 63, 64, 65, 200] {
        let message = within(&[1], &fields(&vec![(14, &b"f"[..]); count]));
        let json = json!({ "metadata": { "finalizers": vec!["f"; count] } }).to_string();
        assert_eq!(
            compare::<Pod>(pod_kind(), &message, json.as_bytes()),
            Direct { protobuf: true, json: true }
        );
        for pod in [from_message::<Pod>(pod_kind(), &message), from_json(&json)] {
            assert_eq!(pod.unwrap().metadata.finalizers.unwrap().capacity(), count);
        }
    }
}

#[test]
fn a_claim_within_a_set_may_say_what_it_is() {
    let set = |kind: &str| {
        json!({ "spec": { "volumeClaimTemplates": [{ "apiVersion": "v1", "kind": kind, "metadata": {} }] } })
            .to_string()
    };
    assert!(compare_json::<StatefulSet>(&set("PersistentVolumeClaim")));
    assert!(from_json::<StatefulSet>(&set("Pod")).is_none());
    assert!(serde_json::from_str::<StatefulSet>(&set("Pod")).is_err());
}

#[test]
fn partial_metadata_is_what_serde_reads() {
    #[derive(serde::Deserialize)]
    struct Partial {
        metadata: ObjectMeta,
    }
    let kind = Kind::of("meta.k8s.io/v1", "PartialObjectMetadata").unwrap();
    let whole = message(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": pod()["metadata"] }));
    let metadata = within(&[1], Reader::new(&whole).next().unwrap().unwrap().1.bytes().unwrap());
    let by_serde: Partial = by_serde(kind, true, &metadata).unwrap();
    assert_eq!(by_serde.metadata.labels.as_ref().unwrap().len(), 2);
    assert_eq!(partial_metadata(kind, &metadata), Some(by_serde.metadata));
    assert_eq!(partial_metadata(kind, b""), Some(ObjectMeta::default()));
    assert_eq!(partial_metadata(kind, &metadata[..9]), None);
    assert_eq!(partial_metadata(pod_kind(), &metadata), None);
}

#[test]
fn json_that_is_unusual_is_left_to_serde() {
    assert!(compare_json::<Pod>(r#" { "metadata" : { "name" : "a\u00e4\n" , "labels" : { } } } "#));
    for (what, json) in [
        ("a member twice", r#"{"metadata":{"name":"a","name":"b"}}"#),
        ("an inline member twice", r#"{"spec":{"volumes":[{"name":"a","emptyDir":{},"emptyDir":{}}]}}"#),
        ("a name that nobody knows", r#"{"metadata":{"name":"a","nickname":"b"}}"#),
        ("a name with an escape", r#"{"metadata":{"n\u0061me":"a"}}"#),
        ("null where the type has none", r#"{"metadata":null}"#),
        ("the type of an object within", r#"{"metadata":{"kind":"ObjectMeta"}}"#),
    ] {
        assert!(from_json::<Pod>(json).is_none(), "{what}");
        assert!(serde_json::from_str::<Pod>(json).is_ok(), "{what}");
    }
    for json in [
        "",
        "{",
        "{}}",
        "[]",
        "null",
        "{\"metadata\"}",
        "{,}",
        r#"{"metadata":{"name":"a",}}"#,
        r#"{"metadata":{"name":"a"}"#,
        r#"{"metadata":{"name":a}}"#,
        r#"{"metadata":{"name":"\ud800"}}"#,
        "{\"metadata\":{\"name\":\"a\nb\"}}",
        r#"{"metadata":{"name":"a\"#,
        r#"{"metadata":{"generation":1.0}}"#,
        r#"{"metadata":{"generation":1e2}}"#,
        r#"{"metadata":{"generation":-0}}"#,
        r#"{"metadata":{"generation":01}}"#,
        r#"{"metadata":{"generation":-}}"#,
        r#"{"metadata":{"generation":99999999999999999999}}"#,
        r#"{"metadata":{"creationTimestamp":"yesterday"}}"#,
        r#"{"metadata":{"finalizers":[null]}}"#,
        r#"{"metadata":{"finalizers":["a",]}}"#,
        r#"{"metadata":{"finalizers":[,]}}"#,
        r#"{"metadata":{"labels":{"a":null}}}"#,
        r#"{"spec":{"priority":2147483648}}"#,
        r#"{"spec":{"hostNetwork":tru}}"#,
        r#"{"spec":{"hostNetwork":nulL}}"#,
    ] {
        assert!(from_json::<Pod>(json).is_none(), "{json}");
        assert!(serde_json::from_str::<Pod>(json).is_err(), "{json}");
    }
    for json in [
        r#"{"metadata":{"generation":null,"labels":null,"finalizers":[]},"spec":{"containers":null}}"#,
        r#"{"metadata":{"generation":-12},"spec":{"hostNetwork":false,"priority":-2147483648}}"#,
    ] {
        assert!(compare_json::<Pod>(json), "{json}");
    }
}

#[test]
fn texts_of_every_length_end_where_they_end() {
    for length in 0..40 {
        for (at, text) in ["\\\"", "\\u0041", "ä"].into_iter().enumerate() {
            let json = json!({ "metadata": { "name": "x".repeat(length) } }).to_string();
            let json = json.replace("xxx", &format!("x{text}x"));
            assert!(compare_json::<Pod>(&json), "{at} {json}");
        }
        let json = format!("{{\"metadata\":{{\"name\":\"{}\u{1f}\"}}}}", "x".repeat(length));
        assert!(from_json::<Pod>(&json).is_none());
    }
}

proptest! {
    #[test]
    fn objects_with_wrong_bytes_are_read_as_serde_reads_them(
        pair in any::<prop::sample::Index>(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let pair = pair.get(fixtures());
        let Some((kind, message)) = pair.message() else { return Ok(()) };
        let (mut message, mut json) = (message.to_vec(), pair.json.clone());
        for (at, byte) in wrong {
            for bytes in [&mut message, &mut json] {
                if !bytes.is_empty() {
                    let place = at.index(bytes.len());
                    bytes[place] = byte;
                }
            }
        }
        compare_kind(kind, &message, &json);
    }

    #[test]
    fn a_pod_with_a_wrong_byte_is_read_as_serde_reads_it(at in any::<prop::sample::Index>(), byte: u8) {
        let mut pod = pod();
        let mut message = message(&pod);
        pod["metadata"].as_object_mut().unwrap().remove("managedFields");
        let mut json = pod.to_string().into_bytes();
        let (in_message, in_json) = (at.index(message.len()), at.index(json.len()));
        message[in_message] = byte;
        json[in_json] = byte & 0x7f;
        compare::<Pod>(pod_kind(), &message, &json);
        // What has a meaning in JSON.
        json[in_json] = b"{}[],:\"\\ntf0-.e \n"[usize::from(byte % 17)];
        compare::<Pod>(pod_kind(), &message, &json);
    }
}

fn fixtures() -> &'static [corpus::Pair] {
    static PAIRS: LazyLock<Vec<corpus::Pair>> = LazyLock::new(|| {
        let is_direct = |pair: &corpus::Pair| {
            pair.message().is_some_and(|(kind, message)| compare_kind(kind, message, &pair.json).is_some())
        };
        let mut pairs: Vec<_> = corpus::pairs().into_iter().filter(is_direct).collect();
        for pair in &mut pairs {
            pair.end_earlier();
            let mut object: Value = serde_json::from_slice(&pair.json).unwrap();
            without_managed_fields(&mut object);
            pair.json = object.to_string().into_bytes();
        }
        pairs
    });
    &PAIRS
}

/// What the fields of managedFields hold is left to serde.
fn without_managed_fields(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("managedFields");
            members.values_mut().for_each(without_managed_fields);
        }
        Value::Array(items) => items.iter_mut().for_each(without_managed_fields),
        _ => {}
    }
}
