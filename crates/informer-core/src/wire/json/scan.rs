//! Finds the end of a JSON value without parsing it.

use super::structure::{Block, Strings};

/// How deep a value may be nested; Go's decoder has the same limit.
const MAX_DEPTH: u32 = 10_000;

/// Finds the end of one object, array or string, across any number of chunks.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    depth: u32,
    strings: Strings,
}

/// The value is nested deeper than [`MAX_DEPTH`], or a closing brace or bracket opens nothing; with
/// the offset of that byte.
#[derive(Debug)]
pub(super) struct Unbalanced(pub(super) usize);

impl Scanner {
    /// Scans the next bytes of the value; the very first must be `{`, `[` or `"`. Returns how many
    /// of them belong to the value, or `None` if it continues after them. After the end of a value,
    /// the scanner is in its initial state.
    ///
    /// Does not distinguish braces from brackets.
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

    /// Processes the braces of a block. Returns the position of the last one of the value, if any,
    /// or that of an unmatched one.
    #[inline]
    fn nest(&mut self, opens: u64, closes: u64) -> Result<Option<usize>, usize> {
        let (opened, closed) = (opens.count_ones(), closes.count_ones());
        if closed < self.depth && self.depth + opened <= MAX_DEPTH {
            // The value does not end here.
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
                if self.depth == 0 {
                    return Ok(Some(at));
                }
            } else {
                return Err(at);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
