//! Finding the end of a JSON value without looking at more of it than needed.

use super::structure::{Block, Strings, braces};

/// How deep a value may be nested; Go's decoder has the same limit.
const MAX_DEPTH: u32 = 10_000;

/// Finds where one object, array or string ends, across any number of chunks.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    depth: u32,
    /// How many objects and arrays stand in the value itself, not deeper.
    members: u32,
    strings: Strings,
}

/// The value is nested deeper than [`MAX_DEPTH`], or a closing brace or bracket opens nothing; with the
/// offset of that byte.
#[derive(Debug)]
pub(super) struct Unbalanced(pub(super) usize);

impl Scanner {
    /// How many objects and arrays the value that has ended had as its members, or elements.
    pub(super) fn take_members(&mut self) -> u32 {
        std::mem::take(&mut self.members)
    }

    /// Looks through the value's next bytes; the very first must be `{`, `[` or `"`. Returns how many of
    /// them are the value's, or `None` when it goes on after them; after its end the scanner is as new, but for its members.
    ///
    /// Braces and brackets are not told apart.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Result<Option<usize>, Unbalanced> {
        let is_text = self.depth == 0 && (self.strings.is_within() || bytes.first() == Some(&b'"'));
        let mut at = 0;
        while at < bytes.len() {
            let block = Block::of(&bytes[at..]);
            let within = self.strings.within(&block);
            let end = if is_text {
                Some(within.trailing_ones() as usize).filter(|quote| *quote < block.len())
            } else {
                self.nest(block.opens() & !within, block.closes() & !within)
                    .map_err(|offset| Unbalanced(at + offset))?
            };
            if let Some(end) = end {
                self.strings = Strings::default();
                return Ok(Some(at + end + 1));
            }
            at += block.len();
        }
        Ok(None)
    }

    /// Goes through the braces of a block. Returns which one is the last of the value, if any, or which is one
    /// too many.
    #[inline]
    fn nest(&mut self, opens: u64, closes: u64) -> Result<Option<usize>, usize> {
        let (opened, closed) = (opens.count_ones(), closes.count_ones());
        if closed + 1 < self.depth && self.depth + opened <= MAX_DEPTH {
            // Neither the value ends here nor one of its members.
            self.depth = self.depth + opened - closed;
            return Ok(None);
        }
        let mut left = opens | closes;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            if opens >> at & 1 != 0 && self.depth < MAX_DEPTH {
                self.depth += 1;
            } else if closes >> at & 1 != 0 && self.depth > 0 {
                self.depth -= 1;
                match self.depth {
                    0 => return Ok(Some(at)),
                    1 => self.members = self.members.saturating_add(1),
                    _ => {}
                }
            } else {
                return Err(at);
            }
        }
        Ok(None)
    }
}

/// How many of the bytes are those of the object or array that they begin with. `None` if it does not end, is nested
/// deeper than 64, or a brace is closed by a bracket or the other way round.
pub(super) fn matching(bytes: &[u8]) -> Option<usize> {
    // What is open: a bit for each, set for arrays, that of the innermost the lowest.
    let (mut arrays, mut depth) = (0_u64, 0);
    for at in braces(bytes) {
        match bytes[at] {
            byte @ (b'{' | b'[') => {
                if depth == u64::BITS {
                    return None;
                }
                arrays = arrays << 1 | u64::from(byte == b'[');
                depth += 1;
            }
            byte => {
                if depth == 0 || (arrays & 1 == 1) != (byte == b']') {
                    return None;
                }
                arrays >>= 1;
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_match_braces_and_brackets_brackets() {
        for (text, length) in [
            ("{}", Some(2)),
            (r#"[{"a":["}]"]},[]],"b":[1]}"#, Some(17)),
            ("[}", None),
            (r#"{"a":[1}]"#, None),
            ("[[]", None),
            ("]", None),
            ("", None),
        ] {
            assert_eq!(matching(text.as_bytes()), length, "{text}");
        }
        for depth in 1..=80 {
            let text = "[{\"a\":".repeat(depth / 2)
                + &"[".repeat(depth % 2)
                + &"]".repeat(depth % 2)
                + &"}]".repeat(depth / 2);
            assert_eq!(matching(text.as_bytes()), (depth <= 64).then_some(text.len()), "{text}");
        }
    }

    #[test]
    fn strings_end_wherever_their_quote_stands() {
        for length in 0..100 {
            // Those that differ least from a quote and a backslash.
            let content: String = "!#]{[}\u{0}\u{7f}".chars().cycle().take(length).collect();
            for end in [r#"""#, r#"\"""#, r#"\\""#, r#"\\\"""#] {
                let text = format!("[\"{content}{end}]");
                let found = Scanner::default().scan(format!("{text},\"]\"").as_bytes()).unwrap();
                assert_eq!(found, Some(text.len()), "{text}");
            }
        }
    }
}
