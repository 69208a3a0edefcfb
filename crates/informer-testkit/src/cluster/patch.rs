//! JSON merge patch (RFC 7396) and JSON patch (RFC 6902).

use serde::Deserialize;
use serde_json::Value;

/// How a patch is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// JSON merge patch. Strategic merge patches are read as such, too: lists are replaced.
    Merge,
    /// A list of operations.
    Json,
    /// Server-side apply, read as a merge patch that creates what is missing.
    Apply,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Operation {
    Add { path: String, value: Value },
    Remove { path: String },
    Replace { path: String, value: Value },
    Test { path: String, value: Value },
    Copy { from: String, path: String },
    Move { from: String, path: String },
}

/// Changes `target`, or says what is wrong with the patch.
pub(super) fn apply(kind: PatchKind, target: &mut Value, patch: &Value) -> Result<(), String> {
    match kind {
        PatchKind::Merge | PatchKind::Apply if patch.is_object() => {
            merge(target, patch);
            Ok(())
        }
        PatchKind::Merge | PatchKind::Apply => {
            Err("a merge patch must be a JSON object".to_owned())
        }
        PatchKind::Json => {
            let operations: Vec<Operation> = Deserialize::deserialize(patch)
                .map_err(|error| format!("no JSON patch: {error}"))?;
            operations.into_iter().try_for_each(|operation| operate(target, operation))
        }
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), change);
        }
    }
}

fn operate(target: &mut Value, operation: Operation) -> Result<(), String> {
    let found = |target: &Value, path: &str| {
        target.pointer(path).cloned().ok_or_else(|| format!("there is nothing at {path:?}"))
    };
    match operation {
        Operation::Add { path, value } => add(target, &path, value),
        Operation::Remove { path } => remove(target, &path).map(drop),
        Operation::Replace { path, value } => {
            let slot =
                target.pointer_mut(&path).ok_or_else(|| format!("there is nothing at {path:?}"))?;
            *slot = value;
            Ok(())
        }
        Operation::Test { path, value } => {
            if target.pointer(&path).unwrap_or(&Value::Null) == &value {
                Ok(())
            } else {
                Err(format!("the test of {path:?} failed"))
            }
        }
        Operation::Copy { from, path } => {
            let value = found(target, &from)?;
            add(target, &path, value)
        }
        Operation::Move { from, path } => {
            let value = remove(target, &from)?;
            add(target, &path, value)
        }
    }
}

/// Splits a pointer into that of the container and the last key.
fn split<'a>(target: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let (parent, key) =
        path.rsplit_once('/').ok_or_else(|| format!("{path:?} is no JSON pointer"))?;
    let container =
        target.pointer_mut(parent).ok_or_else(|| format!("there is nothing at {parent:?}"))?;
    Ok((container, key.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (container, key) = split(target, path)?;
    match container {
        Value::Object(fields) => {
            fields.insert(key, value);
            Ok(())
        }
        Value::Array(items) => {
            let at = if key == "-" {
                Some(items.len())
            } else {
                key.parse().ok().filter(|at| *at <= items.len())
            };
            items.insert(at.ok_or_else(|| format!("{path:?} is outside of the list"))?, value);
            Ok(())
        }
        _ => Err(format!("{path:?} is in something that has no parts")),
    }
}

fn remove(target: &mut Value, path: &str) -> Result<Value, String> {
    let (container, key) = split(target, path)?;
    let removed = match container {
        Value::Object(fields) => fields.remove(&key),
        Value::Array(items) => {
            key.parse().ok().filter(|at: &usize| *at < items.len()).map(|at| items.remove(at))
        }
        _ => None,
    };
    removed.ok_or_else(|| format!("there is nothing at {path:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_removes_what_is_null_and_replaces_lists() {
        let mut target = json!({"a": {"b": 1, "c": 2}, "d": [1, 2]});
        apply(
            PatchKind::Merge,
            &mut target,
            &json!({"a": {"b": null, "e": {"f": null, "g": 1}}, "d": [3]}),
        )
        .unwrap();
        assert_eq!(target, json!({"a": {"c": 2, "e": {"g": 1}}, "d": [3]}));
    }

    #[test]
    fn json_patches_do_what_rfc_6902_says() {
        let mut target = json!({"m": {"f": ["x"], "a/b": 1}});
        let patch = json!([
            {"op": "test", "path": "/m/f/0", "value": "x"},
            {"op": "test", "path": "/m/nothing", "value": null},
            {"op": "add", "path": "/m/f/-", "value": "y"},
            {"op": "add", "path": "/m/f/0", "value": "w"},
            {"op": "remove", "path": "/m/a~1b"},
            {"op": "replace", "path": "/m/f/1", "value": "z"},
            {"op": "copy", "from": "/m/f/2", "path": "/last"},
            {"op": "move", "from": "/m/f", "path": "/list"},
        ]);
        apply(PatchKind::Json, &mut target, &patch).unwrap();
        assert_eq!(target, json!({"m": {}, "last": "y", "list": ["w", "z", "y"]}));
        for bad in [
            json!([{"op": "test", "path": "/last", "value": "n"}]),
            json!([{"op": "remove", "path": "/none"}]),
            json!([{"op": "add", "path": "/list/9", "value": 1}]),
            json!({}),
        ] {
            assert!(apply(PatchKind::Json, &mut target.clone(), &bad).is_err(), "{bad}");
        }
    }
}
