//! Inputs, requests and reports of an [`Ingest`](super::Ingest).

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::reflector::{Failure, ListRequest, State, WatchRequest};
use crate::wire::{ListHead, ListPart, ObjectHead, WatchFrame, Wire};
use crate::{DeltaQueue, ObjectKey, ResourceVersion, Uid};

/// Decodes the bytes of one object into its stored form.
pub trait Decoder {
    /// The stored form of an object.
    type Object;

    /// Decodes the object with this head.
    ///
    /// # Errors
    /// If the object does not have the expected shape, or its transformation fails. The error must
    /// not carry values of the object (G34).
    fn decode(
        &mut self,
        object: Wire<'_>,
        head: &ObjectHead<'_>,
    ) -> Result<Self::Object, Undecodable>;
}

/// Why an object cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecodable {
    /// [`Phase::Decode`] or [`Phase::Transform`].
    pub phase: Phase,
    /// Path and type, never the value.
    pub cause: String,
}

/// The operation during which something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Phase {
    /// A LIST, or a streaming list.
    List,
    /// A WATCH.
    Watch,
    /// Asking discovery whether the resource is served.
    Discover,
    /// Decoding an object.
    Decode,
    /// Transforming a decoded object.
    Transform,
    /// Computing an object's values for an index.
    Index,
    /// Calling an observer of publications.
    Observer,
    /// Calling a handler.
    Handler,
    /// The tokio runtime that the informer runs on.
    Runtime,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Watch => "watch",
            Self::Discover => "discover",
            Self::Decode => "decode",
            Self::Transform => "transform",
            Self::Index => "index",
            Self::Observer => "observer",
            Self::Handler => "handler",
            Self::Runtime => "runtime",
        })
    }
}

/// Receives the deltas and reports of an [`Ingest`](super::Ingest) (client-go's `ReflectorStore`).
pub trait Sink<T>: Send {
    /// Takes deltas from the queue and applies them. Deltas that it leaves stay queued; while the
    /// queue is full, nothing is read from the server. `now` is on the clock of
    /// [`next_sync`](Self::next_sync).
    fn deliver(&mut self, now: Duration, deltas: &mut DeltaQueue<T>);

    /// What the sink holds under this name. A listed object that the sink holds in the same state
    /// is not decoded again, but delivered as [`Delta::Kept`](crate::Delta::Kept) (G7). Default:
    /// [`Held::Nothing`].
    fn held(&self, namespace: &str, name: &str, uid: &Uid, version: &ResourceVersion) -> Held {
        _ = (namespace, name, uid, version);
        Held::Nothing
    }

    /// When the next [`Delta::Sync`](crate::Delta::Sync) is due. Default: never.
    fn next_sync(&self) -> Option<Duration> {
        None
    }

    /// How many refreshes the program has requested so far. After each, the collection is listed at
    /// `""`, and [`Delta::ReplaceFinished`](crate::Delta::ReplaceFinished) says how many are
    /// complete. Those requested before the list is sent share it. Default: none.
    fn refreshes(&self) -> u64 {
        0
    }

    /// Completes when [`next_sync`](Self::next_sync) has changed for a reason other than a
    /// delivery, or [`refreshes`](Self::refreshes) has. Default: never.
    ///
    /// # Cancel safety
    /// Dropped and called again at every step; a change in between must not be lost.
    fn rescheduled(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Receives a report on what the reflector is doing. Must be quick.
    fn report(&mut self, report: Report<'_>) {
        _ = report;
    }
}

/// What a [`Sink`] holds under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// The same object in the same state.
    Same(ObjectKey),
    /// Another state of the same object.
    Older(ObjectKey),
    /// Another object, with another UID.
    Other(ObjectKey),
}

impl Held {
    /// The key of the object with this head; shares the sink's key if there is one.
    pub(super) fn into_key(self, head: &ObjectHead<'_>) -> ObjectKey {
        match self {
            Self::Nothing => head.key(),
            Self::Same(key) | Self::Older(key) | Self::Other(key) => key,
        }
    }
}

