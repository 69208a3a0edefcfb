use k8s_protobuf::encode;
use proptest::prelude::*;

use super::*;

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
        let frame = parse(&event).unwrap();
        assert_eq!(frame.kind, kind);
        let WireObject { encoding: Encoding::Protobuf(of), bytes: message } = frame.object else {
            panic!("{frame:?}")
        };
        assert_eq!((of.to_string().as_str(), &message[..]), ("v1 Pod", &b"\x0a\x00"[..]));
        assert!(event.as_ptr_range().contains(&message.as_ptr()), "a slice of the frame");
    }
}

#[test]
fn g30_what_is_no_event_in_protobuf_is_malformed_at_its_place() {
    let good = pod(&enveloped("v1", "Pod", b""));
    for end in 0..good.len() {
        let error = parse(&good.slice(..end)).unwrap_err();
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
        match parse(&frame) {
            Err(FrameError::Malformed { offset: found, .. }) => {
                assert_eq!(found, offset, "{frame:?}")
            }
            other => panic!("{frame:?}: {other:?}"),
        }
    }
    let unknown =
        FrameError::UnknownKind { api_version: "example.com/v1".into(), kind: "Widget".into() };
    assert_eq!(parse(&pod(&enveloped("example.com/v1", "Widget", b""))), Err(unknown));
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
        let _ = parse(&event.into());
    }

    #[test]
    fn any_bytes_are_a_frame_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = parse(&Bytes::from(bytes));
    }
}
