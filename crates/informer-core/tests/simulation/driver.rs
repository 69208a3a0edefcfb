//! The driver of the reflector without tasks and sockets: it moves the model server's bytes to an
//! [`Ingest`], as `informer` moves those of a real one, and looks on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use informer_core::ingest::{
    Arrival, Decoder, Held, ListChunk, Phase, Report, Request, Sink, Undecodable,
};
use informer_core::reflector::{Failure, FailureKind};
use informer_core::store::IndexFault;
use informer_core::wire::{
    FrameError, ListHead, ListPart, ListSplitter, MediaType, ObjectHead, WatchFrame, WatchSplitter,
    Wire,
};
use informer_core::{Delta, DeltaQueue, ObjectKey, Pipeline, ResourceVersion, Uid};

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
    body: Body,
    pub(crate) is_watch: bool,
    /// What follows the frames before it.
    broken: Option<FrameError>,
}

enum Body {
    List(ListSplitter),
    Watch(WatchSplitter),
}

/// Decodes and transforms.
pub(crate) struct ObjDecoder;

/// The informer's store and registrations, and what was seen of their doings.
pub(crate) struct Store {
    pub(crate) pipeline: Pipeline<Obj>,
    /// How many deltas are taken at a time.
    pub(crate) batch: usize,
    /// How many refreshes were requested.
    pub(crate) refreshes: u64,
    pub(crate) notes: Vec<Note>,
    pub(crate) delivery: Delivery,
}

/// What was reported, as far as the rules need it.
#[derive(Debug)]
pub(crate) enum Note {
    ListBegan { skips: bool },
    ListPublished { history_changed: bool },
    ListAbandoned,
    Removed,
    Failed(Failure),
    Received,
    Undecodable { broken: bool },
    WithoutKey,
    NothingDecodes,
}

/// What was delivered at one time.
#[derive(Default)]
pub(crate) struct Delivery {
    pub(crate) deltas: Vec<Delivered>,
    pub(crate) faults: Vec<IndexFault>,
}

/// A delta that was delivered, as it shows, and what it was.
pub(crate) struct Delivered {
    pub(crate) shown: String,
    pub(crate) what: What,
}

pub(crate) enum What {
    Changed(ObjectKey, Uid, u64),
    Listed(ObjectKey, Uid, u64),
    Deleted(ObjectKey, Uid, Option<Arc<Obj>>),
    Undecodable,
    Unlisted,
    ReplaceStarted,
    ReplaceFinished { history_changed: bool },
    Cleared,
    Other,
}

#[derive(serde::Deserialize)]
struct RawObject {
    data: RawData,
}

#[derive(serde::Deserialize)]
struct RawData {
    name: String,
    stamp: String,
    #[serde(default)]
    refuse: String,
}

/// What the decoder says of an object that it does not take; what the reflector finds broken, it
/// says itself.
const NO_SHAPE: &str = "data.stamp: invalid value";

impl Decoder for ObjDecoder {
    type Object = Obj;

    fn decode(&mut self, object: Wire<'_>, head: &ObjectHead<'_>) -> Result<Obj, Undecodable> {
        let failed = |phase| Undecodable { phase, cause: NO_SHAPE.to_owned() };
        let mut scratch = Vec::new();
        let object = object.without_managed_fields(head, &mut scratch);
        let raw: RawObject = object.decode().map_err(|_| failed(Phase::Decode))?;
        let RawData { name, stamp, refuse } = raw.data;
        let (Ok(name), Ok(stamp)) = (name.parse(), stamp.parse()) else {
            return Err(failed(Phase::Decode));
        };
        if !refuse.is_empty() {
            return Err(failed(Phase::Transform));
        }
        Ok(Obj { name, stamp, transformed: true })
    }
}

impl Sink<Obj> for Store {
    fn deliver(&mut self, now: Duration, deltas: &mut DeltaQueue<Obj>) {
        let deltas: Vec<_> = deltas.pop_batch(self.batch).collect();
        let shown =
            |delta: &Delta<Obj>| Delivered { shown: format!("{delta:?}"), what: What::of(delta) };
        self.delivery.deltas.extend(deltas.iter().map(shown));
        self.delivery.faults.extend(self.pipeline.apply(now, deltas));
    }

    fn held(&self, namespace: &str, name: &str, uid: &Uid, version: &ResourceVersion) -> Held {
        self.pipeline.held(namespace, name, uid, version)
    }

    fn next_sync(&self) -> Option<Duration> {
        self.pipeline.next_resync()
    }

    fn refreshes(&self) -> u64 {
        self.refreshes
    }

