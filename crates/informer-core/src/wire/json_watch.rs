//! Splitting the JSON body of a watch.

use bytes::Bytes;

use super::collect::Collector;
use super::scan::Scanner;
use super::{FrameError, WatchFrame, is_white_space};

/// Cuts the JSON body of a watch into frames, as its chunks come.
///
/// Frames are JSON objects with any white space, or none, between them; they may be printed over several
/// lines. A frame that lies within one chunk is a slice of it; others are put together in a buffer that
/// holds one frame at most.
///
/// # Examples
/// ```
/// use bytes::Bytes;
/// use informer_core::wire::JsonWatchSplitter;
///
/// let mut splitter = JsonWatchSplitter::new();
/// let mut frames = Vec::new();
/// splitter.push(Bytes::from_static(br#"{"type":"ADDED","object":{}}{"ty"#), &mut frames)?;
/// splitter.push(Bytes::from_static(b"pe\":\"DELETED\",\"object\":{}}\n"), &mut frames)?;
/// assert_eq!(frames, [&br#"{"type":"ADDED","object":{}}"#[..], br#"{"type":"DELETED","object":{}}"#]);
/// splitter.finish()?;
/// # Ok::<(), informer_core::wire::FrameError>(())
/// ```
#[derive(Debug)]
pub struct JsonWatchSplitter {
    in_frame: bool,
    scanner: Scanner,
    collector: Collector,
    /// Length of the chunks before this one.
    consumed: u64,
    failed: Option<FrameError>,
}

impl JsonWatchSplitter {
    /// A splitter for a new body, with the default limit.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_object_bytes(super::DEFAULT_MAX_OBJECT_BYTES)
    }

    /// A splitter for a new body whose frames may be `limit` bytes long.
    #[must_use]
    pub fn with_max_object_bytes(limit: usize) -> Self {
        Self {
            in_frame: false,
            scanner: Scanner::default(),
            collector: Collector::new(limit),
            consumed: 0,
            failed: None,
        }
    }

    /// Takes the next chunk and appends the frames that it completes to `out`.
    ///
    /// # Errors
    /// When the body is malformed or a frame too large. Frames before that place are in `out`; the splitter
    /// returns the same error from then on.
    #[expect(clippy::needless_pass_by_value, reason = "frames share the chunk's memory")]
    pub fn push(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), FrameError> {
        self.push_to(&chunk, |frame, _| {
            out.push(frame);
            Ok(())
        })
    }

    /// Like [`push`](Self::push), with each frame taken apart. Objects are only checked to be nested as JSON
    /// is; whether they are valid is for who reads or decodes them.
    ///
    /// # Errors
    /// As `push`, and those of [`WatchFrame::parse`].
    #[expect(clippy::needless_pass_by_value, reason = "frames share the chunk's memory")]
    pub fn push_parsed(&mut self, chunk: Bytes, out: &mut Vec<WatchFrame>) -> Result<(), FrameError> {
        self.push_to(&chunk, |frame, members| {
            // With a single object inside, it is clear where that stands.
            let parsed = if members == 1 { WatchFrame::around_object(&frame) } else { None };
            out.push(match parsed {
                Some(parsed) => parsed,
                None => WatchFrame::parse(&frame)?,
            });
            Ok(())
        })
    }

    fn push_to(
        &mut self,
        chunk: &Bytes,
        out: impl FnMut(Bytes, u32) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.advance(chunk, out);
        self.failed = result.clone().err();
        self.consumed += chunk.len() as u64;
        result
    }

    /// Whether the last frame is incomplete so far.
    #[must_use]
    pub fn is_within_frame(&self) -> bool {
        self.in_frame
    }

    /// Ends the body.
    ///
    /// # Errors
    /// When it ended within a frame, or an earlier [`push`](Self::push) failed.
    pub fn finish(self) -> Result<(), FrameError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.in_frame => Err(FrameError::Truncated { offset: self.consumed }),
            None => Ok(()),
        }
    }

    /// Gives each frame to `out`, with the number of objects and arrays that are its members.
    fn advance(
        &mut self,
        chunk: &Bytes,
        mut out: impl FnMut(Bytes, u32) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        let mut at = 0;
        while at < chunk.len() {
            if !self.in_frame {
                if is_white_space(chunk[at]) {
                    at += 1;
                    continue;
                }
                if chunk[at] != b'{' {
                    return Err(self.malformed(at, "'{' of a watch event"));
                }
                self.in_frame = true;
            }
            let rest = &chunk[at..];
            let length = match self.scanner.scan(rest) {
                Ok(length) => length,
                Err(unbalanced) => {
                    return Err(self.malformed(at + unbalanced.0, "balanced nesting of a sane depth"));
                }
            };
            let Some(length) = length else {
                let kept = self.collector.keep(rest);
                return kept.map_err(|_| self.too_large(at));
            };
            let frame = self.collector.complete(chunk, at, at + length);
            let frame = frame.map_err(|_| self.too_large(at))?;
            self.in_frame = false;
            at += length;
            out(frame, self.scanner.take_members())?;
        }
        Ok(())
    }

    fn malformed(&self, at: usize, expected: &'static str) -> FrameError {
        FrameError::Malformed { offset: self.consumed + at as u64, expected }
    }

    fn too_large(&self, at: usize) -> FrameError {
        let offset = self.consumed + at as u64 - self.collector.len() as u64;
        FrameError::TooLarge { offset, limit: self.collector.limit() }
    }
}

impl Default for JsonWatchSplitter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
