//! What goes into the reflector and what comes out of it.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::BackoffConfig;
use crate::ResourceVersion;

/// The shortest time that a watch may be asked to last: below, watches end more often than is of use.
pub const SHORTEST_WATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// How a [`Reflector`](super::Reflector) behaves. The defaults are those of the contract.
#[derive(Clone, Debug, PartialEq)]
pub struct ReflectorConfig {
    /// Objects per page of a list; `None` never pages. Default: 500.
    pub page_size: Option<u32>,
    /// Whether relists come in pages even where the first list came whole. Default: false, since a list without a limit
    /// is served from the server's cache, and one with a limit was not before Kubernetes 1.34.
    pub page_relists: bool,
    /// Whether to try a streaming list (WatchList) first. Default: true. What
    /// [`streaming_lists_supported`](super::Reflector::streaming_lists_supported) learnt about the same server
    /// and resource belongs here: `supported.unwrap_or(true)`.
    pub streaming_lists: bool,
    /// The range from which each watch draws its `timeoutSeconds`; less than [`SHORTEST_WATCH_TIMEOUT`] counts
    /// as that. Default: 200 s to 280 s.
    pub watch_timeout: RangeInclusive<Duration>,
    /// How long beyond its own timeout a watch may stay open. Default: 10 s.
    pub watch_grace: Duration,
    /// How watches are spaced, from one opening to the next, and lists, from the end of one to the next.
    pub backoff: BackoffConfig,
    /// How long a watch must live to be healthy: then the delay of watches starts anew. The delay after one that
    /// ended earlier, though it was opened, is at most as long. Default: 5 s.
    pub healthy_after: Duration,
    /// How long must be watched without another list for the delay of lists to start anew. Default: 60 s.
    pub lists_restart_after: Duration,
    /// How long watches must fail to open, or end at once without a frame, for [`State::Degraded`]. Default: 60 s.
    pub degraded_after: Duration,
    /// How old the last list must be for another, where watches fail for that long. Default: 2 min.
    pub degraded_list_age: Duration,
    /// After so long of nothing but 429 to watches and streaming lists, LIST is tried, and then at most that
    /// often. Default: 10 min.
    pub throttled_after: Duration,
    /// The longest `Retry-After` that is obeyed. Default: 5 min.
    pub max_retry_after: Duration,
    /// How long a watch may take until its response headers are there. Default: 30 s.
    pub open_timeout: Duration,
    /// How long a list, and the headers of its response, may keep silent. Default: 60 s.
    pub list_timeout: Duration,
    /// How long a streaming list may keep silent before LIST is used instead. Default: 10 s.
    pub streaming_timeout: Duration,
    /// How often bookmarks are expected once one was seen; three missed ones mean a dead connection.
    /// Default: 60 s.
    pub bookmark_interval: Duration,
    /// The silence of a watch after which the server's history is probed. Default: 2 min.
    pub probe_after: Duration,
    /// How long a watch without bookmarks may stay silent once a probe has shown a newer version, before a list
    /// shows whether it is deaf. Default: 10 s.
    pub deaf_after: Duration,
    /// How far apart such lists are, at least. Default: 10 min.
    pub silent_list_interval: Duration,
    /// The least time that three successful discoveries without the resource must span before the resource
    /// counts as removed. Default: 30 s.
    pub absence_span: Duration,
    /// Whether a malformed or undecodable frame shows as [`State::Degraded`] at its first occurrence, and no item of a
    /// list is ever left out. Default: false.
    pub strict: bool,
    /// The seed of all jitter.
    pub seed: u64,
}

