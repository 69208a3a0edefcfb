//! Reading of objects.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::text::age_of;

/// An object, or a part of it, to be read by paths such as `spec.replicas`. What is `null` or of
/// another type than asked for is absent, and what is absent is the type's zero, as in Go.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    value: &'a Value,
    now: Timestamp,
}

impl<'a> View<'a> {
    /// Ages count up to `now`.
    pub(super) fn new(value: &'a Value, now: Timestamp) -> Self {
        Self { value, now }
    }

    pub(super) fn now(self) -> Timestamp {
        self.now
    }

    pub(super) fn value(self) -> &'a Value {
        self.value
    }

    /// What is at a path, unless it is `null`.
    pub(super) fn at(self, path: &str) -> Option<Self> {
        let value = path.split('.').try_fold(self.value, |value, key| value.get(key))?;
        (!value.is_null()).then_some(Self { value, now: self.now })
    }

    pub(super) fn has(self, path: &str) -> bool {
        self.at(path).is_some()
    }

    pub(super) fn text(self, path: &str) -> &'a str {
        self.at(path).and_then(|it| it.value.as_str()).unwrap_or_default()
    }

    /// A text that is there and not empty, or something else.
    pub(super) fn text_or(self, path: &str, otherwise: &'static str) -> &'a str {
        match self.text(path) {
            "" => otherwise,
            text => text,
        }
    }

    /// A text that is there, even if it is empty, or something else.
    pub(super) fn present_or(self, path: &str, otherwise: &'static str) -> &'a str {
        self.at(path).and_then(|it| it.value.as_str()).unwrap_or(otherwise)
    }

    pub(super) fn integer(self, path: &str) -> i64 {
        self.integer_or(path, 0)
    }

    pub(super) fn integer_or(self, path: &str, otherwise: i64) -> i64 {
        self.at(path).and_then(|it| it.value.as_i64()).unwrap_or(otherwise)
    }

    pub(super) fn boolean(self, path: &str) -> bool {
        self.boolean_or(path, false)
    }

    pub(super) fn boolean_or(self, path: &str, otherwise: bool) -> bool {
        self.at(path).and_then(|it| it.value.as_bool()).unwrap_or(otherwise)
    }

    pub(super) fn list(
        self,
        path: &str,
    ) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        let list = self.at(path).and_then(|it| it.value.as_array());
        list.map_or(&[][..], Vec::as_slice).iter().map(move |value| Self { value, now: self.now })
    }

    /// The texts of a list of texts.
    pub(super) fn texts(self, path: &str) -> impl Iterator<Item = &'a str> {
        self.list(path).map(|it| it.value.as_str().unwrap_or_default())
    }

    pub(super) fn map(self, path: &str) -> Option<&'a Map<String, Value>> {
        self.at(path).and_then(|it| it.value.as_object())
    }

    pub(super) fn annotation(self, key: &str) -> Option<&'a str> {
        self.map("metadata.annotations").and_then(|it| it.get(key)).and_then(Value::as_str)
    }

    /// A number or text as text.
    pub(super) fn written(self, path: &str) -> Option<String> {
        match self.at(path)?.value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// A quantity, which is 0 if it is absent.
    pub(super) fn quantity(self, path: &str) -> String {
        self.written(path).unwrap_or_else(|| "0".to_owned())
    }

    /// How many elements a list has.
    pub(super) fn count(self, path: &str) -> usize {
        self.list(path).len()
    }

    /// How many entries a map has.
    pub(super) fn size(self, path: &str) -> usize {
        self.map(path).map_or(0, Map::len)
    }

    /// The first of `status.conditions` of this type.
    pub(super) fn condition(self, kind: &str) -> Option<Self> {
        self.list("status.conditions").find(|it| it.text("type") == kind)
    }

    /// The last of `status.conditions` of this type.
    pub(super) fn last_condition(self, kind: &str) -> Option<Self> {
        self.list("status.conditions").rfind(|it| it.text("type") == kind)
    }

    /// Whether the first condition of this type is true.
    pub(super) fn is_true(self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|it| it.text("status") == "True")
    }

    pub(super) fn name(self) -> &'a str {
        self.text("metadata.name")
    }

    pub(super) fn is_being_deleted(self) -> bool {
        self.has("metadata.deletionTimestamp")
    }

    /// How old the object is.
    pub(super) fn age(self) -> String {
        self.since("metadata.creationTimestamp")
    }

    /// When the object was created; Go's zero time if that is not known.
    pub(super) fn created_at(self) -> &'a str {
        self.text_or("metadata.creationTimestamp", "0001-01-01T00:00:00Z")
    }

    /// How long ago the time at a path was.
    pub(super) fn since(self, path: &str) -> String {
        age_of(self.text(path), self.now)
    }
}
