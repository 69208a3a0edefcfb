//! WATCH: events from a version on, one JSON object per line, or one frame of protobuf each.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Response};
use informer_core::ObjectKey;
use informer_core::wire::MediaType;
use tokio::time::{Instant, Sleep};

use crate::accept::Served;
use crate::answer::{Body, BodyError, failed_watch, stream_response, stream_type};
use crate::backend::{Backend, ReadError, Snapshot, WatchEnd};
use crate::object::{Object, WriteError};
use crate::options::WatchListSupport;
use crate::params::{Parameters, WatchWant};
use crate::read::{Failure, Miss, ReadSide};
use crate::resource::Resource;
use crate::status::Status;
use crate::watch_cache::{Ended, EventType, Events, Interest, Logged, Watcher};
use crate::writer::{Writer, error_event};

/// How long before its timeout a watch gets a last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How soon after changes were sent others are at the earliest: a burst is sent in a few parts, and
/// a change that comes by itself at once.
const GATHER: Duration = Duration::from_millis(2);

/// How many initial objects are looked at, at most, for one chunk.
const STEP: usize = 32;

/// How many bytes of initial objects go into one chunk, and the object that goes beyond that.
const INITIAL_CHUNK: usize = 64 * 1024;

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
        let interest = Arc::new(Interest::new(resource, namespace, selectors));
        let form = negotiated.object(&parameters)?;
        let started = Instant::now();
        let timeout = parameters.timeout().unwrap_or_else(|| self.options().default_watch_timeout);
        let (watcher, phase) = match self.open(resource, want, &interest).await {
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
            media: form.media(),
            watcher,
            phase,
            is_first: true,
            bookmarks: parameters.bookmarks.then(|| Bookmarks {
                interval: self.options().bookmark_interval,
                next: started + self.options().bookmark_interval,
                last: deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > started),
                marks_initial_end: self.options().watch_list == WatchListSupport::Served,
            }),
            deadline,
            alarm: Box::pin(tokio::time::sleep_until(deadline)),
            sent: started,
            end: Box::pin(self.backend().clone().watch_end()),
        };
        Ok(stream_response(
            stream_type(form.media()),
            stream::unfold(watch, |mut watch| async move {
                let chunk = watch.next().await?;
                Some((Ok::<_, BodyError>(chunk), watch))
            }),
        ))
    }

    /// The watcher, and what comes before its changes.
    async fn open(
        &self,
        resource: &Resource,
        want: WatchWant,
        interest: &Arc<Interest>,
    ) -> Result<(Watcher<B::Object>, Phase<B::Snapshot>), Failure> {
        let (after, phase) = match want {
            WatchWant::Everything { reached, at } => {
                if let Some(version) = reached {
                    self.wait_for(resource, version).await?;
                }
                let snapshot = self.snapshot(resource, at).await?;
                let interest = Arc::clone(interest);
                (snapshot.version(), Phase::Initial { snapshot, interest, after: None })
            }
            WatchWant::Now => (self.backend().version(resource).await?, Phase::Changes),
            WatchWant::After(version) => (version, Phase::Changes),
        };
        match self.backend().watch(resource, after, interest).await {
            Ok(watcher) => Ok((watcher, phase)),
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
    media: MediaType,
    watcher: Watcher<B::Object>,
    phase: Phase<B::Snapshot>,
    /// Whether nothing has been sent.
    is_first: bool,
    bookmarks: Option<Bookmarks>,
    deadline: Instant,
    /// At the next bookmark or the deadline.
    alarm: Pin<Box<Sleep>>,
    /// When changes were sent last.
    sent: Instant,
    /// When the backend ends the watch.
    end: Pin<Box<dyn Future<Output = WatchEnd> + Send>>,
}

enum Phase<S> {
    /// The whole collection first.
    Initial {
        snapshot: S,
        interest: Arc<Interest>,
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

/// What a watch waits for.
enum Woken {
    Ready,
    End(WatchEnd),
    Alarm,
}

/// What is sent at once: events that others may send too, and others.
type Chunk = Vec<Bytes>;

impl<B: Backend> Watch<B> {
    /// The next events; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut out = Chunk::new();
            let written = match &mut self.phase {
                Phase::Ended => return None,
                _ if Instant::now() >= self.deadline => return None,
                Phase::Initial { .. } => self.initial(&mut out),
                Phase::Changes => self.wait(&mut out).await,
            };
            if let Err(error) = written {
                self.end(&mut out, &error.into());
            }
            match joined(out) {
                // Nothing selected in a part of the collection: others have their turn.
                None => tokio::task::yield_now().await,
                Some(bytes) => return Some(bytes),
            }
        }
    }

    /// The next of the initial objects, or the bookmark behind them.
    fn initial(&mut self, out: &mut Chunk) -> Result<(), WriteError> {
        let Phase::Initial { snapshot, interest, after } = &self.phase else { return Ok(()) };
        let objects = snapshot.page(interest.namespace(), after.as_ref(), STEP);
        if objects.is_empty() {
            let version = snapshot.version();
            self.phase = Phase::Changes;
            if self.bookmarks.as_ref().is_some_and(|b| b.marks_initial_end) {
                self.bookmark(out, version, true);
            }
            return Ok(());
        }
        let interest = Arc::clone(interest);
        let (mut events, mut last, mut written) = (Vec::new(), None, Ok(()));
        for object in &objects {
            last = Some(object.key().clone());
            if interest.selects(object) {
                written = self.event(&mut events, (EventType::Added, object), None);
            }
            if written.is_err() || events.len() >= INITIAL_CHUNK {
                break;
            }
        }
        if let Phase::Initial { after, .. } = &mut self.phase {
            *after = last;
        }
        if !events.is_empty() {
            out.push(events.into());
        }
        written
    }

    /// Waits for changes, the next bookmark or the end.
    async fn wait(&mut self, out: &mut Chunk) -> Result<(), WriteError> {
        let alarm = self.bookmarks.as_ref().map_or(self.deadline, |bookmarks| {
            bookmarks
                .last
                .map_or(bookmarks.next, |last| last.min(bookmarks.next))
                .min(self.deadline)
        });
        // A busy collection delays nothing.
        if Instant::now() >= alarm {
            self.alarm(out);
            return Ok(());
        }
        if self.alarm.deadline() != alarm {
            self.alarm.as_mut().reset(alarm);
        }
        let woken = tokio::select! {
            biased;
            // A busy collection must not keep a watch open that the backend ends.
            end = &mut self.end => Woken::End(end),
            () = gathered(&mut self.watcher, self.sent + GATHER) => Woken::Ready,
            () = &mut self.alarm => Woken::Alarm,
        };
        match woken {
            Woken::Ready => {
                let taken = self.watcher.take();
                self.taken(out, taken)?;
            }
            Woken::End(WatchEnd::Refused(status)) => self.end(out, &status),
            Woken::End(WatchEnd::Closed) => {
                self.phase = Phase::Ended;
                // Another server may know no older version than the newest.
                let progress = self.watcher.progress().filter(|_| self.bookmarks.is_some());
                if let Some(version) = progress {
                    self.bookmark(out, version, false);
                }
            }
            Woken::Alarm => self.alarm(out),
        }
        Ok(())
    }

    fn taken(
        &mut self,
        out: &mut Chunk,
        taken: Result<Events<B::Object>, Ended>,
    ) -> Result<(), WriteError> {
        match taken {
            Ok(events) => {
                for (event, logged) in &events.changes {
                    self.change(out, *event, logged)?;
                }
                if let Some(version) = events.mark.filter(|_| self.bookmarks.is_some()) {
                    self.bookmark(out, version, false);
                }
                self.sent = Instant::now();
            }
            Err(Ended::Expired(expired)) => {
                let status = too_old(self.watcher.progress().unwrap_or(0), expired.current);
                self.end(out, &status);
            }
            Err(Ended::Closed) => self.phase = Phase::Ended,
        }
        Ok(())
    }

    /// Ends the stream with an error.
    fn end(&mut self, out: &mut Chunk, status: &Status) {
        self.phase = Phase::Ended;
        out.push(error_event(status, self.media));
    }

    fn alarm(&mut self, out: &mut Chunk) {
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
        if let Some(version) = self.watcher.progress() {
            self.bookmark(out, version, false);
        }
    }

    /// An object that left a selection is sent as it last was, at the version at which it left.
    fn change(
        &mut self,
        out: &mut Chunk,
        event: EventType,
        logged: &Logged<B::Object>,
    ) -> Result<(), WriteError> {
        let change = logged.change();
        let (object, version) = match event {
            EventType::Added | EventType::Modified => (&change.after, None),
            EventType::Deleted => (&change.before, Some(change.version)),
        };
        let Some(object) = object else { return Ok(()) };
        if self.is_first && self.writer.table().is_some() {
            // With the columns, which others do not want.
            let mut bytes = Vec::new();
            self.event(&mut bytes, (event, object), version)?;
            out.push(bytes.into());
            return Ok(());
        }
        let bytes = logged.encoded(event, self.writer.rendering(), || {
            let now = self.backend.now();
            let mut bytes = Vec::with_capacity(2 * object.wire().bytes.len() + 128);
            self.writer.event(&mut bytes, (event, object), version, false, now)?;
            bytes.shrink_to_fit();
            Ok(bytes.into())
        })?;
        self.is_first = false;
        out.push(bytes);
        Ok(())
    }

    fn event(
        &mut self,
        out: &mut Vec<u8>,
        event: (EventType, &B::Object),
        version: Option<u64>,
    ) -> Result<(), WriteError> {
        let is_first = std::mem::take(&mut self.is_first);
        self.writer.event(out, event, version, is_first, self.backend.now())
    }

    fn bookmark(&mut self, out: &mut Chunk, version: u64, ends_initial_events: bool) {
        let (is_first, now) = (std::mem::take(&mut self.is_first), self.backend.now());
        let mut bytes = Vec::new();
        self.writer.bookmark(&mut bytes, version, ends_initial_events, is_first, now);
        out.push(bytes.into());
    }
}

/// One event is not copied.
fn joined(mut chunk: Chunk) -> Option<Bytes> {
    match chunk.len() {
        0 | 1 => chunk.pop(),
        _ => Some(chunk.concat().into()),
    }
}

/// Waits for changes, and for more of them if it is not yet time.
async fn gathered<O: Object>(watcher: &mut Watcher<O>, time: Instant) {
    if !watcher.has_more() {
        watcher.ready().await;
        if Instant::now() < time {
            tokio::time::sleep_until(time).await;
        }
    }
}

fn too_old(wanted: u64, current: u64) -> Status {
    Status::expired(format!("too old resource version: {wanted} ({current})"))
}
