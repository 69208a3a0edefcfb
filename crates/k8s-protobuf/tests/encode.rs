//! What a server writes: envelopes, lists, events of a watch.

use k8s_protobuf::{Envelope, Error, Kind, Metadata, encode};
use serde_json::json;

#[test]
fn an_object_says_itself_what_it_is() {
    let mut out = b"before".to_vec();
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "labels": { "app": "web" } } });
    let kind = encode::object(&pod, &mut out).unwrap();
    assert_eq!(kind, Kind::of("v1", "Pod").unwrap());
    let (kind, message) = Envelope::parse(&out[6..]).unwrap().message().unwrap();
    assert_eq!(kind.name(), "Pod");
    let metadata = Metadata::of(message).unwrap();
    assert_eq!((metadata.name, metadata.label("app")), ("a", Some("web")));
}

#[test]
fn nothing_is_left_of_an_object_that_cannot_be_written() {
    let mut out = b"before".to_vec();
    let custom = json!({ "apiVersion": "example.com/v1", "kind": "Widget" });
    assert!(matches!(encode::object(&custom, &mut out), Err(Error::UnknownKind { .. })));
    let broken =
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "labels": 1 } });
    assert!(matches!(encode::object(&broken, &mut out), Err(Error::Type { .. })));
    let pods = Kind::of("v1", "PodList").unwrap();
    assert!(encode::list(pods, &json!({ "resourceVersion": 1 }), &[[]], &mut out).is_err());
    assert!(encode::list(pods.item().unwrap(), &json!({}), &[[]], &mut out).is_err());
    assert_eq!(out, b"before");
}

#[test]
fn a_list_in_parts_is_the_list_at_once() {
    // The items of the last kind come before the metadata.
    for (api_version, kind) in [
        ("v1", "PodList"),
        ("meta.k8s.io/v1", "PartialObjectMetadataList"),
        ("meta.k8s.io/v1beta1", "PartialObjectMetadataList"),
    ] {
        a_list_of(Kind::of(api_version, kind).unwrap());
    }
}

fn a_list_of(pods: Kind) {
    let names: Vec<String> = (0..40).map(|number| "x".repeat(number * 10)).collect();
    let objects: Vec<_> =
        names.iter().map(|name| json!({ "metadata": { "name": name } })).collect();
    let items: Vec<Vec<u8>> = objects
        .iter()
        .map(|object| {
            let mut item = Vec::new();
            encode::message(pods.item().unwrap(), object, &mut item).unwrap();
            item
        })
        .collect();
    let metadata = json!({ "resourceVersion": "7", "remainingItemCount": 3 });
    let mut list = Vec::new();
    encode::list(pods, &metadata, &items, &mut list).unwrap();
    // The same from JSON.
    let object = json!({ "apiVersion": pods.api_version(), "kind": pods.name(), "metadata": metadata, "items": objects });
    let mut written = Vec::new();
    encode::object(&object, &mut written).unwrap();
    assert!(list == written);
}

#[test]
fn an_event_has_its_length_before_it() {
    let mut object = Vec::new();
    encode::object(
        &json!({ "apiVersion": "v1", "kind": "Status", "reason": "Expired" }),
        &mut object,
    )
    .unwrap();
    let mut event = Vec::new();
    encode::watch_event("BOOKMARK", &object, &mut event).unwrap();
    let (length, frame) = event.split_first_chunk::<4>().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, frame.len());
    // 1: "BOOKMARK", 2: { 1: object }
    let mut expected = b"\x0a\x08BOOKMARK\x12".to_vec();
    expected.extend_from_slice(&[object.len() as u8 + 2, 0x0a, object.len() as u8]);
    expected.extend_from_slice(&object);
    assert_eq!(frame, expected);
}
