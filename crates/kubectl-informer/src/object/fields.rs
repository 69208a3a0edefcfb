//! Field selectors for cached objects.

use std::borrow::Cow;

use informer::decode::Wire;
use informer::selector::FieldRequirement;
use informer::{FieldPath, FieldSelector, Resource};

use super::Object;

/// A field selector for the objects of one resource: where each field stands was found out once, for all of them.
///
/// A field is a text, number or boolean as JSON has it, and empty where there is none of these. Any path will do: names
/// with dots between them, where all that follows `metadata.labels.` or `metadata.annotations.` is one key.
pub(crate) struct Fields(Vec<(Place, FieldRequirement)>);

/// Where a field stands.
#[derive(Debug)]
enum Place {
    Label(String),
    Annotation(String),
    Path(FieldPath),
    /// Only the JSON has it, if anything: messages have fields of any form that are JSON themselves, and a server may
    /// know more fields than this program.
    Json(FieldPath),
    /// No path leads there.
    Nowhere,
}

impl Fields {
    pub(crate) fn new(selector: &FieldSelector, resource: &Resource) -> Self {
        let requirements = selector.requirements().iter();
        Self(requirements.map(|it| (Place::of(it.field(), resource), it.clone())).collect())
    }

    /// Whether the object's fields are as they are required to be.
    pub(crate) fn match_object(&self, object: &Object) -> bool {
        self.0.iter().all(|(place, requirement)| requirement.matches(&place.read(object)))
    }
}

impl Place {
    fn of(path: &str, resource: &Resource) -> Self {
        if let Some(key) = path.strip_prefix("metadata.labels.") {
            return Self::Label(key.to_owned());
        }
        if let Some(key) = path.strip_prefix("metadata.annotations.") {
            return Self::Annotation(key.to_owned());
        }
        let Some(path) = quoted(path) else { return Self::Nowhere };
        match (FieldPath::of_resource(resource, &path), path.parse()) {
            (Ok(path), _) => Self::Path(path),
            (Err(_), Ok(path)) => Self::Json(path),
            (Err(_), Err(_)) => Self::Nowhere,
        }
    }

    fn read<'a>(&self, object: &'a Object) -> Cow<'a, str> {
        let found = match (self, object.wire()) {
            (Self::Label(key), _) => object.label(key).map(Cow::Borrowed),
            (Self::Annotation(key), _) => object.annotation(key),
            (Self::Path(path), _) | (Self::Json(path), Wire::Json(_)) => object.field(path),
            (Self::Json(path), _) => {
                let mut json = Vec::new();
                let object = object.write_json(&mut json).ok().and_then(|()| Object::from_json(&json).ok());
                object.and_then(|it| Some(Cow::Owned(it.field(path)?.into_owned())))
            }
            (Self::Nowhere, _) => None,
        };
        found.unwrap_or_default()
    }
}

/// The path with names in quotes where brackets would mean something; `None` if it cannot be written so.
fn quoted(path: &str) -> Option<String> {
    let mut text = String::with_capacity(path.len());
    for (at, name) in path.split('.').enumerate() {
        match (at, name.contains(['[', ']'])) {
            (0, false) => text.push_str(name),
            (0, true) => return None,
            (_, false) => text.extend([".", name]),
            (_, true) if !name.contains("']") => text.extend(["['", name, "']"]),
            (_, true) if !name.contains("\"]") => text.extend(["[\"", name, "\"]"]),
            (_, true) => return None,
        }
    }
    Some(text)
}
