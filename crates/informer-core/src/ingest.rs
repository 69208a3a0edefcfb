//! Turns responses of an API server into deltas: the whole reflector, without I/O or a clock.
//!
//! [`Ingest::poll`] returns the next request to send, [`Ingest::arrived`] takes the response in
//! pieces, and [`Ingest::deliver`] passes the resulting [`Delta`]s to a [`Sink`]. The state machine
//! in [`reflector`](crate::reflector) decides what to request and when. This module interprets
//! objects and events: it chooses the delta, handles objects that cannot be read, and sends
//! reports. The driver does the I/O and keeps the time; the simulation is another driver.
//!
//! # Examples
//! A list of one object, then the watch:
//! ```
//! use std::time::Duration;
//! use bytes::Bytes;
//! use informer_core::ingest::{Arrival, Decoder, Ingest, ListChunk, Request, Sink, Undecodable};
//! use informer_core::reflector::ReflectorConfig;
//! use informer_core::wire::{ListHead, ListPart, ObjectHead, Wire, WireObject};
//! use informer_core::{Delta, DeltaQueue};
//!
//! /// Keeps how long each object is.
//! struct Length;
//!
//! impl Decoder for Length {
//!     type Object = usize;
//!
//!     fn decode(&mut self, object: Wire<'_>, _: &ObjectHead<'_>) -> Result<usize, Undecodable> {
//!         Ok(object.bytes.len())
//!     }
//! }
//!
//! #[derive(Default)]
//! struct Objects(usize);
//!
//! impl Sink<usize> for Objects {
//!     fn deliver(&mut self, _now: Duration, deltas: &mut DeltaQueue<usize>) {
//!         self.0 += deltas.pop_batch(usize::MAX).filter(|it| matches!(it, Delta::Listed(_))).count();
//!     }
//! }
//!
//! let config = ReflectorConfig { streaming_lists: false, ..Default::default() };
//! let now = Duration::ZERO;
//! let mut ingest = Ingest::new(config, Length, Objects::default());
//! let Some(Request::List(list)) = ingest.poll(now) else { panic!("a list comes first") };
//! assert_eq!(list.version, "0".into());
//!
//! ingest.arrived(now, Arrival::Opened);
//! let item = WireObject::from(Bytes::from_static(br#"{"metadata":{"name":"a","uid":"u"}}"#));
//! ingest.arrived(now, Arrival::List(ListChunk::Parts(vec![ListPart::Item(item)])));
//! let end = ListHead { resource_version: "7".into(), ..ListHead::default() };
//! ingest.arrived(now, Arrival::List(ListChunk::End(end)));
//! ingest.deliver(now);
//! assert_eq!(ingest.sink.0, 1);
//!
//! let Some(Request::Watch(watch)) = ingest.poll(now) else { panic!("then the watch") };
//! assert_eq!(watch.version, "7".into());
//! ```

mod objects;
#[cfg(test)]
mod tests;
mod types;

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::reflector::{Action, Failure, FailureKind, Input, Reflector, ReflectorConfig, State};
use crate::wire::{ListHead, ListPart, ObjectHead, Status, WatchEventType, WatchFrame, WireObject};
use crate::{Delta, DeltaQueue, ResourceVersion};

pub use self::types::{
    Arrival, Decoder, Held, ListChunk, Phase, Report, Request, Sink, Undecodable,
};

/// Reads one collection from the server, without doing I/O. See the [module](self).
pub struct Ingest<D: Decoder, S> {
    machine: Reflector,
    decoder: D,
    /// Receives the deltas and reports.
    pub sink: S,
    queue: DeltaQueue<D::Object>,
    /// Whether an undecodable object fails its request ([`ReflectorConfig::strict`]).
    strict: bool,
    /// Requests that the driver has not taken yet.
    requests: VecDeque<Request>,
    open: Open,
    /// Generation of the open request, incremented when one is opened or closed. If it changes
    /// while a chunk is processed, the rest of the chunk is dropped.
    opened: u64,
    list: Option<Listing>,
    /// How many of the machine's failures were reported to the sink.
    reported: u64,
    /// Whether the queue holds a [`Delta::Sync`].
    sync_queued: bool,
    /// The time passed to the current call.
    now: Duration,
}

/// The request that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    List,
    Watch,
}

