//! From the bytes of an API server to single objects, as the bytes stream in.
//!
//! A body is never held whole and a list never exists as one value: [`JsonListSplitter`] cuts a list's body
//! into the texts of its items, [`JsonWatchSplitter`] a watch's body into frames, each a slice of the chunk it
//! arrived in unless a chunk border runs through it. [`WatchFrame`] takes a frame apart, [`ObjectHead`]
//! reads what the store needs of any object, whatever its kind, and [`Status`] is how a server says no.
//!
//! The splitters look at braces, brackets and strings only; whether an item is valid JSON shows when it is
//! parsed. Everything here speaks JSON; the parts another encoding shares are [`ListPart`], [`ListHead`],
//! [`WatchFrame`], [`ObjectHead`] and [`FrameError`].

mod collect;
mod frame;
mod head;
mod json_list;
mod json_watch;
mod members;
mod object;
mod scan;
mod status;
#[cfg(test)]
mod testing;

pub use frame::{WatchEventType, WatchFrame};
pub use head::{HeadError, ObjectHead, without_managed_fields};
pub use json_list::{JsonListSplitter, ListHead, ListPart};
pub use json_watch::JsonWatchSplitter;
pub use object::{Wire, WireObject};
pub use status::{Status, StatusCause};

/// How large one object or watch frame may be unless told otherwise, in bytes: 16 MiB, where API servers
/// refuse objects above 3 MiB.
pub const DEFAULT_MAX_OBJECT_BYTES: usize = 16 * 1024 * 1024;

/// A body that cannot be taken apart. Says where, never what stood there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The body ended too early.
    #[error("the body ended unexpectedly, after {offset} bytes")]
    Truncated {
        /// The length of what came, in bytes.
        offset: u64,
    },
    /// One object is larger than allowed.
    #[error(
        "the object at offset {offset} is larger than the limit of {limit} bytes per object; raise the limit if it is meant to be"
    )]
    TooLarge {
        /// Where in the body the object begins, in bytes.
        offset: u64,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The body is not what it should be.
    #[error("malformed body at offset {offset}: expected {expected}")]
    Malformed {
        /// Where in the body or frame, in bytes.
        offset: u64,
        /// What should have stood there.
        expected: &'static str,
    },
    /// A watch frame of a type that no server should send.
    #[error("watch event of unknown type {found:?}")]
    UnknownEventType {
        /// The type, at most 64 characters of it.
        found: String,
    },
}

/// Where in `json` a parser gave up, in bytes.
fn error_offset(json: &[u8], error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let line_start = match lines_before {
        0 => 0,
        lines => memchr::memchr_iter(b'\n', json).nth(lines - 1).map_or(json.len(), |at| at + 1),
    };
    (line_start + error.column().saturating_sub(1)).min(json.len())
}

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
