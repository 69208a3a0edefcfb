//! Splitting the JSON body of a watch.

use bytes::Bytes;

use super::scan::Scanner;
use super::{frame, is_white_space};
use crate::wire::collect::Collector;
use crate::wire::format::SplitWatch;
use crate::wire::{FrameError, WatchFrame};

/// Cuts the JSON body of a watch into frames, as its chunks arrive.
///
/// Frames are JSON objects with any white space, or none, between them; they may span several
/// lines. A frame within one chunk is a slice of it. Other frames are assembled in a buffer, which
/// holds one frame at most.
#[derive(Debug)]
pub(in crate::wire) struct JsonWatchSplitter {
    in_frame: bool,
    scanner: Scanner,
    collector: Collector,
    /// Length of the chunks before this one.
    consumed: u64,
    failed: Option<FrameError>,
}

impl JsonWatchSplitter {
    /// A splitter for a new body whose frames may be `limit` bytes long.
    pub(in crate::wire) fn new(limit: usize) -> Self {
        Self {
            in_frame: false,
            scanner: Scanner::default(),
            collector: Collector::new(limit),
            consumed: 0,
            failed: None,
        }
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
        self.consumed += chunk.len() as u64;
        result
    }

    fn advance(
        &mut self,
        chunk: &Bytes,
        mut out: impl FnMut(Bytes) -> Result<(), FrameError>,
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
                    return Err(
                        self.malformed(at + unbalanced.0, "balanced nesting of a sane depth")
                    );
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
            out(frame)?;
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

impl SplitWatch for JsonWatchSplitter {
    fn push(&mut self, chunk: Bytes, out: &mut Vec<WatchFrame>) -> Result<(), FrameError> {
        self.split(&chunk, |text| {
            out.push(frame::parse(&text)?);
            Ok(())
        })
    }

    fn finish(self: Box<Self>) -> Result<(), FrameError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.in_frame => Err(FrameError::Truncated { offset: self.consumed }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
