//! What may be asked of the server, and when: G26 to G29 and G32, by a second, simpler set of
//! rules.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use informer_core::ResourceVersion;
use informer_core::reflector::{
    Failure, FailureKind, ListRequest, State, VersionMatch, WatchRequest,
};

use crate::world::World;

/// More requests than this in any minute are a hot loop; pages are not counted.
const REQUESTS_A_MINUTE: usize = 45;

/// No watch is opened, and no list made, sooner than this after the one before; but for watches
/// that lived.
const LEAST_DELAY: Duration = Duration::from_millis(400);

/// A watch that lived that long is reopened at once.
const LIVED: Duration = Duration::from_secs(5);

/// The longest `Retry-After` that is obeyed.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// What was asked and answered so far, as far as the rules need it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) requests: VecDeque<Duration>,
    pub(crate) current: Current,
    pub(crate) asked: Duration,
    pub(crate) timeout: Duration,
    pub(crate) last_sign: Duration,
    /// Since when nothing came and no probe was sent, through all watches.
    pub(crate) quiet_since: Duration,
    pub(crate) probe_waits: Duration,
    pub(crate) discovery_waits: Duration,
    pub(crate) discovery_asked: Duration,
    pub(crate) opened: bool,
    pub(crate) live_since: Option<Duration>,
    /// How long the last watch lived, whether it sent anything, and when it was asked for.
    pub(crate) life: Duration,
    pub(crate) heard: bool,
    /// The frames that came last had a bookmark.
    pub(crate) bookmarked: bool,
    pub(crate) watch_asked: Option<Duration>,
    /// Lists since a minute was watched without one, when the last one ended, and how much was
    /// watched since.
    pub(crate) lists: u32,
    pub(crate) list_ended: Option<Duration>,
    /// The same, of the lists that count: not those that may be for a refresh alone.
    pub(crate) counted_list_ended: Option<Duration>,
    pub(crate) may_be_for_refresh: bool,
    pub(crate) watched: Duration,
    pub(crate) waiting: Option<(u32, Duration)>,
    pub(crate) bookmarks_seen: bool,
    pub(crate) may_newest: bool,
    pub(crate) must_newest: bool,
    pub(crate) may_plain: bool,
    /// A streaming list failed so that a LIST has to follow.
    pub(crate) stream_failed: bool,
    pub(crate) degraded: bool,
    pub(crate) streaming_refused: bool,
    pub(crate) rewatch: bool,
    /// Something is wrong with what the server sends.
    pub(crate) flawed: bool,
    /// Where something could not be read.
    pub(crate) malformed_at: ResourceVersion,
    /// The latest version that a later page of a list was of: until the watch is there, the store
    /// may show states of any version in between.
    pub(crate) pages_until: u64,
    /// Lists in a row that could not be read.
    pub(crate) malformed_lists: u32,
    /// A page was not to be had any more: the whole list may come without a limit.
    pub(crate) page_expired: bool,
    pub(crate) probe_says_so: bool,
    pub(crate) token: Option<String>,
    pub(crate) absences: u32,
    pub(crate) first_absence: Duration,
    /// The version of the last poisoned event that was sent.
    pub(crate) poison_sent: Option<u64>,
    pub(crate) poisoned: BTreeMap<(usize, u64, String), u32>,
    /// Lists published, and histories replaced, as the machine said.
    pub(crate) finished: u64,
    /// The lineage that the informer's lists are of.
    pub(crate) lineage: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Current {
    #[default]
    None,
    FirstPage,
    Page,
    Streaming,
    Watch,
}

impl Ledger {
    fn list_ended(&mut self, now: Duration) {
        self.list_ended = Some(now);
        if !self.may_be_for_refresh {
            self.counted_list_ended = Some(now);
        }
    }
}

