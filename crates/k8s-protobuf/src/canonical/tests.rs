use proptest::prelude::*;
use proptest::test_runner::TestRng;
use serde_json::Value;

use super::*;
use crate::schema::flags::INLINE;
use crate::wire::testing::fields;
use crate::{Kind, corpus, from_message};

/// The message of a pod, in order.
fn pod(bytes: &[u8]) -> Vec<u8> {
    message(Kind::of("v1", "Pod").unwrap().message(), bytes).unwrap()
}

#[test]
fn fields_are_brought_into_order_and_messages_together() {
    let (label_a, label_b) = (fields(&[(2, b"1"), (1, b"a")]), fields(&[(1, b"b"), (2, b"2")]));
    let first = fields(&[(11, &label_a), (1, b"old"), (99, b"unknown")]);
    let second = fields(&[(1, b"new"), (11, &label_b), (3, b"default")]);
    let spec = fields(&[(10, b"node")]);
    let label_a = fields(&[(1, b"a"), (2, b"1")]);
    let metadata = fields(&[(1, b"new"), (3, b"default"), (11, &label_a), (11, &label_b)]);
    assert_eq!(pod(&fields(&[(2, &spec), (1, &first), (1, &second)])), fields(&[(1, &metadata), (2, &spec)]),);
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    // JSONSchemaProps.not, again and again.
    let schema = Kind::of("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let mut nested = Vec::new();
    for _ in 0..300 {
        nested = fields(&[(28, &nested)]);
    }
    let crd = fields(&[(2, &fields(&[(7, &fields(&[(4, &fields(&[(1, &nested)]))]))]))]);
    assert_eq!(message(schema.message(), &crd), Err(Error::TooDeep { limit: MAX_DEPTH }));
    assert_eq!(from_message::<Value>(schema, &crd), Err(Error::TooDeep { limit: MAX_DEPTH }));
}

/// The same message as another writer of protobuf might write it: fields in any order, messages in parts, values that
/// others replace, fields that nobody knows.
fn scrambled(def: &'static MessageDef, bytes: &[u8], random: &mut TestRng) -> Vec<u8> {
    let mut parts: Vec<(u32, Vec<u8>)> = Vec::new();
    let mut reader = Reader::new(bytes);
    while !reader.rest().is_empty() {
        let (number, encoding) = reader.tag().unwrap();
        let payload = reader.payload(encoding).unwrap();
        let field = def.field(number).unwrap();
        let is_message = field.kind == FieldKind::Message && !field.has(MAP);
        let payload = if is_message { scrambled(field.message(), payload, random) } else { payload.to_vec() };
        let mut add = |payload: &[u8]| {
            let mut part = Vec::new();
            Part { number, encoding, bytes: payload }.write(&mut part);
            parts.push((number, part));
        };
        let is_single = !field.has(MAP) && !field.has(REPEATED);
        if is_single && is_message && random.random_bool(0.3) {
            // In two parts, cut between fields.
            let mut inner = Reader::new(&payload);
            let mut cut = 0;
            while !inner.rest().is_empty() && random.random_bool(0.5) {
                let (_, encoding) = inner.tag().unwrap();
                inner.payload(encoding).unwrap();
                cut = payload.len() - inner.rest().len();
            }
            add(&payload[..cut]);
            add(&payload[cut..]);
        } else {
            if is_single && field.kind == FieldKind::Str && random.random_bool(0.2) {
                add(b"stale");
            }
            add(&payload);
        }
    }
    if random.random_bool(0.3) {
        parts.push((200, fields(&[(200, b"unknown")])));
    }
    // In any order, but that of the parts of one field.
    let mut out = Vec::new();
    while !parts.is_empty() {
        let number = parts[random.random_range(0..parts.len())].0;
        let first = parts.iter().position(|part| part.0 == number).unwrap();
        out.extend_from_slice(&parts.remove(first).1);
    }
    out
}

#[test]
fn what_is_scrambled_is_brought_back_into_the_bytes_that_go_writes() {
    let mut random = TestRng::deterministic_rng(prop::test_runner::RngAlgorithm::ChaCha);
    let mut count = 0;
    for pair in corpus::pairs() {
        // That of an older version may have fields that this one does not.
        if pair.name.starts_with("v1.") {
            continue;
        }
        let Some((kind, bytes)) = pair.message() else { continue };
        let scrambled = scrambled(kind.message(), bytes, &mut random);
        let ordered = message(kind.message(), &scrambled).unwrap();
        assert!(ordered == bytes, "{}", pair.name);
        let value = from_message::<Value>(kind, bytes).unwrap();
        assert!(from_message::<Value>(kind, &scrambled).unwrap() == value, "{}", pair.name);
        count += 1;
    }
    assert!(count > 10, "only {count} pairs");
}

#[test]
fn the_table_has_no_name_for_inline_messages_only() {
    for kind in Kind::all() {
        for field in kind.message().fields {
            assert_eq!(field.name.is_empty(), field.has(INLINE), "{kind} {field:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_brought_into_order_or_refused(bytes: Vec<u8>, kind in 0..Kind::all().len()) {
        let kind = Kind::all().nth(kind).unwrap();
        if let Ok(ordered) = message(kind.message(), &bytes) {
            prop_assert!(ordered.len() <= bytes.len());
            prop_assert_eq!(message(kind.message(), &ordered).unwrap(), ordered);
        }
    }
}
