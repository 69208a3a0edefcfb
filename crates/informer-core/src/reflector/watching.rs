//! Watches: how they end and what follows (G28), and whether they are alive (G26's probe, G29).

use std::cmp::Ordering;
use std::time::Duration;

use super::{
    Action, Failure, FailureKind, Input, ListRequest, Next, Phase, Reflector, ReflectorConfig, State,
    VersionMatch, WatchRequest,
};
use crate::ResourceVersion;

/// A watch that is closed before this, without a word, is a short one.
const SHORT: Duration = Duration::from_secs(1);
/// How many short watches in a row lead to a relist.
const SHORT_WATCHES: u32 = 3;
/// How many bookmarks may be missed.
const MISSED_BOOKMARKS: u32 = 3;
/// A watch that ended at its own timeout is reopened within this.
const REOPEN_JITTER: Duration = Duration::from_millis(100);
/// How far apart such ends have to be.
const OWN_TIMEOUTS_APART: Duration = Duration::from_secs(60);
/// How long a watch that was resumed may speak before the probe that is due is sent.
const PROBE_GRACE: Duration = Duration::from_secs(10);
/// How early an end still counts as the watch's own timeout, at most.
const OWN_TIMEOUT_SLACK: Duration = Duration::from_secs(5);

/// An open watch.
#[derive(Debug)]
pub(super) struct Watching {
    timeout: Duration,
    asked: Duration,
    /// When it was opened, or had sent its initial events.
    live_since: Option<Duration>,
    last_sign: Duration,
    /// Whether an event or bookmark came.
    heard: bool,
    probe: Option<Probe>,
}

#[derive(Debug)]
struct Probe {
    asked: Duration,
    version: ResourceVersion,
    answered: bool,
}

/// What tells when to probe; a watch that ends and is resumed does not interrupt it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Quiet {
    /// Since when nothing came and no probe was sent.
    pub(super) since: Duration,
    /// What a probe's answer asked for.
    no_probe_before: Duration,
}

/// Where a watch sent something that cannot be read, and how often.
#[derive(Debug)]
pub(super) struct MalformedAt {
    version: ResourceVersion,
    times: u32,
}

impl Watching {
    fn new(now: Duration, timeout: Duration) -> Self {
        Self { timeout, asked: now, live_since: None, last_sign: now, heard: false, probe: None }
    }

    /// A watch whose stream has just sent the last of its initial events.
    pub(super) fn after_list(now: Duration, timeout: Duration, asked: Duration) -> Self {
        Self { asked, live_since: Some(now), heard: true, ..Self::new(now, timeout) }
    }

    pub(super) fn deadline(&self, config: &ReflectorConfig, bookmarks_seen: bool, quiet: Quiet) -> Duration {
        let Some(live_since) = self.live_since else { return self.unopened_at(config) };
        let dead_at = self.dead_at(config, bookmarks_seen);
        self.overdue_at(config).min(dead_at).min(self.probe_at(config, quiet, live_since))
    }

    fn unopened_at(&self, config: &ReflectorConfig) -> Duration {
        self.asked.saturating_add(config.open_timeout)
    }

    fn overdue_at(&self, config: &ReflectorConfig) -> Duration {
        self.asked.saturating_add(self.timeout).saturating_add(config.watch_grace)
    }

    fn dead_at(&self, config: &ReflectorConfig, bookmarks_seen: bool) -> Duration {
        if !bookmarks_seen {
            return Duration::MAX;
        }
        self.last_sign.saturating_add(config.bookmark_interval.saturating_mul(MISSED_BOOKMARKS))
    }

    fn probe_at(&self, config: &ReflectorConfig, quiet: Quiet, live_since: Duration) -> Duration {
        let grace = PROBE_GRACE.min(config.probe_after);
        let due = quiet.since.saturating_add(config.probe_after);
        due.max(live_since.saturating_add(grace)).max(quiet.no_probe_before)
    }

