use k8s_protobuf::{Envelope, encode};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire::testing::{chunks, put, put_number};

type Split = (Vec<WireObject>, Result<ListHead, FrameError>);

fn split(limit: usize, chunks: Vec<Bytes>) -> Split {
    let mut splitter = ProtobufListSplitter::new(limit);
    let mut parts = Vec::new();
    let failed = chunks.into_iter().find_map(|chunk| splitter.push(chunk, &mut parts).err());
    let end = match failed {
        None => Box::new(splitter).finish(),
        Some(error) => {
            assert_eq!(splitter.push(Bytes::from_static(b"\x0a"), &mut parts), Err(error.clone()));
            assert_eq!(Box::new(splitter).finish(), Err(error.clone()));
            Err(error)
        }
    };
    (parts.into_iter().filter_map(of_part).collect(), end)
}

fn of_part(part: ListPart) -> Option<WireObject> {
    match part {
        ListPart::Item(item) => Some(item),
        ListPart::TooLarge { .. } => None,
    }
}

fn whole(bytes: &[u8]) -> Split {
    split(1000, vec![Bytes::copy_from_slice(bytes)])
}

fn bytewise(bytes: &[u8]) -> Vec<Bytes> {
    bytes.chunks(1).map(Bytes::copy_from_slice).collect()
}

fn pod() -> Kind {
    Kind::of("v1", "Pod").unwrap()
}

fn pods(names: &[&str]) -> Vec<u8> {
    let items: Vec<Vec<u8>> = names.iter().map(|name| message(name)).collect();
    let mut body = Vec::new();
    let metadata = json!({ "resourceVersion": "42", "continue": "abc\n", "remainingItemCount": 7 });
    encode::list(Kind::of("v1", "PodList").unwrap(), &metadata, &items, &mut body).unwrap();
    body
}

fn message(name: &str) -> Vec<u8> {
    let mut message = Vec::new();
    encode::message(pod(), &json!({ "metadata": { "name": name } }), &mut message).unwrap();
    message
}

fn item(name: &str) -> WireObject {
    WireObject { encoding: Encoding::Protobuf(pod()), bytes: message(name).into() }
}

/// A body of these types around this message.
fn body(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    Envelope::write(api_version, kind, message, &mut body);
    body
}

#[test]
fn g34_debug_shows_nothing_of_what_is_incomplete() {
    let (mut splitter, body) = (ProtobufListSplitter::new(1 << 20), pods(&["hunter2-and-more"]));
    let end = body.windows(7).position(|bytes| bytes == b"hunter2").unwrap() + 7;
    splitter.push(Bytes::from(body).slice(..end), &mut Vec::new()).unwrap();
    assert!(!format!("{splitter:?}").contains("hunter2"));
}

#[test]
fn head_and_items_are_read_whole_or_byte_by_byte() {
    let body = pods(&["a", "b", ""]);
    for chunks in [vec![Bytes::from(body.clone())], bytewise(&body)] {
        let (items, end) = split(1000, chunks);
        let expected = ListHead {
            api_version: "v1".to_owned(),
            kind: "PodList".to_owned(),
            resource_version: "42".into(),
            continue_token: Some("abc\n".to_owned()),
            remaining_item_count: Some(7),
        };
        assert_eq!(end, Ok(expected));
        assert_eq!(items, ["a", "b", ""].map(item));
    }
}

#[test]
fn items_of_metadata_alone_are_of_their_own_kind() {
    let list = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {},
        "items": [{ "metadata": { "name": "a" } }] });
    let mut body = Vec::new();
    encode::object(&list, &mut body).unwrap();
    let (items, end) = whole(&body);
    assert_eq!(end.unwrap().kind, "PartialObjectMetadataList");
    let [WireObject { encoding: Encoding::Protobuf(kind), .. }] = items[..] else {
        panic!("{items:?}")
    };
    assert_eq!(kind.to_string(), "meta.k8s.io/v1 PartialObjectMetadata");
}

#[test]
fn what_a_list_does_not_say_is_unset() {
    for list in [&b""[..], b"\x0a\x00"] {
        let (items, end) = whole(&body("v1", "PodList", list));
        let expected =
            ListHead { api_version: "v1".into(), kind: "PodList".into(), ..ListHead::default() };
        assert_eq!((items, end), (vec![], Ok(expected)));
    }
    // Metadata in two parts are one, after the items too, and an item may be empty.
    let list = b"\x0a\x03\x12\x011\x12\x00\x0a\x05\x12\x012\x1a\x00";
    let (items, end) = whole(&body("v1", "PodList", list));
    assert_eq!((items.len(), end.unwrap().resource_version), (1, "2".into()));
}

