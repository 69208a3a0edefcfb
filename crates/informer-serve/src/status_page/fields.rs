//! What changed in an object.

use informer::Resource;
use informer::diff::{Diff, DiffOptions, between};
use serde_json::Value;

use crate::object::Cached;

/// The changes between two states; none where one of them is missing, or cannot be read.
pub(super) fn changed(
    resource: &Resource,
    before: Option<&Cached>,
    after: Option<&Cached>,
) -> Diff {
    // What was added or deleted is not parsed at all.
    let (Some(before), Some(after)) = (before, after) else { return Diff::default() };
    match (state(resource, before), state(resource, after)) {
        (Some(before), Some(after)) => between(&before, &after, &DiffOptions::default()),
        _ => Diff::default(),
    }
}

fn state(resource: &Resource, object: &Cached) -> Option<Value> {
    let mut text = Vec::new();
    object.object().write_json(&mut text).ok()?;
    // Decoding would overflow the stack and abort the process.
    if k8s_protobuf::hides_levels(&text) {
        return None;
    }
    let mut state: Value = serde_json::from_slice(&text).ok()?;
    // List items have no kind, and the kind decides which values are hidden.
    let state_of = state.as_object_mut()?;
    state_of.insert("apiVersion".to_owned(), resource.api_version().into());
    state_of.insert("kind".to_owned(), resource.kind.clone().into());
    Some(state)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use informer::ObjectKey;
    use serde_json::json;

    use super::*;
    use crate::object::Object;

    /// The process would end.
    #[test]
    fn an_object_that_hides_levels_is_not_parsed() {
        const KEY: &str = "$serde_json::private::RawValue";
        let text = (0..60).fold("1".to_owned(), |inner, _| {
            let inner = inner.replace('\\', "\\u005c").replace('"', "\\u0022");
            format!("{}{{\"{KEY}\":\"{inner}\"}}{}", "[".repeat(120), "]".repeat(120))
        });
        let resource = Resource::of::<k8s_openapi::api::core::v1::Pod>();
        let state = |replicas: u32, odd: &str| {
            let object = json!({"metadata": {"name": "a"}, "spec": {"replicas": replicas, "odd": {KEY: odd}}});
            let object = Object::from_json(object.to_string().as_bytes()).unwrap();
            Cached::new(&ObjectKey::namespaced("shop", "a"), &Arc::new(object))
        };
        let changes = |odd: &str| changed(&resource, Some(&state(1, odd)), Some(&state(2, odd)));
        assert_eq!(changes("1").changes.len(), 1);
        assert_eq!(changes(&text).changes.len(), 0);
    }
}
