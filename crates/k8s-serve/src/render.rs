//! Objects as a server writes them.

use std::borrow::Cow;

use bytes::Bytes;
use informer_core::wire::{Encoding, MediaType, Wire};
use k8s_protobuf::{Envelope, Kind, encode};
use serde_json::json as json_value;

use crate::accept::{Form, FormKind, Representation};
use crate::object::{Object, WriteError};
use crate::resource::Resource;
use crate::status::Status;
use crate::{json, protobuf};

/// The start of an object: brace, `kind` and `apiVersion`, comma. Custom resources have their
/// fields in alphabetical order, the Go types have `kind` first.
pub(crate) fn type_prefix(resource: &Resource) -> String {
    prefix(&resource.api_version(), &resource.kind, resource.custom)
}

pub(crate) fn list_prefix(resource: &Resource) -> String {
    prefix(&resource.api_version(), &format!("{}List", resource.kind), false)
}

fn prefix(api_version: &str, kind: &str, alphabetical: bool) -> String {
    if alphabetical {
        format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",")
    } else {
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",")
    }
}

const METADATA_PREFIX: &str =
    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":";

/// Appends an object that says what it is.
pub(crate) fn object(
    out: &mut Vec<u8>,
    resource: &Resource,
    object: &impl Object,
    form: Form,
) -> Result<(), WriteError> {
    match form.0 {
        FormKind::Json(part) => json_object(out, resource, object.wire(), part),
        FormKind::Protobuf { object: kind, .. } => {
            Envelope::write(kind.api_version(), kind.name(), &message(object, form)?, out);
            Ok(())
        }
    }
}

/// Appends an object as it was, at a later version: what a DELETED event carries.
pub(crate) fn object_at_version(
    out: &mut Vec<u8>,
    resource: &Resource,
    object: &impl Object,
    version: u64,
    form: Form,
) -> Result<(), WriteError> {
    match form.0 {
        FormKind::Json(part) => {
            let Wire { encoding, bytes } = object.wire();
            let bytes = match encoding {
                Encoding::Json => json::at_version(bytes, version),
                Encoding::Protobuf(_) => protobuf::at_version(bytes, version),
            }?;
            json_object(out, resource, Wire { encoding, bytes: &bytes }, part)
        }
        FormKind::Protobuf { object: kind, .. } => {
            let message = protobuf::at_version(&message(object, form)?, version)?;
            Envelope::write(kind.api_version(), kind.name(), &message, out);
            Ok(())
        }
    }
}

fn json_object(
    out: &mut Vec<u8>,
    resource: &Resource,
    wire: Wire<'_>,
    part: Representation,
) -> Result<(), WriteError> {
    match (part, wire.encoding) {
        (Representation::Full, Encoding::Protobuf(kind)) => {
            k8s_protobuf::message_to_json(kind, wire.bytes, out)?;
        }
        (Representation::Full, Encoding::Json) if has_own_types(resource, wire.bytes) => {
            out.extend_from_slice(wire.bytes);
        }
        (Representation::Full, Encoding::Json) => {
            out.extend_from_slice(type_prefix(resource).as_bytes());
            out.extend_from_slice(json::without_types(wire.bytes));
        }
        (Representation::Metadata, Encoding::Json) => {
            out.extend_from_slice(METADATA_PREFIX.as_bytes());
            out.extend_from_slice(json::metadata(wire.bytes)?.as_bytes());
            out.push(b'}');
        }
        (Representation::Metadata, Encoding::Protobuf(_)) => {
            let kind = Kind::of("meta.k8s.io/v1", "PartialObjectMetadata")
                .ok_or_else(|| WriteError::new("there is no PartialObjectMetadata"))?;
            k8s_protobuf::message_to_json(kind, protobuf::metadata(wire.bytes)?, out)?;
        }
    }
    Ok(())
}

/// Whether JSON is to be sent as it is: that of a custom resource, in alphabetical order, has its
/// types anywhere before `metadata`.
fn has_own_types(resource: &Resource, json: &[u8]) -> bool {
    resource.custom && !json.starts_with(b"{\"metadata\":")
}

/// Appends an object as an item of a list in JSON: built-in kinds leave out `apiVersion` and
/// `kind`.
pub(crate) fn json_item(
    out: &mut Vec<u8>,
    resource: &Resource,
    item: &impl Object,
    part: Representation,
) -> Result<(), WriteError> {
    let wire = item.wire();
    if resource.custom || part == Representation::Metadata {
        return json_object(out, resource, wire, part);
    }
    out.push(b'{');
    match wire.encoding {
        Encoding::Json => out.extend_from_slice(json::without_types(wire.bytes)),
        Encoding::Protobuf(kind) => {
            let mut object = Vec::new();
            k8s_protobuf::message_to_json(kind, wire.bytes, &mut object)?;
            out.extend_from_slice(json::without_types(&object));
        }
    }
    Ok(())
}

/// The object as an item of a list in protobuf.
pub(crate) fn message<O: Object>(object: &O, form: Form) -> Result<Cow<'_, [u8]>, WriteError> {
    match form.0 {
        FormKind::Protobuf { part: Representation::Full, object: kind, .. } => object.message(kind),
        FormKind::Protobuf { part: Representation::Metadata, object: kind, .. } => {
            object.metadata_message(kind)
        }
        FormKind::Json(_) => Ok(Cow::Borrowed(&[])),
    }
}

/// Appends one event of a watch: a line of JSON, or a frame of protobuf.
pub(crate) fn event<E>(
    out: &mut Vec<u8>,
    kind: &str,
    media: MediaType,
    write_object: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    match media {
        MediaType::Json => {
            let before = out.len();
            out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
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

/// An error within a watch that has been answered with 200.
#[must_use]
pub fn error_event(status: &Status, media: MediaType) -> Bytes {
    let mut out = Vec::new();
    let Ok(()) = event(&mut out, "ERROR", media, |out| {
        out.extend_from_slice(&failure(status, media));
        Ok::<_, std::convert::Infallible>(())
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

/// Appends the object of a bookmark: a version, and for the Go types what they write even when
/// empty.
pub(crate) fn bookmark(
    out: &mut Vec<u8>,
    resource: &Resource,
    version: u64,
    ends_initial_events: bool,
    form: Form,
) {
    let end = ends_initial_events.then(|| json_value!({ "k8s.io/initial-events-end": "true" }));
    let mut object =
        json_value!({ "metadata": { "resourceVersion": version.to_string(), "annotations": end } });
    let Some(kind) = form.kind(resource) else {
        // Alphabetical.
        let annotations = if ends_initial_events {
            "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"},"
        } else {
            ""
        };
        let metadata = format!("{{{annotations}\"resourceVersion\":\"{version}\"}}");
        out.extend_from_slice(
            format!("{}\"metadata\":{metadata}}}", type_prefix(resource)).as_bytes(),
        );
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
    match form.media() {
        MediaType::Json => drop(k8s_protobuf::message_to_json(kind, &message, out)),
        MediaType::Protobuf => Envelope::write(kind.api_version(), kind.name(), &message, out),
    }
}
