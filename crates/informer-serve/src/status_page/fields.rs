//! What changed in an object.

use informer::Resource;
use serde_json::{Value, json};

use crate::object::Cached;

pub(super) fn changed(_: &Resource, before: Option<&Cached>, after: Option<&Cached>) -> Value {
    let read = |it: Option<&Cached>| {
        let mut text = Vec::new();
        it.and_then(|it| it.object().write_json(&mut text).ok())?;
        serde_json::from_slice::<Value>(&text).ok()
    };
    let (Some(before), Some(after)) = (read(before), read(after)) else { return json!({"changes": [], "more": 0, "folded": 0}) };
    let mut out = Vec::new();
    walk("", &before, &after, &mut out);
    json!({"changes": out, "more": 0, "folded": 1})
}

fn walk(path: &str, one: &Value, other: &Value, out: &mut Vec<Value>) {
    if one == other {
        return;
    }
    if let (Value::Object(a), Value::Object(b)) = (one, other) {
        let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
        for key in keys {
            walk(&format!("{path}.{key}"), &a[key.as_str()], &b[key.as_str()], out);
        }
        return;
    }
    if path.ends_with("resourceVersion") {
        return;
    }
    out.push(json!({"op": "changed", "path": path.trim_start_matches('.'), "old": {"value": one}, "new": {"value": other}}));
}
