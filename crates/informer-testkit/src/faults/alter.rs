//! What faults make of the objects in a body: of the items of a list, and of the events of a watch.

mod json;
mod protobuf;

use informer_core::wire::MediaType;

use super::fault::Alteration;

/// The body of a list, or the events that a watch sends at once.
#[derive(Debug)]
pub(super) struct Altered {
    pub(super) bytes: Vec<u8>,
    /// The body ends here.
    pub(super) ends: bool,
}

impl Altered {
    fn whole(bytes: Vec<u8>) -> Self {
        Self { bytes, ends: false }
    }
}

impl Alteration {
    /// Whether it strikes once in a body, as opposed to everywhere.
    pub(super) fn is_single(&self) -> bool {
        match self {
            Self::Truncate | Self::Corrupt | Self::Oversized(_) | Self::Instead(_) => true,
            Self::Undecodable | Self::Duplicate | Self::WithoutEndBookmark => false,
        }
    }

    /// Alters the whole body of a list. `strikes` tells for a name whether this object is meant,
    /// and counts it.
    pub(super) fn list(
        &self,
        body: Vec<u8>,
        media: MediaType,
        strikes: impl FnMut(&str) -> bool,
    ) -> Altered {
        match media {
            MediaType::Json => json::list(self, body, strikes),
            MediaType::Protobuf => protobuf::list(self, body, strikes),
        }
    }

    /// Alters whole events, each with its line break, or the length before it; `strikes` as above.
    pub(super) fn events(
        &self,
        events: &[u8],
        media: MediaType,
        strikes: impl FnMut(&str) -> bool,
    ) -> Altered {
        match media {
            MediaType::Json => json::events(self, events, strikes),
            MediaType::Protobuf => protobuf::events(self, events, strikes),
        }
    }
}

fn half(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() / 2]
}
