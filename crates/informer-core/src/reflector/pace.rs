//! Delays of lists and watches, and detection of watches that keep failing (G28).

use std::time::Duration;

use super::{Backoff, Failure, FailureKind, Reflector};

/// How many consecutive watches must fail for the informer to be degraded.
const FAILING_WATCHES: u32 = 3;

/// A backoff, and the end of its current delay.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) backoff: Backoff,
    pub(super) due: Duration,
}

/// Failures of watches since one delivered something or was healthy.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// When the first of the consecutive failed watches was requested, and their number.
    failing_since: Option<Duration>,
    failing: u32,
    /// When the first of the consecutive watches and streaming lists that got a 429 was requested.
    throttled_since: Option<Duration>,
    /// Why the informer is degraded, if it is.
    pub(super) degraded: Option<Failure>,
}

impl Pace {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self { backoff, due: Duration::ZERO }
    }

    /// Delays by another step, counted from `from`.
    pub(super) fn delay_from(&mut self, from: Duration) {
        self.due = from.saturating_add(self.backoff.next_delay());
    }

    /// The same, by `longest` at most.
    pub(super) fn delay_from_up_to(&mut self, from: Duration, longest: Duration) {
        self.due = from.saturating_add(self.backoff.next_delay_up_to(longest));
    }

    /// Delays by `least`, without counting a step.
    pub(super) fn delay_at_least_from(&mut self, from: Duration, least: Duration) {
        self.due = self.due.max(from.saturating_add(least));
    }

    pub(super) fn delay_at_max_from(&mut self, from: Duration) {
        self.due = from.saturating_add(self.backoff.next_delay_at_max());
    }
}

impl Trouble {
    /// A request got a response other than 429.
    pub(super) fn not_throttled(&mut self) {
        self.throttled_since = None;
    }

    /// A watch or streaming list that was requested at `asked` got a 429.
    pub(super) fn throttled(&mut self, asked: Duration) {
        self.throttled_since.get_or_insert(asked);
    }

    /// Ends a row of failed watches.
    pub(super) fn row_ends(&mut self) {
        (self.failing_since, self.failing) = (None, 0);
    }
}

impl Reflector {
    /// Counts a watch that could not be opened, ended at once without a frame, or is deaf.
    pub(super) fn watch_is_useless(&mut self, now: Duration, asked: Duration, failure: &Failure) {
        let trouble = &mut self.trouble;
        match failure.kind {
            FailureKind::TooManyRequests => trouble.throttled(asked),
            FailureKind::Refused | FailureKind::Expired | FailureKind::NotFound => {
                trouble.not_throttled();
                trouble.row_ends();
            }
            FailureKind::Transport
            | FailureKind::Timeout
            | FailureKind::TooLargeVersion
            | FailureKind::Unauthorized
            | FailureKind::Forbidden
            | FailureKind::Invalid
            | FailureKind::Server
            | FailureKind::Malformed
            | FailureKind::Undecodable
            | FailureKind::Deaf
            | FailureKind::Other => {
                trouble.not_throttled();
                trouble.failing_since.get_or_insert(asked);
                trouble.failing += 1;
            }
        }
        let long = trouble.failing_since.is_some_and(|since| {
            trouble.failing >= FAILING_WATCHES
                && now.saturating_sub(since) >= self.config.degraded_after
        });
        if long || self.is_throttled_for_long(now) {
            self.trouble.degraded = Some(failure.clone());
        }
        // After an expired version comes a list, which has its own delay. A delayed watch would
        // expire, too.
        if failure.kind != FailureKind::Expired {
            self.watches.delay_from(asked);
        }
    }

    /// Whether watches and streaming lists got nothing but 429 for so long that a LIST is tried.
    pub(super) fn is_throttled_for_long(&self, now: Duration) -> bool {
        let since = self.trouble.throttled_since;
        since.is_some_and(|since| now.saturating_sub(since) >= self.config.throttled_after)
    }

    /// Whether a degraded informer lists after a failed watch.
    pub(super) fn list_is_wanted(&self, now: Duration, kind: FailureKind) -> bool {
        let age = match kind {
            FailureKind::Refused => return false,
            FailureKind::TooManyRequests if !self.is_throttled_for_long(now) => return false,
            FailureKind::TooManyRequests => self.config.throttled_after,
            _ => self.config.degraded_list_age,
        };
        self.trouble.degraded.is_some()
            && self.is_last_list_older_than(now, age)
            && self.lists.due <= now
    }

    pub(super) fn is_last_list_older_than(&self, now: Duration, age: Duration) -> bool {
        self.listed.is_none_or(|listed| now.saturating_sub(listed) >= age)
    }
}
