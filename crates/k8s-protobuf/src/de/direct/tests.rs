use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::messages::compare as compare_kind;
use super::{object as from_message, partial_metadata};
use crate::de::by_serde;
use crate::wire::testing::{fields, within};
use crate::{Envelope, Kind, Reader, corpus, encode};

/// Whether the object is read directly; it is what serde makes of it then.
pub(super) fn compare<T>(kind: Kind, message: &[u8]) -> bool
where
    T: DeserializeOwned + PartialEq + Debug + 'static,
{
    let direct = from_message::<T>(kind, message);
    if let Some(direct) = &direct {
        assert_eq!(Ok(direct), by_serde(kind, true, message).as_ref());
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
    let bytes = message(&pod());
    assert!(compare::<Pod>(pod_kind(), &bytes));
    let pod = from_message::<Pod>(pod_kind(), &bytes).unwrap();
    let spec = pod.spec.unwrap();
    assert_eq!(spec.containers.capacity(), 1, "the length is known beforehand");
    assert_eq!(spec.containers[0].ports.as_ref().unwrap()[0].container_port, 80);
    assert_eq!(
        spec.volumes.unwrap()[0].projected.as_ref().unwrap().sources.as_ref().unwrap().len(),
        1
    );
    assert_eq!(spec.security_context.unwrap().supplemental_groups, Some(vec![1, 300]));
    assert_eq!(pod.status.unwrap().container_statuses.unwrap()[0].restart_count, 300);
}

#[test]
fn another_type_is_left_to_serde() {
    assert!(from_message::<Node>(pod_kind(), &message(&pod())).is_none());
    assert!(from_message::<Value>(pod_kind(), &message(&pod())).is_none());
    assert!(from_message::<Pod>(Kind::of("v1", "Node").unwrap(), b"").is_none());
}

#[test]
fn what_is_unusual_is_left_to_serde() {
    let named = |name: &[u8]| fields(&[(1, name)]);
    let whole =
        |metadata: &[u8], spec: &[u8]| fields(&[(1, metadata), (2, spec), (3, b"\x0a\x01P")]);
    let spec = fields(&[(2, &fields(&[(1, b"c"), (8, b"")]))]);
    assert!(compare::<Pod>(pod_kind(), &whole(&named(b"a"), &spec)), "this is usual");
    let group = |numbers: &[u8]| [spec.clone(), within(&[14, 4], numbers)].concat();
    for (what, message) in [
        (
            "a field that nobody knows",
            whole(&[named(b"a"), fields(&[(200, b"x")])].concat(), &spec),
        ),
        ("a text that is not UTF-8", whole(&named(b"\xff"), &spec)),
        ("an entry without a value", whole(&[named(b"a"), within(&[11, 1], b"k")].concat(), &spec)),
        ("numbers in one field", whole(&named(b"a"), &group(b"\x01\x02"))),
    ] {
        assert!(from_message::<Pod>(pod_kind(), &message).is_none(), "{what}");
        assert!(by_serde::<Pod>(pod_kind(), true, &message).is_ok(), "{what}");
    }
    for (what, message) in [
        ("what is broken", whole(&named(b"a"), &[0x12, 5])),
        ("a field twice", whole(&[named(b"a"), named(b"b")].concat(), &spec)),
        ("fields out of order", whole(&fields(&[(3, b"ns"), (1, b"a")]), &spec)),
    ] {
        assert!(from_message::<Pod>(pod_kind(), &message).is_none(), "{what}");
        assert!(by_serde::<Pod>(pod_kind(), true, &message).is_err(), "{what}");
    }
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
        assert!(compare::<Pod>(pod_kind(), &message), "{what}");
    }
}

#[test]
fn what_is_read_directly_is_what_serde_reads() {
    let mut kinds: BTreeMap<Kind, [usize; 2]> = BTreeMap::new();
    for pair in fixtures() {
        let Some((kind, message)) = pair.message() else { continue };
        let Some(is_direct) = compare_kind(kind, message) else { continue };
        let counts = kinds.entry(kind).or_default();
        counts[0] += usize::from(is_direct);
        counts[1] += 1;
    }
    let [direct, all] = [0, 1].map(|at| kinds.values().map(|counts| counts[at]).sum::<usize>());
    assert!(direct * 3 > all * 2, "{direct} of {all}: {kinds:?}");
    let never: Vec<_> = kinds.iter().filter(|(_, counts)| counts[0] == 0).collect();
    assert!(never.is_empty(), "{never:?}");
}

#[test]
fn of_two_values_of_a_key_the_last_counts() {
    let entry = |value: &[u8]| fields(&[(11, &fields(&[(1, b"k"), (2, value)]))]);
    let message = within(&[1], &[entry(b"first"), entry(b"last")].concat());
    assert!(compare::<Pod>(pod_kind(), &message));
    let pod = from_message::<Pod>(pod_kind(), &message).unwrap();
    assert_eq!(pod.metadata.labels.unwrap()["k"], "last");
}

#[test]
fn items_get_the_room_that_they_need() {
    for count in [1, 2, 63, 64, 65, 200] {
        let message = within(&[1], &fields(&vec![(14, &b"f"[..]); count]));
        assert!(compare::<Pod>(pod_kind(), &message));
        let pod = from_message::<Pod>(pod_kind(), &message).unwrap();
        assert_eq!(pod.metadata.finalizers.unwrap().capacity(), count);
    }
}

#[test]
fn partial_metadata_is_what_serde_reads() {
    #[derive(serde::Deserialize)]
    struct Partial {
        metadata: ObjectMeta,
    }
    let kind = Kind::of("meta.k8s.io/v1", "PartialObjectMetadata").unwrap();
    let whole =
        message(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": pod()["metadata"] }));
    let metadata = within(&[1], Reader::new(&whole).next().unwrap().unwrap().1.bytes().unwrap());
    let by_serde: Partial = by_serde(kind, true, &metadata).unwrap();
    assert_eq!(by_serde.metadata.labels.as_ref().unwrap().len(), 2);
    assert_eq!(partial_metadata(kind, &metadata), Some(by_serde.metadata));
    assert_eq!(partial_metadata(kind, b""), Some(ObjectMeta::default()));
    assert_eq!(partial_metadata(kind, &metadata[..9]), None);
    assert_eq!(partial_metadata(pod_kind(), &metadata), None);
}

proptest! {
    #[test]
    fn objects_with_wrong_bytes_are_read_as_serde_reads_them(
        pair in any::<prop::sample::Index>(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let Some((kind, message)) = pair.get(fixtures()).message() else { return Ok(()) };
        let mut message = message.to_vec();
        for (at, byte) in wrong {
            if message.is_empty() {
                break;
            }
            let place = at.index(message.len());
            message[place] = byte;
        }
        compare_kind(kind, &message);
    }

    #[test]
    fn a_pod_with_a_wrong_byte_is_read_as_serde_reads_it(at in any::<prop::sample::Index>(), byte: u8) {
        let mut message = message(&pod());
        let place = at.index(message.len());
        message[place] = byte;
        compare::<Pod>(pod_kind(), &message);
    }
}

fn fixtures() -> &'static [corpus::Pair] {
    static PAIRS: LazyLock<Vec<corpus::Pair>> = LazyLock::new(|| {
        let is_direct = |pair: &corpus::Pair| {
            pair.message().is_some_and(|(kind, message)| compare_kind(kind, message).is_some())
        };
        let mut pairs: Vec<_> = corpus::pairs().into_iter().filter(is_direct).collect();
        pairs.iter_mut().for_each(corpus::Pair::end_earlier);
        pairs
    });
    &PAIRS
}
