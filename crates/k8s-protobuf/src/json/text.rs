//! Values as Go writes them in JSON.

use crate::Error;
use crate::encode::ZERO_TIME;
use crate::error::malformed;
use crate::wire::{Reader, Value};

/// How many objects and arrays may be within each other: what serde_json reads by default.
pub(super) const LIMIT: usize = 127;

/// The fields 1 to 3 of a small message, the last of each.
#[inline]
pub(crate) fn parts(message: &[u8]) -> Result<[Option<Value<'_>>; 3], Error> {
    let mut parts = [None; 3];
    let mut reader = Reader::new(message);
    while let Some((number, value)) = reader.next()? {
        if let Some(part) = parts.get_mut(number as usize - 1) {
            *part = Some(value);
        }
    }
    Ok(parts)
}

/// A text in quotes.
#[inline]
pub(super) fn string(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    // Without branches, so that many bytes are looked at in one go.
    let special = bytes.iter().fold(false, |found, byte| {
        found | (*byte < 0x20) | (*byte >= 0x80) | (*byte == b'"') | (*byte == b'\\')
    });
    out.push(b'"');
    if special {
        escaped(bytes, out)?;
    } else {
        out.extend_from_slice(bytes);
    }
    out.push(b'"');
    Ok(())
}

#[cold]
fn escaped(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    std::str::from_utf8(bytes).map_err(|_| malformed("a text that is not UTF-8"))?;
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
    Ok(())
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

/// As Go: without an exponent unless it is very large or small, so that whole numbers are integers.
pub(super) fn float(value: f64, out: &mut Vec<u8>) -> Result<(), Error> {
    if !value.is_finite() {
        return Err(malformed("a number that JSON does not have"));
    }
    let size = value.abs();
    let text =
        if size != 0.0 && !(1e-6..1e21).contains(&size) { format!("{value:e}") } else { format!("{value}") };
    out.extend_from_slice(text.as_bytes());
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

/// Seconds and microseconds of a time; `None` for Go's zero time. Only `MicroTime` has fractions.
pub(crate) fn instant(message: &[u8], micro: bool) -> Result<Option<(i64, u32)>, Error> {
    if message.is_empty() {
        return Ok(None);
    }
    let [seconds, nanos, _] = parts(message)?;
    let seconds = seconds.map_or(Ok(0), Value::varint)? as i64;
    let nanos = if micro { nanos.map_or(Ok(0), Value::varint)? as i32 } else { 0 };
    // Go cuts towards zero, then carries.
    let micros = nanos / 1000;
    let seconds = seconds
        .checked_add(micros.div_euclid(1_000_000).into())
        .filter(|seconds| (YEAR_0..YEAR_10000).contains(seconds))
        .ok_or_else(|| malformed("a time that is not in the years 0 to 9999"))?;
    let micros = micros.rem_euclid(1_000_000).unsigned_abs();
    Ok(Some((seconds, micros)).filter(|time| *time != (ZERO_TIME, 0)))
}

const YEAR_0: i64 = -62_167_219_200;
const YEAR_10000: i64 = 253_402_300_800;

/// A time of RFC 3339 in UTC: `Time` has seconds, `MicroTime` always six digits more.
pub(super) fn time(message: &[u8], micro: bool, out: &mut Vec<u8>) -> Result<(), Error> {
    let Some((seconds, micros)) = instant(message, micro)? else {
        out.extend_from_slice(b"null");
        return Ok(());
    };
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400) as u32;
    let mut text = *b"\"0000-00-00T00:00:00";
    digits(year, &mut text[1..5]);
    digits(month, &mut text[6..8]);
    digits(day, &mut text[9..11]);
    digits(second / 3600, &mut text[12..14]);
    digits(second / 60 % 60, &mut text[15..17]);
    digits(second % 60, &mut text[18..20]);
    out.extend_from_slice(&text);
    if micro {
        let mut fraction = *b".000000";
        digits(micros, &mut fraction[1..]);
        out.extend_from_slice(&fraction);
    }
    out.extend_from_slice(b"Z\"");
    Ok(())
}

/// The last digits of a number, as many as there is place for.
fn digits(mut value: u32, place: &mut [u8]) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Year, month and day of a count of days since 1970, in the years 0 to 9999.
fn date(days: i64) -> (u32, u32, u32) {
    // Years from March on, in eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    ((era * 400 + year + carry) as u32, month as u32, day as u32)
}

/// As Go's `Duration.String`, such as `1m30s` or `1.5ms`.
pub(super) fn duration(nanos: i64, out: &mut Vec<u8>) {
    out.push(b'"');
    if nanos < 0 {
        out.push(b'-');
    }
    let size = nanos.unsigned_abs();
    let (value, unit, name) = match size {
        0 => (0, 1, "s"),
        1..1_000 => (size, 1, "ns"),
        1_000..1_000_000 => (size, 1_000, "µs"),
        1_000_000..1_000_000_000 => (size, 1_000_000, "ms"),
        _ => (size % 60_000_000_000, 1_000_000_000, "s"),
    };
    let (hours, minutes) = (size / 3_600_000_000_000, size / 60_000_000_000 % 60);
    if hours > 0 {
        out.extend_from_slice(format!("{hours}h").as_bytes());
    }
    if hours > 0 || minutes > 0 {
        out.extend_from_slice(format!("{minutes}m").as_bytes());
    }
    out.extend_from_slice((value / unit).to_string().as_bytes());
    if value % unit > 0 {
        let digits = unit.ilog10() as usize;
        let fraction = format!("{:0digits$}", value % unit);
        out.push(b'.');
        out.extend_from_slice(fraction.trim_end_matches('0').as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests;
