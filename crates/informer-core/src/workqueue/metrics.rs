//! What a queue counts, under client-go's names.

use std::time::Duration;

/// The figures of a queue at one moment. The fields' documentation gives the names under which client-go exports
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// `workqueue_depth`: items to be handed out, those included that were added again while a worker has them;
    /// not those that wait for their time.
    pub depth: usize,
    /// `workqueue_adds_total`: adds that were not merged with an earlier one.
    pub adds: u64,
    /// `workqueue_retries_total`: items added to be handed out later.
    pub retries: u64,
    /// `workqueue_queue_duration_seconds`: from the add until the item was handed out.
    pub queue_duration: Histogram,
    /// `workqueue_work_duration_seconds`: from handing the item out until it was done.
    pub work_duration: Histogram,
    /// `workqueue_unfinished_work_seconds`: how long the items in work have been so, all together. Grows while a
    /// worker is stuck.
    pub unfinished_work: Duration,
    /// `workqueue_longest_running_processor_seconds`: how long the item longest in work has been so.
    pub longest_running_processor: Duration,
}

/// Counts durations by size, in buckets from 10 ns to 10 s, each ten times the one before, as client-go does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

const BOUNDS: [Duration; 10] = {
    let mut bounds = [Duration::ZERO; 10];
    let (mut at, mut nanos) = (0, 10);
    while at < bounds.len() {
        bounds[at] = Duration::from_nanos(nanos);
        nanos *= 10;
        at += 1;
    }
    bounds
};

impl Histogram {
    /// Counts one more.
    pub fn observe(&mut self, duration: Duration) {
        let bucket = BOUNDS.partition_point(|&bound| bound < duration);
        self.counts[bucket] += 1;
        self.sum = self.sum.saturating_add(duration);
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The buckets, smallest first: the upper bound (inclusive; `None` for the last, which has none) and how many
    /// were counted in this bucket alone.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        BOUNDS.into_iter().map(Some).chain([None]).zip(self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_includes_its_bound() {
        let mut histogram = Histogram::default();
        for nanos in [0, 10, 11, 10_000_000_000, 10_000_000_001] {
            histogram.observe(Duration::from_nanos(nanos));
        }
        let counts: Vec<_> = histogram.buckets().collect();
        assert_eq!(counts.len(), 11);
        assert_eq!(counts[0], (Some(Duration::from_nanos(10)), 2));
        assert_eq!(counts[1], (Some(Duration::from_nanos(100)), 1));
        assert_eq!(counts[9], (Some(Duration::from_secs(10)), 1));
        assert_eq!(counts[10], (None, 1));
        assert_eq!((histogram.count(), histogram.sum()), (5, Duration::from_nanos(20_000_000_022)));
    }
}
