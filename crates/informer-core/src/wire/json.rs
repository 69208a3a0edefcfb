//! JSON.

mod decode;
mod frame;
mod head;
mod kept;
mod list;
mod members;
mod scan;
mod status;
mod structure;
mod watch;

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use super::format::Format;
use super::{DecodeError, FieldPath, FrameError, HeadError, ObjectHead, Status};

pub(super) use list::JsonListSplitter;
pub(super) use watch::JsonWatchSplitter;

pub(super) const MEDIA_TYPE: &str = "application/json";

/// JSON texts of objects.
pub(super) struct Json;

impl Format for Json {
    fn head<'a>(&self, bytes: &'a [u8]) -> Result<ObjectHead<'a>, HeadError> {
        head::read(bytes, true)
    }

    fn whole_head<'a>(&self, bytes: &'a [u8]) -> Result<ObjectHead<'a>, HeadError> {
        head::read(bytes, false)
    }

    fn without_managed_fields<'a>(
        &self,
        bytes: &'a [u8],
        head: &ObjectHead<'_>,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        head::without_managed_fields(bytes, head, scratch)
    }

    fn status(&self, bytes: &[u8]) -> Result<Status, FrameError> {
        status::read(bytes)
    }

    fn types<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, str>, Cow<'a, str>) {
        (kept::text(bytes, "apiVersion"), kept::text(bytes, "kind"))
    }

    fn keep(&self, bytes: &[u8], api_version: &str, kind: &str) -> Result<Box<[u8]>, DecodeError> {
        kept::keep(bytes, api_version, kind)
    }

    fn label<'a>(&self, bytes: &'a [u8], key: &str) -> Option<&'a str> {
        match kept::entry(bytes, "labels", key)? {
            Cow::Borrowed(value) => Some(value),
            // None is kept with escapes.
            Cow::Owned(_) => None,
        }
    }

    fn labels<'a>(&self, bytes: &'a [u8]) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        kept::entries(bytes, "labels")
    }

    fn annotation<'a>(&self, bytes: &'a [u8], key: &str) -> Option<Cow<'a, str>> {
        kept::entry(bytes, "annotations", key)
    }

    fn fields<'a>(&self, bytes: &'a [u8], path: &FieldPath, found: &mut dyn FnMut(Cow<'a, str>)) {
        kept::fields(bytes, path.segments(), found);
    }

    fn write_json(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        out.extend_from_slice(bytes);
        Ok(())
    }

    fn deserialize<T: DeserializeOwned + 'static>(&self, bytes: &[u8]) -> Result<T, DecodeError> {
        decode::decode(bytes)
    }
}

/// The offset in `json` at which a parser stopped, in bytes.
fn error_offset(json: &[u8], error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let line_start = match lines_before {
        0 => 0,
        lines => memchr::memchr_iter(b'\n', json).nth(lines - 1).map_or(json.len(), |at| at + 1),
    };
    (line_start + error.column().saturating_sub(1)).min(json.len())
}

/// Whether the byte occurs in numbers, `true`, `false` and `null`.
fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
