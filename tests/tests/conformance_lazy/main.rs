//! The scenarios of `tests/conformance` over informers that keep the objects' bytes, and what such informers alone do.

mod bytes;
mod form;

#[path = "../conformance/common.rs"]
mod common;
#[path = "../conformance/convergence.rs"]
mod convergence;
#[path = "../conformance/faults.rs"]
mod faults;
#[path = "../conformance/handlers.rs"]
mod handlers;
#[path = "../conformance/history.rs"]
mod history;
#[path = "../conformance/lifecycle.rs"]
mod lifecycle;
#[path = "../conformance/objects.rs"]
mod objects;
#[path = "../conformance/resources.rs"]
mod resources;
#[path = "../conformance/server.rs"]
mod server;
#[path = "../conformance/status.rs"]
mod status;
#[path = "../conformance/store.rs"]
mod store;
#[path = "../conformance/syncing.rs"]
mod syncing;
#[path = "../conformance/wire.rs"]
mod wire;
