//! Watches: how they end and what follows (G28), and whether they are alive (G26's probe, G29).

use std::cmp::Ordering;
use std::time::Duration;

use super::{
    Action, Failure, FailureKind, Input, ListRequest, Mode, Next, Reflector, ReflectorConfig,
    State, Trouble, VersionMatch, WatchRequest,
};
use crate::ResourceVersion;

/// A watch that ends before this without a frame counts as one that could not be opened.
const SHORT: Duration = Duration::from_secs(1);
/// How many missed bookmarks mean a dead connection.
const MISSED_BOOKMARKS: u32 = 3;
/// How long a resumed watch has to send something before a due probe or list is sent. Shorter than
/// the life of watches that a proxy ends, but that count as healthy.
const RESUME_GRACE: Duration = Duration::from_secs(2);
/// How much earlier, at most, an end still counts as the watch's own timeout.
const OWN_TIMEOUT_SLACK: Duration = Duration::from_secs(5);

/// An open watch.
#[derive(Debug)]
pub(super) struct Watching {
    timeout: Duration,
    pub(super) asked: Duration,
    /// When it was opened, or had sent its initial events.
    live_since: Option<Duration>,
    last_sign: Duration,
    /// Whether an event or bookmark came.
    heard: bool,
    /// Whether a bookmark came.
    bookmarked: bool,
    /// Whether it continues a streaming list.
    after_list: bool,
    probe: Option<Probe>,
}

#[derive(Debug)]
struct Probe {
    asked: Duration,
    version: ResourceVersion,
    answered: bool,
}

/// A silent watch that may be deaf, since the server has a newer version. A list will show it.
#[derive(Debug)]
pub(super) struct Suspicion {
    version: ResourceVersion,
    until: Duration,
}

/// A watch that stayed silent although the server had reached `version`.
#[derive(Debug)]
pub(super) struct SilentWatch {
    version: ResourceVersion,
    asked: Duration,
}

/// How a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It could not be opened, or ended at once without a frame.
    Useless,
    /// It was opened, but not for long.
    Early,
    /// It was open long enough to be healthy.
    Lived,
}

/// When to probe. Not reset when a watch ends and is resumed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Quiet {
    /// Since when nothing came and no probe was sent.
    pub(super) since: Duration,
    /// The end of the `Retry-After` of a probe's response.
    no_probe_before: Duration,
}

/// The version after which watches sent a malformed frame, and how often.
#[derive(Debug)]
pub(super) struct MalformedAt {
    version: ResourceVersion,
    times: u32,
}

impl Watching {
    fn new(now: Duration, timeout: Duration) -> Self {
        Self {
            timeout,
            asked: now,
            live_since: None,
            last_sign: now,
            heard: false,
            bookmarked: false,
            after_list: false,
            probe: None,
        }
    }

    /// A watch whose stream has just sent the last of its initial events.
    pub(super) fn after_list(now: Duration, timeout: Duration, asked: Duration) -> Self {
        let live_since = Some(now);
        Self {
            asked,
            live_since,
            heard: true,
            bookmarked: true,
            after_list: true,
            ..Self::new(now, timeout)
        }
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
        let grace = RESUME_GRACE.min(config.probe_after);
        let due = quiet.since.saturating_add(config.probe_after);
        due.max(live_since.saturating_add(grace)).max(quiet.no_probe_before)
    }

    /// Whether an end at `now` is the watch's own timeout.
    fn is_own_timeout(&self, now: Duration) -> bool {
        let slack = OWN_TIMEOUT_SLACK.min(self.timeout / 10);
        now.saturating_sub(self.asked).saturating_add(slack) >= self.timeout
    }

    pub(super) fn lived(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.live_since?))
    }
}

impl Reflector {
    pub(super) fn watch_deadline(&self, watch: &Watching) -> Duration {
        let Some(live_since) = watch.live_since else { return watch.unopened_at(&self.config) };
        watch
            .overdue_at(&self.config)
            .min(watch.dead_at(&self.config, self.bookmarks_seen))
            .min(watch.probe_at(&self.config, self.quiet, live_since))
            .min(self.suspected_until(live_since))
            .min(self.healthy_at(live_since))
    }

