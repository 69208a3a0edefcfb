//! JSON objects as ordered lists of fields whose values stay text: nothing is parsed that nobody
//! asks for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The fields of one JSON object, in order; of a repeated name the last value counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Reads a JSON object. Line breaks between tokens are taken out, since a watch separates its
    /// events by them.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        if json.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            let value: Value = serde_json::from_slice(json)?;
            return serde_json::from_str(&value.to_string());
        }
        serde_json::from_slice(json)
    }

    /// The field's value as text.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.get())
    }

    /// The field's value, if it is there and not null.
    ///
    /// # Errors
    /// If it is of another type.
    pub(crate) fn read<'a, T: Deserialize<'a>>(
        &'a self,
        name: &str,
    ) -> Result<Option<T>, serde_json::Error> {
        self.raw(name).map_or(Ok(None), serde_json::from_str)
    }

    /// The field's value, if it is a string.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        string(self.raw(name)?)
    }

    /// The field's value as fields of its own; none if it is not an object.
    pub(crate) fn object(&self, name: &str) -> Self {
        self.raw(name).and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }

    /// Sets a field to a value that is JSON already.
    pub(crate) fn set_raw(&mut self, name: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Sets a field.
    pub(crate) fn set(&mut self, name: &str, value: &Value) {
        if let Ok(raw) = RawValue::from_string(value.to_string()) {
            self.set_raw(name, raw);
        }
    }

    /// Sets a field to an object.
    pub(crate) fn set_object(&mut self, name: &str, fields: &Self) {
        let mut json = Vec::new();
        fields.write_to(&mut json);
        if let Some(raw) =
            String::from_utf8(json).ok().and_then(|text| RawValue::from_string(text).ok())
        {
            self.set_raw(name, raw);
        }
    }

    /// Takes a field out.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Box<RawValue>> {
        let at = self.0.iter().position(|(own, _)| own == name)?;
        Some(self.0.remove(at).1)
    }

    /// Sets this field as `other` has it, absence included.
    pub(crate) fn copy_from(&mut self, other: &Self, name: &str) {
        match other.0.iter().find(|(own, _)| own == name) {
            Some((_, value)) => self.set_raw(name, value.clone()),
            None => drop(self.remove(name)),
        }
    }

    /// Whether both have the same value for every field but `except`, in whatever order.
    pub(crate) fn same_as(&self, other: &Self, except: &[&str]) -> bool {
        let counted = |fields: &Self| {
            fields.0.iter().filter(|(name, _)| !except.contains(&name.as_str())).count()
        };
        counted(self) == counted(other)
            && self
                .0
                .iter()
                .filter(|(name, _)| !except.contains(&name.as_str()))
                .all(|(name, value)| other.raw(name).is_some_and(|other| equal(value.get(), other)))
    }

    /// Puts the fields into the order of `first`, then alphabetical, then those of `last`.
    pub(crate) fn sort(&mut self, first: &[&str], last: &[&str]) {
        let rank = |name: &str| {
            let place = |list: &[&str]| list.iter().position(|known| *known == name);
            match (place(first), place(last)) {
                (Some(at), _) => at,
                (None, None) => first.len(),
                (None, Some(at)) => first.len() + 1 + at,
            }
        };
        self.0.sort_by(|(a, _), (b, _)| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
    }

    /// Appends the object to `out`.
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_fields_to(out);
        out.push(b'}');
    }

    /// Appends the fields without the braces.
    pub(crate) fn write_fields_to(&self, out: &mut Vec<u8>) {
        for (at, (name, value)) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(quoted(name).as_bytes());
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
    }

    /// Whether there are no fields.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the fields, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.set_raw(&name, value);
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// What a field selector compares: the value at `path` (segments split by dots) in a JSON object.
/// Strings are taken as they are, numbers and booleans as written; what is absent, null or no
/// scalar is empty.
pub(crate) fn field_value(json: &[u8], path: &str) -> String {
    let (head, rest) = path.split_once('.').map_or((path, None), |(head, rest)| (head, Some(rest)));
    let Ok(fields) = serde_json::from_slice::<BTreeMap<Cow<'_, str>, &RawValue>>(json) else {
        return String::new();
    };
    let Some(raw) = fields.get(head).map(|raw| raw.get()) else { return String::new() };
    match rest {
        Some(rest) => field_value(raw.as_bytes(), rest),
        None => match raw.as_bytes().first() {
            Some(b'"') => string(raw).unwrap_or_default().into_owned(),
            Some(b'{' | b'[' | b'n') | None => String::new(),
            Some(_) => raw.to_owned(),
        },
    }
}

/// Whether two JSON texts say the same. Mostly the texts are the same.
fn equal(a: &str, b: &str) -> bool {
    a == b
        || matches!((serde_json::from_str::<Value>(a), serde_json::from_str::<Value>(b)), (Ok(a), Ok(b)) if a == b)
}

/// A JSON string, without a copy where nothing is escaped.
fn string(raw: &str) -> Option<Cow<'_, str>> {
    match raw.strip_prefix('"')?.strip_suffix('"') {
        Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
        _ => serde_json::from_str(raw).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_between_tokens_are_taken_out() {
        let fields = Fields::parse(b"{\n \"a\": {\n \"b\": \"x\\ny\"\n }\n}").unwrap();
        assert_eq!(fields.raw("a"), Some(r#"{"b":"x\ny"}"#));
    }

    #[test]
    fn field_values_are_what_selectors_compare() {
        let json =
            br#"{"spec":{"nodeName":"n\u0031","hostNetwork":true,"n":3,"list":[1]},"status":null}"#;
        for (path, value) in [
            ("spec.nodeName", "n1"),
            ("spec.hostNetwork", "true"),
            ("spec.n", "3"),
            ("spec.list", ""),
            ("spec", ""),
            ("status.phase", ""),
            ("spec.nodeName.x", ""),
            ("nothing.at.all", ""),
        ] {
            assert_eq!(field_value(json, path), value, "{path}");
        }
    }

    #[test]
    fn fields_sort_by_rank_then_name() {
        let mut fields = Fields::parse(br#"{"z":1,"b":2,"name":3,"a":4}"#).unwrap();
        fields.sort(&["name"], &["a"]);
        assert_eq!(fields.names().collect::<Vec<_>>(), ["name", "b", "z", "a"]);
    }
}
