//! Lists: the version ladder (G26), pages, and streaming lists with their fallback (G27).

use std::cmp::Ordering;
use std::time::Duration;

use super::watching::{SilentWatch, Watching};
use super::{
    Action, Failure, FailureKind, Input, ListRequest, Mode, Next, Reflector, ReflectorConfig,
    State, VersionMatch, WatchRequest,
};
use crate::ResourceVersion;

/// The most empty pages in a row that are requested, in case a broken server sends no others.
const BARREN_PAGES: u32 = 8;

/// How to make the next list, as learnt since the last finished one.
#[derive(Debug, Default)]
pub(super) struct Relist {
    /// Request the newest version: the last seen one was refused, or the list is for a refresh.
    pub(super) newest: bool,
    /// List without the shortcut: equal versions may not imply equal objects.
    pub(super) distrust: bool,
    /// The server's history was replaced, according to a probe or a refused version.
    pub(super) history_changed: bool,
    /// Use LIST rather than a streaming list.
    pub(super) plain: bool,
    /// A streaming list was not opened. If a LIST is opened, streaming lists count as unsupported.
    suspect: bool,
    malformed: u32,
    /// Leave out unreadable items, which made earlier lists fail.
    skip_unreadable: bool,
    /// The silent watch before this list, which shows whether the watch was deaf.
    pub(super) silent: Option<SilentWatch>,
    /// The oldest version in the list in progress that is newer than the store's.
    missed: Option<ResourceVersion>,
}

/// An open LIST.
#[derive(Debug)]
pub(super) struct Listing {
    /// The version requested for the first page.
    version: ResourceVersion,
    limit: Option<u32>,
    token: Option<String>,
    /// The version in the response to the first page.
    found: Option<ResourceVersion>,
    /// Items of the pages that are complete.
    items: usize,
    barren: u32,
    pages: u32,
    /// The token of the last page whose number is a power of two, to detect a cycle of tokens
    /// (Brent's algorithm).
    mark: Option<String>,
    opened: bool,
    last_sign: Duration,
}

impl Listing {
    pub(super) fn silent_at(&self, config: &ReflectorConfig) -> Duration {
        self.last_sign.saturating_add(config.list_timeout)
    }
}

/// An open streaming list.
#[derive(Debug)]
pub(super) struct Streaming {
    version: ResourceVersion,
    timeout: Duration,
    asked: Duration,
    opened: bool,
    last_sign: Duration,
}

impl Streaming {
    pub(super) fn deadline(&self, config: &ReflectorConfig) -> Duration {
        self.silent_at(config).min(self.overdue_at(config))
    }

    fn silent_at(&self, config: &ReflectorConfig) -> Duration {
        self.last_sign.saturating_add(config.streaming_timeout)
    }

    fn overdue_at(&self, config: &ReflectorConfig) -> Duration {
        self.asked.saturating_add(self.timeout).saturating_add(config.watch_grace)
    }
}

impl Reflector {
    /// Begins a list, streaming or not, at the next version of the ladder.
    pub(super) fn start_list(&mut self, now: Duration) {
        if !self.refreshes.is_alone() {
            self.watched = Duration::ZERO;
        }
        self.suspicion = None;
        self.relist.missed = None;
        self.relist.newest |= self.refreshes.is_pending();
        let streaming = self.config.streaming_lists
            && self.streaming_supported != Some(false)
            && !self.relist.plain;
        if !streaming {
            let version = match () {
                () if self.relist.newest => ResourceVersion::unset(),
                () if self.version.is_unset() => ResourceVersion::from(0),
                () => self.version.clone(),
            };
            // An unlimited list at a version is served from the server's cache, a limited one may
            // not be.
            let cached = !self.pages && !self.relist.newest && !self.version.is_unset();
            let limited = self.config.page_relists || !cached;
            let limit = self.config.page_size.filter(|&size| limited && size > 0);
            return self.request_list(now, version, limit);
        }
        let version =
            if self.relist.newest { ResourceVersion::unset() } else { self.version.clone() };
        let timeout = self.draw_timeout();
        self.refreshes.list_begins(&version);
        self.actions.push_back(self.begin_replace());
        self.actions.push_back(Action::Watch(WatchRequest {
            version: version.clone(),
            send_initial_events: true,
            timeout,
        }));
        self.mode = Mode::Streaming(Streaming {
            version,
            timeout,
            asked: now,
            opened: false,
            last_sign: now,
        });
        self.state = self.listing_state(true);
    }