#[test]
fn a_status_shows_by_its_kind() {
    let mut body = Vec::new();
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "code": 410, "message": "x".repeat(2000) });
    encode::object(&status, &mut body).unwrap();
    for chunks in [vec![Bytes::from(body.clone())], bytewise(&body)] {
        let (items, end) = split(100, chunks);
        assert_eq!((items, end.unwrap().kind), (vec![], "Status".to_owned()));
    }
}

#[test]
fn an_item_within_one_chunk_is_not_copied() {
    let body = Bytes::from(pods(&["a", "b"]));
    let mut parts = Vec::new();
    ProtobufListSplitter::new(1 << 20).push(body.clone(), &mut parts).unwrap();
    for item in parts.into_iter().filter_map(of_part) {
        assert!(body.as_ptr_range().contains(&item.bytes.as_ptr()));
    }
}

#[test]
fn g35_nothing_but_one_incomplete_item_is_held() {
    let mut list = Vec::new();
    put(9, &[0; 5000], &mut list);
    put(2, &[0; 90], &mut list);
    put(2, &[0; 90], &mut list);
    let mut splitter = ProtobufListSplitter::new(100);
    let mut parts = Vec::new();
    for chunk in body("v1", "PodList", &list).chunks(7) {
        splitter.push(Bytes::copy_from_slice(chunk), &mut parts).unwrap();
        assert!(splitter.collector.len() <= 90);
        if splitter.offset < 5000 {
            assert!(splitter.collector.len() <= 20, "the types at most");
        }
    }
    assert_eq!(parts.len(), 2);
}

#[test]
fn g30_every_beginning_of_a_list_is_truncated() {
    let body = pods(&["a", "b"]);
    // After the list stand two empty fields of its envelope, which tell nothing.
    let content_end = body.len() - 4;
    for end in 0..body.len() {
        let (_, result) = whole(&body[..end]);
        if end >= content_end && (end - content_end).is_multiple_of(2) {
            assert!(result.is_ok(), "{end}");
        } else {
            assert_eq!(result, Err(FrameError::Truncated { offset: end as u64 }));
        }
    }
}

#[test]
fn g30_what_is_no_list_of_a_known_kind_is_refused() {
    let unknown = |api_version: &str, kind: &str| FrameError::UnknownKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    };
    assert_eq!(
        whole(&body("example.com/v1", "WidgetList", b"")).1,
        Err(unknown("example.com/v1", "WidgetList"))
    );
    let long = "L".repeat(500);
    assert_eq!(whole(&body("v1", &long, b"")).1, Err(unknown("v1", &long[..128])));
    assert_eq!(whole(b"k8s\0\x0a\x00").1, Err(unknown("", "")));
    // Objects of any kind, each in an envelope of its own.
    assert!(matches!(whole(&body("v1", "List", b"")).1, Err(FrameError::Malformed { .. })));
}

