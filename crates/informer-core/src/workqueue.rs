//! The work queue between an informer's events and a controller's workers: the logic of client-go's
//! `util/workqueue`, without a clock.
//!
//! [`Queue`] is the state machine, which takes the time as an argument. [`SharedQueue`] shares it
//! between workers, and selects which of them to wake. The `informer` crate's `workqueue` adds
//! timers.

mod delays;
mod limiter;
mod metrics;
mod queue;
mod ready;
mod shared;
mod waiters;

#[cfg(test)]
mod tests;

pub use limiter::{
    BucketLimiter, ExponentialLimiter, FastSlowLimiter, MaxOfLimiter, MaxWaitLimiter,
};
pub use limiter::{RateLimiter, default_limiter};
pub use metrics::{Histogram, Metrics};
pub use queue::Queue;
pub use ready::Priority;
pub use shared::{Polled, SharedQueue, Ticket};
pub(crate) use waiters::{WaiterId, Waiters};

/// The lock of [`SharedQueue`], imported here so that the model check can replace it with loom's.
mod sync {
    pub(super) use std::sync::Mutex;
}
