//! Values as Go writes them in JSON.

use crate::Error;
use crate::de::text::{self, Short};
use crate::error::malformed;
use crate::wire::lossy;

/// How many objects and arrays may be within each other: what serde_json reads by default.
pub(super) const LIMIT: usize = 127;

/// What stands between the quotes of a text.
#[inline]
pub(super) fn content(bytes: &[u8], out: &mut Vec<u8>) {
    // Without branches: eight at a time, of which the last may have been looked at before.
    let marks = match bytes.last_chunk() {
        Some(last) => bytes.as_chunks().0.iter().fold(marks(*last), |found, chunk| found | marks(*chunk)),
        None => marks(padded(bytes).to_le_bytes()),
    };
    if marks & each(0x80) != 0 {
        escaped(lossy(bytes).as_bytes(), out);
    } else {
        out.extend_from_slice(bytes);
    }
}

/// How many bytes are looked at of a text that has no more.
pub(super) const WINDOW: usize = 32;

/// Whether the first of these bytes, so many, can stand in a text as they are.
#[inline]
pub(super) fn is_plain(bytes: &[u8; WINDOW], count: usize) -> bool {
    /// As many of the first half count as are looked at, and none of the second.
    const COUNTED: [u8; 2 * WINDOW] = {
        let mut counted = [0; 2 * WINDOW];
        counted.split_at_mut(WINDOW).0.copy_from_slice(&[1; WINDOW]);
        counted
    };
    let Some(counted) = COUNTED.get(WINDOW - count..).and_then(|rest| rest.first_chunk::<WINDOW>()) else {
        return false;
    };
    // All of them: for sixteen at a time there are instructions, and no jumps.
    let special =
        |byte: u8| u8::from(byte < 0x20) | u8::from(byte >= 0x80) | u8::from(byte == b'"' || byte == b'\\');
    bytes.iter().zip(counted).fold(0, |found, (byte, counted)| found | (special(*byte) & counted)) == 0
}

const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Has the highest bit of a byte set if, and only if, one of these cannot stand in a text as it is, or is not ASCII.
#[inline]
fn marks(bytes: [u8; 8]) -> u64 {
    let bytes = u64::from_le_bytes(bytes);
    let (quote, backslash) = (bytes ^ each(b'"'), bytes ^ each(b'\\'));
    // If all are ASCII, taking away sets the highest bit of the first that is less.
    bytes | bytes.wrapping_sub(each(0x20)) | quote.wrapping_sub(each(1)) | backslash.wrapping_sub(each(1))
}

/// Up to seven bytes, in any order and some twice, and digits in place of those that are missing.
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

#[cold]
fn escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                out.extend_from_slice(b"\\u00");
                out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
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

/// A number that is neither infinite nor none, which JSON does not have.
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

/// A text that needs no escapes.
pub(super) fn quoted(text: &Short, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests;