#[test]
fn g30_garbage_is_malformed_at_its_place() {
    let types = b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07PodList";
    for (rest, offset, expected) in [
        (&b"\x12\x02\x0a"[..], None, ""),
        (b"\x12\x02\x0a\x01", Some(23), WITHIN),
        (b"\x12\x01\x0a\x00", Some(22), WITHIN),
        (b"\x12\x02\x12\x80\x01", Some(23), WITHIN),
        (b"\x12\x03\x49\x00\x00", Some(22), WITHIN),
        (b"\x12\x02\x08\x00", Some(22), "a field as it is encoded in lists"),
        (b"\x12\x02\x0b\x00", Some(22), "a field as it is encoded in lists"),
        (b"\x12\x02\x02\x00", Some(22), "the number of a field"),
        (b"\x12\x00\x12\x00", Some(23), "the content once"),
        (b"\x12\x00\x0a\x00", Some(23), "the kind before the content"),
        (b"\x12\x00k8s\0", Some(22), "a field as it is encoded in lists"),
        (b"\x12\x00\x1a\x04gzip", Some(27), "content that is not compressed within its envelope"),
        (b"\x12\x00\x22\x10application/json", Some(39), "protobuf within the envelope"),
        (b"\x12\x05\x0a\x03\x12\x01\xff", Some(26), "the metadata of a list"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", Some(29), "a number of at most 64 bits"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Some(30), WITHIN),
    ] {
        let body = [&types[..], rest].concat();
        let Some(offset) = offset else {
            assert!(matches!(whole(&body).1, Err(FrameError::Truncated { .. })));
            continue;
        };
        let malformed = FrameError::Malformed { offset, expected };
        assert_eq!(whole(&body).1, Err(malformed.clone()), "{rest:?}");
        assert_eq!(split(1000, bytewise(&body)).1, Err(malformed), "{rest:?}");
    }
    for (body, offset) in [(&b"{}"[..], 0), (b"<html>", 0), (b"k8s\n", 3), (b"k8s\0\x12\x00", 6)] {
        assert!(
            matches!(whole(body).1, Err(FrameError::Malformed { offset: found, .. }) if found == offset),
            "{body:?}"
        );
    }
}

#[test]
fn g30_items_above_the_limit_are_gone_past_and_only_their_beginning_is_read() {
    let mut list = Vec::new();
    put(2, &[0; 5], &mut list);
    put(2, &[1; 30], &mut list);
    put(2, &[2; 6], &mut list);
    let body = body("v1", "PodList", &list);
    let start = body.len() - 4 - 8 - 30;
    for size in 1..=body.len() {
        let chunks = || body.chunks(size).map(Bytes::copy_from_slice);
        assert_eq!(split(30, chunks().collect()).0.len(), 3);
        let (mut splitter, mut parts) = (ProtobufListSplitter::new(19), Vec::new());
        for chunk in chunks() {
            splitter.push(chunk, &mut parts).unwrap();
            assert!(splitter.collector.len() < 19);
            // It is told of before the rest has come.
            assert_eq!(parts.len() >= 2, splitter.offset >= start as u64 + 19, "{size}");
        }
        assert!(Box::new(splitter).finish().is_ok());
        let error = FrameError::TooLarge { offset: start as u64, limit: 19 };
        let bytes = Bytes::from_static(&[1; 19]);
        let beginning = WireObject { encoding: Encoding::Protobuf(pod()), bytes };
        assert_eq!(parts[1..2], [ListPart::TooLarge { beginning, error }]);
        let items: Vec<_> =
            parts.into_iter().filter_map(of_part).map(|item| item.bytes.len()).collect();
        assert_eq!(items, [5, 6]);
    }
}

#[test]
fn g30_other_fields_above_the_limit_are_refused_before_they_are_read() {
    let mut list = Vec::new();
    put(1, &[0; 20], &mut list);
    let body = body("v1", "PodList", &list);
    let offset = body.len() as u64 - 20 - 4;
    // Nothing of it has come yet.
    let head = Bytes::copy_from_slice(&body[..body.len() - 24]);
    assert_eq!(split(19, vec![head]).1, Err(FrameError::TooLarge { offset, limit: 19 }));
}

#[test]
fn g30_a_count_of_what_remains_never_makes_a_list_fail() {
    let minus_one = b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    for (count, expected) in
        [(&b"\x20\x07"[..], Some(7)), (minus_one, None), (b"\x22\x01\x33", None)]
    {
        let (mut list, metadata) = (Vec::new(), [b"\x12\x015", count].concat());
        put(1, &metadata, &mut list);
        let head = whole(&body("v1", "PodList", &list)).1.unwrap();
        assert_eq!(
            (head.resource_version, head.remaining_item_count),
            ("5".into(), expected),
            "{count:?}"
        );
    }
}

/// Fields of a list in any order, with some that no list has.
fn list() -> impl Strategy<Value = (Vec<u8>, Vec<Vec<u8>>, String)> {
    let field = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..300).prop_map(|item| (2, item)),
        1 => "[a-z0-9]{0,5}".prop_map(|version| (1, version.into_bytes())),
        1 => prop::collection::vec(any::<u8>(), 0..30).prop_map(|unknown| (17, unknown)),
        1 => any::<u64>().prop_map(|number| (18, number.to_le_bytes().to_vec())),
    ];
    prop::collection::vec(field, 0..8).prop_map(|fields| {
        let (mut list, mut items, mut version) = (Vec::new(), Vec::new(), String::new());
        for (number, value) in fields {
            match number {
                1 => {
                    let mut metadata = Vec::new();
                    put(2, &value, &mut metadata);
                    put(1, &metadata, &mut list);
                    version = String::from_utf8(value).unwrap();
                }
                18 => put_number(18, u64::from_le_bytes(value.try_into().unwrap()), &mut list),
                number => {
                    put(number, &value, &mut list);
                    if number == 2 {
                        items.push(value);
                    }
                }
            }
        }
        (list, items, version)
    })
}

proptest! {
    #[test]
    fn lists_come_apart_as_they_were_put_together(
        (list, items, version) in list(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let (found, end) = split(usize::MAX, chunks(&body("v1", "PodList", &list), &cuts));
        prop_assert_eq!(end.unwrap().resource_version, version.as_str().into());
        let found: Vec<&[u8]> = found.iter().map(|item| &item.bytes[..]).collect();
        prop_assert_eq!(found, items);
    }

    #[test]
    fn chunk_borders_do_not_matter(
        (list, ..) in list(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        length in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut body = body("v1", "PodList", &list);
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        body.truncate(length.index(body.len() * 2));
        let at_once = split(200, vec![Bytes::copy_from_slice(&body)]);
        prop_assert_eq!(split(200, chunks(&body, &cuts)), at_once);
    }

    #[test]
    fn any_bytes_are_a_list_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = split(20, vec![Bytes::from([b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07PodList", &bytes[..]].concat())]);
        let _ = split(20, vec![Bytes::from(bytes)]);
    }
}
