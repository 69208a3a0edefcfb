//! The JSON of objects is that which Go writes, and what is written from it is read as the same.

mod corpus;

use k8s_protobuf::{Error, Kind, encode, message_to_json};
use serde_json::Value;

fn json_of(kind: Kind, message: &[u8]) -> Result<Value, Error> {
    let mut out = Vec::new();
    message_to_json(kind, message, &mut out)?;
    assert!(!out.contains(&b'\n'));
    Ok(serde_json::from_slice(&out).expect("what is written is JSON"))
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
        encode::message(kind, &object, &mut written).unwrap_or_else(|error| panic!("{}: {error}", pair.name));
        // JSON does not tell all that Go has: nil or empty, a pointer to nothing or none, how raw JSON was written.
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
        Value::Array(array) => array.iter_mut().for_each(|value| *value = without_nulls(value.take())),
        _ => {}
    }
    value
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
