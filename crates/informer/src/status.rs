//! What an informer is doing and what went wrong: errors are state, not log lines (G31).

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use futures_util::Stream;
use futures_util::stream::BoxStream;
use informer_core::reflector::State;
use informer_core::{ObjectKey, ResourceVersion};
use serde::{Serialize, Serializer};

use crate::Error;
use crate::reflector::Phase;
use crate::source::Failure;

/// How many recent errors are kept.
const RECENT_ERRORS: usize = 16;

/// How many undecodable objects are named; all are counted.
const NAMED_STALE: usize = 64;

/// Everything an informer says of itself at one moment.
///
/// It serializes, for a status page or a log: names in camelCase, times as RFC 3339, durations in
/// seconds.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// The resource, such as `pods.v1`.
    pub resource: String,
    /// The scope, such as `namespace default`.
    pub scope: String,
    /// What it is doing.
    pub state: InformerState,
    /// Objects in the store.
    pub objects: usize,
    /// The version that the store stands for; unset before the first list.
    pub version: ResourceVersion,
    /// Whether the first complete list is in the store.
    pub has_synced: bool,
    /// What happened since the start.
    pub counters: Counters,
    /// The last errors, oldest first.
    pub recent_errors: Vec<RecentError>,
    /// How many objects there are whose newest state could not be decoded; those of
    /// [`unreadable`](Self::unreadable) included.
    pub undecodable: usize,
    /// How many items of the last list did not even say who they are. If there are any, the list
    /// was incomplete: each of them stands for an object that the store lacks until it changes, or
    /// a list has it whole (G30).
    pub unreadable: usize,
    /// The objects whose newest state could not be decoded, at most 64 of them; the store holds
    /// their last good state, if there is one (G30).
    pub stale: Vec<StaleObject>,
    /// Every registration.
    pub registrations: Vec<RegistrationStatus>,
}

/// What an informer is doing. Times are on the wall clock of the moment at which it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum InformerState {
    /// Nobody has started it.
    NotStarted,
    /// A list is coming in.
    Listing {
        /// Whether it is a streaming list (WatchList).
        streaming: bool,
        /// Objects so far.
        items: usize,
        /// How many more there are, if the server said so.
        remaining: Option<u64>,
    },
    /// A watch is open and the store follows it.
    Watching {
        /// The version of the last event.
        version: ResourceVersion,
        /// Since when.
        #[serde(serialize_with = "rfc3339")]
        since: SystemTime,
        /// When the last event or bookmark came.
        #[serde(serialize_with = "rfc3339_if_any")]
        last_event: Option<SystemTime>,
    },
    /// Something failed and is tried again.
    BackingOff {
        /// What failed.
        cause: Failure,
        /// Which one in a row it was: of the watches if a watch is tried again, else of the lists.
        attempt: u32,
        /// When it is tried again.
        #[serde(serialize_with = "rfc3339")]
        until: SystemTime,
    },
    /// The server does not have the resource; the informer waits for it.
    Unavailable {
        /// What the server said.
        cause: Failure,
        /// How often in a row discovery said that the resource is not there.
        absent: u32,
        /// When discovery is asked again.
        #[serde(serialize_with = "rfc3339")]
        until: SystemTime,
    },
    /// The server keeps sending what cannot be used; or watches keep failing, and lists stand in
    /// for them.
    Degraded {
        /// What cannot be used, or why there is no watch.
        cause: Failure,
        /// When it is tried again.
        #[serde(serialize_with = "rfc3339")]
        until: SystemTime,
    },
    /// Stopped, for good.
    Stopped {
        /// Why.
        cause: StopCause,
    },
}

impl InformerState {
    /// What is the matter, while something is.
    #[must_use]
    pub fn cause(&self) -> Option<&Failure> {
        match self {
            Self::BackingOff { cause, .. }
            | Self::Unavailable { cause, .. }
            | Self::Degraded { cause, .. } => Some(cause),
            Self::NotStarted
            | Self::Listing { .. }
            | Self::Watching { .. }
            | Self::Stopped { .. } => None,
        }
    }
}

/// Why an informer has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum StopCause {
    /// It was told to, or its last owner is gone (G24).
    Asked,
    /// The tokio runtime that it ran on has ended.
    RuntimeEnded,
    /// Its task panicked: a bug of its source, or of this library.
    Panicked,
}

