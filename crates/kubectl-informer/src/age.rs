//! Times as kubectl shows them: `45s`, `3m12s`, `5h30m`, `12d`.

use jiff::Timestamp;

/// How long ago `then` was, in two units at most.
///
/// # Examples
/// ```
/// use jiff::{Timestamp, ToSpan};
/// use kubectl_informer::age::age;
///
/// let now = Timestamp::now();
/// assert_eq!(age(now - 200.seconds(), now), "3m20s");
/// assert_eq!(age(now - 50.hours(), now), "2d2h");
/// ```
#[must_use]
pub fn age(then: Timestamp, now: Timestamp) -> String {
    seconds(now.duration_since(then).as_secs())
}

/// The age of an RFC 3339 time, `<unknown>` if it is none.
#[must_use]
pub fn age_of(then: Option<&str>, now: Timestamp) -> String {
    match then.and_then(|it| it.parse().ok()) {
        Some(then) => age(then, now),
        None => "<unknown>".to_owned(),
    }
}

/// A number of seconds, as `kubectl` rounds it.
#[must_use]
pub fn seconds(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let years = days / 365;
    let two = |big: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{rest}{small}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        // Clocks differ a little.
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_as_kubectl_rounds() {
        for (length, expected) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 61, "3h1m"),
            (8 * 3600 + 60, "8h"),
            (2 * 86_400, "2d"),
            (2 * 86_400 + 3600, "2d1h"),
            (8 * 86_400 + 3600, "8d"),
            (2 * 365 * 86_400 + 86_400, "2y1d"),
            (9 * 365 * 86_400, "9y"),
        ] {
            assert_eq!(seconds(length), expected, "{length}");
        }
    }

    #[test]
    fn no_time_is_unknown() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(age_of(None, now), "<unknown>");
        assert_eq!(age_of(Some("yesterday"), now), "<unknown>");
        assert_eq!(age_of(Some("1970-01-01T00:00:00Z"), now), "0s");
    }
}
