//! Reading fields of one object for its line.

use jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::Value;

/// An object, and the time that ages count from.
pub(crate) struct Row<'a> {
    pub(crate) object: &'a DynamicObject,
    pub(crate) now: Timestamp,
}

impl<'a> Row<'a> {
    pub(crate) fn new(object: &'a DynamicObject, now: Timestamp) -> Self {
        Self { object, now }
    }

    /// The value at a path of members joined by dots, outside of the metadata.
    pub(crate) fn at(&self, path: &str) -> Option<&'a Value> {
        at(&self.object.data, path)
    }

    /// The string there, or nothing.
    pub(crate) fn text(&self, path: &str) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number there, or 0.
    pub(crate) fn number(&self, path: &str) -> i64 {
        self.at(path).and_then(Value::as_i64).unwrap_or_default()
    }

    /// The array there, or an empty one.
    pub(crate) fn array(&self, path: &str) -> &'a [Value] {
        array(&self.object.data, path)
    }

    /// How many members the map there has.
    pub(crate) fn size(&self, path: &str) -> usize {
        self.at(path).and_then(Value::as_object).map_or(0, serde_json::Map::len)
    }

    /// The status of the condition of this type: `True`, `False`, `Unknown`, or nothing.
    pub(crate) fn condition(&self, kind: &str) -> &'a str {
        let conditions = self.array("status.conditions").iter();
        let found = conditions.into_iter().find(|it| text(it, "type") == kind);
        found.map(|it| text(it, "status")).unwrap_or_default()
    }
}

/// The value at a path of members joined by dots.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, Value::get)
}

/// The string there, or nothing.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The array there, or an empty one.
pub(crate) fn array<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Members of each element, joined by commas.
pub(crate) fn joined(values: &[Value], path: &str) -> String {
    values.iter().map(|it| text(it, path)).filter(|it| !it.is_empty()).collect::<Vec<_>>().join(",")
}