    /// Whether an end at `now` is the one that was asked for.
    fn is_own_timeout(&self, now: Duration) -> bool {
        let slack = OWN_TIMEOUT_SLACK.min(self.timeout / 10);
        now.saturating_sub(self.asked).saturating_add(slack) >= self.timeout
    }

    fn is_short(&self, now: Duration) -> bool {
        !self.heard && now.saturating_sub(self.asked) < SHORT
    }
}

impl Reflector {
    /// Opens a watch from where the store stands.
    pub(super) fn start_watch(&mut self, now: Duration) {
        let timeout = self.draw_timeout();
        let version = self.version.clone();
        self.actions.push_back(Action::Watch(WatchRequest { version, send_initial_events: false, timeout }));
        self.phase = Phase::Watching(Watching::new(now, timeout));
    }

    /// A streaming list has become a watch.
    pub(super) fn watch_is_open(&mut self, now: Duration, watch: Watching) {
        self.phase = Phase::Watching(watch);
        self.last_event = Some(now);
        self.show_watching(now);
    }

    fn show_watching(&mut self, now: Duration) {
        let since = if let State::Watching { since, .. } = self.state { since } else { now };
        self.state = State::Watching { version: self.version.clone(), since, last_event: self.last_event };
    }

    pub(super) fn on_watching(&mut self, now: Duration, input: Input) {
        let Phase::Watching(watch) = &mut self.phase else { return };
        watch.last_sign = now;
        match input {
            Input::Opened => {
                watch.live_since.get_or_insert(now);
                self.show_watching(now);
            }
            Input::Received { .. } => self.quiet.since = now,
            Input::Event { version } => self.advance(now, version),
            Input::Bookmark { version, .. } => {
                self.bookmarks_seen = true;
                self.advance(now, version);
            }
            Input::Closed => {
                self.open = false;
                self.watch_closed(now);
            }
            Input::Failed(failure) => {
                self.open = false;
                self.watch_failed(now, failure);
            }
            _ => {}
        }
    }

    /// The store stands at `version`: the last one counts, even where it is not the largest.
    fn advance(&mut self, now: Duration, version: ResourceVersion) {
        let Phase::Watching(watch) = &mut self.phase else { return };
        watch.heard = true;
        self.quiet.since = now;
        self.last_event = Some(now);
        if !version.is_unset() {
            self.version = version;
        }
        self.show_watching(now);
    }

    pub(super) fn watching_on_time(&mut self, now: Duration) {
        let Phase::Watching(watch) = &mut self.phase else { return };
        let Some(live_since) = watch.live_since else {
            if now >= watch.unopened_at(&self.config) {
                self.actions.push_back(Action::Close);
                let failure = Failure::new(FailureKind::Timeout, "the watch was not answered in time");
                self.watch_failed(now, failure);
            }
            return;
        };
        if now >= watch.overdue_at(&self.config) {
            self.actions.push_back(Action::Close);
            self.watch_is_over(now);
            self.reopen(now);
        } else if now >= watch.dead_at(&self.config, self.bookmarks_seen) {
            self.actions.push_back(Action::Close);
            let message = "the watch missed its bookmarks: the connection seems dead";
            self.watch_failed(now, Failure::new(FailureKind::Timeout, message));
        } else if now >= watch.probe_at(&self.config, self.quiet, live_since) {
            self.quiet.since = now;
            let (version, asked) = (self.version.clone(), now);
            watch.probe = Some(Probe { asked, version, answered: false });
            self.actions.push_back(Action::Probe(ListRequest {
                version: self.version.clone(),
                version_match: Some(VersionMatch::NotOlderThan),
                limit: Some(1),
                continue_token: None,
            }));
        }
    }

