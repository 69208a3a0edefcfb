//! Splitting the protobuf body of a watch.

use bytes::Bytes;

use super::FrameError;
use super::collect::Collector;

/// Cuts the protobuf body of a watch into frames, as its chunks come.
///
/// A frame is the message of a `WatchEvent`; before it stands its length, in four bytes, the highest first. A frame
/// that lies within one chunk is a slice of it; others are put together in a buffer that holds one frame at most.
///
/// # Examples
/// ```
/// use bytes::Bytes;
/// use informer_core::wire::{ProtobufWatchSplitter, WatchEventType, WatchFrame};
/// use k8s_protobuf::{Envelope, encode};
///
/// let (mut pod, mut body) = (Vec::new(), Vec::new());
/// Envelope::write("v1", "Pod", b"", &mut pod);
/// encode::watch_event("DELETED", &pod, &mut body)?;
///
/// let mut splitter = ProtobufWatchSplitter::new();
/// let mut frames = Vec::new();
/// for chunk in body.chunks(10) {
///     splitter.push(Bytes::copy_from_slice(chunk), &mut frames)?;
/// }
/// splitter.finish()?;
/// assert_eq!(WatchFrame::parse_protobuf(&frames[0])?.kind, WatchEventType::Deleted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ProtobufWatchSplitter {
    state: State,
    collector: Collector,
    /// The length of what was read.
    offset: u64,
    failed: Option<FrameError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// So many bytes of a length were read.
    Length { read: usize, length: u32 },
    /// So many bytes are left of a frame.
    Frame(usize),
}

impl ProtobufWatchSplitter {
    /// A splitter for a new body, with the default limit.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_object_bytes(super::DEFAULT_MAX_OBJECT_BYTES)
    }

    /// A splitter for a new body whose frames may be `limit` bytes long.
    #[must_use]
    pub fn with_max_object_bytes(limit: usize) -> Self {
        Self { state: BETWEEN, collector: Collector::new(limit), offset: 0, failed: None }
    }

    /// Takes the next chunk and appends the frames that it completes to `out`.
    ///
    /// # Errors
    /// When a frame is too large. Frames before it are in `out`; the splitter returns the same error from then on.
    #[expect(clippy::needless_pass_by_value, reason = "frames share the chunk's memory")]
    pub fn push(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.advance(&chunk, out);
        self.failed = result.clone().err();
        result
    }

    /// Whether the last frame is incomplete so far.
    #[must_use]
    pub fn is_within_frame(&self) -> bool {
        !matches!(self.state, BETWEEN)
    }

    /// Ends the body.
    ///
    /// # Errors
    /// When it ended within a frame, or an earlier [`push`](Self::push) failed.
    pub fn finish(self) -> Result<(), FrameError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.is_within_frame() => Err(FrameError::Truncated { offset: self.offset }),
            None => Ok(()),
        }
    }

    fn advance(&mut self, chunk: &Bytes, out: &mut Vec<Bytes>) -> Result<(), FrameError> {
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
                            out.push(Bytes::new());
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
                    out.push(frame.map_err(|_| self.too_large())?);
                    at += left;
                    self.offset += left as u64;
                    self.state = BETWEEN;
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

/// Before the next frame's length.
const BETWEEN: State = State::Length { read: 0, length: 0 };

impl Default for ProtobufWatchSplitter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
