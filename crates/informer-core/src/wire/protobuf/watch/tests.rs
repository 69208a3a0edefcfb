use proptest::prelude::*;

use super::*;
use crate::wire::testing::chunks;

fn frames_of(
    splitter: &mut ProtobufWatchSplitter,
    chunk: &Bytes,
    out: &mut Vec<Bytes>,
) -> Result<(), FrameError> {
    splitter.split(chunk, |frame| {
        out.push(frame);
        Ok(())
    })
}

fn split(limit: usize, chunks: Vec<Bytes>) -> (Vec<Bytes>, Result<(), FrameError>) {
    let mut splitter = ProtobufWatchSplitter::new(limit);
    let mut out = Vec::new();
    for chunk in chunks {
        if let Err(error) = frames_of(&mut splitter, &chunk, &mut out) {
            assert_eq!(
                frames_of(&mut splitter, &Bytes::from_static(b"\0"), &mut out),
                Err(error.clone())
            );
            assert_eq!(Box::new(splitter).finish(), Err(error.clone()));
            return (out, Err(error));
        }
    }
    (out, Box::new(splitter).finish())
}

fn framed(frames: &[Vec<u8>]) -> Vec<u8> {
    let with_length = |frame: &Vec<u8>| {
        let length = u32::try_from(frame.len()).unwrap().to_be_bytes();
        [&length[..], frame].concat()
    };
    frames.iter().flat_map(with_length).collect()
}

#[test]
fn g34_debug_shows_nothing_of_what_is_incomplete() {
    let mut splitter = ProtobufWatchSplitter::new(1 << 20);
    frames_of(&mut splitter, &Bytes::from_static(b"\0\0\0\x20hunter2"), &mut Vec::new()).unwrap();
    assert!(!format!("{splitter:?}").contains("hunter2"));
}

#[test]
fn frames_follow_their_lengths() {
    let body = framed(&[vec![1; 300], vec![], vec![2]]);
    for size in [1, 3, 1000] {
        let (frames, end) = split(1000, body.chunks(size).map(Bytes::copy_from_slice).collect());
        assert_eq!(
            (frames, end),
            (vec![vec![1; 300].into(), Bytes::new(), vec![2].into()], Ok(()))
        );
    }
    assert_eq!(split(10, vec![]), (vec![], Ok(())));
}

#[test]
fn a_frame_within_one_chunk_is_not_copied() {
    let chunk = Bytes::from(framed(&[vec![1], vec![2, 3]]));
    let mut splitter = ProtobufWatchSplitter::new(1 << 20);
    let mut out = Vec::new();
    frames_of(&mut splitter, &chunk, &mut out).unwrap();
    assert_eq!(splitter.state, BETWEEN);
    assert_eq!(out[0].as_ptr(), chunk[4..].as_ptr());
    assert_eq!(out[1].as_ptr(), chunk[9..].as_ptr());
    frames_of(&mut splitter, &Bytes::from_static(b"\0"), &mut out).unwrap();
    assert_ne!(splitter.state, BETWEEN);
}

#[test]
fn g30_an_incomplete_frame_is_truncated_after_the_good_ones() {
    let body = framed(&[vec![1; 5], vec![2; 5]]);
    for end in 1..body.len() {
        let (frames, result) = split(10, vec![Bytes::copy_from_slice(&body[..end])]);
        assert_eq!(frames.len(), usize::from(end >= 9));
        if end != 9 {
            assert_eq!(result, Err(FrameError::Truncated { offset: end as u64 }));
        }
    }
}

#[test]
fn g30_frames_above_the_limit_are_refused_before_they_are_read() {
    let body = framed(&[vec![1; 5], vec![2; 20]]);
    for size in 1..body.len() {
        let chunks = || body.chunks(size).map(Bytes::copy_from_slice).collect();
        assert_eq!(split(20, chunks()).1, Ok(()));
        let (frames, end) = split(19, chunks());
        assert_eq!((frames.len(), end), (1, Err(FrameError::TooLarge { offset: 13, limit: 19 })));
    }
    let (_, end) = split(19, vec![Bytes::copy_from_slice(&body[..13])]);
    assert_eq!(
        end,
        Err(FrameError::TooLarge { offset: 13, limit: 19 }),
        "nothing of it has come yet"
    );
    // What is no protobuf at all looks like a long frame.
    let (_, end) = split(1 << 24, vec![Bytes::from_static(b"<html>")]);
    assert_eq!(end, Err(FrameError::TooLarge { offset: 4, limit: 1 << 24 }));
}

proptest! {
    #[test]
    fn frames_come_apart_as_they_were_put_together(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (found, end) = split(usize::MAX, chunks(&framed(&frames), &cuts));
        prop_assert_eq!(end, Ok(()));
        prop_assert_eq!(found, frames);
    }

    #[test]
    fn chunk_borders_do_not_matter(
        bytes in prop::collection::vec(prop_oneof![3 => Just(0), 1 => 0u8..20, 1 => any::<u8>()], 0..60),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let at_once = split(30, vec![Bytes::copy_from_slice(&bytes)]);
        prop_assert_eq!(split(30, chunks(&bytes, &cuts)), at_once);
    }
}
