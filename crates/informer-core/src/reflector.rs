//! The reflector: decides which requests keep the store equal to a collection of the API server.
//!
//! `Reflector` is a state machine that never sees objects or bytes. An
//! [`Ingest`](crate::ingest::Ingest) drives it. It passes inputs to `handle`, and calls `poll`
//! until that returns `None`: after every input, and at `deadline`.

mod absence;
mod backoff;
mod listing;
mod pace;
mod refresh;
#[cfg(test)]
mod tests;
mod types;
mod watching;

use std::collections::VecDeque;
use std::time::Duration;

use crate::ResourceVersion;

use self::absence::Absence;
pub(crate) use self::backoff::Random;
pub use self::backoff::{Backoff, BackoffConfig};
use self::listing::{Listing, Relist, Streaming};
use self::pace::{Pace, Trouble};
use self::refresh::Refreshes;
pub(crate) use self::types::{Action, Input};
pub use self::types::{
    Failure, FailureKind, ListRequest, ReflectorConfig, SHORTEST_WATCH_TIMEOUT, State,
    VersionMatch, WatchRequest,
};
use self::watching::{MalformedAt, Quiet, Suspicion, Watching};

/// Requests that are due at once are delayed by up to this, so that many informers do not send them
/// at the same time.
const JITTER: Duration = Duration::from_millis(100);

/// The state machine. See the [module](self).
#[derive(Debug)]
pub(crate) struct Reflector {
    config: ReflectorConfig,
    random: Random,
    /// The delays between openings of watches, and between the end of one list and the next.
    watches: Pace,
    lists: Pace,
    /// When the last list ended; streaming lists that failed do not count.
    listed: Option<Duration>,
    /// The total time that watches were open since the last list.
    watched: Duration,
    trouble: Trouble,
    /// When a list last began in order to show whether a silent watch is deaf.
    checked: Option<Duration>,
    /// Actions that the driver has not taken yet.
    actions: VecDeque<Action>,
    /// Whether a list or watch is open, and whether a list is staged, according to the actions that
    /// the driver has taken.
    open: bool,
    staged: bool,
    state: State,
    mode: Mode,
    /// The version of the store; unset before the first list and after a removal.
    version: ResourceVersion,
    last_event: Option<Duration>,
    quiet: Quiet,
    /// Set while the server has a newer version than a silent watch. Outlives watches that end and
    /// are resumed.
    suspicion: Option<Suspicion>,
    relist: Relist,
    refreshes: Refreshes,
    streaming_supported: Option<bool>,
    /// Whether the first list, at version `0`, was paged; later ones are paged, too.
    pages: bool,
    bookmarks_seen: bool,
    malformed: Option<MalformedAt>,
    failures: u64,
    last_failure: Option<Failure>,
}

/// What the machine waits for.
#[derive(Debug)]
enum Mode {
    NotStarted,
    /// A point in time.
    Waiting {
        until: Duration,
        next: Next,
    },
    /// An open LIST.
    Listing(Listing),
    /// A watch that has not sent all its initial events.
    Streaming(Streaming),
    /// A watch.
    Watching(Watching),
    /// A resource that the server does not have.
    Absent(Absence),
}

/// What follows a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    List,
    Watch,
}

impl Reflector {
    /// A reflector that has not started; its first [`poll`](Self::poll) starts it.
    #[must_use]
    pub(crate) fn new(config: ReflectorConfig) -> Self {
        Self {
            random: Random::new(!config.seed),
            watches: Pace::new(Backoff::new(config.backoff.clone(), config.seed)),
            lists: Pace::new(Backoff::new(config.backoff.clone(), config.seed.wrapping_add(1))),
            listed: None,
            watched: Duration::ZERO,
            trouble: Trouble::default(),
            checked: None,
            actions: VecDeque::new(),
            open: false,
            staged: false,
            state: State::NotStarted,
            mode: Mode::NotStarted,
            version: ResourceVersion::unset(),
            last_event: None,
            quiet: Quiet::default(),
            suspicion: None,
            relist: Relist::default(),
            refreshes: Refreshes::default(),
            streaming_supported: None,
            pages: false,
            bookmarks_seen: false,
            malformed: None,
            failures: 0,
            last_failure: None,
            config,
        }
    }