/// How often something happened since the informer was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Counters {
    /// LIST requests sent, each page counted.
    pub lists: u64,
    /// WATCH requests sent.
    pub watches: u64,
    /// Events of watches applied, bookmarks not counted.
    pub events: u64,
    /// Bookmarks received.
    pub bookmarks: u64,
    /// Bytes of objects received.
    pub bytes: u64,
    /// Objects decoded.
    pub decoded: u64,
    /// Objects of relists that were known already and not decoded again (G7).
    pub unchanged: u64,
    /// Objects that could not be decoded or transformed.
    pub undecodable: u64,
    /// Failures of any kind.
    pub errors: u64,
    /// Handler calls that panicked.
    pub handler_panics: u64,
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RecentError {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: SystemTime,
    /// What was being done.
    pub phase: Phase,
    /// What happened, in words; never the content of an object.
    pub message: String,
    /// What kind of failure it was and what the server answered, of a request; `None` of anything
    /// else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// An object whose newest state could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StaleObject {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Why, with the path of the field.
    pub cause: String,
}

/// One registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RegistrationStatus {
    /// Its name.
    pub name: String,
    /// Where it was added.
    #[serde(serialize_with = "as_text")]
    pub added_at: &'static Location<'static>,
    /// Since when the present call of its handler runs, if one does. One that runs for 30 s is
    /// warned of in the log.
    #[serde(serialize_with = "rfc3339_if_any")]
    pub running_since: Option<SystemTime>,
    /// Events that it has not handled yet: those that wait separately, what is left of its initial
    /// set or of a resync, and those that it has in hand, which are up to 64 and count until it has
    /// returned from all of them.
    pub depth: usize,
    /// Events that were merged into others because it is slow (G16).
    pub merged: u64,
    /// How often it is shown everything again, if at all: what was asked for, but no less than 1 s
    /// (G8).
    #[serde(serialize_with = "seconds")]
    pub resync: Option<Duration>,
    /// Calls that panicked.
    pub panics: u64,
    /// Whether it has handled its initial set.
    pub has_synced: bool,
}

/// The changes of an informer's status; a reader that is slow gets the latest one. Ends when the
/// informer is gone.
///
/// # Cancel safety
/// Dropping it at any time is fine.
pub struct StatusStream(BoxStream<'static, Status>);

impl StatusStream {
    pub(crate) fn new(stream: BoxStream<'static, Status>) -> Self {
        Self(stream)
    }
}

impl Stream for StatusStream {
    type Item = Status;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Status>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for StatusStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusStream").finish_non_exhaustive()
    }
}

/// One line for people: `watching pods.v1 in namespace default at version 17, 3 objects`.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}: {}, {} objects", self.resource, self.scope, self.state, self.objects)?;
        match self.unreadable {
            0 => Ok(()),
            1 => f.write_str("; the last list was incomplete: 1 item could not be read"),
            items => write!(f, "; the last list was incomplete: {items} items could not be read"),
        }
    }
}

impl fmt::Display for InformerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wait = |until: &SystemTime| {
            until.duration_since(SystemTime::now()).unwrap_or_default().as_secs_f32()
        };
        match self {
            Self::NotStarted => f.write_str("not started: call `start()`"),
            Self::Listing { items, remaining: Some(more), .. } => {
                write!(f, "listing, {items} objects so far, {more} more to come")
            }
            Self::Listing { items, .. } => write!(f, "listing, {items} objects so far"),
            Self::Watching { version, .. } => write!(f, "watching at version {version}"),
            Self::BackingOff { cause, attempt, until } => {
                write!(f, "attempt {attempt} failed, next in {:.1} s: {cause}", wait(until))
            }
            Self::Unavailable { cause, .. } => write!(f, "waiting for the resource: {cause}"),
            Self::Degraded { cause, until } => {
                write!(f, "degraded, next try in {:.1} s: {cause}", wait(until))
            }
            Self::Stopped { cause: StopCause::Asked } => f.write_str("stopped"),
            Self::Stopped { cause } => write!(f, "stopped, because {cause}"),
        }
    }
}

impl fmt::Display for StopCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked => "it was told to",
            Self::RuntimeEnded => "its tokio runtime has ended",
            Self::Panicked => "its task panicked",
        })
    }
}

/// What readers of the status watch: changed by the informer's task only.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) state: State,
    pub(crate) stopped: Option<StopCause>,
    pub(crate) recent_errors: VecDeque<RecentError>,
    pub(crate) stale: BTreeMap<ObjectKey, String>,
    pub(crate) unreadable: usize,
}

