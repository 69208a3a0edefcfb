//! Go's protobuf and Go's JSON of the same objects are the same as a type that takes anything.

#[expect(dead_code, reason = "others compare types")]
mod corpus;

use k8s_protobuf::{from_message, from_slice};
use serde_json::Value;

#[test]
fn a_value_is_what_gos_json_is() {
    let pairs = corpus::pairs();
    let (mut same, mut different) = (0, Vec::new());
    for pair in &pairs {
        let json: Value = serde_json::from_slice(&pair.json).unwrap();
        let Some((kind, message)) = pair.message() else { continue };
        // The events of a watch do not say what they are.
        let value: Result<Value, _> = if kind.name() == "WatchEvent" {
            from_message(kind, message)
        } else {
            from_slice(&pair.protobuf)
        };
        match value {
            Ok(value) if value == json => same += 1,
            Ok(value) => different.push(format!("{}: {value}\n{json}", pair.name)),
            Err(error) => different.push(format!("{}: {error}", pair.name)),
        }
    }
    assert!(different.is_empty(), "{}, such as {}", different.len(), different[0]);
    assert!(same >= pairs.len() * 9 / 10, "only {same} of {} are of known kinds", pairs.len());
}