    /// Requests the first page of a list at `version`.
    fn request_list(&mut self, now: Duration, version: ResourceVersion, limit: Option<u32>) {
        let from_seen = !version.is_unset() && version != ResourceVersion::from(0);
        self.refreshes.list_begins(&version);
        self.actions.push_back(self.begin_replace());
        self.actions.push_back(Action::List(ListRequest {
            version: version.clone(),
            version_match: from_seen.then_some(VersionMatch::NotOlderThan),
            limit,
            continue_token: None,
        }));
        self.mode = Mode::Listing(Listing {
            version,
            limit,
            token: None,
            found: None,
            items: 0,
            barren: 0,
            pages: 0,
            mark: None,
            opened: false,
            last_sign: now,
        });
        self.state = self.listing_state(false);
    }

    fn begin_replace(&self) -> Action {
        let Relist { distrust, skip_unreadable, .. } = self.relist;
        Action::BeginReplace { shortcut: !distrust, skip_unreadable }
    }

    fn listing_state(&self, streaming: bool) -> State {
        State::Listing {
            streaming,
            items: 0,
            remaining: None,
            attempt: self.lists.backoff.attempt(),
        }
    }

    pub(super) fn on_listing(&mut self, now: Duration, input: Input) {
        let Mode::Listing(list) = &mut self.mode else { return };
        list.last_sign = now;
        match input {
            Input::Opened => {
                list.opened = true;
                if std::mem::take(&mut self.relist.suspect) {
                    self.streaming_supported = Some(false);
                }
            }
            Input::Progress { items: staged } => self.note_progress(staged),
            Input::Missed { version } => self.relist.missed = Some(version),
            Input::PageEnd { version, continue_token, remaining, items } => {
                self.open = false;
                self.on_page_end(now, version, continue_token, remaining, items);
            }
            Input::Closed => {
                self.open = false;
                let message = "the list's response ended before the list did";
                self.list_failed(now, Failure::new(FailureKind::Malformed, message));
            }
            Input::Failed(failure) => {
                self.open = false;
                self.list_failed(now, failure);
            }
            Input::Received { .. }
            | Input::Event { .. }
            | Input::Bookmark { .. }
            | Input::Probed(_)
            | Input::Discovered(_)
            | Input::Refresh { .. } => {}
        }
    }

    pub(super) fn listing_on_time(&mut self, now: Duration) {
        let Mode::Listing(list) = &self.mode else { return };
        if now >= list.silent_at(&self.config) {
            self.actions.push_back(Action::Close);
            self.list_failed(
                now,
                Failure::new(FailureKind::Timeout, "the list sent nothing for too long"),
            );
        }
    }

    fn on_page_end(
        &mut self,
        now: Duration,
        version: ResourceVersion,
        continue_token: Option<String>,
        left: Option<u64>,
        count: usize,
    ) {
        let Mode::Listing(list) = &mut self.mode else { return };
        list.items = list.items.saturating_add(count);
        // Later pages may be newer; a watch from the first one's version misses nothing.
        let found = list.found.get_or_insert(version).clone();
        if found.is_unset() {
            let message = "the list has no resourceVersion, so no watch can follow it";
            return self.list_failed(now, Failure::new(FailureKind::Other, message));
        }
        if let State::Listing { items, remaining, .. } = &mut self.state {
            (*items, *remaining) = (list.items, left);
        }
        let Some(token) = continue_token.filter(|token| !token.is_empty()) else {
            return self.list_complete(now, found, None);
        };
        list.barren = if count == 0 { list.barren + 1 } else { 0 };
        if list.barren >= BARREN_PAGES || list.mark.as_ref() == Some(&token) {
            let message = "the list's pages do not come to an end";
            return self.list_failed(now, Failure::new(FailureKind::Other, message));
        }
        list.pages = list.pages.saturating_add(1);
        if list.pages.is_power_of_two() {
            list.mark = Some(token.clone());
        }
        self.pages |= list.version == ResourceVersion::from(0);
        (list.opened, list.last_sign) = (false, now);
        list.token = Some(token.clone());
        self.actions.push_back(Action::List(ListRequest {
            version: ResourceVersion::unset(),
            version_match: None,
            limit: list.limit,
            continue_token: Some(token),
        }));
    }

