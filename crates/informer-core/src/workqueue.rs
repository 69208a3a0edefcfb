//! The work queue between an informer's events and the workers of a controller: what client-go's `util/workqueue`
//! decides, without a clock.
//!
//! [`Queue`] is the state machine, driven with the time as an argument; [`SharedQueue`] shares it between workers
//! and decides whom to wake. The `informer` crate's `workqueue` adds the sleeping.

mod delays;
mod limiter;
mod metrics;
mod queue;
mod shared;
mod waiters;

#[cfg(test)]
mod tests;

pub use limiter::{BucketLimiter, ExponentialLimiter, FastSlowLimiter, MaxOfLimiter, MaxWaitLimiter};
pub use limiter::{RateLimiter, default_limiter};
pub use metrics::{Histogram, Metrics};
pub use queue::Queue;
pub use shared::{Polled, SharedQueue, Ticket};
pub use waiters::{WaiterId, Waiters};

/// The lock of [`SharedQueue`], by a name of its own: the model check puts loom's in its place.
mod sync {
    pub(super) use std::sync::Mutex;
}
