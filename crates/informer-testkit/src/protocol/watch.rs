//! WATCH: one JSON object per line, from a version on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Response};
use informer_core::ObjectKey;
use informer_core::selector::{FieldSelector, LabelSelector};
use tokio::time::Instant;

use super::body::stream_response;
use super::params::{Parameters, WatchWant};
use super::{
    At, Backend, Body, BodyError, Change, Feed, FeedEnd, Object, ReadError, ReadSide, Representation,
    Snapshot, WatchListSupport, negotiate, render, unreadable,
};
use crate::resource::Resource;
use crate::status::Status;

/// How long before its timeout a watch gets a last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How many initial objects go into one chunk.
const STEP: usize = 64;

impl<B: Backend> ReadSide<B> {
    pub(super) async fn watch(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Status> {
        let representation = negotiate(headers)?.object()?;
        let mut parameters = Parameters::parse(query)?;
        match self.options.watch_list {
            WatchListSupport::Refused if parameters.send_initial_events.is_some() => {
                return Err(Status::streaming_lists_refused());
            }
            WatchListSupport::Ignored => {
                parameters.send_initial_events = None;
                parameters.version_match = None;
            }
            _ => {}
        }
        let want = parameters.watch_want()?;
        let (labels, fields) = parameters.selectors(resource)?;
        let (feed, phase) = match self.open(resource, want).await? {
            Ok(opened) => opened,
            Err(status) => return Ok(stream_response(stream::iter([Ok(error_line(&status))]))),
        };

        let now = Instant::now();
        let deadline = now + parameters.timeout.unwrap_or(self.options.default_watch_timeout);
        let watch = Watch {
            resource: Arc::clone(resource),
            namespace: namespace.map(str::to_owned),
            representation,
            labels,
            fields,
            feed,
            phase,
            bookmarks: parameters.bookmarks.then(|| Bookmarks {
                interval: self.options.bookmark_interval,
                next: now + self.options.bookmark_interval,
                last: deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > now),
                marks_initial_end: self.options.watch_list == WatchListSupport::Served,
            }),
            deadline,
        };
        Ok(stream_response(stream::unfold(watch, |mut watch| async move {
            let chunk = watch.next().await?;
            Some((Ok::<_, BodyError>(chunk), watch))
        })))
    }

    /// The feed and what comes before it; the inner error is one that is answered within the stream.
    async fn open(
        &self,
        resource: &Resource,
        want: WatchWant,
    ) -> Result<Result<(B::Feed, Phase<B::Snapshot>), Status>, Status> {
        let (after, phase) = match want {
            WatchWant::Everything { reached } => {
                if let Some(version) = reached {
                    self.wait_for(resource, version).await?;
                }
                let snapshot = self.snapshot(resource, At::Newest).await?;
                (snapshot.version(), Phase::Initial { snapshot, after: None })
            }
            WatchWant::Now => (self.backend.version(resource), Phase::Changes),
            WatchWant::After(version) => (version, Phase::Changes),
        };
        match self.backend.feed(resource, after) {
            Ok(feed) => Ok(Ok((feed, phase))),
            Err(ReadError::Expired { current }) => Ok(Err(too_old(after, current))),
            Err(other) => Err(unreadable(other)),
        }
    }
}

struct Watch<S, F> {
    resource: Arc<Resource>,
    namespace: Option<String>,
    representation: Representation,
    labels: LabelSelector,
    fields: FieldSelector,
    feed: F,
    phase: Phase<S>,
    bookmarks: Option<Bookmarks>,
    deadline: Instant,
}

enum Phase<S> {
    /// The whole collection first.
    Initial {
        snapshot: S,
        after: Option<ObjectKey>,
    },
    Changes,
    Ended,
}

struct Bookmarks {
    interval: Duration,
    next: Instant,
    /// The one shortly before the end, unless that is past.
    last: Option<Instant>,
    marks_initial_end: bool,
}

