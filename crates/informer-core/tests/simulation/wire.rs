//! The model server's side of requests: bytes, cut anywhere, that arrive when they do.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use informer_core::reflector::{Failure, FailureKind};
use informer_core::wire::{MediaType, Status};
use k8s_protobuf::{Envelope, encode};
use serde_json::{Value, json};

use crate::plan::{Poison, Refusal};
use crate::server::{Change, Kind, State};

/// The most bytes of one object.
pub(crate) const LIMIT: usize = 1024;

/// A request and what is on its way to the informer.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) watch: Option<WatchSide>,
    arriving: VecDeque<(Duration, Arriving)>,
    last_arrival: Duration,
    latency: Duration,
    rng: Rng,
    /// The server sends nothing more.
    pub(crate) ended: bool,
    pub(crate) drips: bool,
}

/// What the server knows of a watch.
#[derive(Debug)]
pub(crate) struct WatchSide {
    pub(crate) position: u64,
    pub(crate) expires: Duration,
    pub(crate) next_bookmark: Duration,
}

#[derive(Clone, Debug)]
pub(crate) enum Arriving {
    Headers {
        content_encoding: Option<&'static str>,
    },
    Chunk(Bytes),
    /// The body is complete.
    End,
    Broken(Failure),
}

impl Connection {
    pub(crate) fn new(now: Duration, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let latency = Duration::from_millis(rng.u64(1..80));
        let arriving = VecDeque::new();
        Self { watch: None, arriving, last_arrival: now, latency, rng, ended: false, drips: false }
    }

    pub(crate) fn refused(now: Duration, seed: u64, failure: Failure) -> Self {
        let mut connection = Self::new(now, seed);
        connection.send(now, Arriving::Broken(failure));
        connection.ended = true;
        connection
    }

    pub(crate) fn send(&mut self, now: Duration, what: Arriving) {
        if self.ended {
            return;
        }
        let at = self.last_arrival.max(now.saturating_add(self.latency));
        self.last_arrival = at;
        self.ended = matches!(what, Arriving::End | Arriving::Broken(_));
        self.arriving.push_back((at, what));
    }

    pub(crate) fn send_headers(&mut self, now: Duration, compressed: bool) {
        self.send(now, Arriving::Headers { content_encoding: compressed.then_some("gzip") });
    }

    pub(crate) fn send_bytes(&mut self, now: Duration, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        let mut at = 0;
        while at < bytes.len() {
            let left = bytes.len() - at;
            let escape = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'\\');
            let length = match self.rng.u8(0..8) {
                _ if self.drips => self.rng.usize(1..=64),
                0 => self.rng.usize(1..=left.min(12)),
                // Where it hurts most.
                1 => escape(&bytes[at..]).map_or(left, |escape| escape + 1),
                2 => self.rng.usize(1..=left),
                _ => left,
            };
            let length = length.min(left);
            if self.drips {
                self.last_arrival = self.last_arrival.max(now) + Duration::from_millis(2500);
            }
            self.send(now, Arriving::Chunk(bytes.slice(at..at + length)));
            at += length;
        }
    }

    /// What was not received yet is lost.
    pub(crate) fn cut(&mut self, now: Duration) {
        self.arriving.clear();
        self.ended = false;
        self.send(now, Arriving::Broken(Failure::new(FailureKind::Transport, "connection reset")));
    }

    /// Nothing more ever arrives, and nobody is told.
    pub(crate) fn stall(&mut self) {
        self.arriving.clear();
        self.ended = true;
    }

    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.arriving.front().map(|(at, _)| *at)
    }

    pub(crate) fn receive(&mut self) -> Option<Arriving> {
        self.arriving.pop_front().map(|(_, what)| what)
    }
}

/// The failure that the refused request ends with; `None`: it is never answered.
pub(crate) fn refusal(refusal: Refusal) -> Option<Failure> {
    match refusal {
        Refusal::Refused => Some(Failure::new(FailureKind::Refused, "connection refused")),
        Refusal::Unanswered => None,
        other => {
            let (code, body) = status(other);
            let status = Status::from_response(code, body.to_string().as_bytes());
            Some(Failure::of_status(&status, status.to_string()))
        }
    }
}

