//! Configuration, actions, inputs and states of the reflector.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;

use super::BackoffConfig;
use crate::ResourceVersion;
use crate::wire::Status;

/// The shortest timeout requested for a watch; shorter ones would reopen watches too often.
pub const SHORTEST_WATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// How a collection is listed and watched. The defaults are those of the contract.
#[derive(Clone, Debug, PartialEq)]
pub struct ReflectorConfig {
    /// Objects per page of a list; `None` never pages. Default: 500.
    pub page_size: Option<u32>,
    /// Whether relists are paged even if the first list was not. Default: false. A list without a
    /// limit is served from the server's cache; one with a limit was not before Kubernetes 1.34.
    pub page_relists: bool,
    /// Whether to try a streaming list (WatchList) first. Default: true. If
    /// [`streaming_lists_supported`](crate::ingest::Ingest::streaming_lists_supported) is known for
    /// the same server and resource, set this to `supported.unwrap_or(true)`.
    pub streaming_lists: bool,
    /// The range from which the `timeoutSeconds` of each watch is drawn; never less than
    /// [`SHORTEST_WATCH_TIMEOUT`]. Default: 200 s to 280 s.
    pub watch_timeout: RangeInclusive<Duration>,
    /// How long beyond its own timeout a watch may stay open. Default: 10 s.
    pub watch_grace: Duration,
    /// The delays between openings of watches, and between the end of one list and the next.
    pub backoff: BackoffConfig,
    /// How long a watch must be open to count as healthy, which resets the backoff of watches. It
    /// is also the longest delay after a watch that was opened but ended earlier. Default: 5 s.
    pub healthy_after: Duration,
    /// How long watches must be open, in total and without another list, to reset the backoff of
    /// lists. Default: 60 s.
    pub lists_restart_after: Duration,
    /// How long watches must fail to open, or end at once without a frame, for [`State::Degraded`].
    /// Default: 60 s.
    pub degraded_after: Duration,
    /// The least age of the last list before a degraded informer lists again. Default: 2 min.
    pub degraded_list_age: Duration,
    /// How long watches and streaming lists must get nothing but 429 before LIST is tried. Also the
    /// least time between such LISTs. Default: 10 min.
    pub throttled_after: Duration,
    /// The longest `Retry-After` that is obeyed. Default: 5 min.
    pub max_retry_after: Duration,
    /// How long the response headers of a watch may take. Default: 30 s.
    pub open_timeout: Duration,
    /// How long a list may send nothing, before or after its response headers. Default: 60 s.
    pub list_timeout: Duration,
    /// How long a streaming list may send nothing before LIST is used instead. Default: 10 s.
    pub streaming_timeout: Duration,
    /// How often bookmarks are expected once one was seen; three missed ones mean a dead
    /// connection. Default: 60 s.
    pub bookmark_interval: Duration,
    /// How long a watch may be silent before the server's history is probed. Default: 2 min.
    pub probe_after: Duration,
    /// How long a watch without bookmarks may stay silent after a probe found a newer version. Then
    /// a list shows whether the watch is deaf. Default: 10 s.
    pub deaf_after: Duration,
    /// The least time between two such lists. Default: 10 min.
    pub silent_list_interval: Duration,
    /// The least time that three successful discoveries without the resource must span before the
    /// resource counts as removed. Default: 30 s.
    pub absence_span: Duration,
    /// Whether a malformed or undecodable frame shows as [`State::Degraded`] at its first
    /// occurrence, and no item of a list is ever left out. Default: false.
    pub strict: bool,
    /// How many deltas may be queued for the sink before reading stops. Default: 4096.
    pub queue_capacity: usize,
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
            queue_capacity: 4096,
            seed: 0,
        }
    }
}

/// What the driver must do next. At most one list or watch is open at a time. Probes and
/// discoveries run beside it, at most one of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Open a list, or request its next page.
    List(ListRequest),
    /// Open a watch.
    Watch(WatchRequest),
    /// Close the open list or watch. Input that still arrives from it must not be passed in.
    Close,
    /// Send this list while the watch stays open, and pass the result in as [`Input::Probed`].
    /// Replaces a probe in progress.
    Probe(ListRequest),
    /// Ask discovery of the group and version whether the resource is served, and pass the result
    /// in as [`Input::Discovered`]. Replaces a discovery in progress.
    Discover,
    /// The items that follow belong to a complete new list: stage them.
    BeginReplace {
        /// Whether equal UID and version imply an equal object. If not, the server's history may
        /// have been replaced, and every object is decoded again.
        shortcut: bool,
        /// Whether to leave out unreadable items whose end is known: earlier lists failed on them.
        /// If the key of an item can be read, the store keeps the last state of its object (G30).
        skip_unreadable: bool,
    },
    /// The staged list is complete: publish it in one step.
    FinishReplace {
        /// The version of the list.
        version: ResourceVersion,
        /// Whether the server's history was replaced since the previous list, such as by an etcd
        /// restore.
        history_changed: bool,
        /// If the list was made at `""`: how many of the requested refreshes are complete.
        refreshes: Option<u64>,
    },
    /// Drop what was staged since [`Action::BeginReplace`].
    AbandonReplace,
    /// The resource is gone: deliver every object as deleted, final state unknown.
    RemoveAll {
        /// How many of the requested refreshes are complete.
        refreshes: u64,
    },
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
    /// `continue`: the token of the previous page. Version and match are absent then.
    pub continue_token: Option<String>,
}

