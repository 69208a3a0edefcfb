//! Rate limiters: the delays of items that failed.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

/// Computes how long to delay a failed item before it is retried (client-go's `TypedRateLimiter`).
///
/// Called under the queue's lock: an implementation must be quick, and must not use the queue.
pub trait RateLimiter<K>: Send + 'static {
    /// Counts one more failure of `item`, and returns its delay from `now` on. `now` is the time
    /// since a fixed moment, and never decreases.
    fn when(&mut self, now: Duration, item: &K) -> Duration;

    /// Forgets the failures of `item`, which succeeded or is no longer retried.
    fn forget(&mut self, item: &K);

    /// The number of failures of `item` since it was last forgotten.
    fn num_requeues(&self, item: &K) -> u32;
}

/// Limits each item separately: `base`, doubled with each failure, at most `max` (client-go's
/// `TypedItemExponentialFailureRateLimiter`).
pub struct ExponentialLimiter<K> {
    base: Duration,
    max: Duration,
    failures: HashMap<K, u32>,
}

/// A token bucket for all items: a burst of `burst` items, then a fixed number per second
/// (client-go's `TypedBucketRateLimiter`). Each call reserves a token, so each further item is
/// delayed longer.
#[derive(Debug)]
pub struct BucketLimiter {
    interval: Duration,
    burst: Duration,
    /// When the bucket will be full again.
    full_at: Duration,
}

/// Limits each item separately: `fast` for the first failures, then `slow` (client-go's
/// `TypedItemFastSlowRateLimiter`).
pub struct FastSlowLimiter<K> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    failures: HashMap<K, u32>,
}

/// The longest delay of several limiters, each of which counts every failure (client-go's
/// `TypedMaxOfRateLimiter`).
pub struct MaxOfLimiter<K> {
    limiters: Vec<Box<dyn RateLimiter<K>>>,
}

/// The delay of another limiter, but at most `max` (client-go's `TypedWithMaxWaitRateLimiter`).
pub struct MaxWaitLimiter<L> {
    limiter: L,
    max: Duration,
}

/// The default of client-go's controllers (`DefaultTypedControllerRateLimiter`): the longer of two
/// delays. Per item, it is 5 ms, doubling up to 1000 s; for all items, 10 per second after a burst
/// of 100.
#[must_use]
pub fn default_limiter<K: Hash + Eq + Clone + Send + 'static>() -> MaxOfLimiter<K> {
    let per_item = ExponentialLimiter::new(Duration::from_millis(5), Duration::from_secs(1000));
    MaxOfLimiter::new().and(per_item).and(BucketLimiter::new(10.0, 100))
}

impl<K> ExponentialLimiter<K> {
    /// A first delay of `base`, doubling up to `max`.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: HashMap::new() }
    }
}

impl<K: Hash + Eq + Clone + Send + 'static> RateLimiter<K> for ExponentialLimiter<K> {
    fn when(&mut self, _now: Duration, item: &K) -> Duration {
        // The largest duration in nanoseconds has fewer than 128 bits.
        let doublings = (count(&mut self.failures, item) - 1).min(128);
        let wait = (0..doublings).fold(self.base, |wait, _| wait.saturating_mul(2));
        wait.min(self.max)
    }

    fn forget(&mut self, item: &K) {
        self.failures.remove(item);
    }

    fn num_requeues(&self, item: &K) -> u32 {
        self.failures.get(item).copied().unwrap_or(0)
    }
}

impl BucketLimiter {
    /// `burst` items at once, `per_second` later.
    ///
    /// # Panics
    /// If `per_second` is not a positive number.
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Self {
        assert!(
            per_second > 0.0,
            "a bucket is refilled at a positive rate, not {per_second} per second"
        );
        let interval = Duration::try_from_secs_f64(per_second.recip()).unwrap_or(Duration::MAX);
        Self { interval, burst: interval.saturating_mul(burst), full_at: Duration::ZERO }
    }
}

impl<K> RateLimiter<K> for BucketLimiter {
    fn when(&mut self, now: Duration, _item: &K) -> Duration {
        self.full_at = self.full_at.max(now).saturating_add(self.interval);
        self.full_at.saturating_sub(now).saturating_sub(self.burst)
    }

    fn forget(&mut self, _item: &K) {}

    fn num_requeues(&self, _item: &K) -> u32 {
        0
    }
}

impl<K> FastSlowLimiter<K> {
    /// `fast` for the first `fast_attempts` failures of an item, `slow` for all later ones.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts, failures: HashMap::new() }
    }
}

impl<K: Hash + Eq + Clone + Send + 'static> RateLimiter<K> for FastSlowLimiter<K> {
    fn when(&mut self, _now: Duration, item: &K) -> Duration {
        if count(&mut self.failures, item) <= self.fast_attempts { self.fast } else { self.slow }
    }

    fn forget(&mut self, item: &K) {
        self.failures.remove(item);
    }

    fn num_requeues(&self, item: &K) -> u32 {
        self.failures.get(item).copied().unwrap_or(0)
    }
}

impl<K> MaxOfLimiter<K> {
    /// A limiter without parts: no delay.
    #[must_use]
    pub fn new() -> Self {
        Self { limiters: Vec::new() }
    }

    /// Adds a limiter.
    #[must_use]
    pub fn and(mut self, limiter: impl RateLimiter<K>) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }
}

impl<K> Default for MaxOfLimiter<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: 'static> RateLimiter<K> for MaxOfLimiter<K> {
    fn when(&mut self, now: Duration, item: &K) -> Duration {
        self.limiters.iter_mut().map(|limiter| limiter.when(now, item)).max().unwrap_or_default()
    }

    fn forget(&mut self, item: &K) {
        self.limiters.iter_mut().for_each(|limiter| limiter.forget(item));
    }

    fn num_requeues(&self, item: &K) -> u32 {
        self.limiters.iter().map(|limiter| limiter.num_requeues(item)).max().unwrap_or(0)
    }
}

impl<L> MaxWaitLimiter<L> {
    /// `limiter`, with delays of at most `max`.
    #[must_use]
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for MaxWaitLimiter<L> {
    fn when(&mut self, now: Duration, item: &K) -> Duration {
        self.limiter.when(now, item).min(self.max)
    }

    fn forget(&mut self, item: &K) {
        self.limiter.forget(item);
    }

    fn num_requeues(&self, item: &K) -> u32 {
        self.limiter.num_requeues(item)
    }
}

/// Counts a failure of `item`, and returns how many there are now.
fn count<K: Hash + Eq + Clone>(failures: &mut HashMap<K, u32>, item: &K) -> u32 {
    if let Some(count) = failures.get_mut(item) {
        *count = count.saturating_add(1);
        return *count;
    }
    failures.insert(item.clone(), 1);
    1
}

// Not derived: items need not be `Debug`.

impl<K> fmt::Debug for ExponentialLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ExponentialLimiter({:?} to {:?}, {} items)",
            self.base,
            self.max,
            self.failures.len()
        )
    }
}

impl<K> fmt::Debug for FastSlowLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fast, slow, attempts) = (self.fast, self.slow, self.fast_attempts);
        write!(f, "FastSlowLimiter({fast:?}, after {attempts} failures {slow:?})")
    }
}

impl<K> fmt::Debug for MaxOfLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaxOfLimiter({} limiters)", self.limiters.len())
    }
}

impl<L: fmt::Debug> fmt::Debug for MaxWaitLimiter<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaxWaitLimiter({:?}, at most {:?})", self.limiter, self.max)
    }
}
