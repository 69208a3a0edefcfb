//! The model server's side of requests: bytes, cut anywhere, that arrive when they do.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use informer_core::reflector::{Failure, FailureKind};
use informer_core::wire::Status;

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
    Headers,
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

    pub(crate) fn send_text(&mut self, now: Duration, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let mut at = 0;
        while at < bytes.len() {
            let left = bytes.len() - at;
            let length = match self.rng.u8(0..8) {
                _ if self.drips => self.rng.usize(1..=64),
                0 => self.rng.usize(1..=left.min(12)),
                // Where it hurts most.
                1 => text[at..].find('\\').map_or(left, |escape| escape + 1),
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

/// What a request that was answered so comes to, by the rules of the shell.
pub(crate) fn failure_of_status(status: &Status, message: String) -> Failure {
    let kind = match status.code {
        _ if status.is_too_large_resource_version() => FailureKind::TooLargeVersion,
        _ if status.is_expired() => FailureKind::Expired,
        401 => FailureKind::Unauthorized,
        403 => FailureKind::Forbidden,
        404 => FailureKind::NotFound,
        429 => FailureKind::TooManyRequests,
        400 | 405 | 406 | 415 | 422 => FailureKind::Invalid,
        500..=599 => FailureKind::Server,
        _ => FailureKind::Other,
    };
    let retry_after = status.retry_after_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    Failure { kind, message, retry_after }
}

/// The failure that the refused request ends with; `None`: it is never answered.
pub(crate) fn refusal(refusal: Refusal) -> Option<Failure> {
    match refusal {
        Refusal::Refused => Some(Failure::new(FailureKind::Refused, "connection refused")),
        Refusal::Unanswered => None,
        other => {
            let (code, body) = status(other);
            let status = Status::from_response(code, body.as_bytes());
            Some(failure_of_status(&status, format!("{status}")))
        }
    }
}

/// The code and body of a refusal.
pub(crate) fn status(refusal: Refusal) -> (u16, String) {
    let (code, reason, details) = match refusal {
        Refusal::TooMany { retry_after } => (429, "TooManyRequests", retry(retry_after)),
        Refusal::Internal => (500, "InternalError", String::new()),
        Refusal::Unavailable { retry_after } => (503, "ServiceUnavailable", retry(retry_after)),
        Refusal::Unauthorized => (401, "Unauthorized", String::new()),
        Refusal::Forbidden => (403, "Forbidden", String::new()),
        Refusal::NotFound => (404, "NotFound", String::new()),
        Refusal::Invalid => (422, "Invalid", String::new()),
        Refusal::TooLarge => {
            let causes =
                r#""causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]"#;
            (504, "Timeout", causes.to_owned())
        }
        Refusal::Expired | Refusal::Refused | Refusal::Unanswered => (410, "Expired", String::new()),
    };
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"{reason}","details":{{{details}}},"code":{code}}}"#
    );
    (code, body)
}

fn retry(after: Option<u16>) -> String {
    after.map_or_else(String::new, |seconds| format!(r#""retryAfterSeconds":{seconds}"#))
}

/// The frame of a change.
pub(crate) fn frame(change: &Change) -> String {
    let kind = match change.kind {
        Kind::Added => "ADDED",
        Kind::Modified => "MODIFIED",
        Kind::Deleted => "DELETED",
    };
    match change.poison {
        Some(poison) => poisoned(poison),
        None => event(kind, &change.state),
    }
}

pub(crate) fn event(kind: &str, state: &State) -> String {
    let mut text = format!(r#"{{"type":"{kind}","object":"#);
    state.json(&mut text);
    text.push_str("}\n");
    text
}

pub(crate) fn poisoned(poison: Poison) -> String {
    match poison {
        Poison::Garbage => r#"{"type":"ADDED","object":{"a":}}"#.to_owned(),
        Poison::UnknownType => r#"{"type":"RESTORED","object":{}}"#.to_owned(),
        Poison::NoName => r#"{"type":"ADDED","object":{"metadata":{}}}"#.to_owned(),
        Poison::Unbalanced => r#"}{"#.to_owned(),
        Poison::Oversized => format!(r#"{{"type":"ADDED","object":{{"a":"{}"}}}}"#, "x".repeat(LIMIT)),
    }
}

pub(crate) fn bookmark(version: u64, end: bool) -> String {
    let annotations = if end { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
    format!(
        r#"{{"type":"BOOKMARK","object":{{"kind":"Thing","metadata":{{"resourceVersion":"{version}"{annotations}}}}}}}
"#
    )
}

pub(crate) fn error_event(refusal: Refusal) -> String {
    format!(r#"{{"type":"ERROR","object":{}}}"#, status(refusal).1)
}

/// A page of a list.
pub(crate) fn list(items: &[State], version: u64, token: Option<&str>, remaining: Option<usize>) -> String {
    let mut text = r#"{"kind":"ThingList","apiVersion":"v1","items":["#.to_owned();
    for (at, item) in items.iter().enumerate() {
        text.push_str(if at > 0 { "," } else { "" });
        item.json(&mut text);
    }
    text.push_str(r#"],"metadata":{"resourceVersion":""#);
    text.push_str(&version.to_string());
    text.push('"');
    if let Some(token) = token {
        text.push_str(r#","continue":""#);
        text.push_str(token);
        text.push('"');
    }
    if let Some(remaining) = remaining {
        text.push_str(&format!(r#","remainingItemCount":{remaining}"#));
    }
    text.push_str("}}");
    text
}
