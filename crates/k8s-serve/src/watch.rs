//! WATCH: events from a version on, one JSON object per line, or one frame of protobuf each.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Response};
use informer_core::ObjectKey;
use informer_core::wire::MediaType;
use tokio::time::Instant;

use crate::accept::Served;
use crate::answer::{Body, BodyError, failed_watch, stream_response, stream_type};
use crate::backend::{Backend, Change, Feed, FeedEnd, ReadError, Snapshot};
use crate::object::{Object, WriteError};
use crate::options::WatchListSupport;
use crate::params::{Parameters, Selectors, WatchWant};
use crate::read::{Failure, Miss, ReadSide};
use crate::resource::Resource;
use crate::status::Status;
use crate::writer::{Event, Writer, error_event};

/// How long before its timeout a watch gets a last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How many initial objects go into one chunk.
const STEP: usize = 64;

impl<B: Backend> ReadSide<B> {
    pub(crate) async fn watch(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Failure> {
        let negotiated = self.negotiate_for(headers, resource, Served::Collections)?;
        let mut parameters = Parameters::parse(query)?;
        match self.options().watch_list {
            WatchListSupport::Refused if parameters.mentions_initial_events() => {
                return Err(Status::streaming_lists_refused().into());
            }
            WatchListSupport::Ignored => parameters = parameters.without_streaming_lists(),
            WatchListSupport::Refused | WatchListSupport::Served => {}
        }
        let want = parameters.watch_want()?;
        let selectors = parameters.selectors(resource)?;
        let form = negotiated.object(&parameters)?;
        let started = Instant::now();
        let timeout = parameters.timeout().unwrap_or_else(|| self.options().default_watch_timeout);
        let (feed, phase) = match self.open(resource, want).await {
            Ok(opened) => opened,
            // An API server has answered by then.
            Err(Failure { status, miss: Some(miss @ (Miss::Ahead | Miss::Expired)) }) => {
                let mut response = failed_watch(&status, form.media());
                response.extensions_mut().insert(miss);
                return Ok(response);
            }
            Err(failure) => return Err(failure),
        };

        let deadline = started + timeout;
        let watch = Watch {
            backend: self.backend().clone(),
            writer: self.writer(resource, form).await?,
            namespace: namespace.map(str::to_owned),
            media: form.media(),
            selectors,
            feed,
            phase,
            bookmarks: parameters.bookmarks.then(|| Bookmarks {
                interval: self.options().bookmark_interval,
                next: started + self.options().bookmark_interval,
                last: deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > started),
                marks_initial_end: self.options().watch_list == WatchListSupport::Served,
            }),
            deadline,
        };
        Ok(stream_response(
            stream_type(form.media()),
            stream::unfold(watch, |mut watch| async move {
                let chunk = watch.next().await?;
                Some((Ok::<_, BodyError>(chunk), watch))
            }),
        ))
    }

    /// The feed and what comes before it.
    async fn open(
        &self,
        resource: &Resource,
        want: WatchWant,
    ) -> Result<(B::Feed, Phase<B::Snapshot>), Failure> {
        let (after, phase) = match want {
            WatchWant::Everything { reached, at } => {
                if let Some(version) = reached {
                    self.wait_for(resource, version).await?;
                }
                let snapshot = self.snapshot(resource, at).await?;
                (snapshot.version(), Phase::Initial { snapshot, after: None })
            }
            WatchWant::Now => (self.backend().version(resource).await?, Phase::Changes),
            WatchWant::After(version) => (version, Phase::Changes),
        };
        match self.backend().feed(resource, after).await {
            Ok(feed) => Ok((feed, phase)),
            Err(ReadError::Expired { current }) => {
                Err(Failure { status: too_old(after, current), miss: Some(Miss::Expired) })
            }
            Err(other) => Err(other.into()),
        }
    }
}

