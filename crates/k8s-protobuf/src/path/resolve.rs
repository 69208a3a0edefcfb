//! From names to field numbers.

use super::{Leaf, Segment, Step, names, text};
use crate::schema::{FieldDef, FieldKind, MessageDef, flags};
use crate::{Error, Kind};

/// What a path has led to so far.
enum Place {
    Message(&'static MessageDef),
    /// A map with values of this field's kind.
    Map(&'static FieldDef),
    /// An array with items of this field's kind.
    Array(&'static FieldDef),
    /// Texts in a message, in field 1.
    Texts,
    Value(Leaf),
}

/// Resolves the fields that the path names. A name where a key is expected becomes a key.
pub(super) fn resolve(kind: Kind, segments: &mut [Segment]) -> Result<(Vec<Step>, Leaf), Error> {
    let (mut place, mut steps) = (Place::Message(kind.message()), Vec::new());
    // After how many steps the rest is present in every object.
    let mut certain = 0;
    for at in 0..segments.len() {
        if let (Place::Map(_), Segment::Name(name)) = (&place, &segments[at]) {
            segments[at] = Segment::Key(name.clone());
        }
        let problem =
            |problem: String| Error::Path { path: text::written(&segments[..=at]), problem };
        place = match (place, &segments[at]) {
            // JSON does not tell fields from keys.
            (Place::Message(def), Segment::Name(name) | Segment::Key(name)) => {
                let Some(field) = find(def, name, &mut steps) else {
                    return Err(problem(unknown(kind, def, name, at == 0)));
                };
                if field.flags & (flags::REPEATED | flags::MAP) == 0 {
                    steps.push(Step::Field(field.number));
                }
                let place = of_field(field).map_err(problem)?;
                if field.has(flags::POINTER) {
                    certain = steps.len();
                }
                match place {
                    Place::Value(leaf) => {
                        let pointer = field.has(flags::POINTER);
                        let omitted =
                            !pointer && field.flags & (flags::OMIT_EMPTY | flags::OMIT_ZERO) != 0;
                        // Slices of bytes are pointers, but omitted when they are empty.
                        let omitted = omitted
                            || field.kind == FieldKind::Bytes && field.has(flags::OMIT_EMPTY);
                        let implied =
                            (!pointer && (!omitted || !is_scalar(field.kind))).then_some(certain);
                        Place::Value(Leaf { omitted, implied, ..leaf })
                    }
                    place => place,
                }
            }
            (Place::Map(field), Segment::Key(key)) => {
                steps.push(Step::Entry(field.number, key.as_str().into()));
                certain = steps.len();
                of_value(field).map_err(problem)?
            }
            (Place::Array(field), Segment::Each) => {
                steps.push(Step::Each(field.number));
                certain = steps.len();
                of_value(field).map_err(problem)?
            }
            (Place::Texts, Segment::Each) => {
                steps.push(Step::Each(1));
                Place::Value(value(FieldKind::Str))
            }
            (place, _) => {
                let before = text::written(&segments[..at]);
                return Err(problem(format!("{before} is {}", what(&place))));
            }
        };
    }
    match place {
        Place::Value(leaf) => Ok((steps, leaf)),
        place => Err(Error::Path {
            path: text::written(segments),
            problem: format!("this is {}", what(&place)),
        }),
    }
}

/// The field with this name, after the steps into the inlined message that has it.
fn find(def: &'static MessageDef, name: &str, steps: &mut Vec<Step>) -> Option<&'static FieldDef> {
    for field in def.fields {
        if !field.has(flags::INLINE) {
            if field.name == name {
                return Some(field);
            }
            continue;
        }
        steps.push(Step::Field(field.number));
        if let Some(found) = find(field.message(), name, steps) {
            return Some(found);
        }
        steps.pop();
    }
    None
}

/// The place of a field with all its values.
fn of_field(field: &'static FieldDef) -> Result<Place, String> {
    if field.has(flags::MAP) {
        Ok(Place::Map(field))
    } else if field.has(flags::REPEATED) {
        Ok(Place::Array(field))
    } else {
        of_value(field)
    }
}

/// The place of one value of a field.
fn of_value(field: &'static FieldDef) -> Result<Place, String> {
    match field.kind {
        FieldKind::Message => Ok(Place::Message(field.message())),
        FieldKind::StrList => Ok(Place::Texts),
        FieldKind::RawJson => {
            Err("this is JSON of any form, which cannot be read field by field".to_owned())
        }
        FieldKind::PropsOrArray | FieldKind::PropsOrBool | FieldKind::PropsOrStringArray => {
            Err("this is a schema or something else, which cannot be read field by field"
                .to_owned())
        }
        kind => Ok(Place::Value(value(kind))),
    }
}

/// A value that is present if it is in the bytes.
fn value(kind: FieldKind) -> Leaf {
    Leaf { kind, omitted: false, implied: None }
}

/// Whether Go's `omitempty` omits the zero value: not for structs.
fn is_scalar(kind: FieldKind) -> bool {
    use FieldKind::{Bool, Bytes, F64, I32, I64, Str, Time};
    // A zero time is null, which counts as omitted.
    matches!(kind, Str | Bytes | Bool | I32 | I64 | F64 | Time)
}

fn what(place: &Place) -> String {
    match place {
        Place::Message(def) => {
            let names = names::all(def);
            format!("an object: name one of its fields, such as {}", names::listed(&names, "and"))
        }
        Place::Map(_) => "a map: name one of its keys, as in metadata.labels['app']".to_owned(),
        Place::Array(_) | Place::Texts => "an array: add [*] to read all its items".to_owned(),
        Place::Value(_) => "a value, which has nothing in it".to_owned(),
    }
}

fn unknown(kind: Kind, def: &'static MessageDef, name: &str, first: bool) -> String {
    if first && matches!(name, "apiVersion" | "kind") {
        return format!(
            "the bytes do not say it again: all objects read with this path are {kind}"
        );
    }
    let names = names::all(def);
    if names.is_empty() {
        return format!("no such field in {kind}: there is none here");
    }
    let near = names::near(&names, name);
    format!("no such field in {kind}; did you mean {}?", names::listed(&near, "or"))
}
