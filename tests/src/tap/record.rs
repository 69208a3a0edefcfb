//! What a [`Tap`](super::Tap) has seen, in one order for all taps of a test.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use http::header::USER_AGENT;
use http::request::Parts;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::reverse_proxy::Asked;

/// Which side of the tested endpoint a tap is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Between it and its API server.
    Upstream,
    /// Between it and its clients.
    Downstream,
}

/// The number of a request in its record.
pub type RequestId = usize;

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct Note {
    /// When.
    pub at: Instant,
    /// At which tap.
    pub side: Side,
    /// The server behind the tap, by its name; empty if it is none of one.
    pub target: String,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum What {
    /// A request came.
    Asked {
        /// Its number.
        request: RequestId,
        /// What it asks for.
        query: Query,
    },
    /// The head of an answer passed.
    Answered {
        /// To which request.
        request: RequestId,
        /// Its status code.
        code: u16,
    },
    /// A list passed, whole.
    Listed {
        /// To which request.
        request: RequestId,
        /// The version of the list.
        version: u64,
    },
    /// A frame of a watch passed.
    Frame {
        /// To which request.
        request: RequestId,
        /// What it says.
        frame: Frame,
    },
    /// A watch ended, whichever side ended it.
    Ended {
        /// Which.
        request: RequestId,
    },
    /// All connections broke.
    Cut,
    /// The test has come so far.
    Reached(String),
}

/// A read, by what its URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Who asks, by its user agent.
    pub agent: String,
    /// List, watch or streaming list.
    pub asked: Asked,
    /// The path.
    pub path: String,
    /// `resourceVersion`, if there is one.
    pub version: Option<u64>,
    /// `resourceVersionMatch`, if there is one.
    pub version_match: String,
}

/// A frame of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub event: Event,
    /// `namespace/name` of its object.
    pub key: String,
    /// The UID of its object.
    pub uid: String,
    /// The version of its object.
    pub version: u64,
    /// The reason that a status gives.
    pub reason: String,
}

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Event {
    /// An object is new.
    Added,
    /// An object has changed.
    Modified,
    /// An object is gone.
    Deleted,
    /// Nothing has changed up to a version.
    Bookmark,
    /// A bookmark that ends the initial events.
    #[serde(skip)]
    InitialEventsEnd,
    /// The watch has failed.
    Error,
}

/// All that happened.
pub struct Record {
    notes: Mutex<Vec<Note>>,
    requests: Mutex<usize>,
    changed: watch::Sender<()>,
}

impl Record {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            notes: Mutex::default(),
            requests: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    /// Takes something down.
    pub fn note(&self, side: Side, target: &str, what: What) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(Note { at: Instant::now(), side, target: target.to_owned(), what });
        drop(notes);
        self.changed.send_replace(());
    }

    /// Looks at all that has happened.
    pub fn read<R>(&self, read: impl FnOnce(&[Note]) -> R) -> R {
        read(&self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until what has happened is enough.
    pub async fn until(&self, is_enough: impl Fn(&[Note]) -> bool) {
        let mut changed = self.changed.subscribe();
        while !self.read(&is_enough) {
            // The sender is `self`: it cannot be gone.
            _ = changed.changed().await;
        }
    }

    pub(super) fn asked(&self, side: Side, target: &str, query: Query) -> RequestId {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests += 1;
        let request = *requests;
        drop(requests);
        self.note(side, target, What::Asked { request, query });
        request
    }
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("notes", &self.read(<[Note]>::len)).finish_non_exhaustive()
    }
}

impl Query {
    pub(super) fn of(head: &Parts) -> Self {
        let query = head.uri.query().unwrap_or_default();
        let parameter = |wanted: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value).unwrap_or_default()
        };
        let agent = head.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
        Self {
            agent: agent.unwrap_or_default().to_owned(),
            asked: Asked::by(query),
            path: head.uri.path().to_owned(),
            version: parameter("resourceVersion").parse().ok(),
            version_match: parameter("resourceVersionMatch").to_owned(),
        }
    }
}

impl Frame {
    /// Reads a frame in JSON or protobuf; none if it is not whole.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut frame = if bytes.starts_with(b"{") {
            let Json { kind, object } = serde_json::from_slice(bytes).ok()?;
            let Metadata { namespace, name, uid, resource_version } = object.metadata;
            Self::new(kind, &namespace, &name, uid, &resource_version, object.reason)
        } else {
            let bytes = bytes.get(4..)?;
            let kind = match field(bytes, 1)? {
                b"ADDED" => Event::Added,
                b"MODIFIED" => Event::Modified,
                b"DELETED" => Event::Deleted,
                b"BOOKMARK" => Event::Bookmark,
                b"ERROR" => Event::Error,
                _ => return None,
            };
            let object = message(field(field(bytes, 2)?, 1)?)?;
            let metadata = field(object, 1).unwrap_or_default();
            let text = |number| text(metadata, number);
            let reason = if kind == Event::Error { self::text(object, 4) } else { String::new() };
            Self::new(kind, &text(3), &text(1), text(5), &text(6), reason)
        };
        let mark = b"k8s.io/initial-events-end";
        if frame.event == Event::Bookmark && bytes.windows(mark.len()).any(|it| it == mark) {
            frame.event = Event::InitialEventsEnd;
        }
        Some(frame)
    }

    fn new(
        event: Event,
        namespace: &str,
        name: &str,
        uid: String,
        version: &str,
        reason: String,
    ) -> Self {
        let key = format!("{namespace}/{name}");
        Self { event, key, uid, version: version.parse().unwrap_or_default(), reason }
    }
}

/// The version of a list in JSON or protobuf; none if it is no list.
pub(super) fn version_of_list(bytes: &[u8]) -> Option<u64> {
    if bytes.starts_with(b"{") {
        let List { metadata, .. } = serde_json::from_slice(bytes).ok()?;
        return metadata.resource_version.parse().ok();
    }
    text(field(message(bytes)?, 1)?, 2).parse().ok()
}

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    #[serde(rename = "items")]
    _items: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Json {
    #[serde(rename = "type")]
    kind: Event,
    object: Object,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Object {
    metadata: Metadata,
    reason: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

/// The message in an envelope: the magic bytes, then a field with the object.
fn message(bytes: &[u8]) -> Option<&[u8]> {
    field(bytes.strip_prefix(b"k8s\0")?, 2)
}

fn text(message: &[u8], number: u64) -> String {
    let bytes = field(message, number).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first field of this number in a message of protobuf that has a length.
fn field(mut message: &[u8], number: u64) -> Option<&[u8]> {
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        match tag & 7 {
            0 => _ = varint(&mut message)?,
            1 => message = message.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let (value, rest) = message.split_at_checked(length)?;
                if tag >> 3 == number {
                    return Some(value);
                }
                message = rest;
            }
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    None
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
