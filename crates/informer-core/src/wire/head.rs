//! What the store needs to know of an object, whatever its kind.

mod glance;

use std::borrow::Cow;
use std::ops::Range;

use k8s_protobuf::{Kind, Metadata, Reader};
use serde::de::{IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use super::members::{self, Members, Object, next_text};
use super::{Wire, error_offset, is_white_space};
use crate::key::ObjectKey;
use crate::version::{ResourceVersion, Uid};

/// An object's identity and version, read from its bytes without decoding the rest.
///
/// A JSON text is checked whole to be JSON, but only `apiVersion`, `kind` and the members of `metadata` that are read
/// here need to have the right type. Of repeated members the last counts, as in the decoders. Of a protobuf message the
/// fields of the object and those of its metadata are gone through.
///
/// # Examples
/// ```
/// use informer_core::wire::ObjectHead;
///
/// let pod = br#"{"kind":"Pod","metadata":{"name":"web-0","namespace":"default","resourceVersion":"7"}}"#;
/// let head = ObjectHead::parse(pod)?;
/// assert_eq!(head.key().to_string(), "default/web-0");
/// assert_eq!(head.version, "7".into());
/// # Ok::<(), informer_core::wire::HeadError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ObjectHead<'a> {
    /// Group and version, such as `apps/v1`; empty where the text has none, as items of typed lists.
    pub api_version: Cow<'a, str>,
    /// The kind; empty where the text has none.
    pub kind: Cow<'a, str>,
    /// The name; empty only in bookmarks.
    pub name: Cow<'a, str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// The UID; unset where the text has none.
    pub uid: Uid,
    /// The resource version; unset where the text has none.
    pub version: ResourceVersion,
    /// Whether this is the bookmark that ends the initial events of a streaming list; looked for in bookmarks only.
    pub initial_events_end: bool,
    /// Where `metadata.managedFields` stands in the text, in bytes: key, value, and the comma that would be
    /// left over. `None` if the object has none, or (which no server writes) more than one, or is no text.
    pub managed_fields: Option<Range<usize>>,
    pub(super) message: Option<Metadata<'a>>,
}

impl<'a> ObjectHead<'a> {
    /// Reads the head of an object.
    ///
    /// # Errors
    /// When the bytes are not one object, what is read has the wrong type, or the object has no name.
    pub fn of(object: Wire<'a>) -> Result<Self, HeadError> {
        match object {
            Wire::Json(json) => Self::parse(json),
            Wire::Protobuf(kind, message) => Self::read(kind, &Metadata::of(message)?).named(),
        }
    }

    /// Like [`of`](Self::of), but a JSON text is read up to the end of its metadata only, as is enough for objects that
    /// are decoded afterwards: what follows is not checked, and `apiVersion` and `kind` are empty if they stand there. Of
    /// what is passed over on the way only strings, braces and brackets are looked at, so that it ends where it does for
    /// any other reader; what else may be wrong with it is for the decoder to find, except in managedFields that are
    /// [cut out](Wire::without_managed_fields).
    ///
    /// # Errors
    /// When what is read is not the beginning of an object or has the wrong type, or there is no name.
    ///
    /// # Examples
    /// ```
    /// use informer_core::wire::{ObjectHead, Wire};
    ///
    /// let head = ObjectHead::glance(Wire::Json(br#"{"metadata":{"name":"web-0"},"spec":{"and so on"#))?;
    /// assert_eq!(head.name, "web-0");
    /// # Ok::<(), informer_core::wire::HeadError>(())
    /// ```
    pub fn glance(object: Wire<'a>) -> Result<Self, HeadError> {
        match object {
            Wire::Json(json) => match glance::glance(json) {
                Some(head) => Ok(head),
                None => Self::read_json(json, true)?.named(),
            },
            Wire::Protobuf(..) => Self::of(object),
        }
    }

    /// Like [`of`](Self::of), of an object of which only the beginning can be read: the rest is missing, or broken. Says
    /// who it is, as far as that is clear, and nothing of whether it is whole.
    ///
    /// # Errors
    /// When the metadata cannot be read, or there is no name.
    ///
    /// # Examples
    /// ```
    /// use informer_core::wire::{ObjectHead, Wire};
    ///
    /// let cut = Wire::Json(br#"{"kind":"Pod","metadata":{"name":"web-0"},"spec":{"no"#);
    /// assert_eq!(ObjectHead::of_beginning(cut)?.name, "web-0");
    /// # Ok::<(), informer_core::wire::HeadError>(())
    /// ```
    pub fn of_beginning(object: Wire<'a>) -> Result<Self, HeadError> {
        let Wire::Protobuf(kind, message) = object else { return Self::glance(object) };
        let mut fields = Reader::new(message);
        let mut rest = message.len();
        while let Ok(Some(_)) = fields.next() {
            rest = fields.rest().len();
        }
        Self::of(Wire::Protobuf(kind, &message[..message.len() - rest]))
    }

