//! Values that are strings in JSON and not in protobuf: times, durations, bytes.

/// Seconds since 1970 and nanoseconds of a time of RFC 3339, as Go reads it.
pub(crate) fn time(text: &str) -> Option<(i64, i64)> {
    let bytes = text.as_bytes();
    let number = |from: usize, length: usize| -> Option<i64> {
        let digits = bytes.get(from..from + length)?;
        digits.iter().try_fold(0, |value, digit| {
            digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0'))
        })
    };
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    if !(is(4, b'-') && is(7, b'-') && is(10, b'T') && is(13, b':') && is(16, b':')) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let days = days(year, month, day)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut at = 19;
    let mut nanos = 0;
    if is(at, b'.') || is(at, b',') {
        let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        // Digits after the ninth are dropped.
        let kept = digits.min(9);
        nanos = number(at + 1, kept)? * 10i64.pow(9 - kept as u32);
        at += 1 + digits;
    }
    let offset = match bytes.get(at..)? {
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (number(at + 1, 2)?, number(at + 4, 2)?);
            if hours > 24 || minutes > 60 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if *sign == b'+' { seconds } else { -seconds }
        }
        _ => return None,
    };
    Some((days * 86_400 + hour * 3600 + minute * 60 + second - offset, nanos))
}

/// Days since 1970 of a date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March, so that the leap day is the last of the year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    Some(
        era * 146_097 + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day
            - 1
            - 719_468,
    )
}

/// Nanoseconds of a duration as Go writes it, such as `1h2m0.5s`.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if rest == b"0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (whole, digits) = leading(rest)?;
        rest = &rest[digits..];
        let (mut fraction, mut scale, mut places) = (0, 1i128, 0);
        if let [b'.', after @ ..] = rest {
            (fraction, places) = leading(after)?;
            scale = 10i128.checked_pow(u32::try_from(places).ok()?)?;
            rest = &after[places..];
        }
        if digits + places == 0 {
            return None;
        }
        let (unit, length) = match rest {
            [b'n', b's', ..] => (1, 2),
            [b'u', b's', ..] => (1_000, 2),
            // There are two code points for µ.
            [0xc2, 0xb5, b's', ..] | [0xce, 0xbc, b's', ..] => (1_000, 3),
            [b'm', b's', ..] => (1_000_000, 2),
            [b's', ..] => (1_000_000_000, 1),
            [b'm', ..] => (60_000_000_000, 1),
            [b'h', ..] => (3_600_000_000_000i128, 1),
            _ => return None,
        };
        rest = &rest[length..];
        total = total.checked_add(whole.checked_mul(unit)?)?;
        total = total.checked_add(fraction.checked_mul(unit)? / scale)?;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// The number at the beginning, and its count of digits, at most 18.
fn leading(bytes: &[u8]) -> Option<(i128, usize)> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 18 {
        return None;
    }
    Some((
        bytes[..digits].iter().fold(0, |value, digit| value * 10 + i128::from(digit - b'0')),
        digits,
    ))
}

/// Decodes base64 with padding; line ends within are skipped, as in Go.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut padding) = (0u32, 0, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'\r' | b'\n' => continue,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        bits = bits << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    match (count, padding) {
        (0, 0) => {}
        (2, 2) => out.push((bits >> 4) as u8),
        (3, 1) => out.extend_from_slice(&[(bits >> 10) as u8, (bits >> 2) as u8]),
        _ => return None,
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::de::text::ZERO_TIME;

    #[test]
    fn times_are_read() {
        for (written, seconds, nanos) in [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("2024-02-29T23:59:59Z", 1_709_251_199, 0),
            ("2026-11-21T16:40:35.123456Z", 1_795_279_235, 123_456_000),
            ("2026-11-21T17:40:35+01:00", 1_795_279_235, 0),
            ("2026-11-21T16:10:35.5-00:30", 1_795_279_235, 500_000_000),
            ("1969-12-31T23:59:59Z", -1, 0),
            ("0001-01-01T00:00:00Z", ZERO_TIME, 0),
        ] {
            assert_eq!(time(written), Some((seconds, nanos)), "{written}");
        }
        for wrong in [
            "",
            "2026-11-21",
            "2026-11-21T16:40:35",
            "2026-11-21 16:40:35Z",
            "2026-13-21T16:40:35Z",
            "2025-02-29T16:40:35Z",
            "2026-11-21T24:40:35Z",
            "2026-11-21T16:40:35.Z",
            "2026-11-21T16:40:35Zz",
            "2026-11-21T16:40:é5Z",
        ] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_read() {
        for (written, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("1.5s", 1_500_000_000),
            ("-1m30s", -90_000_000_000),
            ("2h0m0.000000001s", 7_200_000_000_001),
            ("1.5µs", 1_500),
            ("30ns", 30),
            (".5ms", 500_000),
        ] {
            assert_eq!(duration(written), Some(nanos), "{written}");
        }
        for wrong in ["", "-", "1", "s", ".s", "1d", "99999999999h", "9999999999999999999999s"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn bytes_are_read() {
        for (written, read) in [
            ("", &b""[..]),
            ("YQ==", b"a"),
            ("YWI=", b"ab"),
            ("YW\nJj", b"abc"),
            ("/+8=", b"\xff\xef"),
        ] {
            assert_eq!(bytes(written).as_deref(), Some(read), "{written}");
        }
        for wrong in ["Y", "YQ", "YQ=", "YQ===", "Y===", "Y-==", "YQ==YQ==", "=", "====", "é"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
