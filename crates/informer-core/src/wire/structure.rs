//! Where the braces, brackets and commas of a JSON text stand, without reading what is between them.
//!
//! The text is looked at in blocks of 64 bytes, with a bit for each byte: comparing is then a handful of vector
//! instructions, and which bytes are within strings follows from the quotes by a running parity. To find the end
//! of a generated Pod takes three instructions a byte (callgrind, SSE2), however short its strings are.

use wide::u8x64;

/// How many bytes are looked at together.
const LANES: usize = 64;

/// Iterates over where the braces, brackets and commas of a JSON text stand, those in strings left out.
///
/// Of what is no JSON, something in the text's order.
///
/// # Examples
/// ```
/// use informer_core::wire::structure;
///
/// let json = br#"{"a":[1,"{"]}"#;
/// let found: Vec<u8> = structure(json).map(|at| json[at]).collect();
/// assert_eq!(found, b"{[,]}");
/// ```
pub fn structure(json: &[u8]) -> impl Iterator<Item = usize> {
    outside_strings(json, |block| block.opens() | block.closes() | block.commas())
}

/// Where the braces and brackets stand.
pub(super) fn braces(json: &[u8]) -> impl Iterator<Item = usize> {
    outside_strings(json, |block| block.opens() | block.closes())
}

/// Where what `marks` finds in blocks stands, but for that in strings.
#[inline]
fn outside_strings(json: &[u8], marks: impl Fn(&Block) -> u64) -> impl Iterator<Item = usize> {
    let (mut strings, mut next, mut base, mut found) = (Strings::default(), 0, 0, 0_u64);
    std::iter::from_fn(move || {
        while found == 0 {
            let rest = json.get(next..).filter(|rest| !rest.is_empty())?;
            let block = Block::of(rest);
            found = marks(&block) & !strings.within(&block);
            base = next;
            next += LANES;
        }
        let at = base + found.trailing_zeros() as usize;
        found &= found - 1;
        Some(at)
    })
}

/// Up to 64 bytes of JSON, of which masks are made: a bit for each byte, that of the first the lowest.
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

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    fn equal(&self, byte: u8) -> u64 {
        self.bytes.simd_eq(u8x64::splat(byte)).to_bitmask()
    }

    /// `{` and `[`: of all bytes only these are `{` once the bit is set in which they differ.
    #[inline]
    pub(super) fn opens(&self) -> u64 {
        (self.bytes | u8x64::splat(0x20)).simd_eq(u8x64::splat(b'{')).to_bitmask()
    }

    /// `}` and `]`.
    #[inline]
    pub(super) fn closes(&self) -> u64 {
        (self.bytes | u8x64::splat(0x20)).simd_eq(u8x64::splat(b'}')).to_bitmask()
    }

    #[inline]
    fn commas(&self) -> u64 {
        self.equal(b',')
    }
}

/// What the bytes before a block mean for it.
#[derive(Debug, Default)]
pub(super) struct Strings {
    is_within: bool,
    /// The last byte was a backslash that makes the next one mean itself.
    is_escaped: bool,
}

impl Strings {
    /// Whether the next byte is within a string, or ends one.
    pub(super) fn is_within(&self) -> bool {
        self.is_within
    }

    /// Which bytes of the next block are within strings: opening quotes are, closing quotes are not.
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

    /// The bytes after backslashes that are not escaped themselves.
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

    /// Byte by byte.
    fn naive(json: &[u8]) -> Vec<usize> {
        let (mut within, mut escaped, mut found) = (false, false, Vec::new());
        for (at, byte) in json.iter().enumerate() {
            let is_escaped = std::mem::take(&mut escaped);
            match byte {
                b'\\' => escaped = !is_escaped,
                b'"' => within ^= !is_escaped,
                b'{' | b'}' | b'[' | b']' | b',' if !within => found.push(at),
                _ => {}
            }
        }
        found
    }

    #[test]
    fn only_braces_brackets_and_commas_are_found() {
        for byte in 0..=u8::MAX {
            assert_eq!(structure(&[byte]).count(), usize::from(b"{}[],".contains(&byte)), "{byte}");
        }
    }

    #[test]
    fn backslashes_escape_across_the_borders_of_blocks() {
        for before in 55..70 {
            for backslashes in 0..140 {
                let text = format!("\"{}{}\",\"],", "x".repeat(before), "\\".repeat(backslashes));
                let found: Vec<_> = structure(text.as_bytes()).collect();
                assert_eq!(found, naive(text.as_bytes()), "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_structure_is_found_as_byte_by_byte(value in any_value(), is_pretty in any::<bool>()) {
            let text = if is_pretty { pretty(&value) } else { value.to_string() };
            prop_assert_eq!(structure(text.as_bytes()).collect::<Vec<_>>(), naive(text.as_bytes()));
        }

        #[test]
        fn the_structure_of_anything_is_found_as_byte_by_byte(text in "[{}\\[\\]\"\\\\,a]{0,300}") {
            prop_assert_eq!(structure(text.as_bytes()).collect::<Vec<_>>(), naive(text.as_bytes()));
        }
    }
}
