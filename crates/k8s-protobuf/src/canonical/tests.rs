use super::*;
use crate::Kind;

/// The message of a pod, in order.
fn pod(bytes: &[u8]) -> Vec<u8> {
    message(Kind::of("v1", "Pod").unwrap().message(), bytes).unwrap()
}

fn fields(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut message = Vec::new();
    fields.iter().for_each(|(number, bytes)| put_bytes(*number, bytes, &mut message));
    message
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
