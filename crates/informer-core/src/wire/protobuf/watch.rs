//! Splitting the protobuf body of a watch.

use bytes::Bytes;

use super::frame;
use crate::wire::collect::Collector;
use crate::wire::format::SplitWatch;
use crate::wire::{FrameError, WatchFrame};

/// Cuts the protobuf body of a watch into frames, as its chunks arrive.
///
/// A frame is the message of a `WatchEvent`, preceded by its length in four bytes, big-endian. A
/// frame within one chunk is a slice of it. Other frames are assembled in a buffer, which holds one
/// frame at most.
#[derive(Debug)]
pub(in crate::wire) struct ProtobufWatchSplitter {
    state: State,
    collector: Collector,
    /// The length of what was read.
    offset: u64,
    failed: Option<FrameError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// This many bytes of a length were read.
    Length { read: usize, length: u32 },
    /// This many bytes are left of a frame.
    Frame(usize),
}

impl ProtobufWatchSplitter {
    /// A splitter for a new body whose frames may be `limit` bytes long.
    pub(in crate::wire) fn new(limit: usize) -> Self {
        Self { state: BETWEEN, collector: Collector::new(limit), offset: 0, failed: None }
    }

    /// Passes each frame that the chunk completes to `out`; returns the same error for every call
    /// after the first error.
    fn split(
        &mut self,
        chunk: &Bytes,
        out: impl FnMut(Bytes) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.advance(chunk, out);
        self.failed = result.clone().err();
        result
    }

    fn advance(
        &mut self,
        chunk: &Bytes,
        mut out: impl FnMut(Bytes) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        let mut at = 0;
        while at < chunk.len() {
            let rest = chunk.len() - at;
            match self.state {
                State::Length { read, length } => {
                    let length = length << 8 | u32::from(chunk[at]);
                    at += 1;
                    self.offset += 1;
                    self.state = match (read + 1, usize::try_from(length)) {
                        (read, _) if read < size_of::<u32>() => State::Length { read, length },
                        // Nothing follows that would complete it.
                        (_, Ok(0)) => {
                            out(Bytes::new())?;
                            BETWEEN
                        }
                        (_, Ok(length)) if length <= self.collector.limit() => State::Frame(length),
                        _ => return Err(self.too_large()),
                    };
                }
                State::Frame(left) if left > rest => {
                    let kept = self.collector.keep_of(&chunk[at..], left - rest);
                    kept.map_err(|_| self.too_large())?;
                    at += rest;
                    self.offset += rest as u64;
                    self.state = State::Frame(left - rest);
                }
                State::Frame(left) => {
                    let frame = self.collector.complete(chunk, at, at + left);
                    let frame = frame.map_err(|_| self.too_large())?;
                    at += left;
                    self.offset += left as u64;
                    self.state = BETWEEN;
                    out(frame)?;
                }
            }
        }
        Ok(())
    }

    fn too_large(&self) -> FrameError {
        let offset = self.offset - self.collector.len() as u64;
        FrameError::TooLarge { offset, limit: self.collector.limit() }
    }
}

impl SplitWatch for ProtobufWatchSplitter {
    fn push(&mut self, chunk: Bytes, out: &mut Vec<WatchFrame>) -> Result<(), FrameError> {
        self.split(&chunk, |message| {
            out.push(frame::parse(&message)?);
            Ok(())
        })
    }

    fn finish(self: Box<Self>) -> Result<(), FrameError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.state != BETWEEN => Err(FrameError::Truncated { offset: self.offset }),
            None => Ok(()),
        }
    }
}

/// Before the next frame's length.
const BETWEEN: State = State::Length { read: 0, length: 0 };

#[cfg(test)]
mod tests;
