//! A script plays the driver and the server and owns the clock.

mod absence;
mod blindness;
mod lists;
mod properties;
mod refresh;
mod streaming;
mod watches;

use std::ops::RangeInclusive;
use std::time::Duration;

use super::*;

pub(super) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(super) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// LIST and WATCH only.
pub(super) fn plain() -> ReflectorConfig {
    ReflectorConfig { streaming_lists: false, ..ReflectorConfig::default() }
}

pub(super) fn fail(kind: FailureKind) -> Failure {
    Failure::new(kind, format!("scripted: {kind}"))
}

pub(super) fn failed(kind: FailureKind) -> Input {
    Input::Failed(fail(kind))
}

pub(super) fn page(version: &str, token: &str) -> Input {
    let continue_token = (!token.is_empty()).then(|| token.to_owned());
    Input::PageEnd { version: version.into(), continue_token, remaining: None, items: 1 }
}

pub(super) fn event(version: &str) -> Input {
    Input::Event { version: version.into() }
}

pub(super) fn bookmark(version: &str) -> Input {
    Input::Bookmark { version: version.into(), initial_events_end: false }
}

pub(super) fn initial_end(version: &str) -> Input {
    Input::Bookmark { version: version.into(), initial_events_end: true }
}

pub(super) fn begin(shortcut: bool) -> Action {
    Action::BeginReplace { shortcut, skip_unreadable: false }
}

/// The begin of a list after those that could not be read.
pub(super) fn begin_skipping() -> Action {
    Action::BeginReplace { shortcut: true, skip_unreadable: true }
}

pub(super) fn finish(version: &str) -> Action {
    Action::FinishReplace { version: version.into(), history_changed: false, refreshes: None }
}

/// The end of the first list after the server's history was replaced.
pub(super) fn finish_other_history(version: &str) -> Action {
    Action::FinishReplace { version: version.into(), history_changed: true, refreshes: None }
}

/// The first page of a list, as the ladder asks for it at `version`.
pub(super) fn list(version: &str, limit: Option<u32>) -> Action {
    let version_match = (!matches!(version, "" | "0")).then_some(VersionMatch::NotOlderThan);
    Action::List(ListRequest {
        version: version.into(),
        version_match,
        limit,
        continue_token: None,
    })
}

pub(super) fn next_page(token: &str, limit: Option<u32>) -> Action {
    let continue_token = Some(token.to_owned());
    Action::List(ListRequest { version: "".into(), version_match: None, limit, continue_token })
}

pub(super) struct Script {
    pub(super) reflector: Reflector,
    pub(super) now: Duration,
    open: bool,
    /// Whether what is open, or was last, is a LIST.
    listing: bool,
    staged: bool,
    /// The timeout of the last watch.
    pub(super) timeout: Duration,
    /// How many refreshes the last finished list said to be complete.
    pub(super) refreshes: Option<u64>,
    /// How many refreshes were requested.
    pub(super) requested: u64,
}

impl Script {
    pub(super) fn new(config: ReflectorConfig) -> Self {
        let reflector = Reflector::new(config);
        Self {
            reflector,
            now: secs(1000),
            open: false,
            listing: false,
            staged: false,
            timeout: Duration::ZERO,
            refreshes: None,
            requested: 0,
        }
    }

    /// A reflector whose watch, from version 10, is open.
    pub(super) fn watching(config: ReflectorConfig) -> Self {
        let mut script = Self::new(config);
        let limit = script.reflector.config.page_size;
        script
            .expect(begin(true))
            .expect(list("0", limit))
            .give(Input::Opened)
            .give(page("10", ""));
        script.expect(finish("10")).expect_watch("10").give(Input::Opened).quiet();
        script
    }

    /// The next action, checked against what holds for any sequence of actions. What a list says of
    /// refreshes goes to `refreshes`.
    pub(super) fn poll(&mut self) -> Option<Action> {
        let mut action = self.reflector.poll(self.now)?;
        match &action {
            Action::List(request) => {
                assert!(!self.open && self.staged, "{action:?}");
                let first = request.continue_token.is_none();
                assert!(first || request.version.is_unset() && request.version_match.is_none());
                (self.open, self.listing) = (true, true);
            }
            Action::Watch(request) => {
                assert!(!self.open, "{action:?}");
                assert_eq!(self.staged, request.send_initial_events, "{action:?}");
                assert!(request.send_initial_events || !request.version.is_unset(), "{action:?}");
                (self.open, self.listing) = (true, false);
            }
            Action::Close => assert!(std::mem::take(&mut self.open), "closes nothing"),
            Action::Probe(_) => assert!(self.open && !self.staged),
            Action::Discover | Action::RemoveAll { .. } => assert!(!self.open && !self.staged),
            Action::BeginReplace { .. } => assert!(!std::mem::replace(&mut self.staged, true)),
            Action::FinishReplace { .. } | Action::AbandonReplace => {
                assert!(std::mem::take(&mut self.staged), "{action:?} with nothing staged");
            }
        }
        if let Action::FinishReplace { refreshes, .. } = &mut action {
            self.refreshes = refreshes.take();
        }
        Some(action)
    }

