//! Taking a watch frame apart.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::{IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use super::members::{self, Members};
use super::{FrameError, WireObject, error_offset};

/// One event of a watch.
///
/// # Examples
/// ```
/// use bytes::Bytes;
/// use informer_core::wire::{WatchEventType, WatchFrame};
///
/// let frame = WatchFrame::parse(&Bytes::from_static(br#"{"type":"ADDED","object":{"kind":"Pod"}}"#))?;
/// assert_eq!(frame.kind, WatchEventType::Added);
/// assert_eq!(frame.object.bytes(), &br#"{"kind":"Pod"}"#[..]);
/// # Ok::<(), informer_core::wire::FrameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchFrame {
    /// What happened.
    pub kind: WatchEventType,
    /// The object it happened to, a slice of the frame; for [`WatchEventType::Error`] a [`Status`](super::Status).
    pub object: WireObject,
}

/// What a watch event says of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchEventType {
    /// It is new, or new to this watch.
    Added,
    /// It changed.
    Modified,
    /// It is gone; this is its last state.
    Deleted,
    /// It only carries a resource version up to which all events were sent.
    Bookmark,
    /// It is a status: the watch cannot go on.
    Error,
}

impl WatchFrame {
    /// Takes the JSON text of one frame apart, without copying the object.
    ///
    /// # Errors
    /// When the text is not valid JSON, lacks the type or the object, or the type is unknown.
    pub fn parse(frame: &Bytes) -> Result<Self, FrameError> {
        let malformed = |offset: usize, expected| FrameError::Malformed { offset: offset as u64, expected };
        let mut raw = RawFrame::default();
        members::read(frame, &mut raw)
            .map_err(|error| malformed(error_offset(frame, &error), WATCH_EVENT))?;
        let RawFrame { kind: Some(kind), object: Some(object) } = raw else {
            return Err(malformed(frame.len(), WATCH_EVENT));
        };
        let kind = match kind.as_ref() {
            "ADDED" => WatchEventType::Added,
            "MODIFIED" => WatchEventType::Modified,
            "DELETED" => WatchEventType::Deleted,
            "BOOKMARK" => WatchEventType::Bookmark,
            "ERROR" => WatchEventType::Error,
            unknown => {
                return Err(FrameError::UnknownEventType { found: unknown.chars().take(64).collect() });
            }
        };
        let object = frame.slice_ref(object.get().as_bytes());
        if object.first() != Some(&b'{') {
            return Err(malformed(object.as_ptr().addr() - frame.as_ptr().addr(), "an object"));
        }
        Ok(Self { kind, object: WireObject::Json(object) })
    }
}

const WATCH_EVENT: &str = r#"a watch event: an object with "type" and "object""#;

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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<WatchFrame, FrameError> {
        WatchFrame::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn every_type_is_read_wherever_it_stands() {
        for (text, kind) in [
            (r#"{"type":"ADDED","object":{"a":{}}}"#, WatchEventType::Added),
            (r#"{"object":{"a":{}},"type":"MODIFIED"}"#, WatchEventType::Modified),
            ("{ \"type\" : \"DELETED\" ,\n \"object\" : {\"a\":{}} }\n", WatchEventType::Deleted),
            (r#"{"more":[1],"type":"BOOKMARK","object":{"a":{}},"other":null}"#, WatchEventType::Bookmark),
            (r#"{"type":"ERR\u004fR","obj\u0065ct":{"a":{}}}"#, WatchEventType::Error),
        ] {
            let frame = parse(text).unwrap();
            assert_eq!((frame.kind, &frame.object.bytes()[..]), (kind, &br#"{"a":{}}"#[..]), "{text}");
        }
    }

    #[test]
    fn the_object_shares_the_memory_of_the_frame() {
        let frame = Bytes::from_static(br#"{"type":"ADDED","object":{"a":{}}}"#);
        let object = WatchFrame::parse(&frame).unwrap().object;
        assert_eq!(object.bytes().as_ptr().addr() - frame.as_ptr().addr(), 25);
    }

    #[test]
    fn unknown_types_are_named_but_not_at_any_length() {
        let error = parse(r#"{"type":"RESTORED","object":{}}"#).unwrap_err();
        assert_eq!(error, FrameError::UnknownEventType { found: "RESTORED".to_owned() });
        let error = parse(&format!(r#"{{"type":"{}","object":{{}}}}"#, "X".repeat(500))).unwrap_err();
        assert_eq!(error, FrameError::UnknownEventType { found: "X".repeat(64) });
    }

    #[test]
    fn what_is_no_event_is_malformed_at_its_place() {
        for (text, offset) in [
            ("", 0),
            ("[]", 1),
            ("null", 4),
            (r#"["ADDED",{}]"#, 0),
            ("{}", 2),
            (r#"{"type":"ADDED"}"#, 16),
            (r#"{"object":{}}"#, 13),
            (r#"{"type":"ADDED","object":[]}"#, 25),
            (r#"{"type":"ADDED","object":null}"#, 25),
            ("{\"type\":\"ADDED\",\n\"object\":{x}}", 27),
            (r#"{"type":"ADDED","object":{}} {"#, 29),
        ] {
            match parse(text) {
                Err(FrameError::Malformed { offset: found, .. }) => assert_eq!(found, offset, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn g34_errors_do_not_repeat_the_frame() {
        for text in [r#"{"type":{"a":"hunter2"},"object":{}}"#, r#"{"type":"ADDED","object":"hunter2"}"#] {
            let error = parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = WatchFrame::parse(&Bytes::from(bytes));
        }
    }
}
