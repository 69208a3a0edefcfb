//! The splitters, and what is read from the pieces.

use bytes::Bytes;
use informer::wire::{
    JsonListSplitter, JsonWatchSplitter, ListPart, ObjectHead, ProtobufListSplitter, ProtobufWatchSplitter,
    Status, WatchFrame, Wire, WireObject, without_managed_fields,
};
use serde_json::Value;

/// Objects above this are refused, so that the limit is met.
const LIMIT: usize = 512;

/// A list comes apart in the same way whatever its chunks, never yields more than it was given, and gives
/// every item of a body that serde_json understands.
pub fn json_list(data: &[u8]) {
    let Some((seed, body)) = data.split_first() else { return };
    let split = |chunk: usize| {
        let mut splitter = JsonListSplitter::with_max_object_bytes(LIMIT);
        let mut parts = Vec::new();
        for chunk in body.chunks(chunk) {
            if splitter.push(Bytes::copy_from_slice(chunk), &mut parts).is_err() {
                break;
            }
        }
        (parts, splitter.finish())
    };
    let (parts, head) = split(body.len().max(1));
    let (pieces, head_of_pieces) = split(usize::from(*seed % 16) + 1);
    assert_eq!(head.is_ok(), head_of_pieces.is_ok());
    if let (Ok(one), Ok(other)) = (&head, &head_of_pieces) {
        assert_eq!(one, other);
        assert_eq!(parts, pieces);
    }
    let items: Vec<Bytes> = whole_items(&parts).iter().map(|item| item.bytes().clone()).collect();
    assert_eq!(whole_items(&parts), whole_items(&pieces));
    let complete = items.len() == parts.len();
    assert!(items.iter().map(Bytes::len).sum::<usize>() <= body.len());
    for item in &items {
        object(item);
    }
    _ = Status::parse(body);
    if let (Ok(_), Ok(Value::Object(list))) = (&head, serde_json::from_slice(body)) {
        let expected = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        if is_plain(body) && complete {
            let found: Vec<Value> = items
                .iter()
                .map(|item| serde_json::from_slice(item).expect("a part of valid JSON"))
                .collect();
            assert_eq!(found, expected);
        }
    }
}

/// A watch comes apart in the same way whatever its chunks.
pub fn watch(data: &[u8]) {
    let Some((seed, body)) = data.split_first() else { return };
    let split = |chunk: usize| {
        let mut splitter = JsonWatchSplitter::with_max_object_bytes(LIMIT);
        let mut frames = Vec::new();
        for chunk in body.chunks(chunk) {
            if splitter.push(Bytes::copy_from_slice(chunk), &mut frames).is_err() {
                break;
            }
        }
        (frames, splitter.finish())
    };
    let (frames, end) = split(body.len().max(1));
    let (pieces, end_of_pieces) = split(usize::from(*seed % 16) + 1);
    assert_eq!(frames, pieces);
    assert_eq!(end.is_ok(), end_of_pieces.is_ok());
    let (mut splitter, mut events) = (JsonWatchSplitter::with_max_object_bytes(LIMIT), Vec::new());
    _ = splitter.push_parsed(Bytes::copy_from_slice(body), &mut events);
    let mut events = events.into_iter();
    for frame in &frames {
        // Those that are no JSON inside are told by who reads them.
        let Ok(parsed) = WatchFrame::parse(frame) else { break };
        assert_eq!(events.next().as_ref(), Some(&parsed));
        object(parsed.object.bytes());
    }
}

/// As [`json_list`], for protobuf.
pub fn protobuf_list(data: &[u8]) {
    let Some((seed, body)) = data.split_first() else { return };
    let split = |chunk: usize| {
        let mut splitter = ProtobufListSplitter::with_max_object_bytes(LIMIT);
        let mut parts = Vec::new();
        for chunk in body.chunks(chunk) {
            if splitter.push(Bytes::copy_from_slice(chunk), &mut parts).is_err() {
                break;
            }
        }
        (parts, splitter.finish())
    };
    let (parts, head) = split(body.len().max(1));
    assert_eq!((parts.clone(), head), split(usize::from(*seed % 16) + 1));
    let items = whole_items(&parts);
    assert!(items.iter().map(|item| item.bytes().len()).sum::<usize>() <= body.len());
    for item in &items {
        message(item);
    }
    _ = Status::of_body(body);
}