    fn report(&mut self, report: Report<'_>) {
        let note = match report {
            Report::ListBegan { skip_unreadable } => Note::ListBegan { skips: skip_unreadable },
            Report::ListPublished { history_changed } => Note::ListPublished { history_changed },
            Report::ListAbandoned => Note::ListAbandoned,
            Report::Removed => Note::Removed,
            Report::Failed { failure, .. } => Note::Failed(failure.clone()),
            Report::Received { events, bookmarks, .. } if events + bookmarks > 0 => Note::Received,
            Report::Undecodable { why, .. } => Note::Undecodable { broken: why.cause != NO_SHAPE },
            Report::Unreadable { .. } => Note::WithoutKey,
            Report::NothingDecodes { .. } => Note::NothingDecodes,
            Report::State(_)
            | Report::StreamingLists { .. }
            | Report::Requested { .. }
            | Report::Received { .. }
            | Report::Object { .. }
            | Report::Decodable { .. } => return,
        };
        self.notes.push(note);
    }
}

impl What {
    fn of(delta: &Delta<Obj>) -> Self {
        match delta {
            Delta::Added(item) | Delta::Updated(item) => {
                Self::Changed(item.key.clone(), item.record.uid.clone(), item.record.object.stamp)
            }
            Delta::Listed(item) => {
                Self::Listed(item.key.clone(), item.record.uid.clone(), item.record.object.stamp)
            }
            Delta::Deleted(gone) => {
                Self::Deleted(gone.key.clone(), gone.uid.clone(), gone.last.clone())
            }
            Delta::Undecodable { .. } => Self::Undecodable,
            Delta::Unlisted(_) => Self::Unlisted,
            Delta::ReplaceStarted { .. } => Self::ReplaceStarted,
            Delta::ReplaceFinished { history_changed, .. } => {
                Self::ReplaceFinished { history_changed: *history_changed }
            }
            Delta::Cleared { .. } => Self::Cleared,
            Delta::Bookmark(_) | Delta::Kept(_) | Delta::ReplaceAbandoned | Delta::Sync => {
                Self::Other
            }
        }
    }
}

impl Open {
    pub(crate) fn list(connection: Connection, media_type: MediaType) -> Self {
        let body = Body::List(media_type.list_splitter(wire::LIMIT));
        Self { connection, body, is_watch: false, broken: None }
    }

    pub(crate) fn watch(connection: Connection, media_type: MediaType) -> Self {
        let body = Body::Watch(media_type.watch_splitter(wire::LIMIT));
        Self { connection, body, is_watch: true, broken: None }
    }
}

impl World {
    /// Does what is asked for, until nothing is.
    pub(crate) fn act(&mut self) {
        for _ in 0..1000 {
            let request = self.ingest.poll(self.now);
            self.reported();
            let Some(request) = request else { return };
            self.trace(|| format!("  → {request:?}"));
            let media_type = self.config.media_type;
            match request {
                Request::List(request) => {
                    self.check_list(&request);
                    self.request += 1;
                    let connection = self.answer_list(&request);
                    self.open = Some(Open::list(connection, media_type));
                }
                Request::Watch(request) => {
                    self.check_watch(&request);
                    self.request += 1;
                    let connection = self.answer_watch(&request);
                    self.open = Some(Open::watch(connection, media_type));
                }
                Request::Close => {
                    assert!(self.open.is_some(), "G24: nothing is open, and it shall be closed");
                    self.open = None;
                    self.connection_ended();
                }
                Request::Probe(request) => {
                    self.check_probe(&request);
                    self.probe = self.answer_probe(&request);
                }
                Request::Discover => {
                    self.check_discover();
                    self.discovery = self.answer_discovery();
                }
            }
        }
        panic!("G28: the reflector does not come to rest");
    }

    /// Takes note of what was reported.
    pub(crate) fn reported(&mut self) {
        for note in std::mem::take(&mut self.ingest.sink.notes) {
            self.trace(|| format!("    {note:?}"));
            match note {
                Note::ListBegan { skips } => {
                    assert!(
                        !std::mem::replace(&mut self.staging, true),
                        "G9: a list begins within a list"
                    );
                    self.check_skip(skips);
                }
                Note::ListPublished { history_changed } => {
                    assert!(std::mem::take(&mut self.staging), "G9: no list is there to publish");
                    self.list_finished(history_changed);
                }
                Note::ListAbandoned => {
                    assert!(std::mem::take(&mut self.staging), "G9: no list is there to abandon");
                    self.cover("list abandoned");
                }
                Note::Removed => self.check_remove_all(),
                Note::Failed(failure) => self.request_failed(&failure),
                Note::Received => {
                    self.ledger.heard = true;
                    if self.ledger.current == Current::Watch {
                        self.ledger.bookmarks_seen |= self.ledger.bookmarked;
                    }
                }
                Note::Undecodable { broken } if self.staging => {
                    self.cover(if broken {
                        "broken item listed"
                    } else {
                        "undecodable object listed"
                    });
                }
                Note::Undecodable { .. } => {}
                Note::WithoutKey => self.cover("item without a key listed"),
                Note::NothingDecodes => self.cover("list of nothing usable"),
            }
        }
        self.check_back_off();
    }

