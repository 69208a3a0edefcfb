//! `/metrics`, in the OpenMetrics format: counts, never names of objects.

use std::fmt;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use informer::{Counters, InformerState, SharedInformerFactory, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::body::{Observed, Observer};
use crate::collection::Collection;
use crate::collections::Collections;

/// The content type of what [`Metrics::encode`] writes.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the endpoint counts. Clones count together.
#[derive(Clone)]
pub(crate) struct Metrics {
    http: Counts,
    unwritable: Counter,
    api: Counts,
    bytes: Counts,
    certificates: Counts,
    factory: SharedInformerFactory,
    collections: Arc<Collections>,
}

type Labels = Vec<(&'static str, String)>;
type Counts = Family<Labels, Counter>;

/// Who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The cache.
    Cache,
    /// The API server, as far as the endpoint knows: a document that all callers share, which was
    /// asked for with its own account.
    Document,
    /// The API server.
    Upstream,
    /// Nobody.
    Refused,
}

impl Metrics {
    pub(crate) fn new(collections: Arc<Collections>) -> Self {
        Self {
            http: Counts::default(),
            unwritable: Counter::default(),
            api: Counts::default(),
            bytes: Counts::default(),
            certificates: Counts::default(),
            factory: collections.factory().clone(),
            collections,
        }
    }

    /// Adds all of it to a registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let mut add = |name, help, counts: &Counts| registry.register(name, help, counts.clone());
        add("gateway_http_requests", "HTTP requests answered, by code", &self.http);
        let help = "Requests for Kubernetes' API, by verb, resource, code and who answered";
        add("serve_api_requests", help, &self.api);
        let help = "Bytes of bodies sent for Kubernetes' API, by resource and who answered";
        add("serve_api_sent_bytes", help, &self.bytes);
        let help = "Changes of the certificate's files, by whether they could be used";
        add("serve_certificate_changes", help, &self.certificates);
        registry.register(
            "gateway_unwritable_objects",
            "Objects asked for that could not be written as JSON, each time",
            self.unwritable.clone(),
        );
        registry.register_collector(Box::new(Informers(self.factory.clone())));
        registry.register_collector(Box::new(Held(Arc::clone(&self.collections))));
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, code: StatusCode) {
        self.http.get_or_create(&vec![("code", code.as_str().to_owned())]).inc();
    }

    /// Counts a change of the certificate's files.
    pub(crate) fn certificate_read(&self, is_usable: bool) {
        let result = if is_usable { "used" } else { "refused" };
        self.certificates.get_or_create(&vec![("result", result.to_owned())]).inc();
    }

    /// Counts the objects that could not be written as JSON.
    pub(crate) fn unwritable(&self) -> &Counter {
        &self.unwritable
    }

    /// Counts an answer of the API, and what it sends from now on.
    pub(crate) fn api_answered(
        &self,
        verb: &'static str,
        resource: &str,
        origin: Origin,
        response: Response,
    ) -> Response {
        let label = |name, value: &str| (name, value.to_owned());
        let origin = label("from", origin.as_str());
        let resource = label("resource", resource);
        let code = label("code", response.status().as_str());
        let labels = vec![label("verb", verb), resource.clone(), code, origin.clone()];
        self.api.get_or_create(&labels).inc();
        let bytes = self.bytes.get_or_create_owned(&vec![resource, origin]);
        response.map(|body| Body::new(Observed::new(body, Metered(bytes))))
    }
}

/// What `/metrics` answers.
pub(crate) fn encode(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)?;
    Ok(text)
}

impl Origin {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cache => "cache",
            Self::Document => "document",
            Self::Upstream => "upstream",
            Self::Refused => "refused",
        }
    }
}

/// Counts the bytes of a body.
struct Metered(Counter);

impl Observer for Metered {
    fn data(&mut self, data: &Bytes) {
        self.0.inc_by(data.len() as u64);
    }
}

/// Reads what is held when it is asked.
struct Held(Arc<Collections>);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl Collector for Held {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let collections = self.0.now();
        let labels = |collection: &Arc<Collection>| [("resource", collection.own.to_string())];
        let help = "How long ago the API server was heard of a resource";
        let mut staleness =
            encoder.encode_descriptor("serve_staleness_seconds", help, None, MetricType::Gauge)?;
        for collection in &collections {
            if let Some(age) = collection.history.staleness() {
                ConstGauge::new(age.as_secs_f64())
                    .encode(staleness.encode_family(&labels(collection))?)?;
            }
        }
        let help = "Bytes held of a resource: objects and changes";
        let mut bytes =
            encoder.encode_descriptor("serve_held_bytes", help, None, MetricType::Gauge)?;
        for collection in &collections {
            let held = i64::try_from(collection.bytes()).unwrap_or(i64::MAX);
            ConstGauge::new(held).encode(bytes.encode_family(&labels(collection))?)?;
        }
        let help = "Watches that are open";
        let mut open =
            encoder.encode_descriptor("serve_open_watches", help, None, MetricType::Gauge)?;
        for collection in &collections {
            let count = collection.history.watch_cache.watchers();
            ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
                .encode(open.encode_family(&labels(collection))?)?;
        }
        let help = "Watches ended with 410: too slow, or the API server's history has changed";
        let mut expired =
            encoder.encode_descriptor("serve_expired_watches", help, None, MetricType::Counter)?;
        for collection in &collections {
            ConstCounter::new(collection.history.watch_cache.expired())
                .encode(expired.encode_family(&labels(collection))?)?;
        }
        Ok(())
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
