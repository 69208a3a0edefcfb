//! The scenarios of `tests/conformance` in which it matters how objects are read, over informers
//! that keep their bytes, and what such informers alone do.

mod bytes;
mod form;

#[path = "../conformance/common.rs"]
mod common;
#[path = "../conformance/convergence.rs"]
mod convergence;
#[path = "../conformance/history.rs"]
mod history;
#[path = "../conformance/objects.rs"]
mod objects;
#[path = "../conformance/resources.rs"]
mod resources;
#[path = "../conformance/status.rs"]
mod status;
#[path = "../conformance/store.rs"]
mod store;
#[path = "../conformance/wire.rs"]
mod wire;