    #[track_caller]
    pub(super) fn expect(&mut self, action: Action) -> &mut Self {
        assert_eq!(self.poll(), Some(action));
        self
    }

    #[track_caller]
    pub(super) fn expect_watch(&mut self, version: &str) -> &mut Self {
        self.expect_any_watch(version, false)
    }

    #[track_caller]
    pub(super) fn expect_streaming(&mut self, version: &str) -> &mut Self {
        self.expect_any_watch(version, true)
    }

    #[track_caller]
    fn expect_any_watch(&mut self, version: &str, send_initial_events: bool) -> &mut Self {
        let Some(Action::Watch(request)) = self.poll() else {
            panic!("no watch: {:?}", self.reflector)
        };
        let timeout = request.timeout;
        assert!(self.reflector.config.watch_timeout.contains(&timeout), "{timeout:?}");
        assert_eq!(request, WatchRequest { version: version.into(), send_initial_events, timeout });
        self.timeout = timeout;
        self
    }

    #[track_caller]
    pub(super) fn quiet(&mut self) -> &mut Self {
        assert_eq!(self.poll(), None);
        self
    }

    pub(super) fn give(&mut self, input: Input) -> &mut Self {
        match input {
            Input::PageEnd { .. } => self.open &= !self.listing,
            Input::Closed | Input::Failed(_) => self.open = false,
            _ => {}
        }
        self.reflector.handle(self.now, input);
        self
    }

    /// Lets time pass in which nothing is to happen.
    #[track_caller]
    pub(super) fn advance(&mut self, time: Duration) -> &mut Self {
        self.quiet();
        let to = self.now + time;
        let deadline = self.reflector.deadline();
        assert!(deadline >= to, "something is due after {:?}", deadline.saturating_sub(self.now));
        self.now = to;
        self
    }

    /// Lets the open watch live until `to`, with a bookmark now and then.
    #[track_caller]
    pub(super) fn live_until(&mut self, to: Duration) -> &mut Self {
        while self.now < to {
            let version = self.reflector.last_sync_resource_version().clone();
            self.give(Input::Bookmark { version, initial_events_end: false });
            self.advance(secs(60).min(to - self.now));
        }
        self
    }

    /// Lets time pass until the machine wants to be asked, which must be within `range`.
    #[track_caller]
    pub(super) fn wait(&mut self, range: RangeInclusive<Duration>) -> &mut Self {
        self.quiet();
        let deadline = self.reflector.deadline();
        let waited = deadline.saturating_sub(self.now);
        assert!(range.contains(&waited), "{waited:?} is not in {range:?}");
        self.now = deadline;
        self
    }

    /// The same, with the next watch or list due already: it is made within 100 ms.
    #[track_caller]
    pub(super) fn wait_jitter(&mut self) -> &mut Self {
        self.wait(Duration::ZERO..=millis(100))
    }

    /// Lets a watch fail or be closed as soon as it is opened until the informer is degraded.
    #[track_caller]
    pub(super) fn degrade_by(&mut self, end: &Input) -> &mut Self {
        if *end != Input::Closed {
            // What is open is not refused any more.
            self.give(failed(FailureKind::Transport)).wait_backoff(1).expect_watch("10");
        }
        for _ in 0..20 {
            self.give(end.clone()).wait(Duration::ZERO..=secs(30));
            if matches!(self.reflector.state(), State::Degraded { .. }) {
                return self;
            }
            let version = self.reflector.last_sync_resource_version().to_string();
            self.expect_watch(&version);
            if *end == Input::Closed {
                self.give(Input::Opened);
            }
        }
        panic!("not degraded: {:?}", self.reflector.state());
    }

    /// The same, with a backoff of the given attempt.
    #[track_caller]
    pub(super) fn wait_backoff(&mut self, attempt: u32) -> &mut Self {
        self.quiet();
        let State::BackingOff { attempt: shown, until, .. } = self.reflector.state() else {
            panic!("not backing off: {:?}", self.reflector.state());
        };
        assert_eq!(*shown, attempt);
        assert_eq!(*until, self.reflector.deadline());
        let step = millis(800 << (attempt - 1).min(10)).min(secs(30));
        self.wait(step / 2..=step)
    }

    /// The same, after a watch that was opened and ended early.
    #[track_caller]
    pub(super) fn wait_early(&mut self, attempt: u32) -> &mut Self {
        let State::BackingOff { attempt: shown, .. } = self.reflector.state() else {
            panic!("not backing off: {:?}", self.reflector.state());
        };
        assert_eq!(*shown, attempt);
        let step = millis(800 << (attempt - 1).min(10)).min(secs(5));
        self.wait(step / 2..=step)
    }

    #[track_caller]
    pub(super) fn assert_version(&mut self, version: &str) -> &mut Self {
        assert_eq!(*self.reflector.last_sync_resource_version(), version.into());
        self
    }

    pub(super) fn is_refresh_pending(&self) -> bool {
        self.reflector.refreshes.is_pending()
    }

    pub(super) fn is_watching(&self) -> bool {
        matches!(self.reflector.state(), State::Watching { .. })
    }
}
