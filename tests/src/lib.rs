//! What the end-to-end tests of `tests/tests/` share: a real cluster, a proxy that breaks
//! connections, the two arms that every test body runs on, and small helpers.
//!
//! `cargo test -p informer-tests` runs the testkit arm and needs nothing but Rust. The real arm
//! needs Go, openssl and curl: `INFORMER_REAL_CLUSTER=1 cargo test -p informer-tests`.

pub mod assortment;
pub mod examples;
pub mod fixtures;
pub mod harness;
pub mod helpers;
pub mod observe;
pub mod proxy;
pub mod real;
pub mod recorder;
pub mod relay;
pub mod reverse_proxy;
pub mod tap;
pub mod throttle;
pub mod wire;