    /// Decides what follows a failed LIST: another one at once (each step of the ladder once), or a
    /// wait.
    fn list_failed(&mut self, now: Duration, failure: Failure) {
        let Mode::Listing(list) = &mut self.mode else { return };
        let first_page = list.token.is_none();
        // Only once: a server may page an unlimited list, too, and let its tokens expire.
        if failure.kind == FailureKind::Expired && !first_page && list.limit.is_some() {
            let version = std::mem::take(&mut list.version);
            self.note_failure(&failure);
            self.abandon();
            return self.request_list(now, version, None);
        }
        let at_newest = list.version.is_unset();
        if at_newest || !is_about_version(failure.kind) {
            self.listed = Some(now);
            // A failed LIST says nothing about streaming lists. After a malformed list, LIST is
            // used again, since it knows where an unreadable item ends.
            self.relist.suspect = false;
            self.relist.plain &=
                matches!(failure.kind, FailureKind::Malformed | FailureKind::Undecodable);
        }
        self.any_list_failed(now, failure, at_newest);
    }

    /// Handles what failed LISTs and streaming lists have in common.
    fn any_list_failed(&mut self, now: Duration, failure: Failure, at_newest: bool) {
        if is_about_version(failure.kind) {
            self.relist.newest = true;
            if failure.kind == FailureKind::TooLargeVersion && !self.version.is_unset() {
                self.relist.distrust = true;
                self.relist.history_changed = true;
            }
            if !at_newest {
                self.note_failure(&failure);
                self.abandon();
                return self.start_list(now);
            }
        }
        self.refreshes.list_failed();
        self.lists.delay_from(now);
        // A degraded informer tries a watch first, unless that would read the same malformed frame
        // again.
        let watches_first = self.trouble.degraded.is_some() && !self.malformed_twice();
        let next = if watches_first { Next::Watch } else { Next::List };
        match failure.kind {
            FailureKind::NotFound => self.become_unavailable(now, failure),
            FailureKind::Malformed if !self.relist.skip_unreadable && !self.config.strict => {
                // Unreadable items are left out after two malformed lists, or one that follows a
                // watch which was malformed twice (G30).
                self.relist.malformed += 1;
                self.relist.skip_unreadable = self.relist.malformed > 1 || self.malformed_twice();
                self.back_off(now, failure, next);
            }
            FailureKind::Malformed | FailureKind::Undecodable if !watches_first => {
                self.degrade(now, failure, Next::List);
            }
            _ => self.back_off(now, failure, next),
        }
    }

    pub(super) fn on_streaming(&mut self, now: Duration, input: Input) {
        let Mode::Streaming(stream) = &mut self.mode else { return };
        stream.last_sign = now;
        match input {
            Input::Opened => {
                stream.opened = true;
                self.trouble.not_throttled();
            }
            Input::Progress { items } => self.note_progress(items),
            Input::Missed { version } => self.relist.missed = Some(version),
            Input::Bookmark { version, initial_events_end: true } => {
                if version.is_unset() {
                    self.actions.push_back(Action::Close);
                    let message =
                        "the bookmark at the end of the initial events has no resourceVersion";
                    let failure = Failure::new(FailureKind::Other, message);
                    return self.refuse_streaming(now, true, &failure);
                }
                self.bookmarks_seen = true;
                self.streaming_supported = Some(true);
                let watch = Watching::after_list(now, stream.timeout, stream.asked);
                self.list_complete(now, version, Some(watch));
            }
            Input::Bookmark { initial_events_end: false, .. } => {
                // Servers send no other bookmark before the end: a proxy seems to drop the
                // annotation.
                self.actions.push_back(Action::Close);
                let message = "a bookmark came before the end of the initial events";
                self.refuse_streaming(now, true, &Failure::new(FailureKind::Other, message));
            }
            Input::Closed => {
                self.open = false;
                self.stream_failed(now, stream_ended());
            }
            Input::Failed(failure) => {
                self.open = false;
                self.stream_failed(now, failure);
            }
            Input::Received { .. }
            | Input::PageEnd { .. }
            | Input::Event { .. }
            | Input::Probed(_)
            | Input::Discovered(_)
            | Input::Refresh { .. } => {}
        }
    }

