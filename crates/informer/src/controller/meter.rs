//! Counting what a controller does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use informer_core::ObjectKey;
use tokio::time::Instant;

use super::metrics::ControllerMetrics;
use super::status::{FailedReconcile, RunningReconcile};

/// How many recent errors are kept.
const RECENT_ERRORS: usize = 16;

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    RequeueAfter,
    /// It comes again as the rate limiter says, though nothing failed; after a conflict, say.
    Requeue,
    Error,
    Timeout,
    Panic,
}

#[derive(Default)]
pub(super) struct Meter(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    metrics: ControllerMetrics,
    running: BTreeMap<ObjectKey, (Instant, SystemTime)>,
    /// Keys that no worker has while their own writes are waited for.
    waiting: BTreeSet<ObjectKey>,
    recent_errors: VecDeque<FailedReconcile>,
}

impl Meter {
    /// A reconcile of `key` begins; it ends when this is dropped, at the latest.
    pub(super) fn begin(&self, key: &ObjectKey) -> Running<'_> {
        let begun = (Instant::now(), SystemTime::now());
        self.lock().running.insert(key.clone(), begun);
        Running { meter: self, key: key.clone() }
    }

    /// `key` waits for its own writes until this is dropped.
    pub(super) fn waits(&self, key: &ObjectKey) -> Waiting<'_> {
        self.lock().waiting.insert(key.clone());
        Waiting { meter: self, key: key.clone() }
    }

    pub(super) fn conflicted(&self) {
        self.lock().metrics.conflicts_total += 1;
    }

    pub(super) fn failed(&self, key: &ObjectKey, message: &str) {
        let mut counted = self.lock();
        if counted.recent_errors.len() == RECENT_ERRORS {
            counted.recent_errors.pop_front();
        }
        let (at, key, message) = (SystemTime::now(), key.clone(), message.to_owned());
        counted.recent_errors.push_back(FailedReconcile { at, key, message });
    }

    pub(super) fn mapping_panicked(&self) {
        self.lock().metrics.mapping_panics_total += 1;
    }

    pub(super) fn running(&self) -> Vec<RunningReconcile> {
        let running = self.lock();
        let of = |(key, (_, since)): (&ObjectKey, &(Instant, SystemTime))| RunningReconcile {
            key: key.clone(),
            since: *since,
        };
        running.running.iter().map(of).collect()
    }

    pub(super) fn waiting(&self) -> Vec<ObjectKey> {
        self.lock().waiting.iter().cloned().collect()
    }

    pub(super) fn recent_errors(&self) -> Vec<FailedReconcile> {
        self.lock().recent_errors.iter().cloned().collect()
    }

    pub(super) fn metrics(&self, concurrency: usize) -> ControllerMetrics {
        let counted = self.lock();
        ControllerMetrics {
            active_workers: counted.running.len(),
            max_concurrent_reconciles: concurrency,
            ..counted.metrics.clone()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reconcile that runs.
pub(super) struct Running<'a> {
    meter: &'a Meter,
    key: ObjectKey,
}

impl Running<'_> {
    pub(super) fn ended(self, outcome: Outcome) {
        let mut counted = self.meter.lock();
        let took = counted.running.get(&self.key).map_or(Duration::ZERO, |(at, _)| at.elapsed());
        let metrics = &mut counted.metrics;
        metrics.reconcile_time.observe(took);
        let totals = &mut metrics.reconcile_total;
        match outcome {
            Outcome::Success => totals.success += 1,
            Outcome::RequeueAfter => totals.requeue_after += 1,
            Outcome::Requeue => totals.requeue += 1,
            Outcome::Error | Outcome::Timeout | Outcome::Panic => totals.error += 1,
        }
        match outcome {
            Outcome::Success | Outcome::RequeueAfter | Outcome::Requeue => {}
            Outcome::Error => metrics.reconcile_errors_total += 1,
            Outcome::Timeout => {
                metrics.reconcile_errors_total += 1;
                metrics.reconcile_timeouts_total += 1;
            }
            Outcome::Panic => {
                metrics.reconcile_errors_total += 1;
                metrics.reconcile_panics_total += 1;
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.meter.lock().running.remove(&self.key);
    }
}

/// A key whose own writes are waited for.
pub(super) struct Waiting<'a> {
    meter: &'a Meter,
    key: ObjectKey,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.meter.lock().waiting.remove(&self.key);
    }
}