/// What waits watch. Not a part of [`Live`], so that the progress of a list does not wake whoever
/// waits for its end.
#[derive(Debug, Clone)]
pub(crate) struct Reached {
    pub(crate) has_synced: bool,
    pub(crate) version: ResourceVersion,
    pub(crate) epoch: u64,
    /// How many refreshes are complete and in the store.
    pub(crate) refreshes: u64,
    pub(crate) needs_refresh: bool,
    /// How often the resource went away, and all objects with it (G32).
    pub(crate) removals: u64,
    /// The error that waiting for the first list ends with, until a list comes right (G20).
    pub(crate) hopeless: Option<Error>,
    pub(crate) stopped: bool,
}

impl Live {
    pub(crate) fn new() -> Self {
        Self {
            state: State::NotStarted,
            stopped: None,
            recent_errors: VecDeque::new(),
            stale: BTreeMap::new(),
            unreadable: 0,
        }
    }

    pub(crate) fn error(&mut self, phase: Phase, message: String, failure: Option<Failure>) {
        if self.recent_errors.len() == RECENT_ERRORS {
            self.recent_errors.pop_front();
        }
        self.recent_errors.push_back(RecentError {
            at: SystemTime::now(),
            phase,
            message,
            failure,
        });
    }

    /// Whether anybody has started it.
    pub(crate) fn is_started(&self) -> bool {
        self.stopped.is_some() || self.state != State::NotStarted
    }

    /// The state on the wall clock; `now` is the informer's own time.
    pub(crate) fn informer_state(&self, now: Duration) -> InformerState {
        if let Some(cause) = self.stopped {
            return InformerState::Stopped { cause };
        }
        let wall = |at: &Duration| wall_clock(*at, now);
        match &self.state {
            State::NotStarted => InformerState::NotStarted,
            State::Listing { streaming, items, remaining, .. } => InformerState::Listing {
                streaming: *streaming,
                items: *items,
                remaining: *remaining,
            },
            State::Watching { version, since, last_event } => InformerState::Watching {
                version: version.clone(),
                since: wall(since),
                last_event: last_event.as_ref().map(wall),
            },
            State::BackingOff { cause, attempt, until } => InformerState::BackingOff {
                cause: cause.clone(),
                attempt: *attempt,
                until: wall(until),
            },
            State::Unavailable { cause, absent, until } => InformerState::Unavailable {
                cause: cause.clone(),
                absent: *absent,
                until: wall(until),
            },
            State::Degraded { cause, until } => {
                InformerState::Degraded { cause: cause.clone(), until: wall(until) }
            }
        }
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.recent_errors.back().map(|error| error.message.clone())
    }

    pub(crate) fn stale_objects(&self) -> Vec<StaleObject> {
        let named = self.stale.iter().take(NAMED_STALE);
        named.map(|(key, cause)| StaleObject { key: key.clone(), cause: cause.clone() }).collect()
    }
}

impl Reached {
    pub(crate) fn new() -> Self {
        Self {
            has_synced: false,
            version: ResourceVersion::default(),
            epoch: 0,
            refreshes: 0,
            needs_refresh: true,
            removals: 0,
            hopeless: None,
            stopped: false,
        }
    }
}

/// What the wall clock says at `at`, if it goes on as it does; `now` and `at` are on the informer's
/// own clock.
pub(crate) fn wall_clock(at: Duration, now: Duration) -> SystemTime {
    let wall = SystemTime::now();
    match at.checked_sub(now) {
        Some(ahead) => wall.checked_add(ahead),
        None => wall.checked_sub(now - at),
    }
    .unwrap_or(wall)
}

pub(crate) fn rfc3339<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let at = jiff::Timestamp::try_from(*at).map_err(serde::ser::Error::custom)?;
    serializer.collect_str(&at)
}

pub(crate) fn rfc3339_if_any<S: Serializer>(
    at: &Option<SystemTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => rfc3339(at, serializer),
        None => serializer.serialize_none(),
    }
}

fn seconds<S: Serializer>(period: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    period.map(|period| period.as_secs_f64()).serialize(serializer)
}

fn as_text<S: Serializer>(shown: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(shown)
}

/// [`Counters`], counted by tasks and handler threads.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) lists: AtomicU64,
    pub(crate) watches: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) bookmarks: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) decoded: AtomicU64,
    pub(crate) unchanged: AtomicU64,
    pub(crate) undecodable: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) handler_panics: AtomicU64,
}

impl Meter {
    pub(crate) fn read(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            lists: read(&self.lists),
            watches: read(&self.watches),
            events: read(&self.events),
            bookmarks: read(&self.bookmarks),
            bytes: read(&self.bytes),
            decoded: read(&self.decoded),
            unchanged: read(&self.unchanged),
            undecodable: read(&self.undecodable),
            errors: read(&self.errors),
            handler_panics: read(&self.handler_panics),
        }
    }
}

/// Counts one more, or several.
pub(crate) fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}