    pub(super) fn streaming_on_time(&mut self, now: Duration) {
        let Mode::Streaming(stream) = &self.mode else { return };
        let opened = stream.opened;
        if now >= stream.silent_at(&self.config) {
            self.actions.push_back(Action::Close);
            self.relist.suspect = !opened;
            let message = "the streaming list sent nothing for too long";
            self.refuse_streaming(now, opened, &Failure::new(FailureKind::Timeout, message));
        } else if now >= stream.overdue_at(&self.config) {
            self.actions.push_back(Action::Close);
            self.stream_failed(now, stream_ended());
        }
    }

    /// Decides what follows a failed streaming list: a LIST when the next list is due. After a
    /// refused connection or a 429, it is another streaming list.
    fn stream_failed(&mut self, now: Duration, failure: Failure) {
        let Mode::Streaming(stream) = &self.mode else { return };
        let (opened, asked, at_newest) = (stream.opened, stream.asked, stream.version.is_unset());
        let long = self.config.throttled_after;
        match failure.kind {
            FailureKind::TooManyRequests if !opened => {
                self.trouble.throttled(asked);
                self.relist.plain =
                    self.is_throttled_for_long(now) && self.is_last_list_older_than(now, long);
            }
            // As a response, `Invalid` is about the request; as an ERROR event, about the stream.
            FailureKind::Invalid if !opened => return self.refuse_streaming(now, true, &failure),
            FailureKind::Refused => self.trouble.not_throttled(),
            kind => {
                self.trouble.not_throttled();
                self.relist.plain |= at_newest || !is_about_version(kind);
            }
        }
        self.any_list_failed(now, failure, at_newest);
    }

    /// Falls back to LIST at once; with `learn`, for all later lists.
    fn refuse_streaming(&mut self, now: Duration, learn: bool, failure: &Failure) {
        self.note_failure(failure);
        if learn {
            self.streaming_supported = Some(false);
        }
        self.relist.plain = true;
        self.abandon();
        self.start_list(now);
    }

    fn note_progress(&mut self, staged: usize) {
        if let State::Listing { items, .. } = &mut self.state {
            *items = staged;
        }
    }

    /// A list is complete at `version`. If it was a streaming list, `stream` is the watch that it
    /// becomes.
    fn list_complete(&mut self, now: Duration, version: ResourceVersion, stream: Option<Watching>) {
        let went_back = version.compare(&self.version) == Some(Ordering::Less);
        let distrusted = went_back && !self.relist.distrust;
        // The watch after a list at this version would read the same malformed frame again.
        let stuck = !self.relist.newest && self.malformed_twice() && version == self.version;
        if distrusted || stuck {
            if stream.is_some() {
                self.actions.push_back(Action::Close);
            }
            self.relist.newest = true;
            self.relist.distrust |= distrusted;
            self.abandon();
            return self.start_list(now);
        }
        let history_changed = went_back || self.relist.history_changed;
        match self.refreshes.is_alone() {
            true => self.lists.delay_at_least_from(now, self.config.backoff.initial),
            false => self.lists.delay_from(now),
        }
        let refreshes = self.refreshes.list_complete();
        self.actions.push_back(Action::FinishReplace {
            version: version.clone(),
            history_changed,
            refreshes,
        });
        self.version = version;
        self.quiet.since = now;
        self.listed = Some(now);
        let Relist { silent, missed, .. } = std::mem::take(&mut self.relist);
        let deaf = silent.and_then(|silent| self.judge_silence(now, &silent, missed.as_ref()));
        match (stream, deaf) {
            (Some(watch), None) => self.watch_is_open(now, watch),
            (Some(watch), Some(failure)) => {
                self.note_failure(&failure);
                self.watch_is_open(now, watch);
            }
            (None, Some(failure)) => self.back_off(now, failure, Next::Watch),
            (None, None) => self.watch_after_list(now),
        }
    }
}

/// Whether a list failed because of its requested version.
fn is_about_version(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Expired | FailureKind::TooLargeVersion)
}

fn stream_ended() -> Failure {
    Failure::new(
        FailureKind::Transport,
        "the streaming list ended before all initial events were sent",
    )
}
