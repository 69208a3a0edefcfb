//! The frames of a watch.

use super::{FrameError, WireObject};

/// One event of a watch.
///
/// # Examples
/// ```
/// use informer_core::wire::{MediaType, WatchEventType};
///
/// let mut frames = Vec::new();
/// let chunk = br#"{"type":"ADDED","object":{"kind":"Pod"}}"#;
/// MediaType::Json.watch_splitter(1024).push(chunk[..].into(), &mut frames)?;
/// assert_eq!(frames[0].kind, WatchEventType::Added);
/// assert_eq!(frames[0].object.bytes, &br#"{"kind":"Pod"}"#[..]);
/// # Ok::<(), informer_core::wire::FrameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchFrame {
    /// What happened.
    pub kind: WatchEventType,
    /// The object, a slice of the frame; for [`WatchEventType::Error`] a [`Status`](super::Status).
    pub object: WireObject,
}

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchEventType {
    /// The object is new, or new to this watch.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted; this is its last state.
    Deleted,
    /// The object only has a resource version up to which all events were sent.
    Bookmark,
    /// The object is a status: the watch cannot continue.
    Error,
}

impl WatchEventType {
    pub(super) fn of(name: &str) -> Result<Self, FrameError> {
        Ok(match name {
            "ADDED" => Self::Added,
            "MODIFIED" => Self::Modified,
            "DELETED" => Self::Deleted,
            "BOOKMARK" => Self::Bookmark,
            "ERROR" => Self::Error,
            unknown => {
                return Err(FrameError::UnknownEventType {
                    found: unknown.chars().take(64).collect(),
                });
            }
        })
    }
}

pub(super) const WATCH_EVENT: &str = r#"a watch event: an object with "type" and "object""#;
