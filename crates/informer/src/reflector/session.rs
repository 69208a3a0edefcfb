//! One run of a reflector: the loop between the state machine, the source and the sink.

mod alarm;
mod apply;

use std::cmp::Ordering;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use informer_core::reflector::{
    Action, Failure, FailureKind, Input, ListRequest, Reflector as Machine, WatchRequest,
};
use informer_core::wire::{ListHead, ObjectHead, Status, WatchEventType, WatchFrame, WireObject};
use informer_core::{Delta, DeltaQueue, ResourceVersion};
use tokio::time::Instant;

use self::alarm::Alarm;
use super::{Decoder, Reflector, Report, Sink};
use crate::decode::Decode;
use crate::source::{ListChunk, ListStream, ListWatch, WatchChunk, WatchStream, failure_of_status};

/// Deltas that may wait for the sink before reading stops.
const QUEUE: usize = 4096;

/// How much of what has arrived already goes into one delivery: chunks of a body, and deltas.
const READY_CHUNKS: usize = 16;
const READY_DELTAS: usize = 256;

pub(super) struct Session<T, S, K> {
    machine: Machine,
    source: Arc<S>,
    decoder: Decoder<T>,
    sink: K,
    queue: DeltaQueue<T>,
    connection: Connection,
    probe: Option<BoxFuture<'static, Result<ResourceVersion, Failure>>>,
    discovery: Option<BoxFuture<'static, Result<bool, Failure>>>,
    /// Counts requests, so that what is left of one is not taken for a part of the next.
    request: u64,
    list: Option<Listing>,
    /// Failures of the machine that were reported.
    reported: u64,
    /// A [`Delta::Sync`] waits in the queue.
    sync_queued: bool,
    /// Wakes the session when the machine or a resync is due.
    alarm: Alarm,
    epoch: Instant,
    /// What the clock said when this step began.
    now: Duration,
}

/// The list that is being staged.
#[derive(Default)]
struct Listing {
    /// Whether an equal UID and version mean an equal object.
    shortcut: bool,
    /// Whether items that cannot be read are left out, instead of making the list fail (G30).
    skip_unreadable: bool,
    objects: usize,
    usable: usize,
    in_page: usize,
    /// The oldest version in it above the one that the machine stands at.
    missed: Option<ResourceVersion>,
    last_cause: String,
}

