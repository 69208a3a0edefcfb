//! Benches of informer: what a synced informer costs, and what client-go's and kube-runtime's cost
//! beside it.
//!
//! `cargo run --release -p informer-benches --bin heap` measures memory, with limits for CI;
//! `cargo run --release -p informer-benches --bin in-process` measures reads, handlers and relists
//! without a socket; `cargo run --release -p informer-benches --bin side-by-side` puts both beside
//! the peers, and the ratios into `RESULTS.md`.
//!
//! Each measured client runs in a process of its own: [`client`] is ours, `peers` has the others,
//! and all of them print the same [`Figures`](figures::Figures).

pub mod client;
pub mod counting;
pub mod cpu;
pub mod events;
pub mod figures;
pub mod meter;
pub mod resident;

use counting::Counting;

/// What every program here allocates with.
#[cfg(not(feature = "mimalloc"))]
#[global_allocator]
pub static HEAP: Counting<std::alloc::System> = Counting::new(std::alloc::System);

/// What every program here allocates with.
#[cfg(feature = "mimalloc")]
#[global_allocator]
pub static HEAP: Counting<mimalloc::MiMalloc> = Counting::new(mimalloc::MiMalloc);