/// The list that is being staged.
#[derive(Debug, Default)]
struct Listing {
    /// Whether equal UID and version imply an equal object, which is not decoded again.
    shortcut: bool,
    /// Whether items that cannot be read are left out, instead of making the list fail (G30).
    skip_unreadable: bool,
    objects: usize,
    usable: usize,
    in_page: usize,
    /// The oldest version among its objects that is newer than the machine's version.
    missed: Option<ResourceVersion>,
    last_cause: String,
}

impl<D: Decoder, S: Sink<D::Object>> Ingest<D, S> {
    /// An ingest that has not started; its first [`poll`](Self::poll) starts it.
    #[must_use]
    pub fn new(config: ReflectorConfig, decoder: D, sink: S) -> Self {
        Self {
            strict: config.strict,
            queue: DeltaQueue::new(config.queue_capacity),
            machine: Reflector::new(config),
            decoder,
            sink,
            requests: VecDeque::new(),
            open: Open::Nothing,
            opened: 0,
            list: None,
            reported: 0,
            sync_queued: false,
            now: Duration::ZERO,
        }
    }

    /// The next request to send. Call it until it returns `None`: before each input, and at
    /// [`deadline`](Self::deadline). `now` is the time since a fixed moment and never decreases.
    pub fn poll(&mut self, now: Duration) -> Option<Request> {
        self.now = now;
        if self.next_sync().is_some_and(|due| due <= now) {
            self.sync_queued = true;
            self.queue.push(Delta::Sync);
        }
        if self.requests.is_empty() {
            let number = self.sink.refreshes();
            self.machine.handle(now, Input::Refresh { number });
            self.act();
        }
        self.requests.pop_front()
    }