    /// Until when a watch that is suspected to be deaf may show that it is not.
    fn suspected_until(&self, live_since: Duration) -> Duration {
        let until = self.suspicion.as_ref().map_or(Duration::MAX, |suspicion| suspicion.until);
        until.max(live_since.saturating_add(RESUME_GRACE))
    }

    /// When an open watch becomes healthy and ends [`State::Degraded`].
    fn healthy_at(&self, live_since: Duration) -> Duration {
        match self.trouble.degraded {
            Some(_) => live_since.saturating_add(self.config.healthy_after),
            None => Duration::MAX,
        }
    }

    /// Opens a watch after a list, when it is due.
    pub(super) fn watch_after_list(&mut self, now: Duration) {
        if self.watches.due <= now {
            return self.start_watch(now);
        }
        self.wait_for(now, Next::Watch, now);
        if let Some(cause) = self.last_failure.clone() {
            // Its `Retry-After` is over.
            self.show_waiting(now, Failure { retry_after: None, ..cause });
        }
    }

    /// Opens a watch at the version of the store.
    pub(super) fn start_watch(&mut self, now: Duration) {
        let timeout = self.draw_timeout();
        let version = self.version.clone();
        self.actions.push_back(Action::Watch(WatchRequest {
            version,
            send_initial_events: false,
            timeout,
        }));
        self.mode = Mode::Watching(Watching::new(now, timeout));
    }

    /// A streaming list has become a watch.
    pub(super) fn watch_is_open(&mut self, now: Duration, watch: Watching) {
        self.mode = Mode::Watching(watch);
        self.trouble = Trouble::default();
        self.last_event = Some(now);
        self.show_watching(now);
    }

    fn show_watching(&mut self, now: Duration) {
        if let Some(cause) = &self.trouble.degraded {
            if !matches!(self.state, State::Degraded { .. }) {
                self.state = State::Degraded { cause: cause.clone(), until: now };
            }
            return;
        }
        let since = if let State::Watching { since, .. } = self.state { since } else { now };
        self.state =
            State::Watching { version: self.version.clone(), since, last_event: self.last_event };
    }

