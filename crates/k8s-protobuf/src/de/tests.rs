use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::{Pod, Secret};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use crate::wire::put_bytes;
use crate::{Envelope, Error, Kind, corpus, encode, from_message, from_slice};

fn body(object: &Value) -> Vec<u8> {
    let mut body = Vec::new();
    encode::object(object, &mut body).unwrap();
    body
}

fn pod(spec: &Value) -> Vec<u8> {
    body(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": spec }))
}

fn secret() -> Vec<u8> {
    body(
        &json!({ "apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": { "a": "aHVudGVyMg==", "b": "" } }),
    )
}

fn error<T: DeserializeOwned + 'static>(body: &[u8]) -> String {
    from_slice::<T>(body).err().expect("it should not decode").to_string()
}

#[test]
fn a_pod_is_decoded_into_its_type() {
    let body =
        pod(&json!({ "nodeName": "n1", "containers": [{ "name": "web" }, { "name": "log" }] }));
    let pod: Pod = from_slice(&body).unwrap();
    let spec = pod.spec.unwrap();
    assert_eq!(spec.node_name.as_deref(), Some("n1"));
    assert_eq!(
        spec.containers.iter().map(|container| &*container.name).collect::<Vec<_>>(),
        ["web", "log"]
    );
    assert_eq!(spec.containers.capacity(), 2, "the length is known beforehand");
}

#[test]
fn types_of_ones_own_are_decoded_as_from_json() {
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Own {
        metadata: HashMap<String, IgnoredAny>,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
        status: Status,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Status {
        phase: Phase,
        #[serde(default)]
        message: Option<Box<str>>,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    enum Phase {
        Running,
        Pending,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(untagged)]
    enum Port {
        Number(u16),
        Name(String),
    }
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum State {
        Running(BTreeMap<String, Value>),
        Waiting { reason: String },
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Newtype(f32);
    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair(String, String);

    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {},
        "spec": { "priority": 7, "containers": [], "hostAliases": [{ "ip": "1", "hostnames": ["a", "b"] }] },
        "status": {
            "phase": "Running",
            "containerStatuses": [{
                "name": "", "ready": false, "restartCount": 0, "image": "", "imageID": "", "lastState": {},
                "state": { "waiting": { "reason": "x" } },
            }],
        },
    });
    let body = body(&object);
    let own: Own = from_slice(&body).unwrap();
    assert_eq!(own.status, Status { phase: Phase::Running, message: None });
    assert_eq!(own.rest["kind"], "Pod");
    assert_eq!(own.rest["spec"]["priority"], 7);

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Parts {
        spec: Spec,
        status: Statuses,
    }
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        priority: Newtype,
        host_aliases: Vec<Alias>,
    }
    #[derive(Debug, Deserialize)]
    struct Alias {
        ip: Port,
        hostnames: Pair,
    }
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Statuses {
        container_statuses: (Container,),
    }
    #[derive(Debug, Deserialize)]
    struct Container {
        state: State,
    }
    let parts: Parts = from_slice(&body).unwrap();
    assert_eq!(parts.spec.priority, Newtype(7.0));
    assert_eq!(parts.spec.host_aliases[0].ip, Port::Name("1".to_owned()));
    assert_eq!(parts.spec.host_aliases[0].hostnames, Pair("a".to_owned(), "b".to_owned()));
    assert_eq!(parts.status.container_statuses.0.state, State::Waiting { reason: "x".to_owned() });
}

#[test]
fn bytes_are_bytes_or_base64_as_the_type_asks_for() {
    #[derive(Deserialize)]
    struct Texts {
        data: BTreeMap<String, String>,
    }
    #[derive(Deserialize)]
    struct Bytes {
        data: BTreeMap<String, Raw>,
    }
    struct Raw(Vec<u8>);
    impl<'de> Deserialize<'de> for Raw {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl serde::de::Visitor<'_> for Visitor {
                type Value = Raw;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("bytes")
                }
                fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Raw, E> {
                    Ok(Raw(bytes.to_vec()))
                }
            }
            deserializer.deserialize_bytes(Visitor)
        }
    }
    assert_eq!(from_slice::<Texts>(&secret()).unwrap().data["a"], "aHVudGVyMg==");
    assert_eq!(from_slice::<Bytes>(&secret()).unwrap().data["a"].0, b"hunter2");
    assert_eq!(from_slice::<Secret>(&secret()).unwrap().data.unwrap()["a"].0, b"hunter2");
}

