//! Go's protobuf and Go's JSON of the same objects are the same as a type that takes anything.

#[expect(dead_code, reason = "others compare bytes")]
mod corpus;

use corpus::Pair;
use k8s_protobuf::{Envelope, Error, Kind, from_message, from_slice};
use serde_json::Value;

#[test]
fn a_value_is_what_gos_json_is() {
    let pairs = corpus::pairs();
    let (mut same, mut different) = (0, Vec::new());
    for pair in &pairs {
        let json: Value = serde_json::from_slice(&pair.json).unwrap();
        match value(pair) {
            Ok(value) if value == json => same += 1,
            Err(Error::UnknownKind { .. }) if pair.may_be_unknown() => {}
            Ok(value) => different.push(format!("{}: {value}\n{json}", pair.name)),
            Err(error) => different.push(format!("{}: {error}", pair.name)),
        }
    }
    assert!(different.is_empty(), "{}, such as {}", different.len(), different[0]);
    assert!(same >= pairs.len() * 9 / 10, "only {same} of {} are of known kinds", pairs.len());
}

fn value(pair: &Pair) -> Result<Value, Error> {
    // The one kind whose objects do not say what they are.
    if pair.name.starts_with("v1/WatchEvent") {
        let kind = Kind::of("v1", "WatchEvent").expect("it is in the table");
        return from_message(kind, Envelope::parse(&pair.protobuf)?.raw);
    }
    from_slice(&pair.protobuf)
}
