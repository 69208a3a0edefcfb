//! Counts the failures that informers tell, as they are logged: a status keeps only the last ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// What a message is counted as: the first of these that is in it.
const KINDS: [(&str, &str); 9] = [
    (" 410 ", "410 Gone or Expired"),
    (" 429 ", "429 too many requests"),
    (" 500 ", "500 internal error"),
    (" 503 ", "503 unavailable"),
    ("the server closed the watch", "a watch closed by the server before its time"),
    ("the streaming list ended", "a streaming list that ended early"),
    ("reading a body", "a connection lost"),
    ("onnect", "a connection refused"),
    ("", "other failures"),
];

/// How many failures there were of each kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told(Arc<Mutex<BTreeMap<String, u64>>>);

impl Told {
    /// Counts from now on, in the whole process, and prints every message to stderr.
    pub(crate) fn start() -> Self {
        let told = Self::default();
        tracing_subscriber::registry().with(Counter(told.clone())).init();
        told
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Counter(Told);

impl<S: Subscriber> Layer<S> for Counter {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.target().starts_with("informer")
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message::default();
        event.record(&mut message);
        let now = seconds();
        eprintln!("{now} {} {}", event.metadata().level(), message.0);
        // `shared::report` names the informer; other messages are none of failures.
        if event.metadata().target().ends_with("shared") && !message.0.is_empty() {
            let kind = KINDS.iter().find(|(words, _)| message.0.contains(words));
            let kind = kind.map_or("", |(_, kind)| kind);
            let mut counts = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            *counts.entry(kind.to_owned()).or_default() += 1;
        }
    }
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Seconds since 1970, to find a moment again in the server's log.
fn seconds() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or_else(
        |_| "?".to_owned(),
        |now| format!("{}.{:03}", now.as_secs(), now.subsec_millis()),
    )
}
