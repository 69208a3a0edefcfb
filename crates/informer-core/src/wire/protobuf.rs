//! The protobuf encoding of Kubernetes.

mod frame;
mod list;
mod watch;

use std::borrow::Cow;

use k8s_protobuf::{CONTENT_TYPE, Entries, Envelope, Error, Kind, Metadata, Reader};
use serde::de::DeserializeOwned;

use super::format::Format;
use super::json::Json;
use super::status::not_a_status;
use super::{DecodeError, FieldPath, FrameError, HeadError, ObjectHead, Status, StatusCause};
use crate::version::{ResourceVersion, Uid};

pub(super) use list::ProtobufListSplitter;
pub(super) use watch::ProtobufWatchSplitter;

pub(super) const MEDIA_TYPE: &str = CONTENT_TYPE;

/// Messages of this kind, without an envelope.
impl Format for Kind {
    fn head<'a>(&self, bytes: &'a [u8]) -> Result<ObjectHead<'a>, HeadError> {
        let metadata = Metadata::of(bytes).or_else(|error| {
            // The metadata may be readable nevertheless.
            match Metadata::of(whole_fields(bytes)) {
                Ok(metadata) if !metadata.name.is_empty() => Ok(metadata),
                _ => Err(error),
            }
        })?;
        Ok(head_of(*self, &metadata))
    }

    fn whole_head<'a>(&self, bytes: &'a [u8]) -> Result<ObjectHead<'a>, HeadError> {
        let metadata = Metadata::of(bytes)?;
        let initial_events_end =
            metadata.annotation(super::head::INITIAL_EVENTS_END) == Some("true");
        Ok(ObjectHead { initial_events_end, ..head_of(*self, &metadata) })
    }

    fn without_managed_fields<'a>(
        &self,
        bytes: &'a [u8],
        _: &ObjectHead<'_>,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        match Metadata::of(bytes) {
            Ok(metadata) => metadata.without_managed_fields(scratch),
            // Decoding the object reports the error.
            Err(_) => bytes,
        }
    }

    fn status(&self, bytes: &[u8]) -> Result<Status, FrameError> {
        match (self.api_version(), self.name()) {
            ("v1", "Status") => read_status(bytes).map_err(|_| not_a_status(0)),
            _ => Err(not_a_status(0)),
        }
    }

    fn types<'a>(&self, _: &'a [u8]) -> (Cow<'a, str>, Cow<'a, str>) {
        (Cow::Borrowed(self.api_version()), Cow::Borrowed(self.name()))
    }

    fn keep(&self, bytes: &[u8], _: &str, _: &str) -> Result<Box<[u8]>, DecodeError> {
        Metadata::of(bytes).map_err(decode_error)?;
        Ok(bytes.into())
    }

    fn label<'a>(&self, bytes: &'a [u8], key: &str) -> Option<&'a str> {
        Metadata::of(bytes).ok()?.label(key)
    }

    fn labels<'a>(&self, bytes: &'a [u8]) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let borrowed = |labels: Entries<'a>| {
            labels.map(|(key, value)| (Cow::Borrowed(key), Cow::Borrowed(value))).collect()
        };
        Metadata::of(bytes).map(|metadata| borrowed(metadata.labels())).unwrap_or_default()
    }

    fn annotation<'a>(&self, bytes: &'a [u8], key: &str) -> Option<Cow<'a, str>> {
        Metadata::of(bytes).ok()?.annotation(key).map(Cow::Borrowed)
    }

    fn fields<'a>(&self, bytes: &'a [u8], path: &FieldPath, found: &mut dyn FnMut(Cow<'a, str>)) {
        path.in_messages_of(*self, |in_message| match in_message {
            MessagePath::Same(text) => found(Cow::Borrowed(text)),
            // The bytes were checked, as far as necessary, when they were received; a malformed
            // field reads as absent.
            MessagePath::Numbers(numbers) => _ = numbers.each(bytes, |value| found(value.text())),
            // Some fields are JSON within the message, and their names are not in the table.
            MessagePath::Nowhere => {
                let mut json = Vec::new();
                if self.write_json(bytes, &mut json).is_ok() {
                    Json.fields(&json, path, &mut |value| found(Cow::Owned(value.into_owned())));
                }
            }
        });
    }

    fn write_json(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        k8s_protobuf::message_to_json(*self, bytes, out).map_err(decode_error)
    }

    fn deserialize<T: DeserializeOwned + 'static>(&self, bytes: &[u8]) -> Result<T, DecodeError> {
        k8s_protobuf::from_message(*self, bytes).map_err(decode_error)
    }
}

