//! What the controllers in `bin` share: their custom resource, their command line, and the lines of
//! JSON that say what they did. `benches/peers/controller-runtime` is the same in Go.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use http::header::USER_AGENT;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, Config, CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

/// The specification of a [`Set`], which wants that many ConfigMaps.
#[derive(CustomResource, Serialize, Deserialize, Debug, Clone)]
#[kube(group = "compare.example.com", version = "v1", kind = "Set", namespaced)]
#[kube(schema = "disabled", status = "SetStatus")]
pub struct SetSpec {
    /// How many.
    pub replicas: usize,
}

/// The status of a [`Set`].
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SetStatus {
    /// How many ConfigMaps the reconcile saw.
    pub replicas: usize,
    /// The generation that it saw.
    pub observed_generation: Option<i64>,
}

/// The command line.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// The URL of a server that wants neither TLS nor a token
    #[arg(long)]
    pub server: String,
    /// The namespace of the Sets
    #[arg(long)]
    pub namespace: String,
    /// The client's name in its requests
    #[arg(long)]
    pub agent: String,
    /// How many Sets are reconciled at a time
    #[arg(long, default_value_t = 8)]
    pub concurrency: u16,
    /// Run five controllers over Pods that do nothing, and say when each has seen so many
    #[arg(long)]
    pub five: Option<usize>,
    /// Reconcile only while the Lease of this name is held
    #[arg(long)]
    pub lease: Option<String>,
}

impl Arguments {
    /// A client with the agent's name.
    ///
    /// # Errors
    /// If the URL is none.
    pub fn client(&self) -> anyhow::Result<Client> {
        let mut config = Config::new(self.server.parse()?);
        config.headers.push((USER_AGENT, self.agent.parse()?));
        Ok(Client::try_from(config)?)
    }
}

/// A line on stdout.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Line {
    /// The first line.
    Hello {
        /// Its name.
        library: String,
        /// Its version.
        version: String,
    },
    /// A reconcile begins.
    Reconcile {
        /// When, in microseconds since 1970.
        at: u64,
        /// The Set's name.
        name: String,
        /// The Set's UID.
        uid: String,
        /// The version of the copy.
        version: String,
        /// The generation of the copy.
        generation: i64,
        /// The replicas that the copy asks for.
        wanted: usize,
        /// The UIDs of its ConfigMaps.
        children: Vec<String>,
    },
    /// A reconcile failed.
    Failed {
        /// When.
        at: u64,
        /// How.
        message: String,
    },
    /// Five controllers have seen everything.
    Five {
        /// When.
        at: u64,
    },
}

/// Says what the process is.
pub fn say_hello(library: &str, version: &str) {
    print(&Line::Hello { library: library.to_owned(), version: version.to_owned() });
}

/// Says what a reconcile acts on.
pub fn say_reconcile<'a>(set: &Set, children: impl IntoIterator<Item = &'a ConfigMap>) {
    print(&Line::Reconcile {
        at: now(),
        name: set.name_any(),
        uid: set.uid().unwrap_or_default(),
        version: set.resource_version().unwrap_or_default(),
        generation: set.metadata.generation.unwrap_or_default(),
        wanted: set.spec.replicas,
        children: children.into_iter().filter_map(ResourceExt::uid).collect(),
    });
}

/// Says that a reconcile failed.
pub fn say_failed(error: &impl ToString) {
    print(&Line::Failed { at: now(), message: error.to_string() });
}

/// Counts the reconciles of five controllers over so many Pods, and says when all are done.
#[derive(Debug)]
pub struct Countdown(AtomicUsize);

impl Countdown {
    /// One for so many Pods.
    #[must_use]
    pub fn new(pods: usize) -> Self {
        Self(AtomicUsize::new(5 * pods))
    }

    /// One more reconcile.
    pub fn count(&self) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 1 {
            print(&Line::Five { at: now() });
        }
    }
}

/// Microseconds since 1970: the clock that all processes of a machine share.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default()
}

fn print(line: &Line) {
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    // Once nobody reads, there is nothing left to say.
    _ = std::io::stdout().lock().write_all(text.as_bytes());
}
