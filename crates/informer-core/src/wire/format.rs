//! The interface of an encoding.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::{
    DecodeError, FieldPath, FrameError, HeadError, ListHead, ListPart, ObjectHead, Status,
    WatchFrame,
};

/// Reads the bytes of one object. `bytes` should be an object in this format; no method panics if
/// they are not.
pub(super) trait Format {
    /// The head of the object, read up to the end of the metadata. The rest may be missing or
    /// malformed. The name may be empty.
    fn head<'a>(&self, bytes: &'a [u8]) -> Result<ObjectHead<'a>, HeadError>;

    /// The head of an object that must be well-formed as a whole. Also detects the bookmark that
    /// ends the initial events.
    fn whole_head<'a>(&self, bytes: &'a [u8]) -> Result<ObjectHead<'a>, HeadError>;

    /// The object without its managed fields, in `scratch` if it has any. `head` is that of these
    /// bytes.
    fn without_managed_fields<'a>(
        &self,
        bytes: &'a [u8],
        head: &ObjectHead<'_>,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8];

    /// The object as a `Status`.
    fn status(&self, bytes: &[u8]) -> Result<Status, FrameError>;

    /// `apiVersion` and `kind`; empty if the object does not have them.
    fn types<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, str>, Cow<'a, str>);

    /// The bytes to keep of an object of a collection of this `apiVersion` and `kind`. The methods
    /// below can read them.
    fn keep(&self, bytes: &[u8], api_version: &str, kind: &str) -> Result<Box<[u8]>, DecodeError>;

    /// The value of one label.
    fn label<'a>(&self, bytes: &'a [u8], key: &str) -> Option<&'a str>;

    /// The labels, in the order of the bytes.
    fn labels<'a>(&self, bytes: &'a [u8]) -> Vec<(Cow<'a, str>, Cow<'a, str>)>;

    /// The value of one annotation.
    fn annotation<'a>(&self, bytes: &'a [u8], key: &str) -> Option<Cow<'a, str>>;

    /// The scalars at a path.
    fn fields<'a>(&self, bytes: &'a [u8], path: &FieldPath, found: &mut dyn FnMut(Cow<'a, str>));

    /// Appends the object as JSON on one line. After an error, `out` may have incomplete text
    /// appended.
    fn write_json(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError>;

    /// Decodes the object into any type that serde deserializes.
    fn deserialize<T: DeserializeOwned + 'static>(&self, bytes: &[u8]) -> Result<T, DecodeError>
    where
        Self: Sized;
}

/// The implementation of a [`ListSplitter`](super::ListSplitter).
pub(super) trait SplitList: fmt::Debug + Send + Sync {
    fn push(&mut self, chunk: Bytes, out: &mut Vec<ListPart>) -> Result<(), FrameError>;
    fn finish(self: Box<Self>) -> Result<ListHead, FrameError>;
}

/// The implementation of a [`WatchSplitter`](super::WatchSplitter).
pub(super) trait SplitWatch: fmt::Debug + Send + Sync {
    fn push(&mut self, chunk: Bytes, out: &mut Vec<WatchFrame>) -> Result<(), FrameError>;
    fn finish(self: Box<Self>) -> Result<(), FrameError>;
}
