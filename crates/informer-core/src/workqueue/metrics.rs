//! Metrics of a queue, under client-go's names.

use std::time::Duration;

/// The metrics of a queue at one moment. The documentation of each field gives the name under which
/// client-go exports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// `workqueue_depth`: items to be handed out. Includes those added again while a worker
    /// processes them, but not delayed ones.
    pub depth: usize,
    /// Of [`depth`](Self::depth), the items that wait with low priority.
    pub depth_low: usize,
    /// `workqueue_adds_total`: adds that were not merged with an earlier one.
    pub adds: u64,
    /// `workqueue_retries_total`: items added with a delay.
    pub retries: u64,
    /// `workqueue_queue_duration_seconds`: from adding an item until it is handed out.
    pub queue_duration: Histogram,
    /// `workqueue_work_duration_seconds`: from handing an item out until it is done.
    pub work_duration: Histogram,
    /// `workqueue_unfinished_work_seconds`: for how long items have been in progress, summed over
    /// all of them. Grows while a worker is stuck.
    pub unfinished_work: Duration,
    /// `workqueue_longest_running_processor_seconds`: for how long the longest-running item has
    /// been in progress.
    pub longest_running_processor: Duration,
}

/// A histogram of durations, in buckets from 10 ns to 10 s, each ten times the previous one, as in
/// client-go.
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
    /// Adds a duration.
    pub(crate) fn observe(&mut self, duration: Duration) {
        let bucket = BOUNDS.partition_point(|&bound| bound < duration);
        self.counts[bucket] += 1;
        self.sum = self.sum.saturating_add(duration);
    }

    /// The number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of the durations.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The buckets, smallest first: the upper bound (inclusive; `None` for the last bucket, which
    /// has none), and the number of durations in this bucket alone.
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
