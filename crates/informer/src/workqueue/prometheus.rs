//! The figures of queues, for a registry of `prometheus-client`.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{Histogram, Key, Metrics, WorkQueue};
use crate::controller::ControllerHandle;

/// Exports the figures of work queues under client-go's names, each with the queue's name as the
/// label `name`. It reads them when it is asked; register it where you want.
///
/// # Examples
/// ```
/// use informer::workqueue::{WorkQueue, WorkQueueCollector};
/// use prometheus_client::registry::Registry;
///
/// let queue = WorkQueue::<u32>::new("numbers");
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(WorkQueueCollector::new().and(&queue)));
///
/// queue.add(1);
/// let mut text = String::new();
/// prometheus_client::encoding::text::encode(&mut text, &registry)?;
/// assert!(text.contains("workqueue_adds_total{name=\"numbers\"} 1\n"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Default)]
pub struct WorkQueueCollector {
    queues: Vec<Box<dyn Measured>>,
}

trait Measured: Send + Sync {
    /// None of a controller that does not run yet.
    fn name(&self) -> Option<&str>;
    fn metrics(&self) -> Metrics;
}

impl<K: Key> Measured for WorkQueue<K> {
    fn name(&self) -> Option<&str> {
        Some(self.name())
    }

    fn metrics(&self) -> Metrics {
        self.metrics()
    }
}

impl Measured for ControllerHandle {
    fn name(&self) -> Option<&str> {
        Some(self.0.name()).filter(|name| !name.is_empty())
    }

    fn metrics(&self) -> Metrics {
        self.queue_metrics()
    }
}

impl WorkQueueCollector {
    /// Of no queue yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more queue, whose name no other has. The queues of one registry belong in one
    /// collector.
    #[must_use]
    pub fn and<K: Key>(mut self, queue: &WorkQueue<K>) -> Self {
        self.queues.push(Box::new(queue.clone()));
        self
    }

    /// With the queue of a controller, which has the controller's name.
    #[must_use]
    pub fn and_of(mut self, controller: &ControllerHandle) -> Self {
        self.queues.push(Box::new(controller.clone()));
        self
    }
}

/// Name, help, and where to read it.
struct Family<V>(&'static str, &'static str, fn(&Metrics) -> V);

const DEPTH: Family<i64> = Family("workqueue_depth", "Items to be handed out", |it| {
    i64::try_from(it.depth).unwrap_or(i64::MAX)
});

// The encoder adds `_total`.
const COUNTERS: [Family<u64>; 2] = [
    Family("workqueue_adds", "Adds that were not merged with an earlier one", |it| it.adds),
    Family("workqueue_retries", "Items added to be handed out later", |it| it.retries),
];

const DURATIONS: [Family<Duration>; 2] = [
    Family(
        "workqueue_unfinished_work_seconds",
        "How long the items in work have been so, all together",
        |it| it.unfinished_work,
    ),
    Family(
        "workqueue_longest_running_processor_seconds",
        "How long the item longest in work has been so",
        |it| it.longest_running_processor,
    ),
];

const HISTOGRAMS: [Family<Histogram>; 2] = [
    Family(
        "workqueue_queue_duration_seconds",
        "From the add until the item was handed out",
        |it| it.queue_duration.clone(),
    ),
    Family(
        "workqueue_work_duration_seconds",
        "From handing the item out until it was done",
        |it| it.work_duration.clone(),
    ),
];

impl Collector for WorkQueueCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let named = self.queues.iter().filter_map(|queue| Some((queue.name()?, queue)));
        let figures: Vec<_> =
            named.map(|(name, queue)| ([("name", name)], queue.metrics())).collect();

        let Family(name, help, read) = DEPTH;
        let mut depth = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, metrics) in &figures {
            ConstGauge::new(read(metrics)).encode(depth.encode_family(labels)?)?;
        }
        for Family(name, help, read) in COUNTERS {
            let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (labels, metrics) in &figures {
                ConstCounter::new(read(metrics)).encode(counter.encode_family(labels)?)?;
            }
        }
        for Family(name, help, read) in DURATIONS {
            let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (labels, metrics) in &figures {
                ConstGauge::new(read(metrics).as_secs_f64())
                    .encode(gauge.encode_family(labels)?)?;
            }
        }
        for Family(name, help, read) in HISTOGRAMS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
            for (labels, metrics) in &figures {
                let histogram = read(metrics);
                let bound = |bound: Option<Duration>| {
                    bound.map_or(f64::INFINITY, |bound| bound.as_secs_f64())
                };
                let buckets: Vec<_> =
                    histogram.buckets().map(|(upper, count)| (bound(upper), count)).collect();
                let (sum, count) = (histogram.sum().as_secs_f64(), histogram.count());
                family
                    .encode_family(labels)?
                    .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for WorkQueueCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.queues.iter().map(|queue| queue.name());
        f.debug_list().entries(names).finish()
    }
}
