//! Whatever reads the messages of objects.

use k8s_protobuf::{
    Envelope, FieldPath, Kind, Metadata, encode, from_message, from_slice, message_to_json,
    to_json, without_managed_fields,
};
use serde_json::Value;
use serde_json::value::RawValue;

/// A message that becomes JSON becomes the same value when it is decoded, has the same fields when
/// they are read by their paths, and is written as what becomes the same JSON.
pub fn protobuf(data: &[u8]) {
    // A key that serde_json keeps for itself.
    if data.windows(20).any(|text| text == b"$serde_json::private") {
        return;
    }
    enveloped(data);
    let Some((kind, message)) = object(data) else { return };
    let mut json = b"before".to_vec();
    let written = message_to_json(kind, message, &mut json);
    assert!(json.starts_with(b"before"));
    let json = &json[6..];
    assert!(json.len() <= message.len() * 400 + 1000);
    let metadata = Metadata::of(message);
    let mut scratch = Vec::new();
    let short = without_managed_fields(message, &mut scratch).map(<[u8]>::to_vec);
    let decoded = from_message::<Value>(kind, message);
    if written.is_err() {
        assert!(json.is_empty());
        return;
    }
    serde_json::from_slice::<&RawValue>(json).expect("what is written is JSON");
    // Not so with numbers that are too large, halves of characters, and what is nested deeply.
    let Ok(value) = serde_json::from_slice::<Value>(json) else { return };
    if decoded.is_err() && has_replaced(json) {
        return;
    }
    assert_eq!(decoded.as_ref(), Ok(&value));

    if let (Ok(metadata), Ok(short), Some(object)) =
        (metadata, short, value["metadata"].as_object())
        && kind.api_version() != "meta.k8s.io/v1beta1"
    {
        let text = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
        if kind.item().is_none() && kind.name() != "List" && kind.name() != "Status" {
            assert_eq!((metadata.name, metadata.namespace), (text("name"), text("namespace")));
        }
        let mut expected = value.clone();
        expected["metadata"].as_object_mut().map(|object| object.remove("managedFields"));
        assert_eq!(from_message::<Value>(kind, &short).as_ref(), Ok(&expected));
    }
    if kind == Kind::of("v1", "Pod").expect("it is built in") {
        for (path, pointer) in [
            ("metadata.labels.a", "/metadata/labels/a"),
            ("metadata.creationTimestamp", "/metadata/creationTimestamp"),
            ("spec.nodeName", "/spec/nodeName"),
            ("spec.priority", "/spec/priority"),
        ] {
            let path = FieldPath::of(kind, path).expect("there is such a field");
            let read = path
                .read(message)
                .expect("the message is whole")
                .map(|found| found.text().into_owned());
            let expected = value.pointer(pointer).filter(|value| !value.is_null());
            let expected = expected
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            assert_eq!(read, expected, "{path}");
        }
    }

    let mut again = Vec::new();
    if encode::message(kind, &value, &mut again).is_ok() {
        assert_eq!(
            from_message::<Value>(kind, &again).map(without_nulls),
            Ok(without_nulls(value))
        );
    }
}

/// What has an envelope says itself what it is.
fn enveloped(data: &[u8]) {
    let mut json = Vec::new();
    if to_json(data, &mut json).is_ok()
        && let Ok(value) = serde_json::from_slice::<Value>(&json)
    {
        let decoded = from_slice::<Value>(data);
        if decoded.is_err() && has_replaced(&json) {
            return;
        }
        assert_eq!(decoded, Ok(value));
    }
}

/// Whether the JSON writer replaced invalid UTF-8, as it does in every string. The decoder accepts
/// it in values, but not in the keys of maps and in raw JSON.
fn has_replaced(json: &[u8]) -> bool {
    std::str::from_utf8(json).is_ok_and(|json| json.contains('\u{fffd}'))
}

/// An object with its envelope, or two bytes that choose a kind before its message.
fn object(data: &[u8]) -> Option<(Kind, &[u8])> {
    if let Ok(envelope) = Envelope::parse(data) {
        return envelope.message().ok();
    }
    let (choice, message) = data.split_first_chunk::<2>()?;
    let kinds = Kind::all();
    let choice = usize::from(u16::from_le_bytes(*choice)) % kinds.len();
    Some((Kind::all().nth(choice)?, message))
}

/// The value without what is null, which is absent once it was JSON.
fn without_nulls(mut value: Value) -> Value {
    match &mut value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(|value| *value = without_nulls(value.take()));
        }
        Value::Array(array) => {
            array.iter_mut().for_each(|value| *value = without_nulls(value.take()))
        }
        _ => {}
    }
    value
}