#[test]
fn json_within_is_decoded_into_types_as_well() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Revision {
        data: Data,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Data {
        replicas: u8,
        paths: Vec<(String, f64)>,
        mode: Mode,
        none: Option<bool>,
        some: Option<Box<str>>,
        rest: Value,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    enum Mode {
        Auto,
        Fixed { size: i64 },
    }
    let data = json!({
        "replicas": 3, "paths": [["/a\n", 0.5], ["/b", 1]], "mode": { "Fixed": { "size": -1 } }, "none": null, "some": "x",
        "rest": [{}],
    });
    let object = json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "data": data, "revision": 1 });
    assert_eq!(
        from_slice::<Revision>(&body(&object)).unwrap(),
        serde_json::from_value::<Revision>(object.clone()).unwrap()
    );
    let mut auto = object;
    auto["data"]["mode"] = json!("Auto");
    assert_eq!(from_slice::<Revision>(&body(&auto)).unwrap().data.mode, Mode::Auto);
    auto["data"]["paths"][1][1] = json!("hunter2");
    assert_eq!(
        error::<Revision>(&body(&auto)),
        "data.paths[1][1]: invalid type: string, expected f64"
    );
}

#[test]
fn malformed_json_within_is_an_error_with_its_path() {
    let kind = Kind::of("apps/v1", "ControllerRevision").unwrap();
    for json in [&b"{"[..], b"{}{}", b"hunter2", b"[1,]", b"\xff"] {
        let (mut data, mut message) = (Vec::new(), Vec::new());
        put_bytes(1, json, &mut data);
        put_bytes(2, &data, &mut message);
        let error = from_message::<Value>(kind, &message).unwrap_err().to_string();
        assert_eq!(error, "data: malformed JSON in the protobuf", "{json:?}");
    }
}

