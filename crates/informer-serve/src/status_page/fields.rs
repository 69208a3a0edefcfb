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
    match (before.and_then(|it| state(resource, it)), after.and_then(|it| state(resource, it))) {
        (Some(before), Some(after)) => between(&before, &after, &DiffOptions::default()),
        _ => Diff::default(),
    }
}

fn state(resource: &Resource, object: &Cached) -> Option<Value> {
    let mut text = Vec::new();
    object.object().write_json(&mut text).ok()?;
    let mut state: Value = serde_json::from_slice(&text).ok()?;
    // Items of lists do not say what they are; whose values are hidden depends on it.
    let state_of = state.as_object_mut()?;
    state_of.insert("apiVersion".to_owned(), resource.api_version().into());
    state_of.insert("kind".to_owned(), resource.kind.clone().into());
    Some(state)
}
