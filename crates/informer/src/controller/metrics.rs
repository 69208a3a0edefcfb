//! The figures of a controller, under controller-runtime's names.

use std::time::Duration;

use super::own_writes::OwnWritesMetrics;

/// The figures of a controller at one moment. The documentation of each field gives the name under
/// which controller-runtime exports it, with the label `controller`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ControllerMetrics {
    /// `controller_runtime_reconcile_total`, by its label `result`.
    pub reconcile_total: ReconcileTotals,
    /// `controller_runtime_reconcile_errors_total`: reconciles that failed, timeouts and panics
    /// included.
    pub reconcile_errors_total: u64,
    /// `controller_runtime_reconcile_panics_total`: reconciles that panicked.
    pub reconcile_panics_total: u64,
    /// `controller_runtime_reconcile_timeouts_total`: reconciles that were cancelled because they
    /// took longer than their time.
    pub reconcile_timeouts_total: u64,
    /// `controller_runtime_reconcile_time_seconds`: how long reconciles took.
    pub reconcile_time: ReconcileTimes,
    /// `controller_runtime_active_workers`: reconciles that run.
    pub active_workers: usize,
    /// `controller_runtime_max_concurrent_reconciles`: how many may run at a time.
    pub max_concurrent_reconciles: usize,
    /// Filters and maps of watches that panicked. This library's own:
    /// `informer_controller_mapping_panics_total`.
    pub mapping_panics_total: u64,
    /// Reconciles that failed because a write of theirs was answered with 409, and were tried again
    /// once the informers showed what it conflicted with:
    /// `informer_controller_conflicts_total`.
    pub conflicts_total: u64,
    /// How own writes are waited for: `informer_controller_own_writes_…`.
    pub own_writes: OwnWritesMetrics,
}

/// How reconciles ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReconcileTotals {
    /// `success`: with [`Action::await_change`](super::Action::await_change).
    pub success: u64,
    /// `requeue_after`: with a delay.
    pub requeue_after: u64,
    /// `requeue`: tried again although nothing is wrong, after a conflict, say.
    pub requeue: u64,
    /// `error`: with an error, by a timeout, or with a panic.
    pub error: u64,
}

impl ReconcileTotals {
    /// All results, by their names.
    pub fn by_result(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Self { success, requeue_after, requeue, error } = *self;
        [
            ("success", success),
            ("requeue_after", requeue_after),
            ("requeue", requeue),
            ("error", error),
        ]
        .into_iter()
    }
}

/// A histogram of the durations of reconciles, in controller-runtime's buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileTimes {
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

/// In milliseconds.
const BOUNDS: [u64; 40] = [
    5, 10, 25, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900, 1000, 1250,
    1500, 1750, 2000, 2500, 3000, 3500, 4000, 4500, 5000, 6000, 7000, 8000, 9000, 10_000, 15_000,
    20_000, 25_000, 30_000, 40_000, 50_000, 60_000,
];

impl Default for ReconcileTimes {
    fn default() -> Self {
        Self { counts: [0; BOUNDS.len() + 1], sum: Duration::ZERO }
    }
}

impl ReconcileTimes {
    pub(super) fn observe(&mut self, took: Duration) {
        self.counts[BOUNDS.partition_point(|&bound| Duration::from_millis(bound) < took)] += 1;
        self.sum = self.sum.saturating_add(took);
    }

    /// The number of reconciles.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of their durations.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The buckets, smallest first: the upper bound (inclusive; `None` for the last bucket, which
    /// has none), and the number of reconciles in this bucket alone.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        BOUNDS.into_iter().map(|it| Some(Duration::from_millis(it))).chain([None]).zip(self.counts)
    }
}
