//! Finds the braces and brackets of a JSON text without parsing what is between them.
//!
//! The text is processed in blocks of 64 bytes, with a bit mask that has one bit for each byte.
//! Comparing a block takes a few vector instructions. A running parity of the quotes gives the
//! bytes that are within strings. Finding the end of a generated Pod takes three instructions per
//! byte (callgrind, SSE2), however short its strings are.

use wide::u8x64;

/// The number of bytes in a block.
const LANES: usize = 64;

/// Up to 64 bytes of JSON. Its masks have one bit for each byte, the lowest for the first.
pub(super) struct Block {
    bytes: u8x64,
    length: usize,
}

impl Block {
    /// The first bytes of `rest`.
    #[inline]
    pub(super) fn of(rest: &[u8]) -> Self {
        if let Some(bytes) = rest.first_chunk::<LANES>() {
            return Self { bytes: u8x64::from(*bytes), length: LANES };
        }
        let mut bytes = [0; LANES];
        bytes[..rest.len()].copy_from_slice(rest);
        Self { bytes: u8x64::from(bytes), length: rest.len() }
    }

    /// The number of bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    fn equal(&self, byte: u8) -> u64 {
        self.bytes.simd_eq(u8x64::splat(byte)).to_bitmask()
    }

    /// `{` and `[`: only these bytes become `{` when the bit in which they differ is set.
    #[inline]
    pub(super) fn opens(&self) -> u64 {
        (self.bytes | u8x64::splat(0x20)).simd_eq(u8x64::splat(b'{')).to_bitmask()
    }

    /// `}` and `]`.
    #[inline]
    pub(super) fn closes(&self) -> u64 {
        (self.bytes | u8x64::splat(0x20)).simd_eq(u8x64::splat(b'}')).to_bitmask()
    }
}

/// The string state that is carried from one block to the next.
#[derive(Debug, Default)]
pub(super) struct Strings {
    is_within: bool,
    /// Whether the last byte was a backslash that escapes the next one.
    is_escaped: bool,
}

impl Strings {
    /// Whether the next byte is within a string, or ends one.
    pub(super) fn is_within(&self) -> bool {
        self.is_within
    }

    /// The bytes of the next block that are within strings, with the opening quotes, but without
    /// the closing ones.
    #[inline]
    pub(super) fn within(&mut self, block: &Block) -> u64 {
        let backslashes = block.equal(b'\\');
        let mut quotes = block.equal(b'"');
        if backslashes != 0 || self.is_escaped {
            quotes &= !self.escaped(backslashes, block.length);
        }
        // Each bit becomes the parity of the quotes up to it.
        let mut within = quotes;
        for shift in [1, 2, 4, 8, 16, 32] {
            within ^= within << shift;
        }
        if self.is_within {
            within = !within;
        }
        self.is_within = within >> (LANES - 1) != 0;
        within
    }

    /// The escaped bytes: those after backslashes that are not escaped themselves.
    fn escaped(&mut self, backslashes: u64, length: usize) -> u64 {
        let mut escaped = u64::from(self.is_escaped);
        let mut left = backslashes & !escaped;
        let end = if length < LANES { 1 << length } else { 0 };
        self.is_escaped = false;
        while left != 0 {
            let backslash = left & left.wrapping_neg();
            // Beyond the highest bit of a whole block, it is none.
            let next = backslash << 1;
            self.is_escaped |= next == end;
            escaped |= next;
            left &= !(backslash | next);
        }
        escaped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::testing::{any_value, pretty};

    /// The positions of braces and brackets, except those in strings.
    fn structure(json: &[u8]) -> Vec<usize> {
        let (mut strings, mut found) = (Strings::default(), Vec::new());
        for (at, rest) in json.chunks(LANES).enumerate() {
            let block = Block::of(rest);
            let marks = (block.opens() | block.closes()) & !strings.within(&block);
            found.extend(
                (0..block.len()).filter(|bit| marks >> bit & 1 != 0).map(|bit| at * LANES + bit),
            );
        }
        found
    }

    /// Byte by byte.
    fn naive(json: &[u8]) -> Vec<usize> {
        let (mut within, mut escaped, mut found) = (false, false, Vec::new());
        for (at, byte) in json.iter().enumerate() {
            let is_escaped = std::mem::take(&mut escaped);
            match byte {
                b'\\' => escaped = !is_escaped,
                b'"' => within ^= !is_escaped,
                b'{' | b'}' | b'[' | b']' if !within => found.push(at),
                _ => {}
            }
        }
        found
    }

    #[test]
    fn only_braces_and_brackets_are_found() {
        for byte in 0..=u8::MAX {
            assert_eq!(structure(&[byte]).len(), usize::from(b"{}[]".contains(&byte)), "{byte}");
        }
    }

    #[test]
    fn backslashes_escape_across_the_borders_of_blocks() {
        for before in 55..70 {
            for backslashes in 0..140 {
                let text = format!("\"{}{}\",\"],", "x".repeat(before), "\\".repeat(backslashes));
                assert_eq!(structure(text.as_bytes()), naive(text.as_bytes()), "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_structure_is_found_as_byte_by_byte(value in any_value(), is_pretty in any::<bool>()) {
            let text = if is_pretty { pretty(&value) } else { value.to_string() };
            prop_assert_eq!(structure(text.as_bytes()), naive(text.as_bytes()));
        }

        #[test]
        fn the_structure_of_anything_is_found_as_byte_by_byte(text in "[{}\\[\\]\"\\\\,a]{0,300}") {
            prop_assert_eq!(structure(text.as_bytes()), naive(text.as_bytes()));
        }
    }
}
