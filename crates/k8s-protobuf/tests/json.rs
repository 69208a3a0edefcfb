//! The JSON of objects is that which Go writes, and what is written from it is read as the same.

#[expect(dead_code, reason = "others compare types")]
mod corpus;

use k8s_protobuf::{Error, Kind, Reader, encode, message_to_json};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

fn json_of(kind: Kind, message: &[u8]) -> Result<Value, Error> {
    let mut out = Vec::new();
    message_to_json(kind, message, &mut out)?;
    assert!(!out.contains(&b'\n'));
    assert!(serde_json::from_slice::<&RawValue>(&out).is_ok(), "what is written is JSON");
    Ok(serde_json::from_slice(&out).unwrap_or_default())
}

#[test]
fn every_object_becomes_what_go_writes() {
    for pair in corpus::pairs() {
        let Some((kind, message)) = pair.message() else { continue };
        let expected: Value = serde_json::from_slice(&pair.json).unwrap();
        let json = json_of(kind, message).unwrap_or_else(|error| panic!("{}: {error}", pair.name));
        assert_same(&json, &expected, &pair.name);
    }
}

#[test]
fn what_is_written_is_read_as_the_same_json() {
    let (pairs, mut equal) = (corpus::pairs(), 0);
    for pair in &pairs {
        let Some((kind, message)) = pair.message() else { continue };
        let object: Value = serde_json::from_slice(&pair.json).unwrap();
        let mut written = Vec::new();
        encode::message(kind, &object, &mut written)
            .unwrap_or_else(|error| panic!("{}: {error}", pair.name));
        // JSON does not tell all that Go has: nil or empty, a pointer to nothing or none, how raw
        // JSON was written.
        let exact = pair.name.ends_with(".json") && !pair.name.contains(".after_roundtrip.");
        assert!(written == message || !exact || kind.name() == "WatchEvent", "{}", pair.name);
        equal += usize::from(written == message);
        let mut json = Vec::new();
        message_to_json(kind, &written, &mut json).unwrap();
        let json = serde_json::from_slice(&json).unwrap();
        assert_same(&without_nulls(json), &without_nulls(object), &pair.name);
    }
    eprintln!("{equal} of {} are as Go writes them, byte for byte", pairs.len());
}

/// The value without the fields that are null, which as Go reads them are absent.
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

#[test]
fn fields_out_of_order_are_refused_and_unknown_ones_passed_over() {
    for pair in corpus::pairs() {
        let Some((kind, message)) = pair.message() else { continue };
        let expected: Value = serde_json::from_slice(&pair.json).unwrap();
        // As if it were of a newer version.
        let mut newer = message.to_vec();
        bytes(1000, b"new", &mut newer);
        let json = json_of(kind, &newer).unwrap_or_else(|error| panic!("{}: {error}", pair.name));
        assert_same(&json, &expected, &pair.name);

        let mut fields = fields_of(message);
        if fields.iter().any(|(number, _)| *number != fields[0].0) {
            fields.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
            let turned: Vec<u8> =
                fields.into_iter().flat_map(|(_, field)| field.to_vec()).collect();
            let error = json_of(kind, &turned).expect_err(&pair.name).to_string();
            assert!(error.contains("out of the order of their numbers"), "{}: {error}", pair.name);
        }
    }
}

#[test]
fn what_is_cut_off_is_read_or_refused() {
    for pair in corpus::checked_in() {
        let Some((kind, message)) = pair.message() else { continue };
        for end in 0..message.len() {
            let _ = json_of(kind, &message[..end]);
        }
    }
}

proptest! {
    #[test]
    fn changed_bytes_are_read_or_refused(
        pair in prop::sample::select(corpus::checked_in()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        if let Some((kind, message)) = pair.message() {
            let mut message = message.to_vec();
            for (at, byte) in changes {
                let at = at.index(message.len());
                message[at] = byte;
            }
            let mut out = Vec::new();
            if message_to_json(kind, &message, &mut out).is_ok() {
                prop_assert!(serde_json::from_slice::<&RawValue>(&out).is_ok());
                prop_assert!(out.len() <= message.len() * 400 + 1000);
            }
        }
    }
}

/// The fields of a message with their numbers, each as it stands there.
fn fields_of(message: &[u8]) -> Vec<(u32, &[u8])> {
    let (mut reader, mut fields) = (Reader::new(message), Vec::new());
    loop {
        let before = reader.rest();
        let Some((number, _)) = reader.next().expect("a message") else { return fields };
        fields.push((number, &before[..before.len() - reader.rest().len()]));
    }
}

/// Writes a field that has a length.
fn bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    for mut value in [u64::from(number) << 3 | 2, bytes.len() as u64] {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }
    out.extend_from_slice(bytes);
}

/// Fails with where two objects differ.
fn assert_same(json: &Value, expected: &Value, name: &str) {
    let mut found = Vec::new();
    differences(json, expected, "", &mut found);
    assert!(found.is_empty(), "{name}: {found:#?}");
}

/// Where two values differ.
fn differences(a: &Value, b: &Value, path: &str, out: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => differences(a, b, &format!("{path}.{key}"), out),
                    (a, b) => out.push(format!("{path}.{key}: {a:?}, Go has {b:?}")),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, &format!("{path}[{at}]"), out);
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push(format!("{path}: {a}, Go has {b}")),
    }
}