/// What the driver must do next. At most one list or watch is open at a time. Probes and
/// discoveries run beside it, at most one of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Open a list, or request its next page. Closes the open list or watch.
    List(ListRequest),
    /// Open a watch. Closes the open list or watch.
    Watch(WatchRequest),
    /// Close the open list or watch. Input that still arrives from it must not be passed in.
    Close,
    /// Send this list while the watch stays open, only for the list's version; pass the result to
    /// [`probed`](super::Ingest::probed). Replaces a probe in progress.
    Probe(ListRequest),
    /// Ask discovery of the group and version whether the resource is served; pass the result to
    /// [`discovered`](super::Ingest::discovered). Replaces a discovery in progress.
    Discover,
}

/// Input from the open list or watch.
#[derive(Debug)]
pub enum Arrival {
    /// The response headers arrived, with a 2xx status.
    Opened,
    /// A piece of a list.
    List(ListChunk),
    /// The complete frames of a watch received so far; an empty vector is a sign of life.
    Watch(Vec<WatchFrame>),
    /// The body of a watch has ended.
    Closed,
    /// The request failed, got another status, or its connection broke. It is over.
    Failed(Failure),
}

/// A piece of a list.
#[derive(Debug)]
pub enum ListChunk {
    /// The complete items received so far; an empty vector is a sign of life.
    Parts(Vec<ListPart>),
    /// The list, or its page, is complete. Nothing follows.
    End(ListHead),
}

/// What a reflector is doing.
#[derive(Debug)]
pub enum Report<'a> {
    /// The state; sent after each step, changed or not.
    State(&'a State),
    /// Whether the server supports streaming lists; sent after each step once it is known.
    StreamingLists {
        /// Whether it does.
        supported: bool,
    },
    /// A request is sent: [`Phase::List`], [`Phase::Watch`] or [`Phase::Discover`].
    Requested {
        /// The kind of request.
        phase: Phase,
    },
    /// Objects or events were received.
    Received {
        /// How many events of a watch.
        events: usize,
        /// How many bookmarks.
        bookmarks: usize,
        /// How many bytes of objects.
        bytes: usize,
    },
    /// A list begins. Until it is published or abandoned, reports on objects belong to it.
    ListBegan {
        /// Whether items that cannot be read are left out, instead of making the list fail (G30).
        skip_unreadable: bool,
    },
    /// The list is complete and about to be delivered.
    ListPublished {
        /// Whether the server's history was replaced since the previous list (G14).
        history_changed: bool,
    },
    /// The list was abandoned.
    ListAbandoned,
    /// The resource was removed, and all its objects with it (G32).
    Removed,
    /// Something failed.
    Failed {
        /// [`Phase::List`], [`Phase::Watch`] or [`Phase::Discover`].
        phase: Phase,
        /// What happened.
        failure: &'a Failure,
    },
    /// An object was decoded, or the sink held its state already.
    Object {
        /// Whether it was decoded.
        decoded: bool,
    },
    /// An object could not be decoded or transformed; the sink keeps what it holds (G30).
    Undecodable {
        /// Namespace and name.
        key: &'a ObjectKey,
        /// The phase that failed, and the cause.
        why: &'a Undecodable,
    },
    /// An item of a list was left out because not even its key can be read (G30). The list is
    /// incomplete.
    Unreadable {
        /// Which item of the list, counted from 1.
        number: usize,
        /// What is wrong with it, without its contents.
        cause: &'a str,
    },
    /// An object was decoded or is gone; if it was undecodable before, it no longer is.
    Decodable {
        /// Namespace and name.
        key: &'a ObjectKey,
    },
    /// A list has objects of which none is usable (G20); it was not published.
    NothingDecodes {
        /// How many objects it has.
        objects: usize,
        /// Why the last one could not be decoded.
        cause: &'a str,
    },
}
