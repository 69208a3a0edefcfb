//! The reflector: what to ask the API server next so that the store becomes, and stays, equal to a collection.
//!
//! [`Reflector`] is a state machine without I/O or clock. Its driver opens the lists and watches it asks for,
//! applies each frame whole (to the staged list or to the store), tells the machine what happened with
//! [`Reflector::handle`], and asks [`Reflector::poll`] what to do until it says `None`: after every input, and
//! at [`Reflector::deadline`]. Objects and bytes never get here.
//!
//! # Examples
//! One page of a list, then the watch:
//! ```
//! use std::time::Duration;
//! use informer_core::reflector::{Action, Input, Reflector, ReflectorConfig, State};
//!
//! let mut reflector = Reflector::new(ReflectorConfig { streaming_lists: false, ..Default::default() });
//! let now = Duration::ZERO;
//! assert_eq!(reflector.poll(now), Some(Action::BeginReplace { shortcut: true, skip_unreadable: false }));
//! let Some(Action::List(list)) = reflector.poll(now) else { panic!("a list comes first") };
//! assert_eq!(list.version, "0".into());
//! assert_eq!(reflector.poll(now), None);
//!
//! reflector.handle(now, Input::Opened);
//! let end = Input::PageEnd { version: "7".into(), continue_token: None, remaining: None, items: 3 };
//! reflector.handle(now, end);
//! let publish = Action::FinishReplace { version: "7".into(), history_changed: false };
//! assert_eq!(reflector.poll(now), Some(publish));
//! let Some(Action::Watch(watch)) = reflector.poll(now) else { panic!("then the watch") };
//! assert_eq!(watch.version, "7".into());
//!
//! reflector.handle(now, Input::Opened);
//! assert!(matches!(reflector.state(), State::Watching { .. }));
//! ```

mod absence;
mod backoff;
mod listing;
mod pace;
#[cfg(test)]
mod tests;
mod types;
mod watching;

use std::collections::VecDeque;
use std::time::Duration;

use crate::ResourceVersion;

use self::absence::Absence;
pub use self::backoff::{Backoff, BackoffConfig};
use self::listing::{Listing, Relist, Streaming};
use self::pace::{Pace, Trouble};
pub use self::types::{
    Action, Failure, FailureKind, Input, ListRequest, ReflectorConfig, SHORTEST_WATCH_TIMEOUT, State,
    VersionMatch, WatchRequest,
};
use self::watching::{MalformedAt, Quiet, Suspicion, Watching};

/// What is due already is done within this, so that many informers do not do it at once.
const JITTER: Duration = Duration::from_millis(100);

/// The state machine. See the [module](self).
#[derive(Debug)]
pub struct Reflector {
    config: ReflectorConfig,
    random: backoff::Random,
    /// From one opening of a watch to the next, and from the end of one list to the next.
    watches: Pace,
    lists: Pace,
    /// When the last list ended, streaming ones that failed aside.
    listed: Option<Duration>,
    /// How long watches were open since the last list.
    watched: Duration,
    trouble: Trouble,
    /// When a list last showed whether a silent watch is deaf.
    checked: Option<Duration>,
    /// Decided, not yet taken by the driver.
    actions: VecDeque<Action>,
    /// Whether a list or watch is open, and whether a list is staged, by the actions that the driver took.
    open: bool,
    staged: bool,
    state: State,
    phase: Phase,
    /// What the store stands at; unset before the first list and after a removal.
    version: ResourceVersion,
    last_event: Option<Duration>,
    quiet: Quiet,
    /// The server has a newer version than the watch, which keeps silent; a watch that is resumed does not end that.
    suspicion: Option<Suspicion>,
    relist: Relist,
    streaming_supported: Option<bool>,
    /// Whether the first list, at version `0`, came in pages: later ones do, too.
    pages: bool,
    bookmarks_seen: bool,
    malformed: Option<MalformedAt>,
    failures: u64,
    last_failure: Option<Failure>,
}

/// What the machine waits for.
#[derive(Debug)]
enum Phase {
    NotStarted,
    /// The time.
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
    Stopped,
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
    pub fn new(config: ReflectorConfig) -> Self {
        Self {
            random: backoff::Random::new(!config.seed),
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
            phase: Phase::NotStarted,
            version: ResourceVersion::unset(),
            last_event: None,
            quiet: Quiet::default(),
            suspicion: None,
            relist: Relist::default(),
            streaming_supported: None,
            pages: false,
            bookmarks_seen: false,
            malformed: None,
            failures: 0,
            last_failure: None,
            config,
        }
    }

    /// Takes note of what happened at `now`, a time since any fixed moment that never goes back. Every action
    /// that follows is to be taken from [`poll`](Self::poll) before the next input.
    pub fn handle(&mut self, now: Duration, input: Input) {
        match input {
            Input::Stop => self.stop(),
            Input::Probed(answer) => self.on_probed(now, answer),
            Input::Discovered(answer) => self.on_discovered(now, answer),
            input if self.is_current() => match &self.phase {
                Phase::Listing(_) => self.on_listing(now, input),
                Phase::Streaming(_) => self.on_streaming(now, input),
                Phase::Watching(_) => self.on_watching(now, input),
                _ => {}
            },
            _ => {}
        }
    }

