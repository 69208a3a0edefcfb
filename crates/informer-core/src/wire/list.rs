//! What a list comes apart into.

use super::{FrameError, WireObject};
use crate::version::ResourceVersion;

/// A part of a list, in the order of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListPart {
    /// One item.
    Item(WireObject),
    /// An item that is larger than allowed. The splitter has gone past it, or will: the list goes on.
    TooLarge {
        /// Its first bytes, as many as are allowed; [`ObjectHead::of_beginning`](super::ObjectHead::of_beginning) may
        /// find in them who it is.
        beginning: WireObject,
        /// A [`FrameError::TooLarge`].
        error: FrameError,
    },
}

/// What a list says of itself; what it does not say is empty or `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListHead {
    /// Group and version, such as `v1` or `apps/v1`.
    pub api_version: String,
    /// The kind of the body, such as `PodList`; `Status` for an error.
    pub kind: String,
    /// The version of the collection that this list shows.
    pub resource_version: ResourceVersion,
    /// What to ask the next page with; `None` for the last page.
    pub continue_token: Option<String>,
    /// How many items follow on later pages, where the server knows.
    pub remaining_item_count: Option<u64>,
}