    pub(super) fn on_watching(&mut self, now: Duration, input: Input) {
        let Mode::Watching(watch) = &mut self.mode else { return };
        watch.last_sign = now;
        match input {
            Input::Opened => {
                watch.live_since.get_or_insert(now);
                self.trouble.not_throttled();
                self.show_watching(now);
            }
            Input::Received { .. } => {
                self.quiet.since = now;
                self.suspicion = None;
            }
            Input::Event { version } => self.advance(now, version),
            Input::Bookmark { version, .. } => {
                watch.bookmarked = true;
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
            Input::Progress { .. }
            | Input::Missed { .. }
            | Input::PageEnd { .. }
            | Input::Probed(_)
            | Input::Discovered(_)
            | Input::Refresh { .. } => {}
        }
    }

    /// Sets the version of the store to that of the latest event, even if it is not the largest.
    fn advance(&mut self, now: Duration, version: ResourceVersion) {
        let Mode::Watching(watch) = &mut self.mode else { return };
        watch.heard = true;
        self.trouble = Trouble::default();
        self.suspicion = None;
        self.quiet.since = now;
        self.last_event = Some(now);
        if !version.is_unset() {
            self.version = version;
        }
        self.show_watching(now);
    }

    pub(super) fn watching_on_time(&mut self, now: Duration) {
        if now >= self.refresh_at() {
            return self.start_refresh(now);
        }
        let Mode::Watching(watch) = &self.mode else { return };
        let live_since = watch.live_since;
        if live_since.is_some_and(|since| now >= self.healthy_at(since)) {
            self.trouble.degraded = None;
            self.show_watching(now);
        }
        let is_suspected = live_since.is_some_and(|since| now >= self.suspected_until(since));
        let Mode::Watching(watch) = &mut self.mode else { return };
        let Some(live_since) = watch.live_since else {
            if now >= watch.unopened_at(&self.config) {
                self.actions.push_back(Action::Close);
                let failure =
                    Failure::new(FailureKind::Timeout, "the watch was not answered in time");
                self.watch_failed(now, failure);
            }
            return;
        };
        if now >= watch.overdue_at(&self.config) {
            self.actions.push_back(Action::Close);
            self.watch_is_over(now, None);
            self.wait_for(now, Next::Watch, now);
        } else if now >= watch.dead_at(&self.config, self.bookmarks_seen) {
            self.actions.push_back(Action::Close);
            let message = "the watch missed its bookmarks: the connection seems dead";
            self.watch_failed(now, Failure::new(FailureKind::Timeout, message));
        } else if let Some(suspicion) = self.suspicion.take_if(|_| is_suspected) {
            let asked = watch.asked;
            self.has_watched(now.saturating_sub(live_since));
            self.actions.push_back(Action::Close);
            self.checked = Some(now);
            // The list shows whether the watch lived or was deaf.
            self.relist.silent = Some(SilentWatch { version: suspicion.version, asked });
            self.relist.plain = true;
            self.start_list(now);
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
        let Mode::Watching(watch) = &mut self.mode else { return };
        let Some(probe) = watch.probe.as_mut().filter(|probe| !probe.answered) else { return };
        probe.answered = true;
        // Data received since the probe was sent may be of the same history as its response.
        if watch.last_sign > probe.asked {
            return;
        }
        match answer.map(|version| (version.compare(&probe.version), version)) {
            Ok((Some(Ordering::Less), _)) => {}
            Ok((Some(Ordering::Greater), version)) if !watch.bookmarked => {
                return self.suspect(now, version);
            }
            Err(failure) if failure.kind == FailureKind::TooLargeVersion => {}
            Ok(_) | Err(_) => return,
        }
        self.actions.push_back(Action::Close);
        self.watch_is_over(now, None);
        self.relist.newest = true;
        self.relist.distrust = true;
        self.relist.history_changed = true;
        if self.lists.due <= now {
            return self.start_list(now);
        }
        self.wait_for(now, Next::List, now);
        let message = "a probe found another history than that of the watch";
        let failure = Failure::new(FailureKind::Other, message);
        self.note_failure(&failure);
        self.show_waiting(now, failure);
    }

    /// Suspects a silent watch to be deaf: the server has the newer `version`. Without bookmarks,
    /// that may or may not be a change that the watch should have sent.
    fn suspect(&mut self, now: Duration, version: ResourceVersion) {
        let interval = self.config.silent_list_interval;
        let checked = self.checked.is_some_and(|checked| now.saturating_sub(checked) < interval);
        if checked || self.lists.due > now {
            return;
        }
        let until = now.saturating_add(self.config.deaf_after);
        self.suspicion = Some(Suspicion { version, until });
    }

    /// Returns a failure if the watch before a list was deaf: it did not send what the list has.
    pub(super) fn judge_silence(
        &mut self,
        now: Duration,
        silent: &SilentWatch,
        missed: Option<&ResourceVersion>,
    ) -> Option<Failure> {
        let known = |missed: &&ResourceVersion| silent.version.has_reached(missed);
        if missed.filter(known).is_none() {
            self.watch_lived();
            return None;
        }
        let message =
            "the watch is deaf: it was silent about changes that a list has, and sent no bookmark";
        let failure = Failure::new(FailureKind::Deaf, message);
        self.watch_is_useless(now, silent.asked, &failure);
        Some(failure)
    }

    fn watch_closed(&mut self, now: Duration) {
        let Mode::Watching(watch) = &self.mode else { return };
        let lived = now.saturating_sub(watch.asked);
        let useful = watch.heard || watch.lived(now) >= Some(SHORT);
        if watch.is_own_timeout(now) && useful {
            self.watch_is_over(now, None);
            return self.wait_for(now, Next::Watch, now);
        }
        let message = format!("the server closed the watch after {:.1} s", lived.as_secs_f64());
        self.watch_failed(now, Failure::new(FailureKind::Transport, message));
    }

    fn watch_failed(&mut self, now: Duration, failure: Failure) {
        let Mode::Watching(watch) = &self.mode else { return };
        let opened = watch.live_since.is_some();
        let end = self.watch_is_over(now, Some(&failure));
        let is_unread = matches!(failure.kind, FailureKind::Malformed | FailureKind::Undecodable);
        if end != End::Lived && !is_unread && self.trouble.degraded.is_some() {
            return self.watch_failed_again(now, failure);
        }
        match failure.kind {
            FailureKind::NotFound => self.become_unavailable(now, failure),
            FailureKind::Malformed | FailureKind::Undecodable => self.watch_malformed(now, failure),
            FailureKind::TooManyRequests
            | FailureKind::Refused
            | FailureKind::Transport
            | FailureKind::Timeout => self.back_off(now, failure, Next::Watch),
            // As a response status, not as an ERROR event.
            FailureKind::Unauthorized | FailureKind::Forbidden | FailureKind::Server if !opened => {
                self.back_off(now, failure, Next::Watch);
            }
            FailureKind::Unauthorized
            | FailureKind::Forbidden
            | FailureKind::Server
            | FailureKind::Expired
            | FailureKind::TooLargeVersion
            | FailureKind::Invalid
            | FailureKind::Deaf
            | FailureKind::Other => self.back_off(now, failure, Next::List),
        }
    }

    /// Handles a failed watch of a degraded informer: it retries watches, and lists occasionally.
    fn watch_failed_again(&mut self, now: Duration, failure: Failure) {
        match failure.kind {
            FailureKind::NotFound => self.become_unavailable(now, failure),
            FailureKind::Expired => self.back_off(now, failure, Next::List),
            kind if self.list_is_wanted(now, kind) => {
                // A streaming list is a watch, and would probably fail for the same reason.
                self.relist.plain = true;
                self.back_off(now, failure, Next::List);
            }
            _ => self.back_off(now, failure, Next::Watch),
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

    /// Whether watches at the version of the store sent malformed frames more than once.
    pub(super) fn malformed_twice(&self) -> bool {
        self.malformed.as_ref().is_some_and(|at| at.times > 1 && at.version == self.version)
    }

    /// Updates backoffs and failure counts after a watch, and classifies how it ended.
    fn watch_is_over(&mut self, now: Duration, failure: Option<&Failure>) -> End {
        let Mode::Watching(watch) = &self.mode else { return End::Early };
        let (asked, heard, after_list, lived) =
            (watch.asked, watch.heard, watch.after_list, watch.lived(now));
        // An ERROR event is a frame, and so is a malformed one.
        let framed = |failure: &Failure| {
            !matches!(failure.kind, FailureKind::Transport | FailureKind::Timeout)
        };
        let framed = lived.is_some() && (heard || failure.is_some_and(framed));
        self.has_watched(lived.unwrap_or_default());
        match (lived, failure) {
            (Some(lived), _) if lived >= self.config.healthy_after => {
                self.watch_lived();
                End::Lived
            }
            (None, Some(failure)) => {
                self.watch_is_useless(now, asked, failure);
                End::Useless
            }
            (Some(lived), Some(failure)) if !framed && lived < SHORT => {
                self.watch_is_useless(now, asked, failure);
                End::Useless
            }
            _ => {
                self.trouble.row_ends();
                let expired = failure.is_some_and(|failure| failure.kind == FailureKind::Expired);
                if !after_list && !expired {
                    self.watches.delay_from_up_to(asked, self.config.healthy_after);
                }
                End::Early
            }
        }
    }

    /// Adds to the time that watches were open, and resets the backoff of lists once that is
    /// enough.
    pub(super) fn has_watched(&mut self, lived: Duration) {
        self.watched = self.watched.saturating_add(lived);
        if self.watched >= self.config.lists_restart_after {
            self.lists.backoff.reset();
        }
    }

    /// A watch was healthy: resets the backoff of watches and forgets their failures.
    pub(super) fn watch_lived(&mut self) {
        self.trouble = Trouble::default();
        self.watches.backoff.reset();
        self.watches.due = Duration::ZERO;
    }
}