struct Watch<B: Backend> {
    backend: B,
    writer: Writer,
    namespace: Option<String>,
    media: MediaType,
    selectors: Selectors,
    feed: B::Feed,
    phase: Phase<B::Snapshot>,
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

impl<B: Backend> Watch<B> {
    /// The next events; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut out = Vec::new();
            let written = match &mut self.phase {
                Phase::Ended => return None,
                _ if Instant::now() >= self.deadline => return None,
                Phase::Initial { .. } => self.initial(&mut out),
                Phase::Changes => self.wait(&mut out).await,
            };
            if let Err(error) = written {
                self.end(&mut out, &error.into());
            }
            if !out.is_empty() {
                return Some(out.into());
            }
        }
    }

    /// The next of the initial objects, or the bookmark behind them.
    fn initial(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let Phase::Initial { snapshot, after } = &mut self.phase else { return Ok(()) };
        let objects = snapshot.page(self.namespace.as_deref(), after.as_ref(), STEP);
        match objects.last() {
            Some(last) => *after = Some(last.key().clone()),
            None => {
                let version = snapshot.version();
                self.phase = Phase::Changes;
                if self.bookmarks.as_ref().is_some_and(|b| b.marks_initial_end) {
                    self.bookmark(out, version, true);
                }
            }
        }
        for object in &objects {
            if self.selects(object) {
                self.event(out, Event::Added, object, None)?;
            }
        }
        Ok(())
    }

    /// Waits for changes, the next bookmark or the end.
    async fn wait(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let alarm = self.bookmarks.as_ref().map_or(self.deadline, |bookmarks| {
            bookmarks
                .last
                .map_or(bookmarks.next, |last| last.min(bookmarks.next))
                .min(self.deadline)
        });
        // A busy feed delays nothing.
        if Instant::now() >= alarm {
            self.alarm(out);
            return Ok(());
        }
        let changes = tokio::select! {
            biased;
            changes = self.feed.next() => Some(changes),
            () = tokio::time::sleep_until(alarm) => None,
        };
        match changes {
            Some(Ok(changes)) => {
                for change in &changes {
                    self.change(out, change)?;
                }
                if let Some(version) = self.feed.take_mark().filter(|_| self.bookmarks.is_some()) {
                    self.bookmark(out, version, false);
                }
            }
            Some(Err(FeedEnd::Expired { current })) => {
                let status = too_old(self.feed.progress().unwrap_or(0), current);
                self.end(out, &status);
            }
            Some(Err(FeedEnd::Refused(status))) => self.end(out, &status),
            Some(Err(FeedEnd::Closed)) => self.phase = Phase::Ended,
            None => self.alarm(out),
        }
        Ok(())
    }

    /// Ends the stream with an error.
    fn end(&mut self, out: &mut Vec<u8>, status: &Status) {
        self.phase = Phase::Ended;
        out.extend_from_slice(&error_event(status, self.media));
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
    fn change(&mut self, out: &mut Vec<u8>, change: &Change<B::Object>) -> Result<(), WriteError> {
        let selected = |object: &&B::Object| self.selects(object);
        match (change.before.as_ref().filter(selected), change.after.as_ref().filter(selected)) {
            (None, Some(object)) => self.event(out, Event::Added, object, None),
            (Some(_), Some(object)) => self.event(out, Event::Modified, object, None),
            (Some(object), None) => self.event(out, Event::Deleted, object, Some(change.version)),
            (None, None) => Ok(()),
        }
    }

    fn selects(&self, object: &B::Object) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| object.key().namespace() == namespace)
            && self.selectors.select(object)
    }

    fn event(
        &mut self,
        out: &mut Vec<u8>,
        event: Event,
        object: &B::Object,
        version: Option<u64>,
    ) -> Result<(), WriteError> {
        self.writer.event(out, event, object, version, self.backend.now())
    }

    fn bookmark(&mut self, out: &mut Vec<u8>, version: u64, ends_initial_events: bool) {
        self.writer.bookmark(out, version, ends_initial_events, self.backend.now());
    }
}

fn too_old(wanted: u64, current: u64) -> Status {
    Status::expired(format!("too old resource version: {wanted} ({current})"))
}