/// The one list or watch that is open.
enum Connection {
    None,
    OpeningList(BoxFuture<'static, Result<ListStream, Failure>>),
    List(ListStream),
    OpeningWatch(BoxFuture<'static, Result<WatchStream, Failure>>),
    Watch(WatchStream),
}

/// What came from the connection.
enum Incoming {
    ListOpened(Result<ListStream, Failure>),
    List(Option<Result<ListChunk, Failure>>),
    WatchOpened(Result<WatchStream, Failure>),
    Watch(Option<Result<WatchChunk, Failure>>),
}

impl<T: Decode, S: ListWatch, K: Sink<T>> Session<T, S, K> {
    pub(super) fn new(reflector: Reflector<T, S>, sink: K) -> Self {
        Self {
            machine: Machine::new(reflector.config),
            source: reflector.source,
            decoder: reflector.decoder,
            sink,
            queue: DeltaQueue::new(QUEUE),
            connection: Connection::None,
            probe: None,
            discovery: None,
            request: 0,
            list: None,
            reported: 0,
            sync_queued: false,
            alarm: Alarm::default(),
            epoch: reflector.epoch,
            now: reflector.epoch.elapsed(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.act();
            self.deliver();
            let next_sync = self.sink.next_sync().filter(|_| !self.sync_queued);
            let due = [self.machine.deadline(), next_sync].into_iter().flatten().min();
            self.alarm.set(due.and_then(|due| self.epoch.checked_add(due)));
            let full = self.queue.is_full();
            tokio::select! {
                incoming = self.connection.next(), if !full => {
                    self.tick();
                    self.incoming(incoming);
                    self.take_ready();
                }
                version = poll_option(&mut self.probe) => {
                    self.tick();
                    self.probe = None;
                    self.tell(Input::Probed(version));
                }
                exists = poll_option(&mut self.discovery) => {
                    self.tick();
                    self.discovery = None;
                    self.tell_of("discover", Input::Discovered(exists));
                }
                () = self.sink.rescheduled() => self.tick(),
                () = self.alarm.rings() => {
                    self.tick();
                    if next_sync.is_some_and(|due| due <= self.now) {
                        self.sync_queued = true;
                        self.queue.push(Delta::Sync);
                    }
                }
            }
        }
    }

    fn tick(&mut self) {
        self.now = self.epoch.elapsed();
    }

    /// Takes in what has arrived meanwhile: a delivery costs the same for one object as for many.
    fn take_ready(&mut self) {
        for _ in 1..READY_CHUNKS {
            if self.queue.len() >= READY_DELTAS {
                return;
            }
            let Some(incoming) = self.connection.next().now_or_never() else { return };
            self.incoming(incoming);
        }
    }

    fn tell(&mut self, input: Input) {
        self.tell_of(self.phase(), input);
    }

    fn tell_of(&mut self, phase: &'static str, input: Input) {
        self.machine.handle(self.now, input);
        self.report_failures(phase);
        self.act();
    }

    fn fail(&mut self, failure: Failure) {
        let phase = self.phase();
        self.connection = Connection::None;
        self.machine.handle(self.now, Input::Failed(failure));
        self.report_failures(phase);
        self.act();
    }

    /// Whether this request is still the one that is open.
    fn still(&self, request: u64) -> bool {
        self.request == request && !matches!(self.connection, Connection::None)
    }

    /// What is open. A streaming list is a watch on the wire, and a list in what it is for.
    fn phase(&self) -> &'static str {
        match self.connection {
            Connection::OpeningWatch(_) | Connection::Watch(_) if self.list.is_none() => "watch",
            _ => "list",
        }
    }

    /// Tells of failures: those that were told to the machine, and those that it found itself, such as a
    /// connection that went silent (G31).
    fn report_failures(&mut self, phase: &'static str) {
        if self.machine.failures() != self.reported {
            self.reported = self.machine.failures();
            if let Some(failure) = self.machine.last_failure() {
                // A list shows it, of the watch before.
                let phase = if failure.kind == FailureKind::Deaf { "watch" } else { phase };
                self.sink.report(Report::Failed { phase, message: &failure.message });
            }
        }
    }

    /// Does what the machine asks for, until it asks for nothing.
    fn act(&mut self) {
        loop {
            let phase = self.phase();
            let action = self.machine.poll(self.now);
            self.report_failures(phase);
            let Some(action) = action else { return };
            match action {
                Action::List(request) => self.open_list(request),
                Action::Watch(request) => self.open_watch(request),
                Action::Close => self.connection = Connection::None,
                Action::Probe(request) => self.open_probe(request),
                Action::Discover => {
                    self.sink.report(Report::Requested { verb: "discover" });
                    let source = Arc::clone(&self.source);
                    self.discovery = Some(Box::pin(async move { source.exists().await }));
                }
                Action::BeginReplace { shortcut, skip_unreadable } => {
                    self.sink.report(Report::ListBegan);
                    self.list = Some(Listing { shortcut, skip_unreadable, ..Listing::default() });
                    self.queue.push(Delta::ReplaceStarted { distrust: !shortcut });
                }
                Action::FinishReplace { version, history_changed } => {
                    self.sink.report(Report::ListPublished);
                    self.list = None;
                    self.queue.push(Delta::ReplaceFinished { version, history_changed });
                }
                Action::AbandonReplace => {
                    self.sink.report(Report::ListAbandoned);
                    self.list = None;
                    self.queue.push(Delta::ReplaceAbandoned);
                }
                Action::RemoveAll => {
                    self.sink.report(Report::ListBegan);
                    self.sink.report(Report::ListPublished);
                    self.queue.push(Delta::Cleared);
                }
            }
        }
    }

    fn open_list(&mut self, request: ListRequest) {
        self.sink.report(Report::Requested { verb: "list" });
        if let Some(list) = &mut self.list {
            list.in_page = 0;
        }
        let source = Arc::clone(&self.source);
        self.request += 1;
        self.connection = Connection::OpeningList(Box::pin(async move { source.list(&request).await }));
    }

    fn open_watch(&mut self, request: WatchRequest) {
        self.sink.report(Report::Requested { verb: "watch" });
        let source = Arc::clone(&self.source);
        self.request += 1;
        self.connection = Connection::OpeningWatch(Box::pin(async move { source.watch(&request).await }));
    }

    /// Asks for a list of one object only to learn the version that the server stands at.
    fn open_probe(&mut self, request: ListRequest) {
        self.sink.report(Report::Requested { verb: "list" });
        let source = Arc::clone(&self.source);
        self.probe = Some(Box::pin(async move {
            let mut stream = source.list(&request).await?.0;
            while let Some(chunk) = stream.next().await {
                if let ListChunk::End(head) = chunk? {
                    return Ok(head.resource_version);
                }
            }
            Err(no_end())
        }));
    }

    fn deliver(&mut self) {
        self.sink.deliver(self.now, &mut self.queue);
        self.sync_queued &= !self.queue.is_empty();
        self.sink.report(Report::State(self.machine.state()));
        if let Some(supported) = self.machine.streaming_lists_supported() {
            self.sink.report(Report::StreamingLists { supported });
        }
    }

    fn incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::ListOpened(Ok(stream)) => {
                self.connection = Connection::List(stream);
                self.tell(Input::Opened);
            }
            Incoming::WatchOpened(Ok(stream)) => {
                self.connection = Connection::Watch(stream);
                self.tell(Input::Opened);
            }
            Incoming::ListOpened(Err(failure)) | Incoming::List(Some(Err(failure))) => self.fail(failure),
            Incoming::WatchOpened(Err(failure)) | Incoming::Watch(Some(Err(failure))) => {
                self.fail(failure);
            }
            Incoming::List(Some(Ok(ListChunk::Items(items)))) => self.list_items(&items),
            Incoming::List(Some(Ok(ListChunk::Unreadable { beginning, failure }))) => {
                self.list_unreadable(&beginning, failure);
            }
            Incoming::List(Some(Ok(ListChunk::End(head)))) => self.list_end(head),
            Incoming::List(None) => self.fail(no_end()),
            Incoming::Watch(Some(Ok(WatchChunk(frames)))) => self.frames(&frames),
            Incoming::Watch(None) => {
                let phase = self.phase();
                self.connection = Connection::None;
                self.tell_of(phase, Input::Closed);
            }
        }
    }

