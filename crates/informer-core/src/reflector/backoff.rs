//! Exponential backoff with jitter from a seed.

use std::time::Duration;

/// The delays of a backoff: by default 0.8 s, doubling, at most 30 s.
#[derive(Clone, Debug, PartialEq)]
pub struct BackoffConfig {
    /// The first step. Default: 0.8 s.
    pub initial: Duration,
    /// The largest step. Default: 30 s.
    pub max: Duration,
    /// The factor from one step to the next. Default: 2.
    pub factor: u32,
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self { initial: Duration::from_millis(800), max: Duration::from_secs(30), factor: 2 }
    }
}

/// A sequence of delays: each drawn from the upper half of its step.
#[derive(Clone, Debug)]
pub struct Backoff {
    config: BackoffConfig,
    step: Duration,
    attempt: u32,
    random: Random,
}

impl Backoff {
    /// A backoff at its first step.
    #[must_use]
    pub fn new(config: BackoffConfig, seed: u64) -> Self {
        let step = config.initial.min(config.max);
        Self { config, step, attempt: 0, random: Random::new(seed) }
    }

    /// Counts one delay and returns it: for a step `d`, a random duration in `[d/2, d]`.
    pub fn next_delay(&mut self) -> Duration {
        self.next_delay_up_to(self.config.max)
    }

    /// The same, with a step of at most `longest`; later steps continue from it.
    pub(crate) fn next_delay_up_to(&mut self, longest: Duration) -> Duration {
        let step = self.step.min(longest);
        self.step = step.saturating_mul(self.config.factor.max(1)).min(self.config.max);
        self.attempt = self.attempt.saturating_add(1);
        self.random.between(step / 2, step)
    }

    /// Counts one delay, of the largest step.
    pub(crate) fn next_delay_at_max(&mut self) -> Duration {
        self.step = self.config.max;
        self.next_delay()
    }

    /// How many delays there were since the steps last started over.
    #[must_use]
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Starts over.
    pub(crate) fn reset(&mut self) {
        self.step = self.config.initial.min(self.config.max);
        self.attempt = 0;
    }
}

/// SplitMix64: small, fast and good enough for jitter.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A random duration in `[low, high]`, in whole milliseconds above `low`.
    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let span = u64::try_from(high.saturating_sub(low).as_millis()).unwrap_or(u64::MAX - 1);
        low + Duration::from_millis(self.next() % span.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn g28_steps_double_from_800_ms_to_30_s() {
        let mut backoff = Backoff::new(BackoffConfig::default(), 7);
        for millis in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000] {
            let step = Duration::from_millis(millis);
            let delay = backoff.next_delay();
            assert!(delay >= step / 2 && delay <= step, "{delay:?} for the step {step:?}");
        }
        assert_eq!(backoff.attempt(), 9);
    }

    #[test]
    fn g28_steps_start_over_and_go_on_from_a_lower_one() {
        let mut backoff = Backoff::new(BackoffConfig::default(), 7);
        for _ in 0..5 {
            backoff.next_delay();
        }
        assert!(backoff.next_delay() > Duration::from_secs(10));
        assert!(backoff.next_delay_up_to(Duration::from_secs(5)) <= Duration::from_secs(5));
        assert!(backoff.next_delay() <= Duration::from_secs(10));
        backoff.reset();
        assert_eq!(backoff.attempt(), 0);
        assert!(backoff.next_delay_up_to(Duration::from_secs(5)) <= Duration::from_millis(800));
    }

    #[test]
    fn jitter_differs_between_seeds() {
        let delay = |seed| Backoff::new(BackoffConfig::default(), seed).next_delay();
        assert!((1..10).any(|seed| delay(seed) != delay(0)));
        assert_eq!(delay(3), delay(3));
    }

    proptest! {
        #[test]
        fn draws_stay_in_their_range(seed: u64, low in 0u64..100_000, span in 0u64..100_000) {
            let (low, high) = (Duration::from_millis(low), Duration::from_millis(low + span));
            let drawn = Random::new(seed).between(low, high);
            prop_assert!(low <= drawn && drawn <= high);
        }
    }
}
