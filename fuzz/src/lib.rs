//! What the fuzz targets check, each a function of bytes that panics on a fault.

mod deltas;
mod gateway;
mod protobuf;
mod selectors;
mod typed;
mod wire;

pub use deltas::deltas;
pub use gateway::gateway_query;
pub use protobuf::protobuf;
pub use selectors::selectors;
pub use typed::typed;
pub use wire::{json_list, protobuf_list, protobuf_watch, watch};
