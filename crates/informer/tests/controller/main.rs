//! Controllers: who is reconciled, when, how often, and how they go home.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod events;
mod finalizers;
mod leading;
mod life;
mod relay;
mod retries;
mod staleness;
mod world;
mod writes;
