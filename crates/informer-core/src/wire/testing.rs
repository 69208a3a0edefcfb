//! What the tests of this module share.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;

/// JSON values whose strings and keys look like JSON.
pub(super) fn any_value() -> impl Strategy<Value = Value> {
    let text = "[a-c{}\\[\\]\":,\\\\\n\u{e9}\u{1f600}]{0,6}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((text, inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// `text` cut at `cuts`.
pub(super) fn chunks(text: &[u8], cuts: &[prop::sample::Index]) -> Vec<Bytes> {
    let mut borders: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    borders.extend([0, text.len()]);
    borders.sort_unstable();
    borders.windows(2).map(|pair| Bytes::copy_from_slice(&text[pair[0]..pair[1]])).collect()
}

/// Writes a field of protobuf that has a length.
pub(super) fn put(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(number << 3 | 2, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Writes a field of protobuf that is a number.
pub(super) fn put_number(number: u64, value: u64, out: &mut Vec<u8>) {
    put_varint(number << 3, out);
    put_varint(value, out);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
