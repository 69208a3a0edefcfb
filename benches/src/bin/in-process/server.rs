//! An API server in memory that lists small ConfigMaps and sends what a bench tells it to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;

use anyhow::{Result, ensure};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::HeaderValue;
use informer::source::WireFormat;
use informer::{HasLabels, InformerOptions, Resource, SharedInformer, SharedInformerFactory};
use informer_benches::client::memory;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How many objects have the same value of the label `app`.
pub(crate) const PER_APP: usize = 100;

const NAMESPACES: usize = 20;

/// As little of an object as can be, so that what is seen is the library's.
#[derive(Debug, Deserialize)]
pub(crate) struct Small {
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    labels: Labels,
}

#[derive(Debug, Deserialize)]
struct Labels {
    app: Box<str>,
}

impl HasLabels for Small {
    fn label(&self, key: &str) -> Option<&str> {
        (key == "app").then_some(&self.metadata.labels.app)
    }
}

/// The server, as its client and what its watches send next.
pub(crate) struct Server {
    pub(crate) watch: UnboundedSender<Bytes>,
    client: kube::Client,
    objects: usize,
}

/// A server of so many objects. Its list number `n` has the version `10 * n`.
pub(crate) fn serve(runtime: &Runtime, objects: usize) -> Server {
    // Clients spawn a task.
    let _entered = runtime.enter();
    let (watch, sent) = unbounded_channel();
    let items: String = in_key_order(objects).map(|at| object(at, objects, 1) + ",").collect();
    let items = Bytes::from(items.trim_end_matches(',').to_owned());
    let (sent, lists) = (Arc::new(Mutex::new(sent)), AtomicU64::new(0));
    let client = memory::client(HeaderValue::from_static("application/json"), move |query| {
        if memory::watches(query) {
            return watched(Arc::clone(&sent));
        }
        list(lists.fetch_add(1, Ordering::Relaxed) + 1, items.clone())
    });
    Server { watch, client, objects }
}

impl Server {
    /// Syncs an informer.
    pub(crate) fn synced(&self, runtime: &Runtime) -> Result<SharedInformer<Small>> {
        let _entered = runtime.enter();
        let factory = SharedInformerFactory::builder(self.client.clone()).build();
        let options = InformerOptions::new().streaming_lists(false).page_size(None);
        let options = options.wire_format(WireFormat::Json);
        let informer = factory.informer_as::<Small>(Resource::of::<ConfigMap>(), options)?;
        factory.start();
        let listed = runtime.block_on(informer.synced())?.len();
        ensure!(listed == self.objects, "{listed} objects");
        Ok(informer)
    }
}

fn watched(sent: Arc<Mutex<UnboundedReceiver<Bytes>>>) -> BoxStream<'static, Bytes> {
    let next = move |context: &mut Context<'_>| {
        sent.lock().unwrap_or_else(PoisonError::into_inner).poll_recv(context)
    };
    stream::poll_fn(next).boxed()
}

fn list(number: u64, items: Bytes) -> BoxStream<'static, Bytes> {
    let version = 10 * number;
    let begin = format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":["#
    );
    let around = |text: Bytes| stream::iter([text]);
    let end = around(Bytes::from_static(b"]}"));
    around(begin.into()).chain(memory::pieces(items)).chain(end).boxed()
}

/// All numbers, in the order of their keys, as a server lists them.
fn in_key_order(count: usize) -> impl Iterator<Item = usize> {
    (0..NAMESPACES).flat_map(move |namespace| (namespace..count).step_by(NAMESPACES))
}

/// Number `at` of `count`. Objects of one app are far from each other.
fn object(at: usize, count: usize, version: usize) -> String {
    let (namespace, app) = (at % NAMESPACES, at % (count / PER_APP).max(1));
    format!(
        r#"{{"metadata":{{"name":"object-{at:07}","namespace":"namespace-{namespace:02}","uid":"{at:08x}-0000-4000-8000-{at:012x}","resourceVersion":"{version}","labels":{{"app":"app-{app}"}}}}}}"#
    )
}

/// What a watch sends of number `at`; `what` is `MODIFIED` or `DELETED`.
pub(crate) fn frame(what: &str, at: usize, count: usize, version: usize) -> String {
    let object = object(at, count, version);
    let fields = object.trim_start_matches('{');
    format!(r#"{{"type":"{what}","object":{{"kind":"ConfigMap","apiVersion":"v1",{fields}}}"#)
        + "\n"
}

/// What a watch sends when its version has expired.
pub(crate) fn expired() -> Bytes {
    Bytes::from_static(
        br#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}
"#,
    )
}
