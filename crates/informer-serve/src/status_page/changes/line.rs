//! Lines of JSON.

use informer::Resource;
use jiff::Timestamp;
use k8s_serve::watch_cache::{EventType, Logged};
use k8s_serve::{Change, Object as _, Status};
use serde_json::{Value, json};

use crate::object::Cached;

/// Appends a line.
pub(super) fn write(out: &mut Vec<u8>, line: &Value) {
    out.extend_from_slice(line.to_string().as_bytes());
    out.push(b'\n');
}

/// Appends a change. An object that enters or leaves the selection is shown in the state that is
/// selected, and in no other.
pub(super) fn change(
    out: &mut Vec<u8>,
    resource: &Resource,
    event: EventType,
    logged: &Logged<Cached>,
    is_past: bool,
) {
    let change = logged.change();
    let (verb, before, after) = match event {
        EventType::Added => ("added", None, change.after.as_ref()),
        EventType::Modified => ("updated", change.before.as_ref(), change.after.as_ref()),
        EventType::Deleted => ("deleted", change.before.as_ref(), None),
    };
    let Some(object) = after.or(before) else { return };
    let key = object.key();
    let line = json!({
        "type": "change",
        "time": received(change).map(|it| it.to_string()),
        "resource": resource.to_string(),
        "namespace": key.namespace(),
        "name": key.name(),
        "verb": verb,
        "version": change.version.to_string(),
        "past": is_past,
        "diff": super::super::fields::changed(resource, before, after),
    });
    write(out, &line);
}

/// When it was received.
pub(super) fn received(change: &Change<Cached>) -> Option<Timestamp> {
    change.after.as_ref().or(change.before.as_ref())?.received_at()
}

pub(super) fn gap(resource: &Resource) -> Value {
    json!({"type": "gap", "resource": resource.to_string()})
}

pub(super) fn refused(resource: &Resource, status: &Status) -> Value {
    json!({
        "type": "refused",
        "resource": resource.to_string(),
        "code": status.code,
        "message": status.message,
    })
}
