//! Controllers' figures for `prometheus-client`.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{ControllerHandle, ControllerMetrics};

/// Exports the figures of controllers under controller-runtime's names, each with the controller's
/// name as the label `controller`. It reads them when it is asked; register it where you want. Those
/// of the work queues are exported by
/// [`WorkQueueCollector`](crate::workqueue::WorkQueueCollector), which takes handles too
/// ([`and_of`](crate::workqueue::WorkQueueCollector::and_of)).
///
/// # Examples
/// ```
/// use informer::controller::ControllerCollector;
/// use prometheus_client::registry::Registry;
///
/// # fn register(controller: &informer::Controller<k8s_openapi::api::core::v1::Pod>) {
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(ControllerCollector::new().and(&controller.handle())));
/// # }
/// ```
#[derive(Debug, Default)]
pub struct ControllerCollector {
    controllers: Vec<ControllerHandle>,
}

impl ControllerCollector {
    /// Of no controller yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more controller, whose name no other has. The controllers of one registry belong in
    /// one collector. One that does not run yet is left out.
    #[must_use]
    pub fn and(mut self, controller: &ControllerHandle) -> Self {
        self.controllers.push(controller.clone());
        self
    }
}

/// Name, help, and where to read it.
struct Family<V>(&'static str, &'static str, fn(&ControllerMetrics) -> V);

// The encoder adds `_total`.
const COUNTERS: [Family<u64>; 9] = [
    Family("controller_runtime_reconcile_errors", "Reconciles that failed", |it| {
        it.reconcile_errors_total
    }),
    Family("controller_runtime_reconcile_panics", "Reconciles that panicked", |it| {
        it.reconcile_panics_total
    }),
    Family("controller_runtime_reconcile_timeouts", "Reconciles that took too long", |it| {
        it.reconcile_timeouts_total
    }),
    Family(
        "informer_controller_mapping_panics",
        "Filters and maps of watches that panicked",
        |it| it.mapping_panics_total,
    ),
    Family("informer_controller_conflicts", "Reconciles that met a conflict", |it| {
        it.conflicts_total
    }),
    Family("informer_controller_own_writes_waits", "Reconciles that waited for own writes", |it| {
        it.own_writes.waits
    }),
    Family(
        "informer_controller_own_writes_timeouts",
        "Waits for own writes that ended at their deadline",
        |it| it.own_writes.timeouts,
    ),
    Family(
        "informer_controller_own_writes_refreshes",
        "Refreshes of informers for writes of unknown outcome",
        |it| it.own_writes.refreshes,
    ),
    Family(
        "informer_controller_own_writes_reads",
        "Reads of objects for writes of unknown outcome",
        |it| it.own_writes.reads,
    ),
];

const GAUGES: [Family<usize>; 3] = [
    Family("controller_runtime_active_workers", "Reconciles that run", |it| it.active_workers),
    Family(
        "controller_runtime_max_concurrent_reconciles",
        "How many reconciles may run at a time",
        |it| it.max_concurrent_reconciles,
    ),
    Family("informer_controller_own_writes_remembered", "Writes that are remembered", |it| {
        it.own_writes.remembered
    }),
];

impl Collector for ControllerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let named = self.controllers.iter().filter(|controller| !controller.0.name().is_empty());
        let figures: Vec<_> =
            named.map(|it| ([("controller", it.0.name())], it.metrics())).collect();

        let (name, help) = ("controller_runtime_reconcile", "Reconciles, by their results");
        let mut totals = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, metrics) in &figures {
            for (result, count) in metrics.reconcile_total.by_result() {
                let labels = [labels[0], ("result", result)];
                ConstCounter::new(count).encode(totals.encode_family(&labels)?)?;
            }
        }
        for Family(name, help, read) in COUNTERS {
            let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (labels, metrics) in &figures {
                ConstCounter::new(read(metrics)).encode(counter.encode_family(labels)?)?;
            }
        }
        for Family(name, help, read) in GAUGES {
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, metrics) in &figures {
                let value = i64::try_from(read(metrics)).unwrap_or(i64::MAX);
                ConstGauge::new(value).encode(gauge.encode_family(labels)?)?;
            }
        }
        let (name, help) = ("controller_runtime_reconcile_time_seconds", "How long they took");
        let mut times = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, metrics) in &figures {
            let times_of = &metrics.reconcile_time;
            let bound =
                |bound: Option<Duration>| bound.map_or(f64::INFINITY, |bound| bound.as_secs_f64());
            let buckets: Vec<_> =
                times_of.buckets().map(|(upper, count)| (bound(upper), count)).collect();
            let (sum, count) = (times_of.sum().as_secs_f64(), times_of.count());
            times
                .encode_family(labels)?
                .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}