    /// Handles what happened at `now`, the time since a fixed moment, which never decreases. The
    /// driver must take every resulting action from [`poll`](Self::poll) before the next input.
    pub(crate) fn handle(&mut self, now: Duration, input: Input) {
        match input {
            Input::Probed(answer) => self.on_probed(now, answer),
            Input::Discovered(answer) => self.on_discovered(now, answer),
            Input::Refresh { number } => self.on_refresh(number),
            Input::Opened
            | Input::Received { .. }
            | Input::Progress { .. }
            | Input::Missed { .. }
            | Input::PageEnd { .. }
            | Input::Event { .. }
            | Input::Bookmark { .. }
            | Input::Closed
            | Input::Failed(_) => match &self.mode {
                // Late input of a request that was closed.
                _ if !self.is_current() => {}
                Mode::Listing(_) => self.on_listing(now, input),
                Mode::Streaming(_) => self.on_streaming(now, input),
                Mode::Watching(_) => self.on_watching(now, input),
                Mode::NotStarted | Mode::Waiting { .. } | Mode::Absent(_) => {}
            },
        }
    }

    /// The next action; call it until it returns `None`.
    pub(crate) fn poll(&mut self, now: Duration) -> Option<Action> {
        if self.actions.is_empty() {
            self.on_time(now);
        }
        let action = self.actions.pop_front()?;
        match action {
            Action::List(_) | Action::Watch(_) => self.open = true,
            Action::Close => self.open = false,
            Action::BeginReplace { .. } => self.staged = true,
            Action::FinishReplace { .. } | Action::AbandonReplace => self.staged = false,
            Action::Probe(_) | Action::Discover | Action::RemoveAll { .. } => {}
        }
        Some(action)
    }

    /// When to call [`poll`](Self::poll) again if no input arrives before.
    #[must_use]
    pub(crate) fn deadline(&self) -> Duration {
        if !self.actions.is_empty() {
            return Duration::ZERO;
        }
        match &self.mode {
            Mode::NotStarted => Duration::ZERO,
            Mode::Waiting { until, .. } => *until,
            Mode::Listing(list) => list.silent_at(&self.config),
            Mode::Streaming(stream) => stream.deadline(&self.config),
            Mode::Watching(watch) => self.watch_deadline(watch).min(self.refresh_at()),
            Mode::Absent(absence) => absence.deadline(&self.config),
        }
    }

    /// The current state.
    #[must_use]
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The version of the last finished list, or of the last event or bookmark after it. Unset
    /// before the first list, and after [`Action::RemoveAll`].
    #[must_use]
    pub(crate) fn last_sync_resource_version(&self) -> &ResourceVersion {
        &self.version
    }

    /// Whether streaming lists work for this server and resource; `None` if not known yet.
    #[must_use]
    pub(crate) fn streaming_lists_supported(&self) -> Option<bool> {
        self.streaming_supported
    }

    /// The number of failures, including those that were followed by another request at once.
    #[must_use]
    pub(crate) fn failures(&self) -> u64 {
        self.failures
    }

    /// The latest of the [`failures`](Self::failures).
    #[must_use]
    pub(crate) fn last_failure(&self) -> Option<&Failure> {
        self.last_failure.as_ref()
    }

