//! Matches the elements of two lists.

use hashbrown::HashMap;
use serde_json::Value;

/// The values of an element's key fields; `null` for missing fields and for unused entries.
pub(super) type ElementKey<'a> = [&'a Value; 3];

/// The positions of the elements of a list, by key.
pub(super) type ByKey<'a> = HashMap<ElementKey<'a>, usize>;

static NULL: Value = Value::Null;

/// How the elements of two lists are matched.
pub(super) enum Matching<'a> {
    /// By the values of these fields.
    Keyed { fields: &'static [&'static str], old: ByKey<'a>, new: ByKey<'a> },
    /// By their values: both are lists of distinct scalars.
    Set { old: ByKey<'a>, new: ByKey<'a> },
    /// By their positions.
    Position,
}

impl<'a> Matching<'a> {
    /// Chooses how to match the elements of two lists in a field of this name.
    pub(super) fn of(field: &str, old: &'a [Value], new: &'a [Value]) -> Self {
        let all = || old.iter().chain(new);
        if all().all(Value::is_object) {
            for fields in candidates(field) {
                let index = |list| by_key(list, |element| element_key(fields, element));
                if let (Some(old), Some(new)) = (index(old), index(new)) {
                    return Self::Keyed { fields, old, new };
                }
            }
        } else if all().all(is_scalar) && !matches!(field, "args" | "command") {
            let index = |list| by_key(list, |element| Some(scalar_key(element)));
            if let (Some(old), Some(new)) = (index(old), index(new)) {
                return Self::Set { old, new };
            }
        }
        Self::Position
    }
}

/// The key of an element; `None` if it has none of the fields, or if a value is not a scalar.
pub(super) fn element_key<'a>(
    fields: &[&'static str],
    element: &'a Value,
) -> Option<ElementKey<'a>> {
    let mut key: ElementKey<'a> = [&NULL; 3];
    for (part, field) in key.iter_mut().zip(fields) {
        *part = element.get(field).unwrap_or(&NULL);
    }
    let is_key = key.iter().all(|it| is_scalar(it)) && key.iter().any(|it| !it.is_null());
    is_key.then_some(key)
}

/// The key of an element of a set.
pub(super) fn scalar_key(element: &Value) -> ElementKey<'_> {
    [element, &NULL, &NULL]
}

fn by_key<'a>(
    list: &'a [Value],
    key: impl Fn(&'a Value) -> Option<ElementKey<'a>>,
) -> Option<ByKey<'a>> {
    let mut by_key = ByKey::with_capacity(list.len());
    for (at, element) in list.iter().enumerate() {
        if by_key.insert(key(element)?, at).is_some() {
            return None;
        }
    }
    Some(by_key)
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Key fields to try for a list, in order of preference. For lists of built-in kinds the merge key
/// comes first. It is not always unique, for example with addresses of two families, so longer keys
/// follow.
fn candidates(field: &str) -> impl Iterator<Item = &'static [&'static str]> {
    const PORTS: &[&[&str]] = &[&["containerPort", "protocol"], &["port", "protocol"], &["name"]];
    let known: &[&[&str]] = match field {
        "ports" => PORTS,
        "volumeMounts" => &[&["mountPath"]],
        "volumeDevices" => &[&["devicePath"]],
        "ownerReferences" | "reservedFor" => &[&["uid"]],
        "conditions" => &[&["type"]],
        "addresses" => &[&["type"], &["type", "address"]],
        "tolerations" => &[&["key"], &["key", "operator"], &["key", "operator", "effect"]],
        "taints" => &[&["key"], &["key", "effect"]],
        "hostAliases" | "hostIPs" | "podIPs" => &[&["ip"]],
        "topologySpreadConstraints" => &[&["topologyKey"], &["topologyKey", "whenUnsatisfiable"]],
        "rules" => &[&["host"]],
        "paths" => &[&["path"], &["path", "pathType"]],
        "subjects" => &[&["kind", "namespace", "name"]],
        "versions" => &[&["name"], &["version"]],
        _ => &[],
    };
    const ANY: &[&[&str]] = &[
        &["name"],
        &["id"],
        &["uid"],
        &["key"],
        &["type"],
        &["kind", "name"],
        &["kind", "namespace", "name"],
    ];
    known.iter().chain(ANY).copied()
}