    fn arrived(&mut self, arrival: Arrival) {
        self.ingest.arrived(self.now, arrival);
        self.reported();
        self.act();
    }

    /// The open request has come to nothing.
    fn fail(&mut self, failure: &Failure) {
        self.trace(|| format!("  ← failed: {:?} {failure}", failure.kind));
        self.open = None;
        self.ingest.arrived(self.now, Arrival::Failed(failure.clone()));
        let told = |note: &Note| matches!(note, Note::Failed(told) if told == failure);
        assert!(self.ingest.sink.notes.iter().any(told), "G31: a failure is not told: {failure}");
        self.reported();
        self.connection_ended();
        self.act();
    }

    /// Takes the next thing that has arrived.
    pub(crate) fn incoming(&mut self) {
        let Some(open) = &mut self.open else { return };
        if let Some(error) = open.broken.take() {
            return self.fail(&malformed(&error));
        }
        let Some(arriving) = open.connection.receive() else { return };
        match arriving {
            Arriving::Headers { content_encoding } => {
                let media_type = self.config.media_type;
                let answer = MediaType::of_answer(
                    Some(media_type.as_str()),
                    content_encoding,
                    &[media_type],
                );
                match answer {
                    Ok(answered) => assert_eq!(answered, media_type),
                    Err(error) => return self.fail(&malformed(&error)),
                }
                self.opened();
                self.arrived(Arrival::Opened);
            }
            Arriving::Broken(failure) => self.fail(&failure),
            Arriving::Chunk(chunk) => self.chunk(chunk),
            Arriving::End => self.body_ended(),
        }
    }

    pub(crate) fn next_incoming(&self) -> Option<Duration> {
        let open = self.open.as_ref()?;
        if open.broken.is_some() { Some(self.now) } else { open.connection.next_at() }
    }

    fn chunk(&mut self, chunk: Bytes) {
        self.ledger.last_sign = self.now;
        if self.ledger.current == Current::Watch {
            self.ledger.quiet_since = self.now;
        }
        let Some(open) = &mut self.open else { return };
        match &mut open.body {
            Body::List(splitter) => {
                let mut parts: Vec<ListPart> = Vec::new();
                match splitter.push(chunk, &mut parts) {
                    Ok(()) => self.arrived(Arrival::List(ListChunk::Parts(parts))),
                    Err(error) => self.fail(&malformed(&error)),
                }
            }
            Body::Watch(splitter) => {
                let mut frames = Vec::new();
                open.broken = splitter.push(chunk, &mut frames).err();
                self.note_bookmarks(&frames);
                self.arrived(Arrival::Watch(frames));
            }
        }
    }

    fn note_bookmarks(&mut self, frames: &[WatchFrame]) {
        use informer_core::wire::WatchEventType::Bookmark;
        let bookmarks = frames.iter().filter(|frame| frame.kind == Bookmark);
        let heads: Vec<_> =
            bookmarks.filter_map(|it| ObjectHead::of_bookmark(it.object.wire()).ok()).collect();
        self.ledger.bookmarked = !heads.is_empty();
        for head in heads {
            self.bookmarked(head.initial_events_end);
        }
    }

    fn body_ended(&mut self) {
        let Some(open) = self.open.take() else { return };
        match open.body {
            Body::List(splitter) => match splitter.finish() {
                Err(error) => self.fail(&malformed(&error)),
                Ok(head) => {
                    self.ledger.token.clone_from(&head.continue_token);
                    self.was_complete();
                    self.arrived(Arrival::List(ListChunk::End(head)));
                }
            },
            Body::Watch(splitter) => match splitter.finish() {
                Err(error) => self.fail(&malformed(&error)),
                Ok(()) => {
                    self.connection_ended();
                    self.arrived(Arrival::Closed);
                }
            },
        }
    }

    /// The version that the body of a list names.
    pub(crate) fn version_of(&self, body: &[u8]) -> Result<ResourceVersion, Failure> {
        let mut splitter = self.config.media_type.list_splitter(wire::LIMIT);
        let chunk = Bytes::copy_from_slice(body);
        splitter.push(chunk, &mut Vec::new()).map_err(|error| malformed(&error))?;
        let ListHead { resource_version, .. } =
            splitter.finish().map_err(|error| malformed(&error))?;
        Ok(resource_version)
    }
}

fn malformed(error: &dyn std::error::Error) -> Failure {
    Failure::new(FailureKind::Malformed, error.to_string())
}