impl World {
    pub(crate) fn check_list(&mut self, request: &ListRequest) {
        self.requested(request.continue_token.is_some());
        let degraded = self.ledger.degraded;
        let refresh = self.is_refresh_pending();
        assert!(
            !self.ledger.rewatch || degraded || refresh,
            "G28: a relist after a watch was refused or too much"
        );
        let held = self.ingest.last_sync_resource_version().clone();
        if request.continue_token.is_none() {
            self.check_delay_of_lists();
        }
        if let Some(token) = &request.continue_token {
            assert_eq!(
                Some(token),
                self.ledger.token.as_ref(),
                "G26: not the token of the page before"
            );
            assert!(
                request.version.is_unset() && request.version_match.is_none(),
                "G26: {request:?}"
            );
            self.ledger.current = Current::Page;
            return;
        }
        let page_size = self.config.page_size;
        let whole = std::mem::take(&mut self.ledger.page_expired);
        if self.config.page_relists || request.version == ResourceVersion::from(0) {
            let wanted = page_size.filter(|_| !whole);
            assert_eq!(request.limit, wanted, "G26: the page size does not hold: {request:?}");
        }
        let from_seen = self.check_ladder(&request.version, &held, false, whole);
        let wanted = from_seen.then_some(VersionMatch::NotOlderThan);
        assert_eq!(request.version_match, wanted, "G26: {request:?}");
        if self.config.streaming_lists && self.ingest.streaming_lists_supported() != Some(false) {
            let may_plain = self.ledger.may_plain || degraded && refresh;
            assert!(may_plain, "G27: a LIST although streaming lists were not refused");
        }
        if degraded {
            self.cover("degraded informer lists");
        }
        if std::mem::take(&mut self.ledger.stream_failed) {
            self.cover("streaming list failed, and a LIST is next");
        }
        self.ledger.current = Current::FirstPage;
        self.cover("request: list");
    }

    pub(crate) fn check_watch(&mut self, request: &WatchRequest) {
        self.requested(false);
        let held = self.ingest.last_sync_resource_version().clone();
        let range = Duration::from_secs(200)..=Duration::from_secs(280);
        assert!(range.contains(&request.timeout), "G29: {request:?}");
        self.ledger.timeout = request.timeout;
        if request.send_initial_events {
            let refresh = self.is_refresh_pending();
            assert!(
                !self.ledger.rewatch || refresh,
                "G28: a relist after a watch was refused or too much"
            );
            assert!(self.config.streaming_lists, "G27: streaming lists are not wanted");
            assert!(!self.ledger.streaming_refused, "G27: a streaming list was refused before");
            self.check_delay_of_lists();
            let again = std::mem::take(&mut self.ledger.stream_failed);
            assert!(!again, "G27: another streaming list after one that failed");
            self.check_ladder(&request.version, &held, true, false);
            self.ledger.current = Current::Streaming;
            self.cover("request: streaming list");
        } else {
            assert!(
                !held.is_unset() && request.version == held,
                "G26: {request:?}, not from {held}"
            );
            let since = self.ledger.watch_asked.map(|asked| self.now.saturating_sub(asked));
            let lived = self.ledger.life >= LIVED;
            assert!(
                lived || since.is_none_or(|since| since >= LEAST_DELAY),
                "G28: a watch after {since:?}"
            );
            self.ledger.watch_asked = Some(self.now);
            self.ledger.rewatch = false;
            self.ledger.current = Current::Watch;
            self.cover("request: watch");
        }
    }

    /// What cannot be read twice is left out of the list that follows, and not before (G30).
    pub(crate) fn check_skip(&self, skips: bool) {
        let malformed = self.ledger.malformed_lists;
        let stuck = self.ledger.malformed_at == *self.ingest.last_sync_resource_version();
        assert!(
            !skips || malformed > 1 || malformed > 0 && stuck,
            "G30: left out after {malformed} failures"
        );
        assert!(!skips || !self.config.strict, "G30: left out although it is strict");
        assert!(
            skips || malformed < 2 || self.config.strict,
            "G30: not left out after {malformed} failures"
        );
    }

    /// Whether the last list ended long enough ago; what follows a list at once is a part of it.
    fn check_delay_of_lists(&mut self) {
        let may_be_for_refresh = self.is_refresh_pending();
        let ledger = &mut self.ledger;
        if ledger.list_ended == Some(self.now) {
            return;
        }
        ledger.may_be_for_refresh = may_be_for_refresh;
        if may_be_for_refresh {
            let since = ledger.list_ended.map(|ended| self.now.saturating_sub(ended));
            let is_apart = since.is_none_or(|since| since >= LEAST_DELAY);
            assert!(is_apart, "G28: a refresh {since:?} after a list");
            return;
        }
        if ledger.watched >= Duration::from_secs(60) {
            ledger.lists = 0;
        }
        let ended = ledger.counted_list_ended;
        if let (Some(ended), Some(doublings)) = (ended, ledger.lists.checked_sub(1)) {
            let step = (LEAST_DELAY * 2 * (1 << doublings.min(10))).min(Duration::from_secs(30));
            let since = self.now.saturating_sub(ended);
            assert!(since >= step / 2, "G28: list {} in a row after {since:?}", ledger.lists + 1);
        }
        ledger.lists += 1;
        ledger.watched = Duration::ZERO;
    }

