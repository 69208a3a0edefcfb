//! JSON embedded in protobuf: checked, then copied.

use crate::Error;
use crate::error::malformed;
use crate::wire::lossy;

/// Limit of nested objects and arrays: Go's. A server sends no more, and whatever it sends must not
/// take the rest of a list along.
const LIMIT: usize = 10_000;

/// Copies one JSON value without white space between its parts, which may have line ends. Invalid
/// UTF-8 is replaced, as Go does when it reads.
pub(super) fn copy(json: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    // Bytes above ASCII stand only within strings.
    let text = lossy(json);
    let json = text.as_bytes();
    let mut scan = Scan { json, at: 0, spaces: false };
    scan.value()?;
    if scan.spaces {
        compact(json, out);
    } else {
        out.extend_from_slice(json);
    }
    Ok(())
}

/// How many enclosing objects and arrays are kept in one number.
const BITS: usize = u128::BITS as usize;

struct Scan<'a> {
    json: &'a [u8],
    at: usize,
    /// Whether there is white space to remove.
    spaces: bool,
}

impl Scan<'_> {
    /// Checks that the text is one value.
    fn value(&mut self) -> Result<(), Error> {
        // The enclosing objects (1) and arrays (0), the innermost in the lowest bit.
        let (mut open, mut count) = (0u128, 0);
        // Those further out, if there are more than bits.
        let mut outer = Vec::new();
        loop {
            // A value.
            match self.next()? {
                opening @ (b'{' | b'[') => {
                    if count >= LIMIT {
                        return Err(Error::TooDeep { limit: LIMIT });
                    }
                    if count > 0 && count % BITS == 0 {
                        outer.push(open);
                    }
                    let object = opening == b'{';
                    open = open << 1 | u128::from(object);
                    count += 1;
                    let closing = if object { b'}' } else { b']' };
                    if self.peek() != Some(closing) {
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b'"' => self.string()?,
                b't' => self.word(b"rue")?,
                b'f' => self.word(b"alse")?,
                b'n' => self.word(b"ull")?,
                b'-' => self.number(self.at)?,
                b'0'..=b'9' => self.number(self.at - 1)?,
                _ => return Err(wrong()),
            }
            // What may follow a value.
            loop {
                if count == 0 {
                    return if self.peek().is_none() { Ok(()) } else { Err(wrong()) };
                }
                let object = open & 1 == 1;
                match self.next()? {
                    b',' => {
                        if object {
                            self.key()?;
                        }
                        break;
                    }
                    b'}' if object => {}
                    b']' if !object => {}
                    _ => return Err(wrong()),
                }
                open >>= 1;
                count -= 1;
                if count > 0 && count % BITS == 0 {
                    open = outer.pop().unwrap_or_default();
                }
            }
        }
    }

    /// The next byte that is not white space; the position is left there.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.json.get(self.at)?;
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.spaces = true;
            self.at += 1;
        }
    }

    #[inline]
    fn next(&mut self) -> Result<u8, Error> {
        let byte = self.peek().ok_or_else(wrong)?;
        self.at += 1;
        Ok(byte)
    }

    fn key(&mut self) -> Result<(), Error> {
        if self.next()? != b'"' {
            return Err(wrong());
        }
        self.string()?;
        if self.next()? != b':' {
            return Err(wrong());
        }
        Ok(())
    }

    /// The rest of a string.
    #[inline]
    fn string(&mut self) -> Result<(), Error> {
        loop {
            let rest = self.json.get(self.at..).ok_or_else(wrong)?;
            let plain = rest
                .iter()
                .position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\')
                .ok_or_else(wrong)?;
            self.at += plain + 1;
            match rest[plain] {
                b'"' => return Ok(()),
                b'\\' => {
                    let length = match rest.get(plain + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 1,
                        Some(b'u') => {
                            let digits = rest.get(plain + 2..plain + 6).ok_or_else(wrong)?;
                            if !digits.iter().all(u8::is_ascii_hexdigit) {
                                return Err(wrong());
                            }
                            5
                        }
                        _ => return Err(wrong()),
                    };
                    self.at += length;
                }
                _ => return Err(wrong()),
            }
        }
    }

    fn word(&mut self, rest: &[u8]) -> Result<(), Error> {
        if !self.json[self.at..].starts_with(rest) {
            return Err(wrong());
        }
        self.at += rest.len();
        Ok(())
    }

    /// A number, from its first digit.
    fn number(&mut self, first: usize) -> Result<(), Error> {
        self.at = first;
        let whole = self.digits()?;
        if whole > 1 && self.json[first] == b'0' {
            return Err(wrong());
        }
        if self.json.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.json.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.json.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// One or more digits.
    fn digits(&mut self) -> Result<usize, Error> {
        let rest = self.json.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(wrong()) } else { Ok(count) }
    }
}

/// Copies JSON that was checked, without white space outside of strings.
fn compact(json: &[u8], out: &mut Vec<u8>) {
    let (mut text, mut escape) = (false, false);
    out.extend(json.iter().copied().filter(|byte| {
        if text {
            (text, escape) = (escape || *byte != b'"', !escape && *byte == b'\\');
            true
        } else {
            text = *byte == b'"';
            !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
        }
    }));
}

#[cold]
fn wrong() -> Error {
    malformed("raw bytes that are no JSON")
}

#[cfg(test)]
mod tests;
