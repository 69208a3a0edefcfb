mod histories;
mod limits;
mod queueing;
mod waking;

use std::time::Duration;

use super::*;

/// So many milliseconds.
fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A queue whose rate limiter waits 1 ms, doubling, for each item.
fn queue<K: std::hash::Hash + Eq + Clone + Send + 'static>() -> Queue<K> {
    Queue::new(ExponentialLimiter::new(ms(1), Duration::from_secs(1)))
}