    /// Whether the version is the one last seen. `again`: a list whose page was not to be had any
    /// more is requested again, as it was.
    fn check_ladder(
        &mut self,
        version: &ResourceVersion,
        held: &ResourceVersion,
        streaming: bool,
        again: bool,
    ) -> bool {
        let newest = self.ledger.must_newest;
        let refresh = self.is_refresh_pending();
        self.list_requested(version.is_unset());
        if version.is_unset() {
            let first = streaming && held.is_unset();
            // A list that led back to a frame that cannot be read is of no use (G30).
            let stuck = self.ledger.malformed_at == *held;
            assert!(
                first || stuck || refresh || self.ledger.may_newest,
                "G26: the newest is asked for, not {held}"
            );
            return false;
        }
        assert!(!newest, "G26: {version} again, which was refused");
        assert!(!refresh || again, "G26: {version}, and a refresh is pending");
        if held.is_unset() {
            assert!(!streaming && *version == ResourceVersion::from(0), "G26: {version} at first");
            return false;
        }
        assert_eq!(version, held, "G26: not the version last seen");
        true
    }

    pub(crate) fn check_probe(&mut self, request: &ListRequest) {
        self.count_request();
        assert_eq!(request.limit, Some(1), "G26");
        assert_eq!(&request.version, self.ingest.last_sync_resource_version(), "G26");
        assert_eq!(request.version_match, Some(VersionMatch::NotOlderThan), "G26");
        assert!(
            self.ledger.current == Current::Watch || self.ledger.live_since.is_some(),
            "G26: no watch"
        );
        let silent = self.now.saturating_sub(self.ledger.quiet_since);
        let open = self.now.saturating_sub(self.ledger.live_since.unwrap_or(self.now));
        let due = silent >= Duration::from_secs(120) && open >= Duration::from_secs(2);
        assert!(due, "G26: a probe after {silent:?}, {open:?} of them of this watch");
        self.ledger.quiet_since = self.now;
        assert!(self.now >= self.ledger.probe_waits, "G28: a probe before its Retry-After");
        self.cover("request: probe");
    }

    pub(crate) fn check_discover(&mut self) {
        self.count_request();
        self.discovery_requested();
        assert!(self.now >= self.ledger.discovery_waits, "G28: a discovery before its Retry-After");
        self.ledger.discovery_asked = self.now;
        self.cover("request: discovery");
    }

    pub(crate) fn probe_answered(&mut self, answer: &Result<ResourceVersion, Failure>) {
        let held = self.ingest.last_sync_resource_version();
        let replaced = match answer {
            Ok(version) => version.compare(held) == Some(Ordering::Less),
            Err(failure) => failure.kind == FailureKind::TooLargeVersion,
        };
        // A LIST shows whether a silent watch is deaf.
        self.ledger.may_plain |=
            answer.as_ref().is_ok_and(|found| found.compare(held) == Some(Ordering::Greater));
        self.ledger.probe_waits = self.now + retry_after(answer);
        self.ledger.may_newest |= replaced;
        self.ledger.probe_says_so |= replaced;
    }

    pub(crate) fn discovered(&mut self, answer: &Result<bool, Failure>) {
        if self.now.saturating_sub(self.ledger.discovery_asked) >= Duration::from_secs(30) {
            // Too late: it was given up.
            return;
        }
        self.ledger.discovery_waits = self.now + retry_after(answer);
        match answer {
            Ok(true) => self.ledger.absences = 0,
            Ok(false) => {
                if self.ledger.absences == 0 {
                    self.ledger.first_absence = self.now;
                }
                self.ledger.absences += 1;
            }
            Err(_) => {}
        }
    }

