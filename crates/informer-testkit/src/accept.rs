//! What of `Accept` servers differ in.

use http::{HeaderMap, HeaderValue, header};
use informer_core::wire::MediaType;

/// Whether protobuf is among the accepted.
pub(crate) fn names_protobuf(headers: &HeaderMap) -> bool {
    values(headers).any(|value| value.contains(MediaType::Protobuf.as_str()))
}

/// Leaves of the accepted what a server would understand that has never heard of protobuf.
pub(crate) fn forget_protobuf(headers: &mut HeaderMap) {
    let known: Vec<&str> = values(headers)
        .flat_map(|value| value.split(','))
        .filter(|entry| !entry.contains(MediaType::Protobuf.as_str()))
        .collect();
    let known = if known.is_empty() { "application/unknown".to_owned() } else { known.join(",") };
    if let Ok(value) = HeaderValue::from_str(&known) {
        headers.insert(header::ACCEPT, value);
    }
}

fn values(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_without_protobuf() {
        let protobuf = MediaType::Protobuf.as_str();
        for (accept, left) in [
            (protobuf, "application/unknown"),
            (&*format!("{protobuf},application/json"), "application/json"),
            ("application/json", "application/json"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            forget_protobuf(&mut headers);
            assert_eq!(headers[header::ACCEPT], left);
        }
    }
}
