use proptest::prelude::*;

use super::*;
use crate::wire::testing::{any_value, chunks, pretty};

fn frames_of(
    splitter: &mut JsonWatchSplitter,
    chunk: &Bytes,
    out: &mut Vec<Bytes>,
) -> Result<(), FrameError> {
    splitter.split(chunk, |frame| {
        out.push(frame);
        Ok(())
    })
}

fn split(limit: usize, chunks: Vec<Bytes>) -> (Vec<Bytes>, Result<(), FrameError>) {
    let mut splitter = JsonWatchSplitter::new(limit);
    let mut out = Vec::new();
    for chunk in chunks {
        if let Err(error) = frames_of(&mut splitter, &chunk, &mut out) {
            assert_eq!(
                frames_of(&mut splitter, &Bytes::from_static(b"{}"), &mut out),
                Err(error.clone())
            );
            assert_eq!(Box::new(splitter).finish(), Err(error.clone()));
            return (out, Err(error));
        }
    }
    (out, Box::new(splitter).finish())
}

fn whole(text: &str) -> (Vec<Bytes>, Result<(), FrameError>) {
    split(1000, vec![Bytes::copy_from_slice(text.as_bytes())])
}

#[test]
fn g34_debug_shows_nothing_of_what_is_incomplete() {
    let mut splitter = JsonWatchSplitter::new(1 << 20);
    frames_of(
        &mut splitter,
        &Bytes::from_static(b"{\"object\":{\"data\":\"hunter2"),
        &mut Vec::new(),
    )
    .unwrap();
    assert!(!format!("{splitter:?}").contains("hunter2"));
}

#[test]
fn frames_need_nothing_between_them() {
    let (frames, end) = whole("{\"a\":1}{\"b\":\"}{\"}\n\n\r\n {\n \"c\": {\"d\": [{}]}\n}\n{}");
    assert_eq!(end, Ok(()));
    let expected =
        ["{\"a\":1}", "{\"b\":\"}{\"}", "{\n \"c\": {\"d\": [{}]}\n}", "{}"].map(str::as_bytes);
    assert_eq!(frames, expected);
    assert_eq!(whole(""), (vec![], Ok(())));
    assert_eq!(whole(" \n\n"), (vec![], Ok(())));
}

#[test]
fn a_frame_within_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"{\"a\":1}\n{\"b\":2}\n{\"c\"");
    let mut splitter = JsonWatchSplitter::new(1 << 20);
    let mut out = Vec::new();
    frames_of(&mut splitter, &chunk, &mut out).unwrap();
    assert!(splitter.in_frame);
    assert_eq!(out[0].as_ptr(), chunk.as_ptr());
    assert_eq!(out[1].as_ptr(), chunk[8..].as_ptr());
}

#[test]
fn g30_an_incomplete_frame_is_truncated() {
    for text in ["{", "{}{\"a\":\"", "{\"a\\", "{\"a\":{}\n"] {
        assert_eq!(
            whole(text).1,
            Err(FrameError::Truncated { offset: text.len() as u64 }),
            "{text}"
        );
    }
}

#[test]
fn g30_garbage_is_malformed_at_its_place_after_the_good_frames() {
    let (frames, end) =
        split(1000, vec![Bytes::from_static(b"{}\n{}"), Bytes::from_static(b" <html>{}")]);
    assert_eq!(frames.len(), 2);
    assert_eq!(end, Err(FrameError::Malformed { offset: 6, expected: "'{' of a watch event" }));
    assert!(matches!(whole("{}}").1, Err(FrameError::Malformed { offset: 2, .. })));
    assert!(matches!(whole("[{}]").1, Err(FrameError::Malformed { offset: 0, .. })));
}

#[test]
fn g30_frames_above_the_limit_are_refused_at_any_chunk_border() {
    let text = format!("{{}}{{\"a\":\"{}\"}}", "x".repeat(12));
    for size in 1..text.len() {
        let chunks = || text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
        assert_eq!(split(20, chunks()).1, Ok(()));
        let (frames, end) = split(19, chunks());
        assert_eq!((frames.len(), end), (1, Err(FrameError::TooLarge { offset: 2, limit: 19 })));
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    let split_deep = |depth| split(1_000_000, vec![Bytes::from(deep(depth))]).1;
    assert_eq!(split_deep(10_000), Ok(()));
    assert!(matches!(split_deep(10_001), Err(FrameError::Malformed { .. })));
}

proptest! {
    #[test]
    fn frames_are_what_serde_json_reads(
        values in prop::collection::vec((any_value(), any::<bool>(), "[ \n\r\t]{0,2}"), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut text = String::new();
        let mut expected = Vec::new();
        for (value, is_pretty, space) in values {
            let value = serde_json::json!({"type": "ADDED", "object": value});
            text += &if is_pretty { pretty(&value) } else { value.to_string() };
            text += &space;
            expected.push(value);
        }
        let (frames, end) = split(usize::MAX, chunks(text.as_bytes(), &cuts));
        prop_assert_eq!(end, Ok(()));
        let parsed: Vec<serde_json::Value> = frames.iter().map(|it| serde_json::from_slice(it).unwrap()).collect();
        prop_assert_eq!(parsed, expected);
    }

    #[test]
    fn chunk_borders_do_not_matter(
        bytes in "[{}\\[\\]\"\\\\a \n]{0,40}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let at_once = split(30, vec![Bytes::copy_from_slice(bytes.as_bytes())]);
        prop_assert_eq!(split(30, chunks(bytes.as_bytes(), &cuts)), at_once);
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = split(20, vec![Bytes::from(bytes)]);
    }
}