    /// Like [`of`](Self::of), for the object of a bookmark, which needs no name.
    ///
    /// # Errors
    /// When the bytes are not one object, or what is read has the wrong type.
    pub fn of_bookmark(object: Wire<'a>) -> Result<Self, HeadError> {
        match object {
            Wire::Json(json) => Self::parse_bookmark(json),
            Wire::Protobuf(kind, message) => {
                let metadata = Metadata::of(message)?;
                let initial_events_end = metadata.annotation(INITIAL_EVENTS_END) == Some("true");
                Ok(Self { initial_events_end, ..Self::read(kind, &metadata) })
            }
        }
    }

    fn read(kind: Kind, metadata: &Metadata<'a>) -> Self {
        Self {
            api_version: Cow::Borrowed(kind.api_version()),
            kind: Cow::Borrowed(kind.name()),
            name: Cow::Borrowed(metadata.name),
            namespace: Cow::Borrowed(metadata.namespace),
            uid: Uid::new(metadata.uid),
            version: ResourceVersion::new(metadata.resource_version),
            initial_events_end: false,
            managed_fields: None,
            message: Some(*metadata),
        }
    }

    fn named(self) -> Result<Self, HeadError> {
        match () {
            () if self.name.is_empty() => Err(HeadError::MissingName),
            () if self.namespace.contains('/') => Err(HeadError::SlashInNamespace),
            () => Ok(self),
        }
    }

    /// Reads the head of the object with the JSON text `json`.
    ///
    /// # Errors
    /// When the text is not one JSON object, what is read has the wrong type, or the object has no name.
    pub fn parse(json: &'a [u8]) -> Result<Self, HeadError> {
        Self::parse_bookmark(json)?.named()
    }

    /// Like [`parse`](Self::parse), for the object of a bookmark, which needs no name.
    ///
    /// # Errors
    /// When the text is not one JSON object, or what is read has the wrong type.
    pub fn parse_bookmark(json: &'a [u8]) -> Result<Self, HeadError> {
        Self::read_json(json, false)
    }

    fn read_json(json: &'a [u8], only_metadata: bool) -> Result<Self, HeadError> {
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
        Ok(Self {
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
            message: None,
        })
    }

    /// The key under which the object is stored.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(&self.namespace, &self.name)
    }
}

/// Of what was read; not of the bytes that it was read from.
impl PartialEq for ObjectHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        (&self.api_version, &self.kind) == (&other.api_version, &other.kind)
            && (&self.name, &self.namespace) == (&other.name, &other.namespace)
            && (&self.uid, &self.version) == (&other.uid, &other.version)
            && self.initial_events_end == other.initial_events_end
            && self.managed_fields == other.managed_fields
    }
}

impl Eq for ObjectHead<'_> {}

/// The text of an object without its managed fields: `json` itself if there are none, else put together in
/// `scratch`, whose content is replaced.
///
/// # Panics
/// May panic if `head` was not read from `json`.
///
/// # Examples
/// ```
/// use informer_core::wire::{ObjectHead, without_managed_fields};
///
/// let json = br#"{"metadata":{"name":"a","managedFields":[{"manager":"kubectl"}]}}"#;
/// let mut scratch = Vec::new();
/// let short = without_managed_fields(json, &ObjectHead::parse(json)?, &mut scratch);
/// assert_eq!(short, br#"{"metadata":{"name":"a"}}"#);
/// # Ok::<(), informer_core::wire::HeadError>(())
/// ```
pub fn without_managed_fields<'a>(
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

/// An object without a usable head. Says where, never what stood there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The text is not valid JSON.
    #[error("the object is not valid JSON: malformed at offset {offset}")]
    Malformed {
        /// Where in the text, in bytes.
        offset: usize,
    },
    /// The message is not whole.
    #[error("the object cannot be read: {0}")]
    Message(#[from] k8s_protobuf::Error),
    /// A part that is read has the wrong type.
    #[error("{field} has the wrong type (at offset {offset})")]
    WrongType {
        /// The part's path, such as `metadata.name`.
        field: &'static str,
        /// Where in the text, in bytes.
        offset: usize,
    },
    /// The object has no name, so there is nothing to store it under.
    #[error("the object has no metadata.name")]
    MissingName,
    /// No namespace of a server has a slash, which separates it from the name in keys.
    #[error("metadata.namespace contains a slash")]
    SlashInNamespace,
}

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

#[derive(Default)]
struct Draft<'a> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
    metadata: JsonMetadata<'a>,
    reading: Option<&'static str>,
    /// Nothing behind the metadata is of interest.
    only_metadata: bool,
    has_metadata: bool,
}

impl Draft<'_> {
    /// The path of what was being read last.
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

/// Where the member with the value `value`, a part of `json`, stands: with the comma after it, or else the
/// one before it. Looks at the bytes around only; the text is known to be valid.
fn member_span(json: &[u8], value: &RawValue) -> Range<usize> {
    let value_start = value.get().as_ptr().addr() - json.as_ptr().addr();
    let value_end = value_start + value.get().len();
    // The key is some spelling of `managedFields`: no quote within it, escaped or not.
    let key_end = memchr::memrchr(b'"', &json[..value_start]).unwrap_or_default();
    let key_start = memchr::memrchr(b'"', &json[..key_end]).unwrap_or_default();

    let next = json[value_end..].iter().position(|byte| !is_white_space(*byte)).map(|at| value_end + at);
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
