//! How durations are written.

use jiff::{SignedDuration, Timestamp};

/// A duration as kubectl shows it, in two units at most: `45s`, `3m12s`, `5h30m`, `12d`.
///
/// # Examples
/// ```
/// use jiff::SignedDuration;
/// use k8s_serve::table::human_duration;
///
/// assert_eq!(human_duration(SignedDuration::from_secs(200)), "3m20s");
/// assert_eq!(human_duration(SignedDuration::from_hours(50)), "2d2h");
/// ```
#[must_use]
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
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

/// How long before `now` an RFC 3339 time was, as kubectl shows it; `<unknown>` if it is none, or
/// Go's zero time.
#[must_use]
pub fn age_of(then: &str, now: Timestamp) -> String {
    match parse_time(then) {
        Some(then) => human_duration(between(then, now)),
        None => "<unknown>".to_owned(),
    }
}

/// A time, unless it is Go's zero time.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    match text {
        "0001-01-01T00:00:00Z" => None,
        // The last day that Go can write is too late for a timestamp.
        _ if text.starts_with("9999-12-3") => Some(Timestamp::MAX),
        _ => text.parse().ok(),
    }
}

/// From `then` to `now`; no more than Go's durations can be, 292 years.
pub(super) fn between(then: Timestamp, now: Timestamp) -> SignedDuration {
    const LONGEST: SignedDuration = SignedDuration::from_nanos(i64::MAX);
    const SHORTEST: SignedDuration = SignedDuration::from_nanos(i64::MIN);
    now.duration_since(then).clamp(SHORTEST, LONGEST)
}

/// In lower case, character by character as in Go.
pub(super) fn lower(text: &str) -> String {
    text.chars().map(|it| it.to_lowercase().next().unwrap_or(it)).collect()
}

/// `deployments.apps`; `pods` of the group without a name.
pub(super) fn resource_name(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// The first three of a list, and how many more there are.
pub(super) fn first_three<T: AsRef<str>>(list: impl Iterator<Item = T>) -> String {
    let mut text = String::new();
    let mut more = 0;
    for (position, entry) in list.enumerate() {
        match position {
            0 => text.push_str(entry.as_ref()),
            1 | 2 => {
                text.push(',');
                text.push_str(entry.as_ref());
            }
            _ => more += 1,
        }
    }
    if more == 0 { text } else { format!("{text} + {more} more...") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_as_kubectl_rounds() {
        for (seconds, expected) in [
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
            assert_eq!(human_duration(SignedDuration::from_secs(seconds)), expected, "{seconds}");
        }
    }

    #[test]
    fn no_time_is_unknown() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(age_of("", now), "<unknown>");
        assert_eq!(age_of("yesterday", now), "<unknown>");
        assert_eq!(age_of("0001-01-01T00:00:00Z", now), "<unknown>");
        assert_eq!(age_of("1970-01-01T00:00:00Z", now), "0s");
    }

    #[test]
    fn a_list_tells_how_much_more_there_is() {
        assert_eq!(first_three([""; 0].iter()), "");
        assert_eq!(first_three(["a", "b", "c"].iter()), "a,b,c");
        assert_eq!(first_three(["a", "b", "c", "d", "e"].iter()), "a,b,c + 2 more...");
    }
}
