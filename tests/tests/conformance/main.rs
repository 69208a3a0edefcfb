//! The contract, scenario by scenario, each written once and run on both arms: the testkit, and a
//! real etcd and kube-apiserver. Tests are named for the guarantee that they prove.
//!
//! Objects are kept decoded here. `tests/conformance_lazy` repeats the scenarios in which it
//! matters how objects are read, with objects kept as their bytes; [`form`] is the difference. They
//! come as [`informer_tests::wire::asked_for`] says, which every scenario checks at its end.

mod common;
mod convergence;
mod decoding;
mod faults;
mod form;
mod handlers;
mod history;
mod lifecycle;
mod objects;
mod resources;
mod server;
mod status;
mod store;
mod syncing;
mod wire;
