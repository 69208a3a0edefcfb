//! The driver of the reflector: what `informer`'s session does between the state machine, the bytes and the
//! pipeline, without tasks and sockets.

use std::cmp::Ordering;

use bytes::Bytes;
use informer_core::reflector::{Action, Failure, FailureKind, Input};
use informer_core::wire::{
    FrameError, JsonListSplitter, JsonWatchSplitter, ListHead, ListPart, ObjectHead, Status, WatchEventType,
    WatchFrame, WireObject,
};
use informer_core::{Delta, ResourceVersion};

use crate::requests::Current;
use crate::wire::{self, Arriving, Connection};
use crate::world::World;

/// The decoded object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Obj {
    pub(crate) name: u8,
    pub(crate) stamp: u64,
    /// Whether the transform has seen it.
    pub(crate) transformed: bool,
}

/// The one list or watch that is open.
pub(crate) struct Open {
    pub(crate) connection: Connection,
    splitter: Splitter,
    pub(crate) is_watch: bool,
    /// What follows the frames before it.
    broken: Option<FrameError>,
}

enum Splitter {
    List(JsonListSplitter),
    Watch(JsonWatchSplitter),
}

/// The list that is being staged.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) shortcut: bool,
    pub(crate) skip_unreadable: bool,
    pub(crate) objects: usize,
    pub(crate) usable: usize,
    in_page: usize,
    /// The oldest version in it above the one that the machine stands at.
    missed: Option<ResourceVersion>,
}

impl Open {
    pub(crate) fn list(connection: Connection) -> Self {
        let splitter = Splitter::List(JsonListSplitter::with_max_object_bytes(wire::LIMIT));
        Self { connection, splitter, is_watch: false, broken: None }
    }

    pub(crate) fn watch(connection: Connection) -> Self {
        let splitter = Splitter::Watch(JsonWatchSplitter::with_max_object_bytes(wire::LIMIT));
        Self { connection, splitter, is_watch: true, broken: None }
    }
}

impl World {
    /// Does what the machine asks for, until it asks for nothing.
    pub(crate) fn act(&mut self) {
        for _ in 0..1000 {
            let failures = self.machine.failures();
            let action = self.machine.poll(self.now);
            self.note_failures(failures);
            let Some(action) = action else { return };
            self.trace(|| format!("  → {action:?}"));
            match action {
                Action::List(request) => {
                    self.check_list(&request);
                    if let Some(list) = &mut self.list {
                        list.in_page = 0;
                    }
                    self.request += 1;
                    let connection = self.answer_list(&request);
                    self.open = Some(Open::list(connection));
                }
                Action::Watch(request) => {
                    self.check_watch(&request);
                    self.request += 1;
                    let connection = self.answer_watch(&request);
                    self.open = Some(Open::watch(connection));
                }
                Action::Close => {
                    assert!(self.open.is_some(), "G24: nothing is open, and it shall be closed");
                    self.open = None;
                    self.connection_ended();
                }
                Action::Probe(request) => {
                    self.check_probe(&request);
                    self.probe = self.answer_probe(&request);
                }
                Action::Discover => {
                    self.check_discover();
                    self.discovery = self.answer_discovery();
                }
                Action::BeginReplace { shortcut, skip_unreadable } => {
                    assert!(self.list.is_none(), "G9: a list begins within a list");
                    self.check_skip(skip_unreadable);
                    self.list = Some(Listing { shortcut, skip_unreadable, ..Listing::default() });
                    self.queue.push(Delta::ReplaceStarted { distrust: !shortcut });
                }
                Action::FinishReplace { version, history_changed } => {
                    assert!(self.list.take().is_some(), "G9: no list is there to publish");
                    self.list_finished(history_changed);
                    self.queue.push(Delta::ReplaceFinished { version, history_changed });
                }
                Action::AbandonReplace => {
                    assert!(self.list.take().is_some(), "G9: no list is there to abandon");
                    self.cover("list abandoned");
                    self.queue.push(Delta::ReplaceAbandoned);
                }
                Action::RemoveAll => {
                    self.check_remove_all();
                    self.queue.push(Delta::Cleared);
                }
            }
        }
        panic!("G28: the machine does not come to rest");
    }

    pub(crate) fn tell(&mut self, input: Input) {
        self.trace(|| format!("  ← {input:?}"));
        let failures = self.machine.failures();
        self.machine.handle(self.now, input);
        self.note_failures(failures);
        self.act();
    }

    /// Takes note of what the machine counted beyond `before`.
    fn note_failures(&mut self, before: u64) {
        if self.machine.failures() > before {
            let failure = self.machine.last_failure().expect("G31: it was counted").clone();
            self.request_failed(&failure);
        }
        self.check_back_off();
    }

    fn fail(&mut self, failure: Failure) {
        self.trace(|| format!("  ← failed: {:?} {failure}", failure.kind));
        self.open = None;
        let failures = self.machine.failures();
        let told = failure.clone();
        self.machine.handle(self.now, Input::Failed(failure));
        assert!(self.machine.failures() > failures, "G31: a failure is not counted: {told}");
        assert_eq!(self.machine.last_failure(), Some(&told), "G31");
        self.note_failures(failures);
        self.connection_ended();
        self.act();
    }

    fn still(&self, request: u64) -> bool {
        self.request == request && self.open.is_some()
    }

