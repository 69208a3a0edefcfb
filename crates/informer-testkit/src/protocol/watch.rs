//! WATCH: events from a version on, one JSON object per line, or one frame of protobuf each.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Response};
use informer_core::ObjectKey;
use tokio::time::Instant;

use super::accept::{Form, Media};
use super::body::stream_response;
use super::params::{Parameters, Selectors, WatchWant};
use super::{
    At, Backend, Body, BodyError, Change, Feed, FeedEnd, Object, ReadError, ReadSide, Snapshot,
    WatchListSupport, render, unreadable,
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
        let form = self.negotiate(headers, resource)?.object()?;
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
        let selectors = parameters.selectors(resource)?;
        let (feed, phase) = match self.open(resource, want).await? {
            Ok(opened) => opened,
            Err(status) => return Ok(failed_watch(&status, form.media())),
        };

        let now = Instant::now();
        let deadline = now + parameters.timeout.unwrap_or(self.options.default_watch_timeout);
        let watch = Watch {
            resource: Arc::clone(resource),
            namespace: namespace.map(str::to_owned),
            form,
            selectors,
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
        Ok(stream_response(
            form.media().stream_type(),
            stream::unfold(watch, |mut watch| async move {
                let chunk = watch.next().await?;
                Some((Ok::<_, BodyError>(chunk), watch))
            }),
        ))
    }

    /// The feed and what comes before it; the inner error is one that is answered within the
    /// stream.
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
    form: Form,
    selectors: Selectors,
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
    /// The next events; `None` ends the stream.
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
                        self.event(&mut out, "ADDED", object);
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
            bookmarks
                .last
                .map_or(bookmarks.next, |last| last.min(bookmarks.next))
                .min(self.deadline)
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
                    let status = too_old(self.feed.progress().unwrap_or(0), current);
                    out.extend_from_slice(&render::error_event(&status, self.form.media()));
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

    /// Objects enter and leave a selection as they are labelled: what counts is whether they were
    /// and are selected. One that left is sent as it last was, at the version at which it left.
    fn change(&self, out: &mut Vec<u8>, change: &Change) {
        let selected = |object: &&Object| self.selects(object);
        match (change.before.as_ref().filter(selected), change.after.as_ref().filter(selected)) {
            (None, Some(object)) => self.event(out, "ADDED", object),
            (Some(_), Some(object)) => self.event(out, "MODIFIED", object),
            (Some(object), None) => self.event(out, "DELETED", &object.at_version(change.version)),
            (None, None) => {}
        }
    }

    fn selects(&self, object: &Object) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| object.key().namespace() == namespace)
            && self.selectors.select(object)
    }

    fn event(&self, out: &mut Vec<u8>, kind: &str, object: &Object) {
        render::event(out, kind, self.form.media(), |out| {
            render::object(out, &self.resource, object, self.form);
        });
    }

    fn bookmark(&self, out: &mut Vec<u8>, version: u64, ends_initial_events: bool) {
        render::event(out, "BOOKMARK", self.form.media(), |out| {
            render::bookmark(out, &self.resource, version, ends_initial_events, self.form);
        });
    }
}

fn too_old(wanted: u64, current: u64) -> Status {
    Status::expired(format!("too old resource version: {wanted} ({current})"))
}

/// A watch that is opened, and ends with an error.
pub(crate) fn failed_watch(status: &Status, media: Media) -> Response<Body> {
    stream_response(media.stream_type(), stream::iter([Ok(render::error_event(status, media))]))
}