impl<S: Snapshot, F: Feed> Watch<S, F> {
    /// The next lines; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut out = Vec::new();
            match &mut self.phase {
                Phase::Ended => return None,
                Phase::Initial { snapshot, after } => {
                    let objects = snapshot.page(self.namespace.as_deref(), after.as_ref(), STEP);
                    match objects.last() {
                        Some(last) => *after = Some(last.key().clone()),
                        None => {
                            let version = snapshot.version();
                            self.phase = Phase::Changes;
                            if self.bookmarks.as_ref().is_some_and(|b| b.marks_initial_end) {
                                self.bookmark(&mut out, version, true);
                            }
                        }
                    }
                    for object in objects.iter().filter(|object| self.selects(object)) {
                        self.line(&mut out, "ADDED", object);
                    }
                }
                Phase::Changes => self.wait(&mut out).await,
            }
            if !out.is_empty() {
                return Some(out.into());
            }
        }
    }

    /// Waits for changes, the next bookmark or the end.
    async fn wait(&mut self, out: &mut Vec<u8>) {
        let alarm = self.bookmarks.as_ref().map_or(self.deadline, |bookmarks| {
            bookmarks.last.map_or(bookmarks.next, |last| last.min(bookmarks.next)).min(self.deadline)
        });
        let changes = tokio::select! {
            biased;
            changes = self.feed.next() => Some(changes),
            () = tokio::time::sleep_until(alarm) => None,
        };
        match changes {
            Some(Ok(changes)) => {
                for change in &changes {
                    self.change(out, change);
                }
            }
            Some(Err(end)) => {
                self.phase = Phase::Ended;
                if let FeedEnd::Expired { current } = end {
                    out.extend_from_slice(&error_line(&too_old(self.feed.progress().unwrap_or(0), current)));
                }
            }
            None => self.alarm(out),
        }
    }

    fn alarm(&mut self, out: &mut Vec<u8>) {
        let now = Instant::now();
        if now >= self.deadline {
            self.phase = Phase::Ended;
            return;
        }
        let Some(bookmarks) = &mut self.bookmarks else { return };
        bookmarks.last = bookmarks.last.filter(|last| *last > now);
        if bookmarks.next <= now {
            bookmarks.next = now + bookmarks.interval;
        }
        if let Some(version) = self.feed.progress() {
            self.bookmark(out, version, false);
        }
    }

    /// Objects enter and leave a selection as they are labelled: what counts is whether they were and are
    /// selected. One that left is sent as it last was, at the version at which it left.
    fn change(&self, out: &mut Vec<u8>, change: &Change) {
        let selected = |object: &&Object| self.selects(object);
        match (change.before.as_ref().filter(selected), change.after.as_ref().filter(selected)) {
            (None, Some(object)) => self.line(out, "ADDED", object),
            (Some(_), Some(object)) => self.line(out, "MODIFIED", object),
            (Some(object), None) => self.line(out, "DELETED", &object.at_version(change.version)),
            (None, None) => {}
        }
    }

    fn selects(&self, object: &Object) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| object.key().namespace() == namespace)
            && object.is_selected_by(&self.labels, &self.fields)
    }

    fn line(&self, out: &mut Vec<u8>, kind: &str, object: &Object) {
        render::event(out, kind, |out| render::object(out, &self.resource, object, self.representation));
    }

    fn bookmark(&self, out: &mut Vec<u8>, version: u64, ends_initial_events: bool) {
        render::event(out, "BOOKMARK", |out| {
            render::bookmark(out, &self.resource, version, ends_initial_events, self.representation);
        });
    }
}

fn too_old(wanted: u64, current: u64) -> Status {
    Status::expired(format!("too old resource version: {wanted} ({current})"))
}

/// An error within a watch that has been answered with 200.
pub(crate) fn error_line(status: &Status) -> Bytes {
    let mut out = Vec::new();
    render::event(&mut out, "ERROR", |out| out.extend_from_slice(status.to_json().as_bytes()));
    out.into()
}