/// How the server interprets the version of a list request.
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
    /// `resourceVersion`: not sent when unset, which occurs only for streaming lists.
    pub version: ResourceVersion,
    /// `sendInitialEvents`: the watch begins with a list. Goes with
    /// `resourceVersionMatch=NotOlderThan`.
    pub send_initial_events: bool,
    /// `timeoutSeconds`, in whole seconds.
    pub timeout: Duration,
}

/// What happened. Every input except [`Probed`](Self::Probed), [`Discovered`](Self::Discovered) and
/// [`Refresh`](Self::Refresh) concerns the open list or watch. Input that does not fit is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The response headers arrived, with a 2xx status.
    Opened,
    /// Bytes of the body arrived, of whatever kind: a sign of life.
    Received {
        /// How many.
        bytes: usize,
    },
    /// The number of items that the list in progress has so far, over all pages. Only for the
    /// status.
    Progress {
        /// How many.
        items: usize,
    },
    /// The oldest version among the objects of the list in progress that is newer than the store's.
    /// Sent before the end of the list, if there is such an object.
    Missed {
        /// The object's version.
        version: ResourceVersion,
    },
    /// A LIST's response is complete and its items are staged. The response is over: no `Closed`
    /// follows.
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
    /// An ADDED, MODIFIED or DELETED was applied to the store. Ignored while a list is staged.
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
    /// The request could not be opened, got a status other than 2xx, sent an ERROR event, broke, or
    /// sent an unusable frame. It is over; the driver closes it without an [`Action::Close`].
    Failed(Failure),
    /// The result of [`Action::Probe`]: the version of the list.
    Probed(Result<ResourceVersion, Failure>),
    /// The result of [`Action::Discover`]: whether discovery lists the resource in its group and
    /// version. `Ok(false)` if the group or version is not served at all.
    Discovered(Result<bool, Failure>),
    /// The program asks for a list at `""`. Requests that come before that list is sent share it.
    Refresh {
        /// The number of the latest request, counted from 1.
        number: u64,
    },
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{message}")]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Failure {
    /// The kind of failure, which decides how it is handled.
    pub kind: FailureKind,
    /// The HTTP status code, if a server answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// The reason in the server's `Status`, such as `Forbidden`; empty where there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What happened, in words; safe to show and to log.
    pub message: String,
    /// The server's `Retry-After`.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure without a response of a server.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, code: None, reason: String::new(), message: message.into(), retry_after: None }
    }

    /// The failure that a server's `Status` describes, with a readable `message`.
    #[must_use]
    pub fn of_status(status: &Status, message: impl Into<String>) -> Self {
        let kind = match status.code {
            _ if status.is_too_large_resource_version() => FailureKind::TooLargeVersion,
            _ if status.is_expired() => FailureKind::Expired,
            401 => FailureKind::Unauthorized,
            403 => FailureKind::Forbidden,
            404 => FailureKind::NotFound,
            429 => FailureKind::TooManyRequests,
            400 | 405 | 406 | 415 | 422 => FailureKind::Invalid,
            500..=599 => FailureKind::Server,
            _ => FailureKind::Other,
        };
        Self {
            kind,
            code: Some(status.code).filter(|code| *code != 0),
            reason: status.reason.clone(),
            message: message.into(),
            retry_after: status
                .retry_after_seconds
                .map(|seconds| Duration::from_secs(seconds.into())),
        }
    }
}

/// Kinds of [`Failure`] that are handled differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum FailureKind {
    /// The connection was refused.
    Refused,
    /// The connection failed or broke.
    Transport,
    /// A timeout expired.
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
    /// A list without a decodable object; with `strict`, any undecodable object.
    Undecodable,
    /// An open watch did not send changes that a list has. Detected by the machine, never an input.
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

/// The state of a reflector. Times are on the clock of `now`.
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
        /// How many more items there are, according to the server.
        remaining: Option<u64>,
        /// The number of lists that were delayed since their backoff was last reset.
        attempt: u32,
    },
    /// A watch is open.
    Watching {
        /// The version of the store.
        version: ResourceVersion,
        /// Since when. A watch that ends at its own timeout and is reopened does not change it.
        since: Duration,
        /// When the last event or bookmark came.
        last_event: Option<Duration>,
    },
    /// A request failed and will be retried. Lasts until the next watch is open or a list begins.
    BackingOff {
        /// What failed.
        cause: Failure,
        /// The number of attempts since the backoff was reset: that of watches if a watch is
        /// retried, else that of lists.
        attempt: u32,
        /// When the next attempt is made.
        until: Duration,
    },
    /// The server answered 404: waiting until the resource is served.
    Unavailable {
        /// The 404.
        cause: Failure,
        /// The number of consecutive discoveries without the resource.
        absent: u32,
        /// When the next discovery is made.
        until: Duration,
    },
    /// The server keeps sending unusable data, or watches keep failing. The store keeps its last
    /// good state, or that of the last list. In the second case it lasts until a watch delivers
    /// something or is healthy.
    Degraded {
        /// Which data cannot be used, or why there is no watch.
        cause: Failure,
        /// When the next attempt is made.
        until: Duration,
    },
}
