//! Putting values together that chunk borders cut.

use std::{fmt, mem};

use bytes::{Bytes, BytesMut};

/// What came of the value being read in earlier chunks: one value at most, and bounded.
pub(super) struct Collector {
    carry: BytesMut,
    limit: usize,
}

/// So much memory is taken on a sender's word.
const RESERVED: usize = 64 * 1024;

/// The value is larger than the limit.
#[derive(Debug)]
pub(super) struct TooLarge;

impl Collector {
    pub(super) fn new(limit: usize) -> Self {
        Self { carry: BytesMut::new(), limit }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes kept of the value so far.
    pub(super) fn len(&self) -> usize {
        self.carry.len()
    }

    /// Keeps `bytes`: the value goes on in the next chunk.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.check(bytes.len())?;
        self.carry.extend_from_slice(bytes);
        Ok(())
    }

    /// Like [`keep`](Self::keep), for a value of which `more` bytes will follow, if its sender says the truth.
    pub(super) fn keep_of(&mut self, bytes: &[u8], more: usize) -> Result<(), TooLarge> {
        self.carry.reserve(bytes.len() + more.min(RESERVED));
        self.keep(bytes)
    }

    /// What came of a value that is too large, and of `more` of it, as much as the limit allows.
    pub(super) fn beginning(&mut self, more: &[u8]) -> Bytes {
        let room = self.limit.saturating_sub(self.carry.len());
        self.carry.extend_from_slice(&more[..room.min(more.len())]);
        mem::take(&mut self.carry).freeze()
    }

    /// The value whose last bytes are `chunk[start..end]`; without a copy if these are all of it.
    pub(super) fn complete(&mut self, chunk: &Bytes, start: usize, end: usize) -> Result<Bytes, TooLarge> {
        self.check(end - start)?;
        if self.carry.is_empty() {
            return Ok(chunk.slice(start..end));
        }
        self.carry.extend_from_slice(&chunk[start..end]);
        // Not split off: a buffer that was large once would stay.
        Ok(mem::take(&mut self.carry).freeze())
    }

    fn check(&self, more: usize) -> Result<(), TooLarge> {
        if self.carry.len() + more > self.limit { Err(TooLarge) } else { Ok(()) }
    }
}

/// Without the value (G34).
impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("carry", &self.carry.len()).field("limit", &self.limit).finish()
    }
}
