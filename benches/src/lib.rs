//! Benches of informer: what a synced informer costs.
//!
//! `cargo run --release -p informer-benches --bin heap` measures memory; its figures are in `RESULTS.md`.

pub mod counting;
pub mod resident;