    /// Handles what is due at `now`; called only when the driver has taken every action.
    fn on_time(&mut self, now: Duration) {
        match &self.mode {
            Mode::NotStarted => self.start_list(now),
            Mode::Waiting { until, next } if now >= *until => match next {
                Next::List => self.start_list(now),
                Next::Watch if now >= self.refresh_at() => self.start_refresh(now),
                Next::Watch => self.start_watch(now),
            },
            Mode::Listing(_) => self.listing_on_time(now),
            Mode::Streaming(_) => self.streaming_on_time(now),
            Mode::Watching(_) => self.watching_on_time(now),
            Mode::Absent(_) => self.absence_on_time(now),
            Mode::Waiting { .. } => {}
        }
    }

    /// Waits after a failure until `next` is due, and at least for a `Retry-After`.
    fn back_off(&mut self, now: Duration, cause: Failure, next: Next) {
        self.note_failure(&cause);
        self.abandon();
        let wanted = now.saturating_add(self.obeyed(cause.retry_after));
        self.wait_for(now, next, wanted);
        self.show_waiting(now, cause);
    }

    /// Waits until `next` is due, or until `at_least` if that is later.
    fn wait_for(&mut self, now: Duration, next: Next, at_least: Duration) {
        let due = match next {
            Next::List => self.lists.due,
            Next::Watch => self.watches.due,
        };
        let soon = now.saturating_add(self.random.between(JITTER / 100, JITTER));
        let until = if due > now { due } else { soon };
        self.mode = Mode::Waiting { until: until.max(at_least), next };
    }

    /// Sets the state that is shown during the wait.
    fn show_waiting(&mut self, now: Duration, cause: Failure) {
        let Mode::Waiting { until, next } = self.mode else { return };
        if let Some(degraded) = &mut self.trouble.degraded {
            degraded.clone_from(&cause);
        }
        if self.trouble.degraded.is_some() || self.is_throttled_for_long(now) {
            self.state = State::Degraded { cause, until };
            return;
        }
        let pace = match next {
            Next::List => &self.lists,
            Next::Watch => &self.watches,
        };
        self.state = State::BackingOff { cause, attempt: pace.backoff.attempt().max(1), until };
    }

    /// The `Retry-After`, limited to the configured maximum; zero if there is none.
    fn obeyed(&self, retry_after: Option<Duration>) -> Duration {
        retry_after.unwrap_or_default().min(self.config.max_retry_after)
    }

    /// Waits the longest delay before `next`: the server's data cannot be used.
    fn degrade(&mut self, now: Duration, cause: Failure, next: Next) {
        self.note_failure(&cause);
        self.abandon();
        let pace = match next {
            Next::List => &mut self.lists,
            Next::Watch => &mut self.watches,
        };
        pace.delay_at_max_from(now);
        let until = pace.due;
        self.state = State::Degraded { cause, until };
        self.mode = Mode::Waiting { until, next };
    }

    fn note_failure(&mut self, failure: &Failure) {
        self.failures += 1;
        self.last_failure = Some(failure.clone());
    }

    /// Abandons the list that is staged once the driver has taken the queued actions, if there is
    /// one.
    fn abandon(&mut self) {
        let staged = self.actions.iter().fold(self.staged, |staged, action| match action {
            Action::BeginReplace { .. } => true,
            Action::FinishReplace { .. } | Action::AbandonReplace => false,
            Action::List(_)
            | Action::Watch(_)
            | Action::Close
            | Action::Probe(_)
            | Action::Discover
            | Action::RemoveAll { .. } => staged,
        });
        if staged {
            self.actions.push_back(Action::AbandonReplace);
        }
    }

    /// Whether the driver's open request is the machine's: no queued action replaces or closes it.
    fn is_current(&self) -> bool {
        let changes =
            |action: &Action| matches!(action, Action::List(_) | Action::Watch(_) | Action::Close);
        self.open && !self.actions.iter().any(changes)
    }

    fn draw_timeout(&mut self) -> Duration {
        let range = &self.config.watch_timeout;
        let drawn = self.random.between(*range.start(), *range.end()).max(SHORTEST_WATCH_TIMEOUT);
        Duration::from_secs(drawn.as_secs())
    }
}
