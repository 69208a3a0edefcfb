//! `/metrics`, in the OpenMetrics format: counts, never names of objects.

use std::fmt;

use http::StatusCode;
use informer::Counters;
use informer::{InformerState, SharedInformerFactory, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The content type of what [`Metrics::encode`] writes.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Vec<(&'static str, String)>, Counter>,
    unwritable: Counter,
}

impl Metrics {
    pub(super) fn new(factory: SharedInformerFactory) -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        registry.register(
            "gateway_http_requests",
            "HTTP requests answered, by code",
            requests.clone(),
        );
        let unwritable = Counter::default();
        registry.register(
            "gateway_unwritable_objects",
            "Objects asked for that could not be written as JSON, each time",
            unwritable.clone(),
        );
        registry.register_collector(Box::new(Informers(factory)));
        Self { registry, requests, unwritable }
    }

    /// Counts an answer.
    pub(super) fn answered(&self, code: StatusCode) {
        self.requests.get_or_create(&vec![("code", code.as_str().to_owned())]).inc();
    }

    /// Counts the objects that could not be written as JSON.
    pub(super) fn unwritable(&self) -> &Counter {
        &self.unwritable
    }

    pub(super) fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Reads every informer's status when it is asked.
#[derive(Debug)]
struct Informers(SharedInformerFactory);

/// What is counted of each informer.
const COUNTERS: [Counted; 7] = [
    Counted("informer_lists", "LIST requests sent, each page counted", |it| it.lists),
    Counted("informer_watches", "WATCH requests sent", |it| it.watches),
    Counted("informer_events", "Events of watches applied", |it| it.events),
    Counted("informer_bookmarks", "Bookmarks received", |it| it.bookmarks),
    Counted("informer_received_bytes", "Bytes of objects received", |it| it.bytes),
    Counted("informer_undecodable", "Objects that could not be decoded", |it| it.undecodable),
    Counted("informer_errors", "Failures of any kind", |it| it.errors),
];

/// Name, help, and where to read it.
struct Counted(&'static str, &'static str, fn(&Counters) -> u64);

const STATES: [&str; 7] =
    ["not_started", "listing", "watching", "backing_off", "unavailable", "degraded", "stopped"];

impl Collector for Informers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let statuses = self.0.statuses();
        let labels = |status: &Status| {
            [("resource", status.resource.clone()), ("scope", status.scope.clone())]
        };

        let mut collections = encoder.encode_descriptor(
            "informer_collections",
            "Collections held",
            None,
            MetricType::Gauge,
        )?;
        collections.encode_gauge(&i64::try_from(statuses.len()).unwrap_or(i64::MAX))?;

        let mut objects = encoder.encode_descriptor(
            "informer_objects",
            "Objects in the store",
            None,
            MetricType::Gauge,
        )?;
        for status in &statuses {
            let count = i64::try_from(status.objects).unwrap_or(i64::MAX);
            ConstGauge::new(count).encode(objects.encode_family(&labels(status))?)?;
        }
        let mut synced = encoder.encode_descriptor(
            "informer_synced",
            "Whether the first complete list is in the store",
            None,
            MetricType::Gauge,
        )?;
        for status in &statuses {
            let value = i64::from(status.has_synced);
            ConstGauge::new(value).encode(synced.encode_family(&labels(status))?)?;
        }
        let mut states = encoder.encode_descriptor(
            "informer_state",
            "What the informer is doing: 1 for the state it is in",
            None,
            MetricType::Gauge,
        )?;
        for status in &statuses {
            for state in STATES {
                let [resource, scope] = labels(status);
                let labels = [resource, scope, ("state", state.to_owned())];
                let value = i64::from(state == state_name(&status.state));
                ConstGauge::new(value).encode(states.encode_family(&labels)?)?;
            }
        }
        for Counted(name, help, read) in COUNTERS {
            let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for status in &statuses {
                ConstCounter::new(read(&status.counters))
                    .encode(counter.encode_family(&labels(status))?)?;
            }
        }
        Ok(())
    }
}

fn state_name(state: &InformerState) -> &'static str {
    match state {
        InformerState::NotStarted => "not_started",
        InformerState::Listing { .. } => "listing",
        InformerState::Watching { .. } => "watching",
        InformerState::BackingOff { .. } => "backing_off",
        InformerState::Unavailable { .. } => "unavailable",
        InformerState::Degraded { .. } => "degraded",
        _ => "stopped",
    }
}
