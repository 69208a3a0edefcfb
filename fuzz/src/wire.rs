//! The splitters, and what is read from the pieces.

use bytes::Bytes;
use informer_core::wire::{
    Encoding, FrameError, ListHead, ListPart, MediaType, ObjectHead, Status, WatchFrame, Wire,
    WireObject,
};
use serde_json::Value;

/// Objects above this are refused, so that the limit is met.
const LIMIT: usize = 512;

/// A list comes apart in the same way whatever its chunks, never yields more than it was given, and
/// gives every item of a body that serde_json understands.
pub fn json_list(data: &[u8]) {
    let Some((seed, body)) = data.split_first() else { return };
    let (parts, head) = split_list(MediaType::Json, body, body.len().max(1));
    let (pieces, head_of_pieces) = split_list(MediaType::Json, body, usize::from(*seed % 16) + 1);
    assert_eq!(head.is_ok(), head_of_pieces.is_ok());
    if let (Ok(one), Ok(other)) = (&head, &head_of_pieces) {
        assert_eq!(one, other);
        assert_eq!(parts, pieces);
    }
    let items = whole_items(&parts);
    assert_eq!(items, whole_items(&pieces));
    let complete = items.len() == parts.len();
    assert!(items.iter().map(|item| item.bytes.len()).sum::<usize>() <= body.len());
    for item in &items {
        object(&item.bytes);
    }
    _ = Status::of(Wire::json(body));
    if let (Ok(_), Ok(Value::Object(list))) = (&head, serde_json::from_slice(body)) {
        let expected = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        if is_plain(body) && complete {
            let found: Vec<Value> = items
                .iter()
                .map(|item| serde_json::from_slice(&item.bytes).expect("a part of valid JSON"))
                .collect();
            assert_eq!(found, expected);
        }
    }
}

/// A watch comes apart in the same way whatever its chunks.
pub fn watch(data: &[u8]) {
    let Some((seed, body)) = data.split_first() else { return };
    let (frames, end) = split_watch(MediaType::Json, body, body.len().max(1));
    let (pieces, end_of_pieces) = split_watch(MediaType::Json, body, usize::from(*seed % 16) + 1);
    assert_eq!(frames, pieces);
    assert_eq!(end.is_ok(), end_of_pieces.is_ok());
    for frame in &frames {
        object(&frame.object.bytes);
    }
}

/// As [`json_list`], for protobuf.
pub fn protobuf_list(data: &[u8]) {
    let Some((seed, body)) = data.split_first() else { return };
    let (parts, head) = split_list(MediaType::Protobuf, body, body.len().max(1));
    let again = split_list(MediaType::Protobuf, body, usize::from(*seed % 16) + 1);
    assert_eq!((parts.clone(), head), again);
    let items = whole_items(&parts);
    assert!(items.iter().map(|item| item.bytes.len()).sum::<usize>() <= body.len());
    for item in &items {
        message(item);
    }
    _ = MediaType::Protobuf.object(body).map(Status::of);
}

/// As [`watch`], for protobuf.
pub fn protobuf_watch(data: &[u8]) {
    let Some((seed, body)) = data.split_first() else { return };
    let at_once = split_watch(MediaType::Protobuf, body, body.len().max(1));
    assert_eq!(at_once, split_watch(MediaType::Protobuf, body, usize::from(*seed % 16) + 1));
    for frame in &at_once.0 {
        message(&frame.object);
    }
}

fn split_list(
    media_type: MediaType,
    body: &[u8],
    chunk: usize,
) -> (Vec<ListPart>, Result<ListHead, FrameError>) {
    let (mut splitter, mut parts) = (media_type.list_splitter(LIMIT), Vec::new());
    for chunk in body.chunks(chunk) {
        if splitter.push(Bytes::copy_from_slice(chunk), &mut parts).is_err() {
            break;
        }
    }
    (parts, splitter.finish())
}

fn split_watch(
    media_type: MediaType,
    body: &[u8],
    chunk: usize,
) -> (Vec<WatchFrame>, Result<(), FrameError>) {
    let (mut splitter, mut frames) = (media_type.watch_splitter(LIMIT), Vec::new());
    for chunk in body.chunks(chunk) {
        if splitter.push(Bytes::copy_from_slice(chunk), &mut frames).is_err() {
            break;
        }
    }
    (frames, splitter.finish())
}

/// The items that are not too large; those that are never panic, and have no more than is allowed.
fn whole_items(parts: &[ListPart]) -> Vec<WireObject> {
    let whole = parts.iter().filter_map(|part| match part {
        ListPart::Item(item) => Some(item.clone()),
        ListPart::TooLarge { beginning, .. } => {
            assert_eq!(beginning.bytes.len(), LIMIT);
            _ = ObjectHead::of(beginning.wire());
            None
        }
    });
    whole.collect()
}

/// Reading the head of a message never panics, and does not depend on managedFields.
fn message(object: &WireObject) {
    _ = ObjectHead::of_bookmark(object.wire());
    _ = Status::of(object.wire());
    _ = object.wire().keep("v1", "Pod");
    let Ok(head) = ObjectHead::of(object.wire()) else { return };
    let mut scratch = Vec::new();
    let short = object.wire().without_managed_fields(&head, &mut scratch);
    assert_eq!(short.encoding, object.encoding);
    assert_eq!(ObjectHead::of(short).as_ref(), Ok(&head));
}

/// Reading an object's head never panics, agrees with serde_json, and does not depend on
/// managedFields. What is kept of it says the same.
fn object(json: &Bytes) {
    let wire = Wire::json(json);
    let head = ObjectHead::of(wire);
    let whole = ObjectHead::of_bookmark(wire);
    _ = Status::of(wire);
    let kept = wire.keep("v1", "Pod");
    if let (Ok(head), Ok(whole)) = (&head, &whole)
        && is_plain(json)
    {
        assert_eq!((&head.name, &head.namespace), (&whole.name, &whole.namespace));
        assert_eq!((&head.uid, &head.version), (&whole.uid, &whole.version));
    }
    let Ok(head) = head else { return };
    if let Ok(kept) = &kept
        && std::str::from_utf8(json).is_ok()
    {
        let of_kept =
            ObjectHead::of(Wire { encoding: Encoding::Json, bytes: kept }).expect("it has one");
        assert_eq!((&of_kept.name, &of_kept.namespace), (&head.name, &head.namespace));
    }
    if let Ok(value) = serde_json::from_slice::<Value>(json)
        && is_plain(json)
    {
        let metadata = &value["metadata"];
        let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(head.key().name(), text("name"));
        assert_eq!(head.key().namespace(), text("namespace"));
        let mut scratch = Vec::new();
        let stripped = wire.without_managed_fields(&head, &mut scratch);
        let mut expected = value.clone();
        if let Some(metadata) = expected["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let stripped: Value = serde_json::from_slice(stripped.bytes).expect("what is left is JSON");
        assert_eq!(stripped, expected);
    }
}

/// Whether names stand once and unescaped: serde_json takes the last of a repeated member.
fn is_plain(json: &[u8]) -> bool {
    let text = String::from_utf8_lossy(json);
    let names = ["items", "metadata", "name", "namespace", "managedFields"];
    !text.contains('\\')
        && names.iter().all(|name| text.matches(&format!("\"{name}\"")).count() <= 1)
}
