//! Values as Go writes them in JSON.

use crate::Error;
use crate::de::text::{self, Short};
use crate::error::malformed;
use crate::wire::lossy;

/// Writes the text between the quotes of a string.
#[inline]
pub(super) fn content(bytes: &[u8], out: &mut Vec<u8>) {
    // Eight bytes at a time, without branches; the last eight may overlap those before.
    let marks = match bytes.last_chunk() {
        Some(last) => {
            bytes.as_chunks().0.iter().fold(marks(*last), |found, chunk| found | marks(*chunk))
        }
        None => marks(padded(bytes).to_le_bytes()),
    };
    if marks & each(0x80) != 0 {
        escaped(&lossy(bytes), out);
    } else {
        out.extend_from_slice(bytes);
    }
}

/// The longest text that is checked in one window of fixed size.
pub(super) const WINDOW: usize = 32;

/// Whether the first `count` of these bytes are ASCII and need no escapes.
#[inline]
pub(super) fn is_plain(bytes: &[u8; WINDOW], count: usize) -> bool {
    /// Masks: all bytes of the first half are checked, none of the second.
    const COUNTED: [u8; 2 * WINDOW] = {
        let mut counted = [0; 2 * WINDOW];
        counted.split_at_mut(WINDOW).0.copy_from_slice(&[1; WINDOW]);
        counted
    };
    let Some(counted) = COUNTED.get(WINDOW - count..).and_then(|rest| rest.first_chunk::<WINDOW>())
    else {
        return false;
    };
    // All bytes are looked at: vector instructions take sixteen at a time, without jumps.
    let special = |byte: u8| {
        u8::from(byte < 0x20)
            | u8::from(byte >= 0x80)
            | u8::from(byte == b'"' || byte == b'\\' || byte == b'&')
            | u8::from(byte & ANGLES == b'<')
    };
    bytes.iter().zip(counted).fold(0, |found, (byte, counted)| found | (special(*byte) & counted))
        == 0
}

/// The bits that `<` and `>` have in common with each other and with no other byte.
const ANGLES: u8 = !(b'<' ^ b'>');

const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Has the highest bit of a byte set if and only if one of these bytes needs an escape or is not
/// ASCII.
#[inline]
fn marks(bytes: [u8; 8]) -> u64 {
    let bytes = u64::from_le_bytes(bytes);
    let (quote, backslash) = (bytes ^ each(b'"'), bytes ^ each(b'\\'));
    let (ampersand, angle) = (bytes ^ each(b'&'), (bytes & each(ANGLES)) ^ each(b'<'));
    // If all are ASCII, the subtraction sets the highest bit of the first byte that is less.
    bytes
        | bytes.wrapping_sub(each(0x20))
        | quote.wrapping_sub(each(1))
        | backslash.wrapping_sub(each(1))
        | ampersand.wrapping_sub(each(1))
        | angle.wrapping_sub(each(1))
}

/// The bytes of a text of up to seven, in any order and some of them twice; digits fill the rest.
#[inline]
fn padded(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
    }
    match bytes {
        [first, .., last] => {
            let [a, b, c] = [first, &bytes[1], last].map(|byte| u64::from(*byte));
            each(b'0') << 24 | a | b << 8 | c << 16
        }
        [only] => each(*only),
        [] => each(b'0'),
    }
}

/// Escapes what JSON does not allow in texts, and what Go escapes for the sake of HTML and
/// JavaScript.
#[cold]
fn escaped(text: &str, out: &mut Vec<u8>) {
    let is_special =
        |c: char| c < ' ' || matches!(c, '"' | '\\' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    let mut rest = text;
    while let Some(at) = rest.find(is_special) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let mut characters = special.chars();
        match characters.next() {
            Some(byte @ ('"' | '\\')) => out.extend_from_slice(&[b'\\', byte as u8]),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            Some('\u{8}') => out.extend_from_slice(b"\\b"),
            Some('\u{c}') => out.extend_from_slice(b"\\f"),
            Some(other) => {
                let code = u32::from(other);
                let digits = [code >> 12, code >> 8, code >> 4, code];
                out.extend_from_slice(b"\\u");
                out.extend(digits.map(|it| b"0123456789abcdef"[(it & 15) as usize]));
            }
            None => {}
        }
        rest = characters.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
}

pub(super) fn integer(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let (mut digits, mut at, mut rest) = ([0u8; 20], 20, value.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A finite number: JSON has no infinities and no `NaN`.
pub(super) fn float(value: f64, out: &mut Vec<u8>) -> Result<(), Error> {
    if !value.is_finite() {
        return Err(malformed("a number that JSON does not have"));
    }
    out.extend_from_slice(text::float(value).as_bytes());
    Ok(())
}

pub(super) fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32, shift: u32| DIGITS[(bits >> shift & 63) as usize];
    out.reserve(bytes.len().div_ceil(3) * 4 + 2);
    out.push(b'"');
    let (groups, rest) = bytes.as_chunks::<3>();
    for [a, b, c] in groups {
        let bits = u32::from_be_bytes([0, *a, *b, *c]);
        out.extend_from_slice(&[digit(bits, 18), digit(bits, 12), digit(bits, 6), digit(bits, 0)]);
    }
    match rest {
        [a] => {
            let bits = u32::from_be_bytes([0, *a, 0, 0]);
            out.extend_from_slice(&[digit(bits, 18), digit(bits, 12), b'=', b'=']);
        }
        [a, b] => {
            let bits = u32::from_be_bytes([0, *a, *b, 0]);
            out.extend_from_slice(&[digit(bits, 18), digit(bits, 12), digit(bits, 6), b'=']);
        }
        _ => {}
    }
    out.push(b'"');
}

/// A string that needs no escapes.
pub(super) fn quoted(text: &Short, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests;
