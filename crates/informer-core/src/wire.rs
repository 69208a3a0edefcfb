//! Splits responses of an API server into single objects while they stream in.
//!
//! A body is never held as a whole, and a list never exists as one value. A [`ListSplitter`] cuts
//! the body of a list into its items, a [`WatchSplitter`] that of a watch into [`WatchFrame`]s.
//! Each is a slice of its chunk, unless a chunk border runs through it. [`ObjectHead`] is the part
//! of any object ([`Wire`]) that the store needs, whatever its kind and encoding. [`Status`] is an
//! error that a server sent.
//!
//! Errors name what cannot be read: [`AnswerError`] a response, by its headers; [`FrameError`] the
//! body; [`HeadError`] the metadata of an object; [`DecodeError`] the object.
//!
//! Each encoding has one folder, behind one trait, `Format`. To add an encoding, add a folder, and
//! its names in [`MediaType`] and [`Encoding`]. No other code distinguishes encodings.

mod answer;
mod collect;
mod encoding;
mod format;
mod frame;
mod head;
mod json;
mod list;
mod object;
mod path;
mod protobuf;
mod status;
#[cfg(test)]
mod testing;

pub use answer::AnswerError;
pub use encoding::{Encoding, ListSplitter, MediaType, WatchSplitter};
pub use frame::{WatchEventType, WatchFrame};
pub use head::{HeadError, ObjectHead};
pub use list::{ListHead, ListPart};
pub use object::{Wire, WireObject};
pub use path::{FieldPath, FieldPathError};
pub use status::Status;
pub(crate) use status::StatusCause;

/// The default size limit of one object or watch frame, in bytes: 16 MiB. API servers reject
/// objects above 3 MiB.
pub const DEFAULT_MAX_OBJECT_BYTES: usize = 16 * 1024 * 1024;

/// A body that cannot be split. Contains the place of the error, but no contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The body ended too early.
    #[error("the body ended unexpectedly, after {offset} bytes")]
    Truncated {
        /// The number of bytes received.
        offset: u64,
    },
    /// One object is larger than allowed.
    #[error(
        "the object at offset {offset} is larger than the limit of {limit} bytes per object; raise the limit if it is meant to be"
    )]
    TooLarge {
        /// The offset in the body at which the object begins, in bytes.
        offset: u64,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The body is malformed.
    #[error("malformed body at offset {offset}: expected {expected}")]
    Malformed {
        /// The offset in the body or frame, in bytes.
        offset: u64,
        /// What was expected there.
        expected: &'static str,
    },
    /// The response to a LIST is not a list.
    #[error("the answer is a {kind:?}, not a list")]
    NotAList {
        /// Its kind, at most 128 characters of it.
        kind: String,
    },
    /// Protobuf of an unknown kind.
    #[error("{api_version} {kind} is no built-in kind, and can be read in JSON only")]
    UnknownKind {
        /// Group and version, at most 128 characters of it.
        api_version: String,
        /// The kind, at most 128 characters of it.
        kind: String,
    },
    /// A watch frame of an unknown type.
    #[error("watch event of unknown type {found:?}")]
    UnknownEventType {
        /// The type, at most 64 characters of it.
        found: String,
    },
}

impl FrameError {
    fn not_a_list(kind: &str) -> Self {
        Self::NotAList { kind: kind.chars().take(128).collect() }
    }

    fn unknown_kind(api_version: &str, kind: &str) -> Self {
        let shortened = |text: &str| text.chars().take(128).collect();
        Self::UnknownKind { api_version: shortened(api_version), kind: shortened(kind) }
    }
}

/// An object could not be decoded. Contains the place and the cause, but no value (G34).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
#[non_exhaustive]
pub struct DecodeError {
    /// The path of the field in the object, such as `spec.containers[0].ports`; `.` for the object
    /// itself.
    pub path: String,
    /// What was expected.
    pub message: String,
}
