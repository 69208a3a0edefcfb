//! Taking a watch frame apart.

use std::borrow::Cow;

use bytes::Bytes;
use k8s_protobuf::{Envelope, Reader};
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
        let kind = WatchEventType::of(&kind)?;
        let object = frame.slice_ref(object.get().as_bytes());
        if object.first() != Some(&b'{') {
            return Err(malformed(object.as_ptr().addr() - frame.as_ptr().addr(), "an object"));
        }
        Ok(Self { kind, object: WireObject::Json(object) })
    }

    /// Takes a frame apart that has exactly one object or array as a member, if it is written as servers do.
    pub(super) fn around_object(frame: &Bytes) -> Option<Self> {
        let rest = frame.strip_prefix(br#"{"type":""#)?;
        let (name, rest) = rest.split_at_checked(rest.iter().take(16).position(|byte| *byte == b'"')?)?;
        // A brace before the last one closes the only object that there is.
        let object = rest.strip_prefix(br#"","object":"#)?.strip_suffix(b"}")?;
        if object.first() != Some(&b'{') || object.last() != Some(&b'}') {
            return None;
        }
        let kind = WatchEventType::of(std::str::from_utf8(name).ok()?).ok()?;
        Some(Self { kind, object: WireObject::Json(frame.slice_ref(object)) })
    }

    /// Takes the message of one frame apart, without copying the object, whose envelope it takes off.
    ///
    /// # Errors
    /// When the message is malformed, lacks the type or the object, the type is unknown, or the object's kind is not
    /// built in.
    pub fn parse_protobuf(frame: &Bytes) -> Result<Self, FrameError> {
        let malformed = |at: &[u8], expected| FrameError::Malformed {
            offset: (at.as_ptr().addr() - frame.as_ptr().addr()) as u64,
            expected,
        };
        let (mut kind, mut object) = (None, None);
        let mut fields = Reader::new(frame);
        loop {
            let at = fields.rest();
            let read = (|| {
                match fields.next()? {
                    None => return Ok(false),
                    Some((1, value)) => kind = Some(value.text()?),
                    Some((2, value)) => object = raw_extension(value.bytes()?)?,
                    Some(_) => {}
                }
                Ok::<_, k8s_protobuf::Error>(true)
            })();
            match read {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => return Err(malformed(at, WATCH_EVENT)),
            }
        }
        let (Some(kind), Some(object)) = (kind, object) else {
            return Err(malformed(fields.rest(), WATCH_EVENT));
        };
        let kind = WatchEventType::of(kind)?;
        match Envelope::parse(object).and_then(|envelope| envelope.message()) {
            Ok((known, message)) => {
                Ok(Self { kind, object: WireObject::Protobuf(known, frame.slice_ref(message)) })
            }
            Err(k8s_protobuf::Error::UnknownKind { api_version, kind }) => {
                Err(FrameError::unknown_kind(&api_version, &kind))
            }
            Err(_) => Err(malformed(object, "an object in its envelope")),
        }
    }
}

impl WatchEventType {
    fn of(name: &str) -> Result<Self, FrameError> {
        Ok(match name {
            "ADDED" => Self::Added,
            "MODIFIED" => Self::Modified,
            "DELETED" => Self::Deleted,
            "BOOKMARK" => Self::Bookmark,
            "ERROR" => Self::Error,
            unknown => {
                return Err(FrameError::UnknownEventType { found: unknown.chars().take(64).collect() });
            }
        })
    }
}

/// What a `runtime.RawExtension` holds.
fn raw_extension(message: &[u8]) -> Result<Option<&[u8]>, k8s_protobuf::Error> {
    let (mut raw, mut fields) = (None, Reader::new(message));
    while let Some((number, value)) = fields.next()? {
        if number == 1 {
            raw = Some(value.bytes()?);
        }
    }
    Ok(raw)
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
    use k8s_protobuf::encode;
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

    fn pod(envelope: &[u8]) -> Bytes {
        let mut event = Vec::new();
        encode::watch_event("ADDED", envelope, &mut event).unwrap();
        Bytes::from(event).slice(4..)
    }

    fn enveloped(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
        let mut envelope = Vec::new();
        Envelope::write(api_version, kind, message, &mut envelope);
        envelope
    }

    #[test]
    fn every_type_is_read_in_protobuf_too() {
        for (name, kind) in [
            ("ADDED", WatchEventType::Added),
            ("MODIFIED", WatchEventType::Modified),
            ("DELETED", WatchEventType::Deleted),
            ("BOOKMARK", WatchEventType::Bookmark),
            ("ERROR", WatchEventType::Error),
        ] {
            let mut event = Vec::new();
            encode::watch_event(name, &enveloped("v1", "Pod", b"\x0a\x00"), &mut event).unwrap();
            let event = Bytes::from(event).slice(4..);
            let frame = WatchFrame::parse_protobuf(&event).unwrap();
            assert_eq!(frame.kind, kind);
            let WireObject::Protobuf(of, message) = frame.object else { panic!("{frame:?}") };
            assert_eq!((of.to_string().as_str(), &message[..]), ("v1 Pod", &b"\x0a\x00"[..]));
            assert!(event.as_ptr_range().contains(&message.as_ptr()), "a slice of the frame");
        }
    }

    #[test]
    fn g30_what_is_no_event_in_protobuf_is_malformed_at_its_place() {
        let good = pod(&enveloped("v1", "Pod", b""));
        for end in 0..good.len() {
            let error = WatchFrame::parse_protobuf(&good.slice(..end)).unwrap_err();
            assert!(matches!(error, FrameError::Malformed { .. }), "{end}: {error}");
        }
        for (frame, offset) in [
            (Bytes::new(), 0),
            (Bytes::from_static(b"\x0a\x05ADDED"), 7),
            (Bytes::from_static(b"\x0a\x05ADDED\x12\x00"), 9),
            (Bytes::from_static(b"\x0a\x05ADDED\x12\x02\x0a\x00"), 11),
            (Bytes::from_static(b"\x0a\x05ADDED\x12\x02\x0a\x01"), 7),
            (Bytes::from_static(b"\x0a\x01\xff\x12\x00"), 0),
            (Bytes::from_static(b"\x18\x05\x0a\x05ADDED\x0b"), 9),
            (pod(b"{}"), 11),
            (pod(b"k8s\0\x0a"), 11),
        ] {
            match WatchFrame::parse_protobuf(&frame) {
                Err(FrameError::Malformed { offset: found, .. }) => assert_eq!(found, offset, "{frame:?}"),
                other => panic!("{frame:?}: {other:?}"),
            }
        }
        let unknown = FrameError::UnknownKind { api_version: "example.com/v1".into(), kind: "Widget".into() };
        assert_eq!(
            WatchFrame::parse_protobuf(&pod(&enveloped("example.com/v1", "Widget", b""))),
            Err(unknown)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_of_protobuf_or_an_error(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut event = pod(&enveloped("v1", "Pod", b"\x0a\x00")).to_vec();
            for (at, byte) in changes {
                let at = at.index(event.len());
                event[at] = byte;
            }
            let _ = WatchFrame::parse_protobuf(&event.into());
        }

        #[test]
        fn any_bytes_are_a_frame_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = WatchFrame::parse(&Bytes::from(bytes));
        }
    }
}