    /// Takes the next thing that has arrived.
    pub(crate) fn incoming(&mut self) {
        let Some(open) = &mut self.open else { return };
        if let Some(error) = open.broken.take() {
            return self.fail(malformed(&error));
        }
        let Some(arriving) = open.connection.receive() else { return };
        match arriving {
            Arriving::Headers => {
                self.opened();
                self.tell(Input::Opened);
            }
            Arriving::Broken(failure) => self.fail(failure),
            Arriving::Chunk(chunk) => self.chunk(chunk),
            Arriving::End => self.body_ended(),
        }
    }

    pub(crate) fn next_incoming(&self) -> Option<std::time::Duration> {
        let open = self.open.as_ref()?;
        if open.broken.is_some() { Some(self.now) } else { open.connection.next_at() }
    }

    fn chunk(&mut self, chunk: Bytes) {
        self.ledger.last_sign = self.now;
        if self.ledger.current == Current::Watch {
            self.ledger.quiet_since = self.now;
        }
        let Some(open) = &mut self.open else { return };
        match &mut open.splitter {
            Splitter::List(splitter) => {
                let mut parts = Vec::new();
                if let Err(error) = splitter.push(chunk, &mut parts) {
                    return self.fail(malformed(&error));
                }
                self.list_parts(parts);
            }
            Splitter::Watch(splitter) => {
                let (mut texts, mut frames) = (Vec::new(), Vec::new());
                open.broken = splitter.push(chunk, &mut texts).err();
                for text in &texts {
                    match WatchFrame::parse(text) {
                        Ok(frame) => frames.push(frame),
                        Err(error) => {
                            open.broken = Some(error);
                            break;
                        }
                    }
                }
                self.frames(&frames);
            }
        }
    }

    fn body_ended(&mut self) {
        let Some(open) = self.open.take() else { return };
        match open.splitter {
            Splitter::List(splitter) => match splitter.finish() {
                Err(error) => self.fail(malformed(&error)),
                Ok(head) if !head.kind.ends_with("List") => {
                    self.fail(Failure::new(FailureKind::Malformed, "the answer is not a list"));
                }
                Ok(head) => self.list_end(head),
            },
            Splitter::Watch(splitter) => match splitter.finish() {
                Err(error) => self.fail(malformed(&error)),
                Ok(()) => {
                    self.connection_ended();
                    self.tell(Input::Closed);
                }
            },
        }
    }

    fn list_parts(&mut self, parts: Vec<ListPart>) {
        let (request, count) = (self.request, parts.len());
        self.tell(Input::Received { bytes: count });
        for part in parts {
            if !self.still(request) {
                return;
            }
            let outcome = match part {
                ListPart::Item(item) => self.stage(&item).map(|version| self.note_missed(&version)),
                ListPart::TooLarge { beginning, error } => self.leave_out(&beginning, malformed(&error)),
            };
            if let Err(failure) = outcome {
                self.fail(failure);
                return;
            }
        }
        if let Some(list) = &mut self.list {
            list.in_page += count;
            let items = list.objects;
            self.tell(Input::Progress { items });
        }
    }

    fn list_end(&mut self, head: ListHead) {
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
        self.ledger.token.clone_from(&continue_token);
        self.was_complete();
        self.tell(Input::PageEnd { version, continue_token, remaining, items });
    }

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

    fn nothing_usable(&mut self) -> Option<Failure> {
        let list = self.list.as_ref().filter(|list| list.objects > 0 && list.usable == 0)?;
        let message = format!("none of {} objects can be decoded", list.objects);
        self.cover("list of nothing usable");
        Some(Failure::new(FailureKind::Undecodable, message))
    }

    fn frames(&mut self, frames: &[WatchFrame]) {
        let request = self.request;
        self.tell(Input::Received { bytes: frames.iter().map(|frame| frame.object.bytes().len()).sum() });
        for frame in frames {
            if !self.still(request) {
                break;
            }
            let outcome = match frame.kind {
                WatchEventType::Bookmark => self.bookmark(&frame.object),
                WatchEventType::Error => Err(error_event(&frame.object)),
                kind => self.event(kind, &frame.object),
            };
            if let Err(failure) = outcome {
                self.fail(failure);
                break;
            }
        }
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
        self.bookmarked(initial_events_end);
        self.ledger.heard = true;
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
        if let Some(list) = &self.list {
            let items = list.objects;
            self.tell(Input::Progress { items });
        }
        self.ledger.heard = true;
        self.tell(Input::Event { version });
        Ok(())
    }

    /// The version that the text of a list names.
    pub(crate) fn version_of(&self, text: &str) -> Result<ResourceVersion, Failure> {
        let mut splitter = JsonListSplitter::with_max_object_bytes(wire::LIMIT);
        let chunk = Bytes::copy_from_slice(text.as_bytes());
        splitter.push(chunk, &mut Vec::new()).map_err(|error| malformed(&error))?;
        let head = splitter.finish().map_err(|error| malformed(&error))?;
        if !head.kind.ends_with("List") {
            return Err(Failure::new(FailureKind::Malformed, "the answer is not a list"));
        }
        Ok(head.resource_version)
    }
}

fn error_event(object: &WireObject) -> Failure {
    match Status::of(object.wire()) {
        Ok(status) => wire::failure_of_status(&status, format!("the watch ended: {status}")),
        Err(error) => malformed(&error),
    }
}

pub(crate) fn malformed(error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::Malformed, error.to_string())
}
