//! Parses the JSON text of a watch frame.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::{IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use super::error_offset;
use super::members::{self, Members};
use crate::wire::frame::WATCH_EVENT;
use crate::wire::{FrameError, WatchEventType, WatchFrame};

/// Parses the JSON text of one frame, without copying the object.
pub(super) fn parse(frame: &Bytes) -> Result<WatchFrame, FrameError> {
    let malformed =
        |offset: usize, expected| FrameError::Malformed { offset: offset as u64, expected };
    let mut raw = RawFrame::default();
    members::read(frame, &mut raw)
        .map_err(|error| malformed(error_offset(frame, &error), WATCH_EVENT))?;
    let RawFrame { kind: Some(kind), object: Some(object) } = raw else {
        return Err(malformed(frame.len(), WATCH_EVENT));
    };
    let kind = WatchEventType::of(&kind)?;
    let object = frame.slice_ref(object.get().as_bytes());
    if object.first() != Some(&b'{') {
        return Err(malformed(object.as_ptr().addr() - frame.as_ptr().addr(), "an object"));
    }
    Ok(WatchFrame { kind, object: object.into() })
}

#[derive(Default)]
struct RawFrame<'a> {
    kind: Option<Cow<'a, str>>,
    object: Option<&'a RawValue>,
}

impl<'de> Members<'de> for RawFrame<'de> {
    fn member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "type" => self.kind = Some(members::next_text(map)?),
            "object" => self.object = Some(map.next_value()?),
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