impl Default for ReflectorConfig {
    fn default() -> Self {
        Self {
            page_size: Some(500),
            page_relists: false,
            streaming_lists: true,
            watch_timeout: Duration::from_secs(200)..=Duration::from_secs(280),
            watch_grace: Duration::from_secs(10),
            backoff: BackoffConfig::default(),
            healthy_after: Duration::from_secs(5),
            lists_restart_after: Duration::from_secs(60),
            degraded_after: Duration::from_secs(60),
            degraded_list_age: Duration::from_secs(120),
            throttled_after: Duration::from_secs(600),
            max_retry_after: Duration::from_secs(300),
            open_timeout: Duration::from_secs(30),
            list_timeout: Duration::from_secs(60),
            streaming_timeout: Duration::from_secs(10),
            bookmark_interval: Duration::from_secs(60),
            probe_after: Duration::from_secs(120),
            deaf_after: Duration::from_secs(10),
            silent_list_interval: Duration::from_secs(600),
            absence_span: Duration::from_secs(30),
            strict: false,
            seed: 0,
        }
    }
}

/// What the driver does next. At most one list or watch is open at a time; probes and discoveries run beside
/// it, at most one of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a list, or ask for its next page.
    List(ListRequest),
    /// Open a watch.
    Watch(WatchRequest),
    /// Drop the open list or watch; nothing that still arrives from it may be handed in.
    Close,
    /// Send this list beside the open watch and answer with [`Input::Probed`]. Replaces a probe still under way.
    Probe(ListRequest),
    /// Ask discovery of the group and version whether the resource is there; answer with [`Input::Discovered`].
    /// Replaces a discovery still under way.
    Discover,
    /// The items that follow belong to a complete new list: stage them.
    BeginReplace {
        /// Whether an equal UID and version mean an equal object. If not, the server's history may have been
        /// replaced and every object is to be taken anew.
        shortcut: bool,
        /// Whether items that cannot be read are left out, where it is known where they end: lists with them have
        /// failed. What was listed before stays for an item whose key can be read (G30).
        skip_unreadable: bool,
    },
    /// The staged list is complete: publish it in one step.
    FinishReplace {
        /// The version of the list.
        version: ResourceVersion,
        /// Whether the server's history was replaced since the list before (an etcd restored).
        history_changed: bool,
    },
    /// Drop what was staged since [`Action::BeginReplace`].
    AbandonReplace,
    /// The resource is gone: deliver every object as deleted, final state unknown.
    RemoveAll,
}

/// A LIST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// `resourceVersion`: not sent when unset, else `0` or one seen before.
    pub version: ResourceVersion,
    /// `resourceVersionMatch`.
    pub version_match: Option<VersionMatch>,
    /// `limit`.
    pub limit: Option<u32>,
    /// `continue`: the token of the page before. Version and match are absent then.
    pub continue_token: Option<String>,
}

/// How a list's version is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VersionMatch {
    /// Any state at or after the version.
    NotOlderThan,
}

impl VersionMatch {
    /// The value of the `resourceVersionMatch` parameter.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotOlderThan => "NotOlderThan",
        }
    }
}

/// A WATCH, always with bookmarks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    /// `resourceVersion`: not sent when unset, which only a streaming list does.
    pub version: ResourceVersion,
    /// `sendInitialEvents`: the watch begins with a list. Goes with `resourceVersionMatch=NotOlderThan`.
    pub send_initial_events: bool,
    /// `timeoutSeconds`, in whole seconds.
    pub timeout: Duration,
}