    fn list_items(&mut self, items: &[WireObject]) {
        let bytes = items.iter().map(|item| item.bytes().len()).sum();
        self.sink.report(Report::Received { events: 0, bookmarks: 0, bytes });
        let request = self.request;
        self.tell(Input::Received { bytes });
        for item in items {
            if !self.still(request) {
                return;
            }
            match self.stage(item) {
                Ok(version) => self.note_missed(&version),
                Err(failure) => {
                    self.fail(failure);
                    return;
                }
            }
        }
        if let Some(list) = &mut self.list {
            list.in_page += items.len();
            let items = list.objects;
            self.tell(Input::Progress { items });
        }
    }

    fn list_unreadable(&mut self, beginning: &WireObject, failure: Failure) {
        let (request, bytes) = (self.request, beginning.bytes().len());
        self.sink.report(Report::Received { events: 0, bookmarks: 0, bytes });
        self.tell(Input::Received { bytes });
        if !self.still(request) {
            return;
        }
        match self.leave_out(beginning, failure) {
            Err(failure) => self.fail(failure),
            Ok(()) => {
                if let Some(list) = &mut self.list {
                    list.in_page += 1;
                }
            }
        }
    }

    fn list_end(&mut self, head: ListHead) {
        self.connection = Connection::None;
        let items = self.list.as_ref().map_or(0, |list| list.in_page);
        if head.continue_token.is_none()
            && let Some(failure) = self.nothing_usable()
        {
            self.fail(failure);
            return;
        }
        if head.continue_token.is_none() {
            self.tell_missed();
        }
        let ListHead { resource_version: version, continue_token, remaining_item_count: remaining, .. } =
            head;
        self.tell(Input::PageEnd { version, continue_token, remaining, items });
    }