/// A path, resolved for the messages of one kind.
#[derive(Clone)]
pub(super) enum MessagePath {
    /// The path to `kind` or `apiVersion`, which protobuf messages do not contain.
    Same(&'static str),
    Numbers(k8s_protobuf::FieldPath),
    /// The kind has no such field.
    Nowhere,
}

impl MessagePath {
    pub(super) fn of(path: &FieldPath, kind: Kind) -> Result<Self, Error> {
        Ok(match path.as_str() {
            "kind" => Self::Same(kind.name()),
            "apiVersion" => Self::Same(kind.api_version()),
            _ => Self::Numbers(k8s_protobuf::FieldPath::from_segments(
                kind,
                path.segments().iter().cloned(),
            )?),
        })
    }
}

/// Reads a body that is one object; returns its kind and its message.
pub(super) fn object(body: &[u8]) -> Result<(Kind, &[u8]), DecodeError> {
    Envelope::parse(body).and_then(|envelope| envelope.message()).map_err(decode_error)
}

fn head_of<'a>(kind: Kind, metadata: &Metadata<'a>) -> ObjectHead<'a> {
    ObjectHead {
        api_version: Cow::Borrowed(kind.api_version()),
        kind: Cow::Borrowed(kind.name()),
        name: Cow::Borrowed(metadata.name),
        namespace: Cow::Borrowed(metadata.namespace),
        uid: Uid::new(metadata.uid),
        version: ResourceVersion::new(metadata.resource_version),
        initial_events_end: false,
        managed_fields: None,
    }
}

/// The fields of a message before the first incomplete one.
fn whole_fields(message: &[u8]) -> &[u8] {
    let mut fields = Reader::new(message);
    let mut rest = message.len();
    while let Ok(Some(_)) = fields.next() {
        rest = fields.rest().len();
    }
    &message[..message.len() - rest]
}

/// Has no values, since no error about the bytes has any (G34).
fn decode_error(error: Error) -> DecodeError {
    match error {
        Error::Type { path, message } => DecodeError { path, message },
        other => DecodeError { path: ".".to_owned(), message: other.to_string() },
    }
}

/// Reads a `Status` of `k8s.io.apimachinery.pkg.apis.meta.v1`.
fn read_status(message: &[u8]) -> Result<Status, Error> {
    let mut status = Status::default();
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            3 => value.text()?.clone_into(&mut status.message),
            4 => value.text()?.clone_into(&mut status.reason),
            5 => read_details(value.bytes()?, &mut status)?,
            6 => status.code = u16::try_from(value.varint()?).unwrap_or_default(),
            _ => {}
        }
    }
    Ok(status)
}

fn read_details(message: &[u8], status: &mut Status) -> Result<(), Error> {
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            4 => status.causes.push(read_cause(value.bytes()?)?),
            // Written even if it is unset.
            5 => {
                status.retry_after_seconds =
                    u32::try_from(value.varint()?).ok().filter(|it| *it > 0)
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_cause(message: &[u8]) -> Result<StatusCause, Error> {
    let mut cause = StatusCause::default();
    let mut fields = Reader::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => value.text()?.clone_into(&mut cause.reason),
            2 => value.text()?.clone_into(&mut cause.message),
            _ => {}
        }
    }
    Ok(cause)
}
