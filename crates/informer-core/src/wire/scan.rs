//! Finding the end of a JSON value without looking at more of it than needed.

use memchr::memchr2;

/// How deep a value may be nested; Go's decoder has the same limit.
const MAX_DEPTH: u32 = 10_000;

/// Finds where one object, array or string ends, across any number of chunks.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    depth: u32,
    in_string: bool,
    /// How many objects and arrays stand in the value itself, not deeper.
    members: u32,
    /// The last chunk ended with a backslash.
    escaped: bool,
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
    /// them are the value's, or `None` when it goes on after them; after its end the scanner is as new.
    ///
    /// Braces and brackets are not told apart.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Result<Option<usize>, Unbalanced> {
        let mut at = 0;
        if self.escaped && !bytes.is_empty() {
            self.escaped = false;
            at = 1;
        }
        loop {
            if self.in_string {
                let Some(found) = find_string_end(bytes, at) else { return Ok(None) };
                if bytes[found] == b'\\' {
                    at = found + 2;
                    if at > bytes.len() {
                        self.escaped = true;
                        return Ok(None);
                    }
                    continue;
                }
                self.in_string = false;
                at = found + 1;
                if self.depth == 0 {
                    return Ok(Some(at));
                }
            }
            // Between strings there are rarely more than a few bytes, too few to call memchr for.
            let Some(length) = bytes[at..].iter().position(|byte| is_structure(*byte)) else {
                return Ok(None);
            };
            at += length + 1;
            match bytes[at - 1] {
                b'"' => self.in_string = true,
                b'{' | b'[' if self.depth < MAX_DEPTH => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    match self.depth {
                        0 => return Ok(Some(at)),
                        1 => self.members = self.members.saturating_add(1),
                        _ => {}
                    }
                }
                _ => return Err(Unbalanced(at - 1)),
            }
        }
    }
}

/// Where the first quote or backslash stands, from `at` on.
#[inline]
fn find_string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    // Nearly all strings end within a few bytes: eight at a time, until it pays to call memchr.
    let (words, _) = bytes[at..].as_chunks();
    for word in words.iter().take(4) {
        let word = u64::from_le_bytes(*word);
        let found = marks(word, b'"') | marks(word, b'\\');
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', &bytes[at..]).map(|found| at + found)
}

/// The highest bits of the bytes that are `byte`; above the first of them also others may be set.
#[inline]
fn marks(word: u64, byte: u8) -> u64 {
    let differs = word ^ u64::from_le_bytes([byte; 8]);
    differs.wrapping_sub(u64::from_le_bytes([1; 8])) & !differs & u64::from_le_bytes([0x80; 8])
}

#[inline]
fn is_structure(byte: u8) -> bool {
    STRUCTURE[usize::from(byte)]
}

static STRUCTURE: [bool; 256] = {
    let mut structure = [false; 256];
    let bytes = b"\"{}[]";
    let mut at = 0;
    while at < bytes.len() {
        structure[bytes[at] as usize] = true;
        at += 1;
    }
    structure
};

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
