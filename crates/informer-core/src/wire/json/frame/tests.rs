use super::*;

fn read(text: &str) -> Result<WatchFrame, FrameError> {
    parse(&Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn every_type_is_read_wherever_it_stands() {
    for (text, kind) in [
        (r#"{"type":"ADDED","object":{"a":{}}}"#, WatchEventType::Added),
        (r#"{"object":{"a":{}},"type":"MODIFIED"}"#, WatchEventType::Modified),
        ("{ \"type\" : \"DELETED\" ,\n \"object\" : {\"a\":{}} }\n", WatchEventType::Deleted),
        (
            r#"{"more":[1],"type":"BOOKMARK","object":{"a":{}},"other":null}"#,
            WatchEventType::Bookmark,
        ),
        (r#"{"type":"ERR\u004fR","obj\u0065ct":{"a":{}}}"#, WatchEventType::Error),
    ] {
        let frame = read(text).unwrap();
        assert_eq!((frame.kind, &frame.object.bytes[..]), (kind, &br#"{"a":{}}"#[..]), "{text}");
    }
}

#[test]
fn the_object_shares_the_memory_of_the_frame() {
    let frame = Bytes::from_static(br#"{"type":"ADDED","object":{"a":{}}}"#);
    let object = parse(&frame).unwrap().object;
    assert_eq!(object.bytes.as_ptr().addr() - frame.as_ptr().addr(), 25);
}

#[test]
fn unknown_types_are_named_but_not_at_any_length() {
    let error = read(r#"{"type":"RESTORED","object":{}}"#).unwrap_err();
    assert_eq!(error, FrameError::UnknownEventType { found: "RESTORED".to_owned() });
    let error = read(&format!(r#"{{"type":"{}","object":{{}}}}"#, "X".repeat(500))).unwrap_err();
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
        match read(text) {
            Err(FrameError::Malformed { offset: found, .. }) => assert_eq!(found, offset, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn g34_errors_do_not_repeat_the_frame() {
    for text in
        [r#"{"type":{"a":"hunter2"},"object":{}}"#, r#"{"type":"ADDED","object":"hunter2"}"#]
    {
        let error = read(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