    pub(super) fn on_probed(&mut self, now: Duration, answer: Result<ResourceVersion, Failure>) {
        let wanted = self.obeyed(answer.as_ref().err().and_then(|failure| failure.retry_after));
        self.quiet.no_probe_before = self.quiet.no_probe_before.max(now.saturating_add(wanted));
        let Phase::Watching(watch) = &mut self.phase else { return };
        let Some(probe) = watch.probe.as_mut().filter(|probe| !probe.answered) else { return };
        probe.answered = true;
        let replaced = match answer {
            Ok(version) => version.compare(&probe.version) == Some(Ordering::Less),
            Err(failure) => failure.kind == FailureKind::TooLargeVersion,
        };
        // What came since the question may have come from the history that the answer is about.
        if !replaced || watch.last_sign > probe.asked {
            return;
        }
        self.actions.push_back(Action::Close);
        self.watch_is_over(now);
        self.relist.newest = true;
        self.relist.distrust = true;
        self.relist.history_changed = true;
        self.start_list(now);
    }

    fn watch_closed(&mut self, now: Duration) {
        let Phase::Watching(watch) = &self.phase else { return };
        let (short, own) = (watch.is_short(now), watch.is_own_timeout(now));
        let lived = now.saturating_sub(watch.asked);
        let shorts = if short { self.short_watches + 1 } else { 0 };
        self.watch_is_over(now);
        if own && !short {
            return self.reopen(now);
        }
        let message = format!("the server closed the watch after {:.1} s", lived.as_secs_f64());
        let failure = Failure::new(FailureKind::Transport, message);
        if shorts >= SHORT_WATCHES {
            self.back_off(now, failure, Next::List);
        } else {
            self.short_watches = shorts;
            self.back_off(now, failure, Next::Watch);
        }
    }

    fn watch_failed(&mut self, now: Duration, failure: Failure) {
        let Phase::Watching(watch) = &self.phase else { return };
        let opened = watch.live_since.is_some();
        self.watch_is_over(now);
        match failure.kind {
            FailureKind::NotFound => self.become_unavailable(now, failure),
            FailureKind::Malformed | FailureKind::Undecodable => self.watch_malformed(now, failure),
            FailureKind::TooManyRequests
            | FailureKind::Refused
            | FailureKind::Transport
            | FailureKind::Timeout => self.back_off(now, failure, Next::Watch),
            // As an answer, not as an ERROR event.
            FailureKind::Unauthorized | FailureKind::Forbidden | FailureKind::Server if !opened => {
                self.back_off(now, failure, Next::Watch);
            }
            _ => self.back_off(now, failure, Next::List),
        }
    }

    /// Reads the same frame at most twice (G30).
    fn watch_malformed(&mut self, now: Duration, failure: Failure) {
        let times = match &self.malformed {
            Some(before) if before.version == self.version => before.times.saturating_add(1),
            _ => 1,
        };
        self.malformed = Some(MalformedAt { version: self.version.clone(), times });
        let next = if times == 1 { Next::Watch } else { Next::List };
        self.relist.newest |= times > 2;
        if times > 2 || self.config.strict {
            self.degrade(now, failure, next);
        } else {
            self.back_off(now, failure, next);
        }
    }

    /// Whether the watch from where the store stands sent what cannot be read more than once.
    pub(super) fn malformed_twice(&self) -> bool {
        self.malformed.as_ref().is_some_and(|at| at.times > 1 && at.version == self.version)
    }

    /// The watch ended as it should.
    fn reopen(&mut self, now: Duration) {
        let before = self.last_own_timeout.replace(now);
        if before.is_some_and(|before| now.saturating_sub(before) < OWN_TIMEOUTS_APART) {
            let message = "watches end at their own timeout more than once a minute";
            return self.back_off(now, Failure::new(FailureKind::Timeout, message), Next::Watch);
        }
        let until = now.saturating_add(self.random.between(Duration::ZERO, REOPEN_JITTER));
        self.phase = Phase::Waiting { until, next: Next::Watch };
    }

    /// What a watch leaves behind, however it ended.
    fn watch_is_over(&mut self, now: Duration) {
        let Phase::Watching(watch) = &self.phase else { return };
        if let Some(since) = watch.live_since {
            self.backoff.succeeded_for(now.saturating_sub(since));
        }
        self.short_watches = 0;
    }
}