#[test]
fn g34_an_error_names_path_and_type_and_never_the_value() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Slim<S> {
        spec: S,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Containers {
        containers: Vec<BTreeMap<String, String>>,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Missing {
        node: String,
    }
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only decoded")]
    struct Name<T> {
        node_name: T,
    }
    #[derive(Debug, Deserialize)]
    enum One {
        A,
    }
    let body =
        pod(&json!({ "nodeName": "hunter2", "containers": [{ "name": "a" }, { "name": "b" }] }));
    for (found, expected) in [
        (
            error::<Slim<Containers>>(&body),
            "spec.containers[0].resources: invalid type: map, expected a string",
        ),
        (error::<Slim<Missing>>(&body), "spec: missing field `node`"),
        (error::<Slim<Name<i64>>>(&body), "spec.nodeName: invalid type: string, expected i64"),
        (
            error::<Slim<Name<char>>>(&body),
            "spec.nodeName: invalid value: string, expected a character",
        ),
        (error::<Slim<Name<One>>>(&body), "spec.nodeName: unknown variant, expected `A`"),
        (error::<Slim<Name<std::net::IpAddr>>>(&body), "spec.nodeName: invalid value"),
        (
            error::<Slim<Name<(String, String)>>>(&body),
            "spec.nodeName: invalid type: string, expected a tuple of size 2",
        ),
    ] {
        assert_eq!(found, expected);
    }
    assert!(matches!(from_slice::<Slim<Name<One>>>(&body), Err(Error::Type { .. })));
    let _ = One::A;
}

#[test]
fn a_key_that_is_not_utf8_is_an_error_with_its_path_but_can_be_written() {
    let pod = Kind::of("v1", "Pod").unwrap();
    // An entry of the labels.
    let message = b"\x0a\x05\x5a\x03\x0a\x01\xff";
    let error = from_message::<Pod>(pod, message).unwrap_err().to_string();
    assert_eq!(error, "metadata.labels: a text that is not UTF-8");
    let mut json = Vec::new();
    crate::message_to_json(pod, message, &mut json).unwrap();
    assert!(String::from_utf8(json).unwrap().contains("\"labels\":{\"\u{fffd}\":\"\"}"));
}

#[test]
fn numbers_may_stand_together_in_one_field() {
    // podSecurityContext.supplementalGroups, field 4: [1], [2, 300] packed, [4]
    let kind = Kind::of("v1", "Pod").unwrap();
    let groups = b"\x20\x01\x22\x03\x02\xac\x02\x20\x04";
    let (mut spec, mut message) = (Vec::new(), Vec::new());
    put_bytes(14, groups, &mut spec);
    put_bytes(2, &spec, &mut message);
    let pod: Pod = from_message(kind, &message).unwrap();
    assert_eq!(
        pod.spec.unwrap().security_context.unwrap().supplemental_groups,
        Some(vec![1, 2, 300, 4])
    );
}

#[test]
fn numbers_may_have_more_bytes_than_needed() {
    // Name and labels of the metadata; phase of the status.
    let short = b"\x0a\x0b\x0a\x01a\x5a\x06\x0a\x01b\x12\x01c\x1a\x03\x0a\x01R";
    let long = b"\x8a\x00\x93\x80\x00\x8a\x80\x00\x81\x00a\xda\x00\x88\x80\x00\x0a\x81\x00b\x92\x00\x01c\x9a\x00\x83\x00\x0a\x01R";
    // Node name and host network of the spec, which are empty and false.
    let short_zeros = b"\x12\x04\x52\x00\x58\x00";
    let long_zeros = b"\x12\x06\x52\x80\x00\x58\x80\x00";
    let pods = Kind::of("v1", "Pod").unwrap();
    let decode = |message: &[u8]| from_message::<Value>(pods, message).unwrap();
    assert_eq!(decode(short)["metadata"]["labels"]["b"], "c");
    assert_eq!(decode(long), decode(short));
    assert_eq!(decode(short_zeros)["spec"].get("nodeName"), None);
    assert_eq!(decode(long_zeros), decode(short_zeros));
    let json = |message: &[u8]| {
        let mut out = Vec::new();
        crate::message_to_json(pods, message, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(json(long), json(short));
    assert_eq!(json(long_zeros), json(short_zeros));
}

#[test]
fn a_list_without_items_has_an_array_of_none() {
    let list: Value = from_message(Kind::of("v1", "PodList").unwrap(), b"").unwrap();
    assert_eq!(list, json!({ "apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [] }));
}

#[test]
fn discovery_has_no_version_if_its_envelope_has_none() {
    let mut body = Vec::new();
    Envelope::write("", "APIVersions", b"", &mut body);
    let versions: BTreeMap<String, Value> = from_slice(&body).unwrap();
    assert_eq!((versions.get("apiVersion"), &versions["kind"]), (None, &json!("APIVersions")));
}

#[test]
fn schemas_as_deep_as_the_limit_fit_on_the_stack() {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    let kind = Kind::of("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let crd = |depth| {
        let mut bytes = Vec::new();
        // JSONSchemaProps.not, then CustomResourceValidation, version, spec, object
        for number in std::iter::repeat_n(28, depth).chain([1, 4, 7, 2]) {
            let inner = std::mem::take(&mut bytes);
            put_bytes(number, &inner, &mut bytes);
        }
        from_message::<CustomResourceDefinition>(kind, &bytes).map(drop)
    };
    // Object, spec, array, version and validation are five of them.
    assert_eq!(crd(122), Ok(()));
    assert_eq!(crd(123), Err(Error::TooDeep { limit: 128 }));
}

/// Neither panics nor differs from the whole.
#[test]
fn what_is_cut_off_anywhere_is_refused_or_less() {
    for pair in corpus::pairs().iter().filter(|pair| pair.protobuf.len() < 5000).take(200) {
        let Some((kind, message)) = pair.message() else { continue };
        for end in 0..message.len() {
            let _ = from_message::<Value>(kind, &message[..end]);
            if kind.name() == "Pod" {
                let _ = from_message::<Pod>(kind, &message[..end]);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes: Vec<u8>, kind in 0..Kind::all().len()) {
        let kind = Kind::all().nth(kind).unwrap();
        let _ = from_message::<Value>(kind, &bytes);
        let _ = from_slice::<Value>(&bytes);
    }

    #[test]
    fn objects_with_wrong_bytes_are_decoded_or_refused(
        pair in any::<prop::sample::Index>(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let pairs = fixtures();
        let pair = pair.get(pairs);
        let Some((kind, message)) = pair.message() else { return Ok(()) };
        let mut message = message.to_vec();
        for (at, byte) in wrong {
            if let Some(place) = message.len().checked_sub(1).map(|last| at.index(last + 1)) {
                message[place] = byte;
            }
        }
        let _ = from_message::<Value>(kind, &message);
        let _ = from_message::<Pod>(kind, &message);
    }
}

fn fixtures() -> &'static [corpus::Pair] {
    static PAIRS: std::sync::LazyLock<Vec<corpus::Pair>> = std::sync::LazyLock::new(|| {
        corpus::pairs().into_iter().filter(|pair| pair.protobuf.len() < 20_000).collect()
    });
    &PAIRS
}

#[test]
fn what_is_no_utf8_is_replaced_as_gos_json_has_it() {
    // Servers take protobuf as it comes, and store it.
    let replace = |body: Vec<u8>| -> Vec<u8> {
        let at = body.windows(4).position(|bytes| bytes == b"n1zz").unwrap();
        let mut body = body;
        body[at + 2..at + 4].copy_from_slice(b"\xe2\x82");
        body
    };
    let body = replace(pod(&json!({ "nodeName": "n1zz", "containers": [] })));
    let typed: Pod = from_slice(&body).unwrap();
    assert_eq!(typed.spec.unwrap().node_name.as_deref(), Some("n1\u{fffd}\u{fffd}"));
    let value: Value = from_slice(&body).unwrap();
    assert_eq!(value["spec"]["nodeName"], "n1\u{fffd}\u{fffd}");
    let mut text = Vec::new();
    crate::to_json(&body, &mut text).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), value);
    let (kind, message) = Envelope::parse(&body).unwrap().message().unwrap();
    let node = crate::FieldPath::of(kind, "spec.nodeName").unwrap();
    assert_eq!(node.read(message).unwrap().unwrap().text(), "n1\u{fffd}\u{fffd}");
}