    pub(crate) fn check_remove_all(&mut self) {
        let span = self.now.saturating_sub(self.ledger.first_absence);
        let absences = self.ledger.absences;
        assert!(
            absences >= 3 && span >= Duration::from_secs(30),
            "G32: {absences} absences in {span:?}"
        );
        self.removal_completes_refreshes();
        self.ledger.may_newest = false;
        self.ledger.must_newest = false;
        self.ledger.may_plain = false;
        self.ledger.malformed_lists = 0;
        self.ledger.page_expired = false;
        self.ledger.stream_failed = false;
        self.cover("resource removed for good");
    }

    /// A list or watch is asked for.
    fn requested(&mut self, page: bool) {
        if let Some((_, until)) = self.ledger.waiting {
            assert!(self.now >= until, "G28: asked at {:?}, not before {until:?}", self.now);
        }
        if !page {
            self.count_request();
        }
        self.connection_ended();
        self.ledger.asked = self.now;
        self.ledger.last_sign = self.now;
        self.ledger.opened = false;
        self.ledger.heard = false;
        self.ledger.flawed = false;
    }

    fn count_request(&mut self) {
        let minute = Duration::from_secs(60);
        let now = self.now;
        self.ledger.requests.push_back(now);
        while self.ledger.requests.front().is_some_and(|at| now.saturating_sub(*at) >= minute) {
            self.ledger.requests.pop_front();
        }
        let count = self.ledger.requests.len();
        assert!(count <= REQUESTS_A_MINUTE, "G28: {count} requests in a minute");
        self.requests += 1;
    }

    pub(crate) fn opened(&mut self) {
        self.ledger.last_sign = self.now;
        self.ledger.opened = true;
        if self.ledger.current == Current::Watch {
            self.ledger.live_since = Some(self.now);
        }
    }

    pub(crate) fn bookmarked(&mut self, end: bool) {
        if self.ledger.current == Current::Watch {
            self.cover("bookmark");
        } else if end {
            self.was_complete();
            self.cover("streaming list complete");
        }
    }

    /// All of a list is there, though it may be of no use.
    pub(crate) fn was_complete(&mut self) {
        self.ledger.list_ended(self.now);
        self.ledger.may_newest |= self.ledger.lineage + 1 < self.server.lineages.len();
    }

    pub(crate) fn list_finished(&mut self, history_changed: bool) {
        self.list_completes_refreshes();
        let ledger = &mut self.ledger;
        if ledger.current == Current::Streaming {
            // It goes on as the watch.
            ledger.current = Current::Watch;
            ledger.live_since = Some(self.now);
            ledger.bookmarks_seen = true;
        }
        ledger.may_newest = false;
        ledger.must_newest = false;
        ledger.may_plain = false;
        ledger.malformed_lists = 0;
        ledger.page_expired = false;
        ledger.quiet_since = self.now;
        ledger.list_ended(self.now);
        ledger.stream_failed = false;
        ledger.finished += 1;
        let newest = self.server.lineages.len() - 1;
        if ledger.lineage < newest && ledger.finished > 1 && !self.content.cleared {
            assert!(history_changed, "G26: the server was restored, and nobody is told");
        }
        if history_changed {
            let restored = ledger.lineage < newest || std::mem::take(&mut ledger.probe_says_so);
            assert!(restored, "G26: the history is said to have changed");
            self.cover("history changed");
        }
        self.ledger.lineage = newest;
    }

    pub(crate) fn connection_ended(&mut self) {
        // Only of a watch: of one that ended with a 404, discovery is asked already.
        if let Some(since) = self.ledger.live_since.take() {
            self.ledger.life = self.now.saturating_sub(since);
            self.ledger.watched += self.ledger.life;
        }
    }

