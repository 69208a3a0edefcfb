//! Decoding JSON.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::wire::DecodeError;

/// Decodes the text of an object; invalid UTF-8 is replaced, as in Go.
pub(super) fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, DecodeError> {
    // UTF-8 is checked once for the text, instead of for each string. `from_utf8_lossy` is slow, so
    // it is only used for invalid UTF-8.
    let json = match std::str::from_utf8(json) {
        Ok(json) => Cow::Borrowed(json),
        Err(_) => String::from_utf8_lossy(json),
    };
    if k8s_protobuf::hides_levels(json.as_bytes()) {
        let message = "JSON in the texts of JSON is nested too deep".to_owned();
        return Err(DecodeError { path: ".".to_owned(), message });
    }
    serde_json::from_str(&json).map_err(|error| describe::<T>(&json, &error))
}

/// The path and type of a serde error, without the value that its own message would quote (G34).
fn describe<T: DeserializeOwned>(json: &str, error: &serde_json::Error) -> DecodeError {
    let path = match error.classify() {
        serde_json::error::Category::Data => path_of::<T>(json),
        // What it does not understand is no part of the object.
        _ => None,
    };
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let message = match text.rsplit_once(", expected ") {
        Some((found, expected)) => format!("{}, expected {expected}", without_value(found)),
        None => without_value(text),
    };
    DecodeError { path: path.unwrap_or_else(|| ".".to_owned()), message }
}

/// Decodes again to find the path of the error: tracking it costs more than decoding.
#[cold]
fn path_of<T: DeserializeOwned>(json: &str) -> Option<String> {
    let error =
        serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_str(json))
            .err()?;
    Some(error.path().to_string())
}

/// The part of a message before the first quoted value; names of fields are kept.
fn without_value(text: &str) -> String {
    if let Some(field) = text.strip_prefix("missing field ") {
        return format!("missing field {field}");
    }
    match text.split_once(": ") {
        // `invalid type: string "…"` and `invalid value: integer `5``
        Some((what @ ("invalid type" | "invalid value" | "invalid length"), found)) => {
            let kind = found.split(['"', '`', '(']).next().unwrap_or_default().trim_end();
            let kind = if kind.bytes().any(|byte| byte.is_ascii_digit()) { "number" } else { kind };
            format!("{what}: {kind}")
        }
        // Anything else may be a message of the type's own making, with the value inside.
        _ => "invalid value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_protobuf::encode::RAW_JSON;
    use serde_json::Value;

    use super::super::{Format, Json};
    use super::*;

    fn object(spec: &str) -> Vec<u8> {
        format!(
            r#"{{"metadata":{{"name":"a","resourceVersion":"1","labels":{{"b":"c"}}}},"spec":{spec},"z":"d"}}"#
        )
        .into_bytes()
    }

    #[test]
    fn deep_objects_are_kept_and_looked_into_but_not_decoded() {
        for levels in [200, 10_000, 100_000] {
            let json = object(&format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels)));
            assert!(decode::<Value>(&json).is_err());
            assert_eq!(Json.head(&json).unwrap().name, "a");
            let kept = Json.keep(&json, "example.com/v1", "Widget").unwrap();
            assert_eq!(Json.label(&kept, "b"), Some("c"));
            for (path, expected) in [("z", vec!["d"]), ("spec.a.a", vec![]), ("spec.b", vec![])] {
                let mut found = Vec::new();
                Json.fields(&kept, &path.parse().unwrap(), &mut |value| found.push(value));
                assert_eq!(found, expected, "{path}");
            }
        }
    }

    /// The process would end: a stack that overflows cannot be caught.
    #[test]
    fn json_in_the_texts_of_json_does_not_overflow_the_stack() {
        let mut inner = "1".to_owned();
        for _ in 0..60 {
            let text = inner.replace('\\', "\\u005c").replace('"', "\\u0022");
            let (open, close) = ("[".repeat(120), "]".repeat(120));
            inner = format!("{open}{{\"{RAW_JSON}\":\"{text}\"}}{close}");
        }
        let error = decode::<Value>(&object(&inner)).unwrap_err();
        assert!(error.message.contains("too deep"), "{error}");
        assert!(decode::<Value>(&object(&format!("{{\"{RAW_JSON}\":\"[1]\"}}"))).is_ok());
    }
}
