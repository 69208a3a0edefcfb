//! Reassembles values that chunk borders cut.

use std::{fmt, mem};

use bytes::{Bytes, BytesMut};

/// The part of the current value from earlier chunks: one value at most, of bounded size.
pub(super) struct Collector {
    carry: BytesMut,
    limit: usize,
}

/// The most memory that is reserved for a length that the sender announces.
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

    /// The number of bytes kept of the value so far.
    pub(super) fn len(&self) -> usize {
        self.carry.len()
    }

    /// Keeps `bytes` of a value that continues in the next chunk.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.check(bytes.len())?;
        self.carry.extend_from_slice(bytes);
        Ok(())
    }

    /// Like [`keep`](Self::keep), for a value of which `more` bytes should follow.
    pub(super) fn keep_of(&mut self, bytes: &[u8], more: usize) -> Result<(), TooLarge> {
        self.carry.reserve(bytes.len() + more.min(RESERVED));
        self.keep(bytes)
    }

    /// The beginning of a value that is too large: what was kept, and of `more` as much as the
    /// limit allows.
    pub(super) fn beginning(&mut self, more: &[u8]) -> Bytes {
        let room = self.limit.saturating_sub(self.carry.len());
        self.carry.extend_from_slice(&more[..room.min(more.len())]);
        mem::take(&mut self.carry).freeze()
    }

    /// The value whose last bytes are `chunk[start..end]`; not copied if these are all of it.
    pub(super) fn complete(
        &mut self,
        chunk: &Bytes,
        start: usize,
        end: usize,
    ) -> Result<Bytes, TooLarge> {
        self.check(end - start)?;
        if self.carry.is_empty() {
            return Ok(chunk.slice(start..end));
        }
        self.carry.extend_from_slice(&chunk[start..end]);
        // Not split off: that would keep a buffer that was large once.
        Ok(mem::take(&mut self.carry).freeze())
    }

    fn check(&self, more: usize) -> Result<(), TooLarge> {
        if self.carry.len() + more > self.limit { Err(TooLarge) } else { Ok(()) }
    }
}

/// Prints no part of the value (G34).
impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("carry", &self.carry.len())
            .field("limit", &self.limit)
            .finish()
    }
}
