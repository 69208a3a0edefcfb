//! The query of the gateway's lists, included from the library's sources so that kube need not be
//! built.

#[path = "../../crates/informer-serve/src/gateway/query.rs"]
mod query;

use query::{ListQuery, MAX_QUERY_BYTES};

/// No query panics, and what one asks for can be said again.
pub fn gateway_query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.len() > MAX_QUERY_BYTES {
        return;
    }
    match ListQuery::parse(text) {
        Ok(query) => {
            let encoded: String = form_urlencoded::Serializer::new(String::new())
                .append_pair("labelSelector", &query.labels.to_string())
                .append_pair("fieldSelector", &query.fields.to_string())
                .append_pair("namespace", query.namespace.as_deref().unwrap_or_default())
                .append_pair("continue", query.continues.as_deref().unwrap_or_default())
                .append_pair("limit", &query.limit.unwrap_or_default().to_string())
                .finish();
            let again = ListQuery::parse(&encoded).expect("what was understood can be said again");
            assert_eq!(again.identity(), query.identity());
            assert_eq!(again, query);
        }
        Err(message) => assert!(!message.is_empty()),
    }
}
