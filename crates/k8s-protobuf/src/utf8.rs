//! Texts as UTF-8.

use ascii::AsAsciiStr;

use crate::Error;
use crate::error::malformed;

/// The text; `None` if it is not UTF-8. Nearly all texts of an object are short and ASCII, which is
/// checked a word at a time; the standard library's check goes byte by byte through short texts.
#[inline]
pub(crate) fn checked(bytes: &[u8]) -> Option<&str> {
    match bytes.as_ascii_str() {
        Ok(text) => Some(text.as_str()),
        Err(_) => std::str::from_utf8(bytes).ok(),
    }
}

/// The text, or an error that names the problem.
#[inline]
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Error> {
    checked(bytes).ok_or_else(not_utf8)
}

#[cold]
fn not_utf8() -> Error {
    malformed("a text that is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_are_told_from_what_is_none() {
        for length in 0..70 {
            let ascii = vec![b'a'; length];
            assert_eq!(checked(&ascii).map(str::len), Some(length));
            for at in 0..length {
                let mut broken = ascii.clone();
                broken[at] = 0xff;
                assert_eq!(checked(&broken), None, "{length} bytes, of which {at} is broken");
                let mut text = String::from_utf8(ascii.clone()).unwrap();
                text.insert(at, 'ä');
                assert_eq!(checked(text.as_bytes()), Some(&*text));
            }
        }
    }
}
