//! Values that are numbers or bytes in protobuf and strings in JSON, written as Go writes them.

use std::io::Write as _;

use crate::wire::Reader;

/// The seconds of Go's zero time, the beginning of the year 1.
pub(crate) const ZERO_TIME: i64 = -62_135_596_800;

/// A string that needs no allocation.
#[derive(Clone, Copy)]
pub(crate) struct Short {
    bytes: [u8; Self::MAX],
    length: u8,
}

impl Short {
    // The longest time has 37 bytes, the longest duration 26.
    const MAX: usize = 47;

    fn new() -> Self {
        Self { bytes: [0; Self::MAX], length: 0 }
    }

    pub(crate) fn as_str(&self) -> &str {
        // Only ASCII and complete characters are written.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn put(&mut self, text: &[u8]) {
        let from = usize::from(self.length);
        if let Some(place) = self.bytes.get_mut(from..from + text.len()) {
            place.copy_from_slice(text);
            self.length += text.len() as u8;
        }
    }

    /// With leading zeros.
    fn put_digits<const N: usize>(&mut self, mut value: u32) {
        let mut digits = [b'0'; N];
        for digit in digits.iter_mut().rev() {
            *digit += (value % 10) as u8;
            value /= 10;
        }
        self.put(&digits);
    }

    fn put_number(&mut self, value: impl std::fmt::Display) {
        let mut digits = [0; 24];
        let mut rest = &mut digits[..];
        // A number of 64 bits has 20 digits at most.
        let _ = write!(rest, "{value}");
        let length = 24 - rest.len();
        self.put(&digits[..length]);
    }
}

/// The seconds of a time without fractions, which nearly all times are.
pub(crate) fn whole_seconds(message: &[u8]) -> Option<i64> {
    let mut reader = Reader::new(message);
    if reader.short() != Some(1 << 3) {
        return None;
    }
    let seconds = reader.varint().ok()?;
    matches!(reader.rest(), [] | [0x10, 0]).then_some(seconds as i64)
}

/// RFC 3339 in UTC, from seconds since 1970; microseconds are written with six digits, if given.
pub(crate) fn time(seconds: i64, micros: Option<u32>) -> Short {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400) as u32);
    let (year, month, day) = date(days);
    let mut text = Short::new();
    let mut rest = *b"-00-00T00:00:00";
    for (at, value) in
        [(1, month), (4, day), (7, second / 3600), (10, second / 60 % 60), (13, second % 60)]
    {
        rest[at] += (value / 10) as u8;
        rest[at + 1] += (value % 10) as u8;
    }
    match u32::try_from(year) {
        Ok(year @ ..10_000) => text.put_digits::<4>(year),
        _ => {
            // Go pads years before 0 to four digits besides the sign; Rust counts the sign.
            if year < 0 {
                text.put(b"-");
            }
            match u32::try_from(year.unsigned_abs()) {
                Ok(year @ ..10_000) => text.put_digits::<4>(year),
                _ => text.put_number(year.unsigned_abs()),
            }
        }
    }
    text.put(&rest);
    if let Some(micros) = micros {
        text.put(b".");
        text.put_digits::<6>(micros);
    }
    text.put(b"Z");
    text
}

/// Year, month and day of a number of days since 1970.
fn date(days: i64) -> (i64, u32, u32) {
    // Years begin in March, so that the leap day is the last of the year; an era has 400 years.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097) as u32);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, january) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (i64::from(year) + era * 400 + january, month, day)
}

/// Such as `1h2m0.5s`.
pub(crate) fn duration(nanos: i64) -> Short {
    let mut text = Short::new();
    if nanos < 0 {
        text.put(b"-");
    }
    let nanos = nanos.unsigned_abs();
    let seconds = nanos / 1_000_000_000;
    let (unit, scale): (&[u8], u64) = match nanos {
        0 => (b"s", 1),
        1..1_000 => (b"ns", 1),
        1_000..1_000_000 => ("µs".as_bytes(), 1_000),
        1_000_000..1_000_000_000 => (b"ms", 1_000_000),
        _ => {
            if seconds >= 3600 {
                text.put_number(seconds / 3600);
                text.put(b"h");
            }
            if seconds >= 60 {
                text.put_number(seconds / 60 % 60);
                text.put(b"m");
            }
            (b"s", 1_000_000_000)
        }
    };
    let whole = if scale == 1_000_000_000 { seconds % 60 } else { nanos / scale };
    text.put_number(whole);
    let mut fraction = nanos % scale;
    if fraction > 0 {
        text.put(b".");
        let mut place = scale / 10;
        while fraction > 0 {
            text.put(&[b'0' + (fraction / place) as u8]);
            fraction %= place;
            place /= 10;
        }
    }
    text.put(unit);
    text
}

/// As Go writes it: without an exponent unless it is very large or small, so that whole numbers are
/// integers. `NaN` and `inf`, which JSON does not have, are written as Rust does.
pub(crate) fn float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}

/// Base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .enumerate()
            .fold(0, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_as_go_does() {
        for (seconds, micros, written) in [
            (0, None, "1970-01-01T00:00:00Z"),
            (1_709_251_199, None, "2024-02-29T23:59:59Z"),
            (1_795_279_235, Some(123_456), "2026-11-21T16:40:35.123456Z"),
            (1_795_279_235, Some(0), "2026-11-21T16:40:35.000000Z"),
            (-1, None, "1969-12-31T23:59:59Z"),
            (ZERO_TIME, None, "0001-01-01T00:00:00Z"),
            (ZERO_TIME - 1, None, "0000-12-31T23:59:59Z"),
            (253_402_300_800, None, "10000-01-01T00:00:00Z"),
        ] {
            assert_eq!(time(seconds, micros).as_str(), written);
        }
        for seconds in [i64::MIN, i64::MAX] {
            assert!(time(seconds, Some(999_999)).as_str().ends_with(".999999Z"));
        }
    }

    #[test]
    fn durations_are_written_as_go_does() {
        for (nanos, written) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (480_000_000_001, "8m0.000000001s"),
            (3_600_000_000_000, "1h0m0s"),
            (-60_000_000_000, "-1m0s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(duration(nanos).as_str(), written);
        }
    }

    #[test]
    fn bytes_are_written_as_base64() {
        for (bytes, written) in [
            (&b""[..], ""),
            (b"a", "YQ=="),
            (b"ab", "YWI="),
            (b"abc", "YWJj"),
            (b"\xff\xef", "/+8="),
        ] {
            assert_eq!(base64(bytes), written);
        }
    }

    proptest! {
        #[test]
        fn dates_are_those_of_another_implementation(seconds in ZERO_TIME..253_402_300_800) {
            let time = time(seconds, None);
            let parsed: k8s_openapi::jiff::Timestamp = time.as_str().parse().unwrap();
            prop_assert_eq!(parsed.as_second(), seconds);
        }
    }
}