    /// What to do now; to be asked again until it is `None`.
    pub fn poll(&mut self, now: Duration) -> Option<Action> {
        if self.actions.is_empty() {
            self.on_time(now);
        }
        let action = self.actions.pop_front()?;
        match action {
            Action::List(_) | Action::Watch(_) => self.open = true,
            Action::Close => self.open = false,
            Action::BeginReplace { .. } => self.staged = true,
            Action::FinishReplace { .. } | Action::AbandonReplace => self.staged = false,
            Action::Probe(_) | Action::Discover | Action::RemoveAll => {}
        }
        Some(action)
    }

    /// When to [`poll`](Self::poll) even if nothing happens before. `None` once stopped.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        if !self.actions.is_empty() {
            return Some(Duration::ZERO);
        }
        match &self.phase {
            Phase::NotStarted => Some(Duration::ZERO),
            Phase::Waiting { until, .. } => Some(*until),
            Phase::Listing(list) => Some(list.silent_at(&self.config)),
            Phase::Streaming(stream) => Some(stream.deadline(&self.config)),
            Phase::Watching(watch) => Some(self.watch_deadline(watch)),
            Phase::Absent(absence) => Some(absence.deadline(&self.config)),
            Phase::Stopped => None,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The version that the store stands at: of the last list that was finished, or of the last event or
    /// bookmark after it. Unset before the first list, and after [`Action::RemoveAll`].
    #[must_use]
    pub fn last_sync_resource_version(&self) -> &ResourceVersion {
        &self.version
    }

    /// What was learnt about the server and this resource: whether streaming lists work. `None`: nothing yet.
    #[must_use]
    pub fn streaming_lists_supported(&self) -> Option<bool> {
        self.streaming_supported
    }

    /// How many failures there were, those included that were answered at once by another request.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// The latest of the [`failures`](Self::failures).
    #[must_use]
    pub fn last_failure(&self) -> Option<&Failure> {
        self.last_failure.as_ref()
    }

    /// Whatever the time demands; asked only when the driver has taken every action.
    fn on_time(&mut self, now: Duration) {
        match &self.phase {
            Phase::NotStarted => self.start_list(now),
            Phase::Waiting { until, next } if now >= *until => match next {
                Next::List => self.start_list(now),
                Next::Watch => self.start_watch(now),
            },
            Phase::Listing(_) => self.listing_on_time(now),
            Phase::Streaming(_) => self.streaming_on_time(now),
            Phase::Watching(_) => self.watching_on_time(now),
            Phase::Absent(_) => self.absence_on_time(now),
            Phase::Waiting { .. } | Phase::Stopped => {}
        }
    }

    /// Tries `next` again when it is due.
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
        self.phase = Phase::Waiting { until: until.max(at_least), next };
    }

    /// Shows what is waited for.
    fn show_waiting(&mut self, now: Duration, cause: Failure) {
        let Phase::Waiting { until, next } = self.phase else { return };
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

    /// How much of a `Retry-After` is obeyed.
    fn obeyed(&self, retry_after: Option<Duration>) -> Duration {
        retry_after.unwrap_or_default().min(self.config.max_retry_after)
    }

    /// Tries `next` again after a long while: what the server sends cannot be used.
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
        self.phase = Phase::Waiting { until, next };
    }

    fn note_failure(&mut self, failure: &Failure) {
        self.failures += 1;
        self.last_failure = Some(failure.clone());
    }

    /// Drops what is staged, if anything, once the driver has taken the actions before.
    fn abandon(&mut self) {
        let staged = self.actions.iter().fold(self.staged, |staged, action| match action {
            Action::BeginReplace { .. } => true,
            Action::FinishReplace { .. } | Action::AbandonReplace => false,
            _ => staged,
        });
        if staged {
            self.actions.push_back(Action::AbandonReplace);
        }
    }

    /// Whether what the driver has open is what the machine is thinking of.
    fn is_current(&self) -> bool {
        let changes = |action: &Action| matches!(action, Action::List(_) | Action::Watch(_) | Action::Close);
        self.open && !self.actions.iter().any(changes)
    }

    fn draw_timeout(&mut self) -> Duration {
        let range = &self.config.watch_timeout;
        let drawn = self.random.between(*range.start(), *range.end()).max(SHORTEST_WATCH_TIMEOUT);
        Duration::from_secs(drawn.as_secs())
    }

    fn stop(&mut self) {
        if matches!(self.phase, Phase::Stopped) {
            return;
        }
        self.actions.clear();
        if self.open {
            self.actions.push_back(Action::Close);
        }
        self.abandon();
        self.phase = Phase::Stopped;
        self.state = State::Stopped;
    }
}