    /// Takes note of an object in the list that is newer than what the machine stands at.
    fn note_missed(&mut self, version: &ResourceVersion) {
        let Some(list) = &mut self.list else { return };
        let newer = |than: &ResourceVersion| version.compare(than) == Some(Ordering::Greater);
        if newer(self.machine.last_sync_resource_version())
            && list.missed.as_ref().is_none_or(|old| !newer(old))
        {
            list.missed = Some(version.clone());
        }
    }

    fn tell_missed(&mut self) {
        if let Some(version) = self.list.as_mut().and_then(|list| list.missed.take()) {
            self.tell(Input::Missed { version });
        }
    }

    /// The failure of a list that has objects, and none that is of use (G20).
    fn nothing_usable(&mut self) -> Option<Failure> {
        let list = self.list.as_ref().filter(|list| list.objects > 0 && list.usable == 0)?;
        let (objects, cause) = (list.objects, list.last_cause.clone());
        self.sink.report(Report::NothingDecodes { objects, cause: &cause });
        let message = format!("none of {objects} objects can be decoded, the last because of: {cause}");
        Some(Failure::new(FailureKind::Undecodable, message))
    }

    fn frames(&mut self, frames: &[WatchFrame]) {
        let bytes = frames.iter().map(|frame| frame.object.bytes().len()).sum();
        let request = self.request;
        self.tell(Input::Received { bytes });
        let (mut events, mut bookmarks) = (0, 0);
        for frame in frames {
            // A stream that was given up while its bytes were on the way says nothing any more: least of all
            // may the initial events of a broken-off list pass for changes (G9).
            if !self.still(request) {
                break;
            }
            let outcome = match frame.kind {
                WatchEventType::Bookmark => {
                    bookmarks += 1;
                    self.bookmark(&frame.object)
                }
                WatchEventType::Error => Err(error_event(&frame.object)),
                kind => {
                    events += 1;
                    self.event(kind, &frame.object)
                }
            };
            if let Err(failure) = outcome {
                self.fail(failure);
                break;
            }
        }
        if let Some(list) = &self.list {
            let items = list.objects;
            self.tell(Input::Progress { items });
        }
        self.sink.report(Report::Received { events, bookmarks, bytes });
    }

    fn bookmark(&mut self, object: &WireObject) -> Result<(), Failure> {
        let head = ObjectHead::of_bookmark(object.wire()).map_err(|error| malformed(&error))?;
        let (version, initial_events_end) = (head.version, head.initial_events_end);
        if initial_events_end && let Some(failure) = self.nothing_usable() {
            return Err(failure);
        }
        if initial_events_end {
            self.tell_missed();
        }
        if self.list.is_none() {
            self.queue.push(Delta::Bookmark(version.clone()));
        }
        self.tell(Input::Bookmark { version, initial_events_end });
        Ok(())
    }

    fn event(&mut self, kind: WatchEventType, object: &WireObject) -> Result<(), Failure> {
        let version = match (self.list.is_some(), kind) {
            (true, WatchEventType::Deleted) => self.unlist(object)?,
            (true, _) => {
                let version = self.stage(object)?;
                self.note_missed(&version);
                version
            }
            (false, WatchEventType::Deleted) => self.deleted(object)?,
            (false, _) => self.changed(kind, object)?,
        };
        // In a list, the version that counts is that of its end.
        if self.list.is_none() {
            self.tell(Input::Event { version });
        }
        Ok(())
    }
}

impl Connection {
    /// What comes next; waits for ever if nothing is open.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    async fn next(&mut self) -> Incoming {
        match self {
            Self::None => pending().await,
            Self::OpeningList(opening) => Incoming::ListOpened(opening.await),
            Self::List(stream) => Incoming::List(stream.0.next().await),
            Self::OpeningWatch(opening) => Incoming::WatchOpened(opening.await),
            Self::Watch(stream) => Incoming::Watch(stream.0.next().await),
        }
    }
}

async fn poll_option<O>(future: &mut Option<BoxFuture<'static, O>>) -> O {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

fn error_event(object: &WireObject) -> Failure {
    match Status::of(object.wire()) {
        Ok(status) => {
            failure_of_status(&status, format!("the watch ended: {} {}", status.code, status.message))
        }
        Err(error) => malformed(&error),
    }
}

fn malformed(error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::Malformed, error.to_string())
}

fn no_end() -> Failure {
    Failure::new(FailureKind::Malformed, "the list ended without its end")
}
