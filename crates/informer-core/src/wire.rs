//! From the bytes of an API server to single objects, as the bytes stream in.
//!
//! A body is never held whole and a list never exists as one value: [`JsonListSplitter`] and [`ProtobufListSplitter`]
//! cut a list's body into its items, [`JsonWatchSplitter`] and [`ProtobufWatchSplitter`] a watch's body into frames,
//! each a slice of the chunk it arrived in unless a chunk border runs through it. [`WatchFrame`] takes a frame apart,
//! [`ObjectHead`] reads what the store needs of any object ([`Wire`]), whatever its kind and encoding, and [`Status`] is
//! how a server says no.
//!
//! The splitters look at no more than they need: in JSON at braces, brackets and strings, in protobuf at the fields of
//! the list. Whether an item is whole shows when it is read.

mod collect;
mod frame;
mod head;
mod json_list;
mod json_watch;
mod list;
mod members;
mod object;
mod protobuf_list;
mod protobuf_watch;
mod scan;
mod status;
mod structure;
#[cfg(test)]
mod testing;

pub use frame::{WatchEventType, WatchFrame};
pub use head::{HeadError, ObjectHead, without_managed_fields};
pub use json_list::JsonListSplitter;
pub use json_watch::JsonWatchSplitter;
pub use list::{ListHead, ListPart};
pub use object::{Wire, WireObject};
pub use protobuf_list::ProtobufListSplitter;
pub use protobuf_watch::ProtobufWatchSplitter;
pub use status::{Status, StatusCause};
pub use structure::structure;

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
    /// Protobuf of a kind that the library does not know.
    #[error("{api_version} {kind} is no built-in kind, and can be read in JSON only")]
    UnknownKind {
        /// Group and version, at most 128 characters of it.
        api_version: String,
        /// The kind, at most 128 characters of it.
        kind: String,
    },
    /// A watch frame of a type that no server should send.
    #[error("watch event of unknown type {found:?}")]
    UnknownEventType {
        /// The type, at most 64 characters of it.
        found: String,
    },
}

impl FrameError {
    fn unknown_kind(api_version: &str, kind: &str) -> Self {
        let shortened = |text: &str| text.chars().take(128).collect();
        Self::UnknownKind { api_version: shortened(api_version), kind: shortened(kind) }
    }
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

/// Whether numbers, `true`, `false` and `null` are made of it.
fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
