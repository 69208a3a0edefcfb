//! What the fuzz targets check, each a function of bytes that panics on a fault.

// The gateway's query, which is included as a file, names selectors as the library does.
extern crate self as informer;

mod deltas;
mod diff;
mod gateway;
mod protobuf;
mod selectors;
mod serve;
mod tables;
mod typed;
mod wire;

pub use deltas::deltas;
pub use diff::diff;
pub use gateway::gateway_query;
pub use informer_core::selector::{FieldSelector, LabelSelector, ParseSelectorError};
pub use protobuf::protobuf;
pub use selectors::selectors;
pub use serve::{continue_tokens, reads};
pub use tables::tables;
pub use typed::typed;
pub use wire::{json_list, protobuf_list, protobuf_watch, watch};
