//! Reads the head of an object from its JSON text.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::{IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use super::members::{self, Members, Object, next_text};
use super::{error_offset, is_white_space};
use crate::version::{ResourceVersion, Uid};
use crate::wire::head::INITIAL_EVENTS_END;
use crate::wire::{HeadError, ObjectHead};

/// Reads the whole text, or only up to the end of its metadata.
///
/// Only `apiVersion`, `kind` and the members of `metadata` that are read here need to have the
/// right type. If members are repeated, the last one counts, as in the decoders.
pub(super) fn read(json: &[u8], only_metadata: bool) -> Result<ObjectHead<'_>, HeadError> {
    let mut draft = Draft { only_metadata, ..Draft::default() };
    match members::read(json, &mut draft) {
        Err(error) if !draft.is_enough() => {
            let offset = error_offset(json, &error);
            return Err(match error.classify() {
                serde_json::error::Category::Data => {
                    HeadError::WrongType { field: draft.reading(), offset }
                }
                _ => HeadError::Malformed { offset },
            });
        }
        _ => {}
    }
    let Draft { api_version, kind, metadata, .. } = draft;
    Ok(ObjectHead {
        api_version,
        kind,
        name: metadata.name,
        namespace: metadata.namespace,
        uid: Uid::new(&metadata.uid),
        version: ResourceVersion::new(&metadata.version),
        initial_events_end: metadata.annotations.initial_events_end,
        managed_fields: match metadata.managed_fields {
            ManagedFields::Once(value) => Some(member_span(json, value)),
            ManagedFields::None | ManagedFields::Repeated => None,
        },
    })
}

/// The text of an object without its managed fields: `json` itself if there are none, else
/// assembled in `scratch`, whose content is replaced.
pub(super) fn without_managed_fields<'a>(
    json: &'a [u8],
    head: &ObjectHead<'_>,
    scratch: &'a mut Vec<u8>,
) -> &'a [u8] {
    let Some(span) = &head.managed_fields else {
        return json;
    };
    scratch.clear();
    scratch.reserve(json.len() - span.len());
    scratch.extend_from_slice(&json[..span.start]);
    scratch.extend_from_slice(&json[span.end..]);
    scratch
}

#[derive(Default)]
struct Draft<'a> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
    metadata: JsonMetadata<'a>,
    reading: Option<&'static str>,
    /// The members after the metadata are not needed.
    only_metadata: bool,
    has_metadata: bool,
}

impl Draft<'_> {
    /// The path of the member that was read last.
    fn reading(&self) -> &'static str {
        match self.reading {
            Some("metadata") => self.metadata.reading.unwrap_or("metadata"),
            other => other.unwrap_or("the object"),
        }
    }
}

impl<'de> Members<'de> for Draft<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "apiVersion" => {
                self.reading = Some("apiVersion");
                self.api_version = next_text(map)?;
            }
            "kind" => {
                self.reading = Some("kind");
                self.kind = next_text(map)?;
            }
            "metadata" => {
                self.reading = Some("metadata");
                self.metadata = JsonMetadata::default();
                map.next_value_seed(Object(&mut self.metadata))?;
                self.has_metadata = true;
            }
            _ => skip(map)?,
        }
        Ok(())
    }

    fn is_enough(&self) -> bool {
        self.only_metadata && self.has_metadata
    }
}

#[derive(Default)]
struct JsonMetadata<'a> {
    name: Cow<'a, str>,
    namespace: Cow<'a, str>,
    uid: Cow<'a, str>,
    version: Cow<'a, str>,
    annotations: Annotations,
    managed_fields: ManagedFields<'a>,
    reading: Option<&'static str>,
}

impl<'de> Members<'de> for JsonMetadata<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let (path, text) = match key {
            "name" => ("metadata.name", &mut self.name),
            "namespace" => ("metadata.namespace", &mut self.namespace),
            "uid" => ("metadata.uid", &mut self.uid),
            "resourceVersion" => ("metadata.resourceVersion", &mut self.version),
            "annotations" => {
                self.reading = Some("metadata.annotations");
                self.annotations = Annotations::default();
                return map.next_value_seed(Object(&mut self.annotations));
            }
            "managedFields" => {
                let value = map.next_value()?;
                self.managed_fields = match self.managed_fields {
                    ManagedFields::None => ManagedFields::Once(value),
                    ManagedFields::Once(_) | ManagedFields::Repeated => ManagedFields::Repeated,
                };
                return Ok(());
            }
            _ => return skip(map),
        };
        self.reading = Some(path);
        *text = next_text(map)?;
        Ok(())
    }
}

#[derive(Default)]
struct Annotations {
    initial_events_end: bool,
}

impl<'de> Members<'de> for Annotations {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        if key != INITIAL_EVENTS_END {
            return skip(map);
        }
        self.initial_events_end = next_text(map)? == "true";
        Ok(())
    }
}

#[derive(Default)]
enum ManagedFields<'a> {
    #[default]
    None,
    Once(&'a RawValue),
    Repeated,
}

fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

/// The range of the member with the value `value`, a part of `json`, with the comma after it, or
/// else the one before it. Only reads adjacent bytes; the text is known to be valid.
fn member_span(json: &[u8], value: &RawValue) -> Range<usize> {
    let value_start = value.get().as_ptr().addr() - json.as_ptr().addr();
    let value_end = value_start + value.get().len();
    // The key is some spelling of `managedFields`: no quote within it, escaped or not.
    let key_end = memchr::memrchr(b'"', &json[..value_start]).unwrap_or_default();
    let key_start = memchr::memrchr(b'"', &json[..key_end]).unwrap_or_default();

    let next =
        json[value_end..].iter().position(|byte| !is_white_space(*byte)).map(|at| value_end + at);
    if let Some(comma) = next.filter(|at| json[*at] == b',') {
        return key_start..comma + 1;
    }
    match json[..key_start].iter().rposition(|byte| !is_white_space(*byte)) {
        Some(comma) if json[comma] == b',' => comma..value_end,
        _ => key_start..value_end,
    }
}

#[cfg(test)]
mod tests;