/// As [`watch`], for protobuf.
pub fn protobuf_watch(data: &[u8]) {
    let Some((seed, body)) = data.split_first() else { return };
    let split = |chunk: usize| {
        let mut splitter = ProtobufWatchSplitter::with_max_object_bytes(LIMIT);
        let mut frames = Vec::new();
        for chunk in body.chunks(chunk) {
            if splitter.push(Bytes::copy_from_slice(chunk), &mut frames).is_err() {
                break;
            }
        }
        (frames, splitter.finish())
    };
    let (frames, end) = split(body.len().max(1));
    assert_eq!((frames.clone(), end), split(usize::from(*seed % 16) + 1));
    for frame in &frames {
        if let Ok(parsed) = WatchFrame::parse_protobuf(frame) {
            message(&parsed.object);
        }
    }
}

/// The items that are not too large; those that are never panic, and have no more than is allowed.
fn whole_items(parts: &[ListPart]) -> Vec<WireObject> {
    let whole = parts.iter().filter_map(|part| match part {
        ListPart::Item(item) => Some(item.clone()),
        ListPart::TooLarge { beginning, .. } => {
            assert_eq!(beginning.bytes().len(), LIMIT);
            _ = ObjectHead::of_beginning(beginning.wire());
            None
        }
    });
    whole.collect()
}

/// Reading the head of a message never panics, and does not depend on managedFields.
fn message(object: &WireObject) {
    _ = ObjectHead::of_bookmark(object.wire());
    _ = Status::of(object.wire());
    let beginning = ObjectHead::of_beginning(object.wire());
    let Ok(head) = ObjectHead::of(object.wire()) else { return };
    assert_eq!(beginning.as_ref(), Ok(&head));
    let mut scratch = Vec::new();
    let short = object.wire().without_managed_fields(&head, &mut scratch);
    assert!(matches!(short, Wire::Protobuf(..)));
    assert_eq!(ObjectHead::of(short).as_ref(), Ok(&head));
}

/// Reading an object's head never panics, agrees with serde_json, and does not depend on managedFields.
fn object(json: &Bytes) {
    let head = ObjectHead::parse(json);
    _ = ObjectHead::parse_bookmark(json);
    _ = Status::parse(json);
    let glance = ObjectHead::glance(Wire::Json(json));
    let Ok(head) = head else { return };
    if is_plain(json) {
        let glance = glance.expect("the beginning of what is whole");
        assert_eq!((&glance.name, &glance.namespace), (&head.name, &head.namespace));
        assert_eq!((&glance.uid, &glance.version), (&head.uid, &head.version));
        assert_eq!(glance.managed_fields, head.managed_fields);
    }
    if let Ok(value) = serde_json::from_slice::<Value>(json)
        && is_plain(json)
    {
        let metadata = &value["metadata"];
        let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(head.key().name(), text("name"));
        assert_eq!(head.key().namespace(), text("namespace"));
        let mut scratch = Vec::new();
        let stripped = without_managed_fields(json, &head, &mut scratch);
        let mut expected = value.clone();
        if let Some(metadata) = expected["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let stripped: Value = serde_json::from_slice(stripped).expect("what is left is JSON");
        assert_eq!(stripped, expected);
    }
}

/// Whether names stand once and unescaped: serde_json takes the last of a repeated member.
fn is_plain(json: &[u8]) -> bool {
    let text = String::from_utf8_lossy(json);
    let names = ["items", "metadata", "name", "namespace", "managedFields"];
    !text.contains('\\') && names.iter().all(|name| text.matches(&format!("\"{name}\"")).count() <= 1)
}
