//! The parts of a list.

use super::{FrameError, WireObject};
use crate::version::ResourceVersion;

/// A part of a list, in the order of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListPart {
    /// One item.
    Item(WireObject),
    /// An item that is larger than allowed. The splitter skips it and continues with the list.
    TooLarge {
        /// Its first bytes, as many as are allowed; [`ObjectHead::of`](super::ObjectHead::of) may
        /// find its key in them.
        beginning: WireObject,
        /// A [`FrameError::TooLarge`].
        error: FrameError,
    },
}

impl ListPart {
    /// The number of its bytes that are held.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Item(object) | Self::TooLarge { beginning: object, .. } => object.bytes.len(),
        }
    }
}

/// The fields of a list besides its items; absent ones are empty or `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListHead {
    /// Group and version, such as `v1` or `apps/v1`.
    pub api_version: String,
    /// The kind of the body, such as `PodList`; `Status` for an error.
    pub kind: String,
    /// The version of the collection that this list has.
    pub resource_version: ResourceVersion,
    /// The token with which to request the next page; `None` for the last page.
    pub continue_token: Option<String>,
    /// The number of items on later pages, if the server knows it.
    pub remaining_item_count: Option<u64>,
}