/// What happened. But for [`Probed`](Self::Probed), [`Discovered`](Self::Discovered) and [`Stop`](Self::Stop)
/// every input is about the list or watch that is open; the machine ignores what does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The response's headers are there, with a 2xx status.
    Opened,
    /// Bytes of the body arrived, of whatever kind: a sign of life.
    Received {
        /// How many.
        bytes: usize,
    },
    /// The list under way has this many items staged by now, all pages together. For the status only.
    Progress {
        /// How many.
        items: usize,
    },
    /// The list under way has an object of this version, above the one that the store stands at: the oldest such
    /// object. Told before the end of the list, if there is one.
    Missed {
        /// The object's version.
        version: ResourceVersion,
    },
    /// A LIST's response is complete and its items are staged. The response is over: no `Closed` follows.
    PageEnd {
        /// The list's `resourceVersion`.
        version: ResourceVersion,
        /// The list's `continue` token, if it is not empty.
        continue_token: Option<String>,
        /// The list's `remainingItemCount`.
        remaining: Option<u64>,
        /// How many items the page had.
        items: usize,
    },
    /// An ADDED, MODIFIED or DELETED was applied whole: to the staged list before the end of the initial
    /// events, else to the store.
    Event {
        /// The object's version.
        version: ResourceVersion,
    },
    /// A BOOKMARK arrived.
    Bookmark {
        /// Its version.
        version: ResourceVersion,
        /// Whether the annotation `k8s.io/initial-events-end` says `true`.
        initial_events_end: bool,
    },
    /// The body of a watch ended cleanly. The request is over.
    Closed,
    /// The request could not be opened, was answered with another status than 2xx, sent an ERROR event, broke,
    /// or sent a frame that cannot be used. It is over: the driver drops it without being told to.
    Failed(Failure),
    /// The answer to [`Action::Probe`]: the version of the list.
    Probed(Result<ResourceVersion, Failure>),
    /// The answer to [`Action::Discover`]: whether the resource is among those of its group and version. Where
    /// the group or version is not served at all the answer is `Ok(false)`.
    Discovered(Result<bool, Failure>),
    /// End.
    Stop,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure, which decides what is done about it.
    pub kind: FailureKind,
    /// What happened, in words; safe to show and to log.
    pub message: String,
    /// The server's `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure without `Retry-After`.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }
}

/// Kinds of [`Failure`], as far as the machine treats them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The connection was refused.
    Refused,
    /// The connection failed or broke.
    Transport,
    /// Something took too long.
    Timeout,
    /// 410, or the reason `Expired` or `Gone`, as a status or in an ERROR event.
    Expired,
    /// The version is larger than the server's newest.
    TooLargeVersion,
    /// 429.
    TooManyRequests,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 400, 405, 406, 415 or 422: the server does not take the request as it is.
    Invalid,
    /// 5xx.
    Server,
    /// A truncated, malformed or oversized frame.
    Malformed,
    /// A list of which nothing can be decoded; with `strict`, any object that cannot be.
    Undecodable,
    /// An open watch kept silent about what a list shows. Found by the machine, never told to it.
    Deaf,
    /// Anything else.
    Other,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused",
            Self::Transport => "connection failed",
            Self::Timeout => "timed out",
            Self::Expired => "version expired",
            Self::TooLargeVersion => "version too large",
            Self::TooManyRequests => "too many requests",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not found",
            Self::Invalid => "request not accepted",
            Self::Server => "server error",
            Self::Malformed => "malformed frame",
            Self::Undecodable => "undecodable object",
            Self::Deaf => "deaf watch",
            Self::Other => "other failure",
        })
    }
}

/// Where a reflector stands. Times are on the clock of `now`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Not polled yet.
    NotStarted,
    /// A list is under way.
    Listing {
        /// Whether it is a streaming list.
        streaming: bool,
        /// Items staged so far.
        items: usize,
        /// How many more the server says there are.
        remaining: Option<u64>,
        /// Lists since the delay between them last started anew.
        attempt: u32,
    },
    /// A watch is open.
    Watching {
        /// The version that the store stands at.
        version: ResourceVersion,
        /// Since when, not counting that watches end at their own timeout and are reopened.
        since: Duration,
        /// When the last event or bookmark came.
        last_event: Option<Duration>,
    },
    /// Something failed and is tried again. Lasts until the next watch is open or a list begins.
    BackingOff {
        /// What failed.
        cause: Failure,
        /// Which one in a row it was: of the watches if a watch is tried again, else of the lists.
        attempt: u32,
        /// When it is tried again.
        until: Duration,
    },
    /// The server answered 404: waiting for the resource to be there.
    Unavailable {
        /// The answer.
        cause: Failure,
        /// How often in a row discovery succeeded without the resource.
        absent: u32,
        /// When discovery is asked next.
        until: Duration,
    },
    /// The server keeps sending what cannot be used, or watches keep failing; the store stands at its last good
    /// state, or at the last list. In the second case it lasts until a watch delivers something or lives.
    Degraded {
        /// What cannot be used, or why there is no watch.
        cause: Failure,
        /// When it is tried again.
        until: Duration,
    },
    /// Stopped, for good.
    Stopped,
}