    /// When to call [`poll`](Self::poll) again if no input arrives before.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        let machine = self.machine.deadline();
        self.next_sync().map_or(machine, |due| due.min(machine))
    }

    /// Whether the delta queue is full: nothing may be read until the sink takes deltas.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.queue.is_full()
    }

    /// The number of queued deltas.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Delivers the queued deltas to the sink, then reports the state.
    pub fn deliver(&mut self, now: Duration) {
        self.now = now;
        self.sink.deliver(now, &mut self.queue);
        self.sync_queued &= !self.queue.is_empty();
        self.sink.report(Report::State(self.machine.state()));
        if let Some(supported) = self.machine.streaming_lists_supported() {
            self.sink.report(Report::StreamingLists { supported });
        }
    }

    /// Handles input from the open list or watch.
    pub fn arrived(&mut self, now: Duration, arrival: Arrival) {
        self.now = now;
        match (arrival, self.open) {
            // Late input of a request that was closed.
            (_, Open::Nothing) => {}
            (Arrival::Opened, Open::List | Open::Watch) => self.tell(Input::Opened),
            (Arrival::List(ListChunk::Parts(parts)), Open::List) => self.list_parts(&parts),
            (Arrival::List(ListChunk::End(head)), Open::List) => self.list_end(head),
            (Arrival::Watch(frames), Open::Watch) => self.frames(&frames),
            (Arrival::Closed, Open::Watch) => {
                let phase = self.phase();
                self.given_up();
                self.tell_of(phase, Input::Closed);
            }
            (Arrival::Closed, Open::List) => {
                self.given_up();
                let failure =
                    Failure::new(FailureKind::Malformed, "the list ended without its end");
                self.tell_of(Phase::List, Input::Failed(failure));
            }
            (Arrival::Failed(failure), Open::List | Open::Watch) => {
                let phase = self.phase();
                self.given_up();
                self.tell_of(phase, Input::Failed(failure));
            }
            (Arrival::List(_), Open::Watch) | (Arrival::Watch(_), Open::List) => {
                self.fail(Failure::new(
                    FailureKind::Malformed,
                    "the source answered another request",
                ));
            }
        }
    }

    /// Handles the response to [`Request::Probe`]: the version of the list.
    pub fn probed(&mut self, now: Duration, answer: Result<ResourceVersion, Failure>) {
        self.now = now;
        self.tell(Input::Probed(answer));
    }

    /// Handles the response to [`Request::Discover`]: whether discovery lists the resource in its
    /// group and version. `Ok(false)` if the group or version is not served at all.
    pub fn discovered(&mut self, now: Duration, answer: Result<bool, Failure>) {
        self.now = now;
        self.tell_of(Phase::Discover, Input::Discovered(answer));
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> &State {
        self.machine.state()
    }

    /// The version of the last complete list, or of the last event or bookmark after it. Unset
    /// before the first list and after the resource was removed. The sink may lag behind it.
    #[must_use]
    pub fn last_sync_resource_version(&self) -> &ResourceVersion {
        self.machine.last_sync_resource_version()
    }

    /// Whether streaming lists work for this server and resource; `None` if not known yet.
    #[must_use]
    pub fn streaming_lists_supported(&self) -> Option<bool> {
        self.machine.streaming_lists_supported()
    }

    /// The number of objects received so far by the list in progress; `None` if there is none.
    #[must_use]
    pub fn staged(&self) -> Option<usize> {
        self.list.as_ref().map(|list| list.objects)
    }

    fn next_sync(&self) -> Option<Duration> {
        self.sink.next_sync().filter(|_| !self.sync_queued)
    }

    /// The phase of the open request. A streaming list is sent as a watch, but counts as a list.
    fn phase(&self) -> Phase {
        match self.open {
            Open::Watch if self.list.is_none() => Phase::Watch,
            Open::Nothing | Open::List | Open::Watch => Phase::List,
        }
    }

    fn tell(&mut self, input: Input) {
        self.tell_of(self.phase(), input);
    }

    fn tell_of(&mut self, phase: Phase, input: Input) {
        self.machine.handle(self.now, input);
        self.report_failures(phase);
        self.act();
    }

    /// Closes the open request because of `failure`.
    fn fail(&mut self, failure: Failure) {
        let phase = self.phase();
        self.given_up();
        self.requests.push_back(Request::Close);
        self.tell_of(phase, Input::Failed(failure));
    }

    /// Marks the open request as closed. The driver has closed it already, or closes it when it
    /// takes the next request.
    fn given_up(&mut self) {
        self.open = Open::Nothing;
        self.opened += 1;
    }

    /// Reports the machine's latest failure if it is new: passed in as input, or detected by the
    /// machine itself, such as a silent connection (G31).
    fn report_failures(&mut self, phase: Phase) {
        if self.machine.failures() != self.reported {
            self.reported = self.machine.failures();
            if let Some(failure) = self.machine.last_failure() {
                // Detected by a list, but a failure of the watch before it.
                let phase = if failure.kind == FailureKind::Deaf { Phase::Watch } else { phase };
                self.sink.report(Report::Failed { phase, failure });
            }
        }
    }

    /// Executes the machine's actions until there are none.
    fn act(&mut self) {
        loop {
            let phase = self.phase();
            let action = self.machine.poll(self.now);
            self.report_failures(phase);
            let Some(action) = action else { return };
            match action {
                Action::List(request) => {
                    self.sink.report(Report::Requested { phase: Phase::List });
                    if let Some(list) = &mut self.list {
                        list.in_page = 0;
                    }
                    self.given_up();
                    self.open = Open::List;
                    self.requests.push_back(Request::List(request));
                }
                Action::Watch(request) => {
                    self.sink.report(Report::Requested { phase: Phase::Watch });
                    self.given_up();
                    self.open = Open::Watch;
                    self.requests.push_back(Request::Watch(request));
                }
                Action::Close => {
                    self.given_up();
                    self.requests.push_back(Request::Close);
                }
                Action::Probe(request) => {
                    self.sink.report(Report::Requested { phase: Phase::List });
                    self.requests.push_back(Request::Probe(request));
                }
                Action::Discover => {
                    self.sink.report(Report::Requested { phase: Phase::Discover });
                    self.requests.push_back(Request::Discover);
                }
                Action::BeginReplace { shortcut, skip_unreadable } => {
                    self.sink.report(Report::ListBegan { skip_unreadable });
                    self.list = Some(Listing { shortcut, skip_unreadable, ..Listing::default() });
                    self.queue.push(Delta::ReplaceStarted { distrust: !shortcut });
                }
                Action::FinishReplace { version, history_changed, refreshes } => {
                    self.sink.report(Report::ListPublished { history_changed });
                    self.list = None;
                    let finished = Delta::ReplaceFinished { version, history_changed, refreshes };
                    self.queue.push(finished);
                }
                Action::AbandonReplace => {
                    self.sink.report(Report::ListAbandoned);
                    self.list = None;
                    self.queue.push(Delta::ReplaceAbandoned);
                }
                Action::RemoveAll { refreshes } => {
                    self.sink.report(Report::Removed);
                    self.queue.push(Delta::Cleared { refreshes });
                }
            }
        }
    }

    fn list_parts(&mut self, parts: &[ListPart]) {
        let bytes = parts.iter().map(ListPart::len).sum();
        self.sink.report(Report::Received { events: 0, bookmarks: 0, bytes });
        let opened = self.opened;
        self.tell(Input::Received { bytes });
        if self.opened != opened {
            return;
        }
        for part in parts {
            let outcome = match part {
                ListPart::Item(item) => self.stage(item).map(|version| self.note_missed(&version)),
                ListPart::TooLarge { beginning, error } => {
                    self.leave_out(beginning, malformed(error))
                }
            };
            if let Err(failure) = outcome {
                return self.fail(failure);
            }
        }
        if let Some(list) = &mut self.list {
            list.in_page += parts.len();
            let items = list.objects;
            self.tell(Input::Progress { items });
        }
    }

    fn list_end(&mut self, head: ListHead) {
        self.given_up();
        let items = self.list.as_ref().map_or(0, |list| list.in_page);
        if head.continue_token.is_none() {
            if let Some(failure) = self.nothing_usable() {
                return self.tell_of(Phase::List, Input::Failed(failure));
            }
            self.tell_missed();
        }
        let ListHead {
            resource_version: version,
            continue_token,
            remaining_item_count: remaining,
            ..
        } = head;
        self.tell(Input::PageEnd { version, continue_token, remaining, items });
    }

    /// Records the oldest version in the list that is newer than the machine's version.
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

    /// The failure of a list that has objects, but no usable one (G20).
    fn nothing_usable(&mut self) -> Option<Failure> {
        let list = self.list.as_ref().filter(|list| list.objects > 0 && list.usable == 0)?;
        let (objects, cause) = (list.objects, &list.last_cause);
        self.sink.report(Report::NothingDecodes { objects, cause });
        let message =
            format!("none of {objects} objects can be decoded, the last because of: {cause}");
        Some(Failure::new(FailureKind::Undecodable, message))
    }

    fn frames(&mut self, frames: &[WatchFrame]) {
        let bytes = frames.iter().map(|frame| frame.object.bytes.len()).sum();
        let opened = self.opened;
        self.tell(Input::Received { bytes });
        let (mut events, mut bookmarks) = (0, 0);
        for frame in frames {
            // Frames of a closed stream are dropped. Otherwise the initial events of an abandoned
            // list would be taken for changes (G9).
            if self.opened != opened {
                break;
            }
            let object = &frame.object;
            let outcome = match frame.kind {
                WatchEventType::Added => {
                    self.event(object, Self::stage, |it, object| it.changed(object, Delta::Added))
                }
                WatchEventType::Modified => {
                    self.event(object, Self::stage, |it, object| it.changed(object, Delta::Updated))
                }
                WatchEventType::Deleted => self.event(object, Self::unlist, Self::deleted),
                WatchEventType::Bookmark => self.bookmark(object),
                WatchEventType::Error => Err(error_event(object)),
            };
            match frame.kind {
                WatchEventType::Added | WatchEventType::Modified | WatchEventType::Deleted => {
                    events += 1
                }
                WatchEventType::Bookmark => bookmarks += 1,
                WatchEventType::Error => {}
            }
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
        if initial_events_end {
            if let Some(failure) = self.nothing_usable() {
                return Err(failure);
            }
            self.tell_missed();
        }
        if self.list.is_none() {
            self.queue.push(Delta::Bookmark(version.clone()));
        }
        self.tell(Input::Bookmark { version, initial_events_end });
        Ok(())
    }

    /// Handles an event: with `in_list` while a list is being staged, else with `in_watch`.
    fn event(
        &mut self,
        object: &WireObject,
        in_list: fn(&mut Self, &WireObject) -> Result<ResourceVersion, Failure>,
        in_watch: fn(&mut Self, &WireObject) -> Result<ResourceVersion, Failure>,
    ) -> Result<(), Failure> {
        if self.list.is_some() {
            // The machine takes its version from the end of the list, not from its events.
            let version = in_list(self, object)?;
            self.note_missed(&version);
        } else {
            let version = in_watch(self, object)?;
            self.tell(Input::Event { version });
        }
        Ok(())
    }
}

fn error_event(object: &WireObject) -> Failure {
    match Status::of(object.wire()) {
        Ok(status) => {
            let message = format!("the watch ended: {} {}", status.code, status.message);
            Failure::of_status(&status, message)
        }
        Err(error) => malformed(&error),
    }
}

fn malformed(error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::Malformed, error.to_string())
}

/// Prints no contents of objects (G34).
impl<D: Decoder, S> fmt::Debug for Ingest<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingest")
            .field("machine", &self.machine)
            .field("list", &self.list)
            .finish_non_exhaustive()
    }
}
