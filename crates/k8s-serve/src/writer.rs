//! Objects as a server writes them.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use informer_core::wire::{Encoding, MediaType, Wire};
use jiff::Timestamp;
use k8s_protobuf::{Envelope, Kind, encode};
use serde_json::json as json_value;

use crate::form::{Form, FormKind, Include, MetaVersion, Part, Shape, built_in};
use crate::object::{Object, WriteError};
use crate::resource::Resource;
use crate::status::Status;
use crate::table::Columns;
use crate::watch_cache::EventType;
use crate::{json, protobuf};

use table::TableWriter;

mod table;

/// Writes the objects of one resource in one form.
pub(crate) struct Writer {
    resource: Arc<Resource>,
    kind: WriterKind,
    rendering: Rendering,
    /// The start of an object in JSON: brace, `kind` and `apiVersion`, comma.
    types: String,
}

enum WriterKind {
    Full,
    Metadata(MetaVersion),
    Table(TableWriter),
    Protobuf { part: Part, object: Kind },
}

/// What the bytes of an event depend on, besides the object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rendering {
    api_version: Arc<str>,
    form: Form,
    columns: Option<Columns>,
}

impl Writer {
    /// A writer; `columns` are those of tables.
    pub(crate) fn new(resource: Arc<Resource>, form: Form, columns: Option<Columns>) -> Self {
        let api_version = resource.api_version();
        let rendering = Rendering { api_version: api_version.as_str().into(), form, columns };
        let kind = match form.0 {
            FormKind::Json(Shape::Full) => WriterKind::Full,
            FormKind::Json(Shape::Metadata(version)) => WriterKind::Metadata(version),
            FormKind::Json(Shape::Table(version, include)) => {
                let columns = rendering
                    .columns
                    .clone()
                    .unwrap_or_else(|| Columns::of_kind(&resource.group, &resource.kind));
                WriterKind::Table(TableWriter::new(columns, version, include))
            }
            FormKind::Protobuf { part, object, .. } => WriterKind::Protobuf { part, object },
        };
        let types = prefix(&api_version, &resource.kind, resource.custom);
        Self { resource, kind, rendering, types }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    fn media(&self) -> MediaType {
        match self.kind {
            WriterKind::Full | WriterKind::Metadata(_) | WriterKind::Table(_) => MediaType::Json,
            WriterKind::Protobuf { .. } => MediaType::Protobuf,
        }
    }

    /// Appends an object that says what it is, as the whole of an answer.
    pub(crate) fn object(
        &self,
        out: &mut Vec<u8>,
        object: &impl Object,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        match &self.kind {
            WriterKind::Table(table) => {
                table.whole(out, self, object.wire(), object.version(), true, now)
            }
            _ => self.plain(out, object, None),
        }
    }

    /// What the bytes of events depend on.
    pub(crate) fn rendering(&self) -> &Rendering {
        &self.rendering
    }

    /// Appends an event of a watch; an object that is deleted is as it was, at a later version.
    /// Tables have the columns in the first event only: `is_first`.
    pub(crate) fn event(
        &self,
        out: &mut Vec<u8>,
        (event, object): (EventType, &impl Object),
        version: Option<u64>,
        is_first: bool,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        wrap(out, event.as_str(), self.media(), |out| match &self.kind {
            WriterKind::Table(table) => {
                let (shown, mut buffer) = (version.unwrap_or_else(|| object.version()), Vec::new());
                let wire = at_version(object.wire(), version, &mut buffer)?;
                table.whole(out, self, wire, shown, is_first, now)
            }
            _ => self.plain(out, object, version),
        })
    }

    /// Appends a bookmark.
    pub(crate) fn bookmark(
        &self,
        out: &mut Vec<u8>,
        version: u64,
        ends_initial_events: bool,
        is_first: bool,
        now: Timestamp,
    ) {
        let Ok(()) = wrap(out, "BOOKMARK", self.media(), |out| {
            match &self.kind {
                WriterKind::Table(table) => {
                    table.bookmark(out, self, version, ends_initial_events, is_first, now);
                }
                _ => self.bookmark_object(out, version, ends_initial_events),
            }
            Ok::<_, Infallible>(())
        });
    }

    /// Appends an object as an item of a list in JSON: built-in kinds leave out `apiVersion` and
    /// `kind`.
    pub(crate) fn item(
        &self,
        out: &mut Vec<u8>,
        item: &impl Object,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let wire = item.wire();
        match (&self.kind, wire.encoding) {
            (WriterKind::Table(table), _) => table.row(out, self, wire, now),
            (WriterKind::Full, Encoding::Json) if !self.resource.custom => {
                out.push(b'{');
                out.extend_from_slice(json::without_types(wire.bytes));
                Ok(())
            }
            (WriterKind::Full, Encoding::Protobuf(kind)) if !self.resource.custom => {
                Ok(k8s_protobuf::item_to_json(kind, wire.bytes, out)?)
            }
            _ => self.plain(out, item, None),
        }
    }

    /// Appends the start of a table that is a list.
    pub(crate) fn table(&self) -> Option<&TableWriter> {
        match &self.kind {
            WriterKind::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The version of metadata alone.
    pub(crate) fn metadata(&self) -> Option<MetaVersion> {
        match self.kind {
            WriterKind::Metadata(version) => Some(version),
            _ => None,
        }
    }

    /// The object as an item of a list in protobuf.
    pub(crate) fn message<'a>(&self, object: &'a impl Object) -> Result<Cow<'a, [u8]>, WriteError> {
        match self.kind {
            WriterKind::Protobuf { part: Part::Full, object: kind } => object.message(kind),
            WriterKind::Protobuf { part: Part::Metadata, object: kind } => {
                object.metadata_message(kind)
            }
            WriterKind::Full | WriterKind::Metadata(_) | WriterKind::Table(_) => {
                Err(WriteError::new("it is to be in JSON"))
            }
        }
    }

    fn plain(
        &self,
        out: &mut Vec<u8>,
        object: &impl Object,
        version: Option<u64>,
    ) -> Result<(), WriteError> {
        match &self.kind {
            WriterKind::Protobuf { object: kind, .. } => {
                let mut message = self.message(object)?;
                if let Some(version) = version {
                    message = Cow::Owned(protobuf::at_version(&message, version)?);
                }
                Envelope::write(kind.api_version(), kind.name(), &message, out);
                Ok(())
            }
            WriterKind::Full | WriterKind::Table(_) => {
                let mut buffer = Vec::new();
                self.full(out, at_version(object.wire(), version, &mut buffer)?)
            }
            WriterKind::Metadata(meta) => {
                let mut buffer = Vec::new();
                metadata(out, *meta, at_version(object.wire(), version, &mut buffer)?)
            }
        }
    }

    /// Appends the whole object in JSON.
    fn full(&self, out: &mut Vec<u8>, wire: Wire<'_>) -> Result<(), WriteError> {
        match wire.encoding {
            Encoding::Protobuf(kind) => k8s_protobuf::message_to_json(kind, wire.bytes, out)?,
            // That of a custom resource, in alphabetical order, has its types anywhere before the
            // metadata.
            Encoding::Json
                if self.resource.custom && !wire.bytes.starts_with(b"{\"metadata\":") =>
            {
                out.extend_from_slice(wire.bytes);
            }
            Encoding::Json => {
                out.extend_from_slice(self.types.as_bytes());
                out.extend_from_slice(json::without_types(wire.bytes));
            }
        }
        Ok(())
    }

    /// Appends the object of a bookmark: a version, and for the Go types what they write even when
    /// empty.
    fn bookmark_object(&self, out: &mut Vec<u8>, version: u64, ends_initial_events: bool) {
        let kind = match self.kind {
            WriterKind::Protobuf { object, .. } => Some(object),
            WriterKind::Full | WriterKind::Table(_) => {
                built_in(&self.resource).map(|(object, _)| object)
            }
            WriterKind::Metadata(version) => version.metadata_kinds().map(|(object, _)| object),
        };
        self.bookmark_of(out, kind, version, ends_initial_events);
    }

    fn bookmark_of(
        &self,
        out: &mut Vec<u8>,
        kind: Option<Kind>,
        version: u64,
        ends_initial_events: bool,
    ) {
        let end = ends_initial_events.then(|| json_value!({ INITIAL_EVENTS_END: "true" }));
        let mut object = json_value!({ "metadata": { "resourceVersion": version.to_string(), "annotations": end } });
        let Some(kind) = kind else {
            // Alphabetical.
            let annotations = if ends_initial_events {
                format!("\"annotations\":{{\"{INITIAL_EVENTS_END}\":\"true\"}},")
            } else {
                String::new()
            };
            let metadata = format!("{{{annotations}\"resourceVersion\":\"{version}\"}}");
            out.extend_from_slice(format!("{}\"metadata\":{metadata}}}", self.types).as_bytes());
            return;
        };
        // Where the version of the API has a pointer and the server's own type has none.
        if let ("apps/v1", "Deployment" | "ReplicaSet" | "StatefulSet") =
            (kind.api_version(), kind.name())
        {
            object["spec"] = json_value!({ "replicas": 0 });
        }
        let mut message = Vec::new();
        // It fits its kind.
        let _ = encode::message(kind, &object, &mut message);
        match self.media() {
            MediaType::Json => drop(k8s_protobuf::message_to_json(kind, &message, out)),
            MediaType::Protobuf => {
                Envelope::write(kind.api_version(), kind.name(), &message, out);
            }
        }
    }
}

const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The same object at another version, in `buffer`.
fn at_version<'a>(
    wire: Wire<'a>,
    version: Option<u64>,
    buffer: &'a mut Vec<u8>,
) -> Result<Wire<'a>, WriteError> {
    let Some(version) = version else { return Ok(wire) };
    *buffer = match wire.encoding {
        Encoding::Json => json::at_version(wire.bytes, version),
        Encoding::Protobuf(_) => protobuf::at_version(wire.bytes, version),
    }?;
    Ok(Wire { encoding: wire.encoding, bytes: buffer })
}