    /// Takes note of a failure, of which the machine may decide.
    pub(crate) fn request_failed(&mut self, failure: &Failure) {
        use FailureKind::{
            Deaf, Expired, Invalid, Malformed, NotFound, Refused, TooLargeVersion, TooManyRequests,
            Undecodable,
        };
        let current = self.ledger.current;
        let refused = matches!(failure.kind, Expired | TooLargeVersion);
        let ledger = &mut self.ledger;
        match current {
            Current::FirstPage | Current::Streaming => {
                ledger.must_newest |= refused;
                ledger.may_newest |= refused;
            }
            Current::Page => {
                ledger.may_newest |= refused;
                ledger.page_expired = failure.kind == Expired;
            }
            Current::Watch => ledger.rewatch = matches!(failure.kind, TooManyRequests | Refused),
            Current::None => {}
        }
        if matches!(current, Current::FirstPage | Current::Page | Current::Streaming) {
            ledger.list_ended(self.now);
            let other_history = failure.kind == TooLargeVersion;
            ledger.probe_says_so |=
                other_history && !self.ingest.last_sync_resource_version().is_unset();
        }
        if current == Current::Streaming {
            ledger.may_plain = true;
            ledger.streaming_refused |= failure.kind == Invalid && !ledger.opened;
            ledger.stream_failed = !refused && !matches!(failure.kind, TooManyRequests | Refused);
        }
        if failure.kind == Deaf {
            self.cover("watch is deaf");
        }
        let ledger = &mut self.ledger;
        if current == Current::Watch && !ledger.opened {
            ledger.life = Duration::ZERO;
        }
        if current == Current::Watch && failure.kind == Expired {
            // What follows is a list, and that is delayed.
            ledger.watch_asked = None;
        }
        if failure.kind == Malformed {
            assert!(ledger.flawed, "G30: nothing is wrong with it, but: {failure}");
            ledger.may_newest = true;
            ledger.malformed_lists += u32::from(current != Current::Watch);
        }
        if matches!(failure.kind, Malformed | Undecodable) && current == Current::Watch {
            ledger.malformed_at = self.ingest.last_sync_resource_version().clone();
        }
        if failure.kind == Malformed && current == Current::Watch {
            self.check_poison();
        }
        if failure.kind == NotFound && current != Current::None {
            self.ledger.absences = 0;
            // When it is there again, it is listed.
            self.ledger.rewatch = false;
            // What fails now is discovery.
            self.ledger.current = Current::None;
        }
    }

    /// The same frame is never read a third time (G30).
    fn check_poison(&mut self) {
        let version = self.ingest.last_sync_resource_version().to_string();
        let Ok(from) = version.parse() else { return };
        let ahead = self.server.lineage().since(from).iter().find(|change| change.poison.is_some());
        let Some(poison) = ahead.map(|change| change.version) else { return };
        if self.ledger.poison_sent != Some(poison) {
            return;
        }
        let times =
            self.ledger.poisoned.entry((self.server.lineages.len(), poison, version)).or_default();
        *times += 1;
        assert!(*times <= 2, "G30: the frame of {poison} was read {times} times");
        if *times == 2 {
            self.cover("poisoned event read twice");
        }
    }

    /// Whether a wait that has just begun is as long as it should be (G28).
    pub(crate) fn check_back_off(&mut self) {
        let (attempt, until, cause) = match self.ingest.state().clone() {
            State::BackingOff { attempt, until, cause } => (attempt, until, cause),
            State::Degraded { until, cause } => {
                self.cover("state: degraded");
                self.ledger.degraded = true;
                self.ledger.may_plain = true;
                (0, until, cause)
            }
            State::Unavailable { .. } => {
                self.cover("state: unavailable");
                self.ledger.waiting = None;
                return;
            }
            State::Watching { .. } => return self.ledger.degraded = false,
            _ => return,
        };
        if self.ledger.waiting == Some((attempt, until)) || until <= self.now {
            return;
        }
        let wanted = cause.retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let delay = until - self.now;
        assert!(delay >= wanted, "G28: {delay:?} at attempt {attempt}");
        assert!(delay <= Duration::from_secs(30).max(wanted), "G28: {delay:?} is too long");
        self.cover(if wanted.is_zero() { "state: backing off" } else { "retry-after obeyed" });
        if attempt >= 6 {
            self.cover("backed off to the largest step");
        }
        self.ledger.waiting = Some((attempt, until));
    }
}

/// How long the server wants to be left alone, as far as that is obeyed.
fn retry_after<A>(answer: &Result<A, Failure>) -> Duration {
    let wanted = answer.as_ref().err().and_then(|failure| failure.retry_after);
    wanted.unwrap_or_default().min(LONGEST_RETRY_AFTER)
}