/// The code and body of a refusal.
fn status(refusal: Refusal) -> (u16, Value) {
    let retry = |after: Option<u16>| {
        after.map_or_else(|| json!({}), |it| json!({ "retryAfterSeconds": it }))
    };
    let (code, reason, details) = match refusal {
        Refusal::TooMany { retry_after } => (429, "TooManyRequests", retry(retry_after)),
        Refusal::Internal => (500, "InternalError", json!({})),
        Refusal::Unavailable { retry_after } => (503, "ServiceUnavailable", retry(retry_after)),
        Refusal::Unauthorized => (401, "Unauthorized", json!({})),
        Refusal::Forbidden => (403, "Forbidden", json!({})),
        Refusal::NotFound => (404, "NotFound", json!({})),
        Refusal::Invalid => (422, "Invalid", json!({})),
        Refusal::TooLarge => {
            let cause = json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
            (504, "Timeout", json!({ "causes": [cause] }))
        }
        Refusal::Expired | Refusal::Refused | Refusal::Unanswered => (410, "Expired", json!({})),
    };
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no",
        "reason": reason, "details": details, "code": code });
    (code, status)
}

/// An object as the body of an answer has it.
fn body(media_type: MediaType, object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match media_type {
        MediaType::Json => out.extend_from_slice(object.to_string().as_bytes()),
        MediaType::Protobuf => _ = encode::object(object, &mut out).expect("it is built in"),
    }
    out
}

/// The body of an answer that is a `Status`, and no list.
pub(crate) fn no_list(media_type: MediaType) -> Vec<u8> {
    body(media_type, &status(Refusal::Internal).1)
}

/// A frame of a watch around the bytes of an object as [`body`] writes them.
fn framed(media_type: MediaType, kind: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match media_type {
        MediaType::Json => {
            out.extend_from_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
            out.extend_from_slice(object);
            out.extend_from_slice(b"}\n");
        }
        MediaType::Protobuf => encode::watch_event(kind, object, &mut out).expect("it is short"),
    }
    out
}

/// The frame of a change.
pub(crate) fn frame(media_type: MediaType, change: &Change) -> Vec<u8> {
    let kind = match change.kind {
        Kind::Added => "ADDED",
        Kind::Modified => "MODIFIED",
        Kind::Deleted => "DELETED",
    };
    match change.poison {
        Some(poison) => poisoned(media_type, poison),
        None => event(media_type, kind, &change.state),
    }
}

pub(crate) fn event(media_type: MediaType, kind: &str, state: &State) -> Vec<u8> {
    let object = match media_type {
        MediaType::Json => state.json().into_bytes(),
        MediaType::Protobuf => enveloped(&state.message()),
    };
    framed(media_type, kind, &object)
}

fn enveloped(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Envelope::write("v1", "ConfigMap", message, &mut out);
    out
}

pub(crate) fn poisoned(media_type: MediaType, poison: Poison) -> Vec<u8> {
    let nameless = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {} });
    match (poison, media_type) {
        (Poison::Garbage, MediaType::Json) => framed(media_type, "ADDED", br#"{"a":}"#),
        (Poison::Garbage, MediaType::Protobuf) => framed(media_type, "ADDED", b"k8s\0\xff\xff"),
        (Poison::UnknownType, _) => framed(media_type, "RESTORED", &body(media_type, &nameless)),
        (Poison::NoName, _) => framed(media_type, "ADDED", &body(media_type, &nameless)),
        (Poison::Unbalanced, MediaType::Json) => b"}{".to_vec(),
        (Poison::Unbalanced, MediaType::Protobuf) => b"\0\0\0\x02\xff\xff".to_vec(),
        (Poison::Oversized, _) => {
            let large = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "n1" },
                "data": { "padding": "x".repeat(LIMIT) } });
            framed(media_type, "ADDED", &body(media_type, &large))
        }
    }
}

pub(crate) fn bookmark(media_type: MediaType, version: u64, end: bool) -> Vec<u8> {
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if end {
        metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    framed(media_type, "BOOKMARK", &body(media_type, &object))
}

pub(crate) fn error_event(media_type: MediaType, refusal: Refusal) -> Vec<u8> {
    framed(media_type, "ERROR", &body(media_type, &status(refusal).1))
}

/// A page of a list.
pub(crate) fn list(
    media_type: MediaType,
    items: &[State],
    version: u64,
    token: Option<&str>,
    remaining: Option<usize>,
) -> Vec<u8> {
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if let Some(token) = token {
        metadata["continue"] = token.into();
    }
    if let Some(remaining) = remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    match media_type {
        MediaType::Json => {
            let items: Vec<_> = items.iter().map(State::json).collect();
            let items = items.join(",");
            let list = format!(
                r#"{{"kind":"ConfigMapList","apiVersion":"v1","items":[{items}],"metadata":{metadata}}}"#
            );
            list.into_bytes()
        }
        MediaType::Protobuf => {
            let items: Vec<_> = items.iter().map(State::message).collect();
            let (kind, mut out) = (crate::server::kind("ConfigMapList"), Vec::new());
            encode::list(kind, &metadata, &items, &mut out).expect("it is a list");
            out
        }
    }
}