/// Appends a `PartialObjectMetadata` in JSON.
fn metadata(out: &mut Vec<u8>, version: MetaVersion, wire: Wire<'_>) -> Result<(), WriteError> {
    match wire.encoding {
        Encoding::Json => {
            let metadata = json::metadata(wire.bytes)?;
            out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
            out.extend_from_slice(version.api_version().as_bytes());
            out.extend_from_slice(b"\",\"metadata\":");
            out.extend_from_slice(metadata.as_bytes());
            out.push(b'}');
        }
        Encoding::Protobuf(_) => {
            let (kind, _) = version
                .metadata_kinds()
                .ok_or_else(|| WriteError::new("metadata alone have no kind"))?;
            k8s_protobuf::message_to_json(kind, protobuf::metadata(wire.bytes)?, out)?;
        }
    }
    Ok(())
}

/// The start of an object in JSON. Custom resources have their fields in alphabetical order, the Go
/// types have `kind` first.
pub(crate) fn prefix(api_version: &str, kind: &str, alphabetical: bool) -> String {
    if alphabetical {
        format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",")
    } else {
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",")
    }
}

/// An error within a watch that has been answered with 200.
#[must_use]
pub fn error_event(status: &Status, media: MediaType) -> Bytes {
    let mut out = Vec::new();
    let Ok(()) = wrap(&mut out, "ERROR", media, |out| {
        out.extend_from_slice(&failure(status, media));
        Ok::<_, Infallible>(())
    });
    out.into()
}

/// A failure as an object.
pub(crate) fn failure(status: &Status, media: MediaType) -> Vec<u8> {
    match media {
        MediaType::Json => status.to_json().into_bytes(),
        MediaType::Protobuf => protobuf::status(status),
    }
}

/// Appends one event of a watch: a line of JSON, or a frame of protobuf. Nothing if its object
/// cannot be written.
fn wrap<E>(
    out: &mut Vec<u8>,
    kind: &str,
    media: MediaType,
    write_object: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    match media {
        MediaType::Json => {
            let before = out.len();
            out.extend_from_slice(b"{\"type\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\",\"object\":");
            write_object(out).inspect_err(|_| out.truncate(before))?;
            out.extend_from_slice(b"}\n");
        }
        MediaType::Protobuf => {
            let mut object = Vec::new();
            write_object(&mut object)?;
            protobuf::event(out, kind, &object);
        }
    }
    Ok(())
}
