//! Objects as a server writes them.

use bytes::Bytes;
use k8s_protobuf::{Envelope, encode};
use serde_json::json;

use super::accept::{Form, Media, Representation};
use super::{Object, protobuf};
use crate::resource::Resource;
use crate::status::Status;

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
pub(crate) fn object(out: &mut Vec<u8>, resource: &Resource, object: &Object, form: Form) {
    match form {
        Form::Json(part) => json_object(out, resource, object, part),
        Form::Protobuf { object: kind, .. } => {
            Envelope::write(kind.api_version(), kind.name(), &message(object, form), out);
        }
    }
}

fn json_object(out: &mut Vec<u8>, resource: &Resource, object: &Object, part: Representation) {
    match part {
        Representation::Full => {
            out.extend_from_slice(type_prefix(resource).as_bytes());
            out.extend_from_slice(&object.json()[1..]);
        }
        Representation::Metadata => {
            out.extend_from_slice(METADATA_PREFIX.as_bytes());
            out.extend_from_slice(object.metadata_json());
            out.push(b'}');
        }
    }
}

/// Appends an object as an item of a list in JSON: built-in kinds leave out `apiVersion` and
/// `kind`.
pub(crate) fn json_item(
    out: &mut Vec<u8>,
    resource: &Resource,
    item: &Object,
    part: Representation,
) {
    if resource.custom || part == Representation::Metadata {
        json_object(out, resource, item, part);
    } else {
        out.extend_from_slice(item.json());
    }
}

/// The object as an item of a list in protobuf.
pub(crate) fn message(object: &Object, form: Form) -> Bytes {
    match form {
        Form::Protobuf { part: Representation::Full, object: kind, .. } => object.message(kind),
        Form::Protobuf { part: Representation::Metadata, object: kind, .. } => {
            object.metadata_message(kind)
        }
        Form::Json(_) => Bytes::new(),
    }
}

/// Appends one event of a watch: a line of JSON, or a frame of protobuf.
pub(crate) fn event(
    out: &mut Vec<u8>,
    kind: &str,
    media: Media,
    write_object: impl FnOnce(&mut Vec<u8>),
) {
    match media {
        Media::Json => {
            out.extend_from_slice(format!("{{\"type\":\"{kind}\",\"object\":").as_bytes());
            write_object(out);
            out.extend_from_slice(b"}\n");
        }
        Media::Protobuf => {
            let mut object = Vec::new();
            write_object(&mut object);
            protobuf::event(out, kind, &object);
        }
    }
}

/// An error within a watch that has been answered with 200.
pub(crate) fn error_event(status: &Status, media: Media) -> Bytes {
    let mut out = Vec::new();
    event(&mut out, "ERROR", media, |out| out.extend_from_slice(&failure(status, media)));
    out.into()
}

/// A failure as an object.
pub(crate) fn failure(status: &Status, media: Media) -> Vec<u8> {
    match media {
        Media::Json => status.to_json().into_bytes(),
        Media::Protobuf => protobuf::status(status),
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
    let end = ends_initial_events.then(|| json!({ "k8s.io/initial-events-end": "true" }));
    let mut object =
        json!({ "metadata": { "resourceVersion": version.to_string(), "annotations": end } });
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
        object["spec"] = json!({ "replicas": 0 });
    }
    let mut message = Vec::new();
    // It fits its kind.
    let _ = encode::message(kind, &object, &mut message);
    match form.media() {
        Media::Json => drop(k8s_protobuf::message_to_json(kind, &message, out)),
        Media::Protobuf => Envelope::write(kind.api_version(), kind.name(), &message, out),
    }
}
