//! One informer over a test server, what its registrations were given, and what every scenario ends
//! with.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use informer::source::WireFormat;
use informer::{
    HandlerOptions, InformerOptions, InformerState, SharedInformer, SharedInformerFactory, Status,
    StopCause, TypedResource,
};
use informer_testkit::{Requests, TestServer};
use informer_tests::helpers::{differences, hold_clock};
use informer_tests::observe::{History, Kept};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Longer than anything takes that has to happen at all, on a paused clock.
pub(crate) const LONG: Duration = Duration::from_secs(1800);

/// By namespace and name: UID and version.
pub(crate) type Collection = BTreeMap<String, (String, String)>;

/// A server, an informer of it, and two registrations that check their histories.
pub(crate) struct Scene<K = ConfigMap> {
    pub(crate) server: TestServer,
    pub(crate) factory: SharedInformerFactory,
    pub(crate) informer: SharedInformer<K>,
    /// What a callback was given, and what a stream was.
    pub(crate) seen: [Arc<History<K>>; 2],
    reader: JoinHandle<()>,
    begun: Instant,
    tasks: usize,
    round: Cell<usize>,
}

/// A way to follow a collection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// With streaming lists, or with LIST and WATCH.
    pub(crate) streaming: bool,
    pub(crate) format: WireFormat,
}

/// All of them. The one that is under way when a test fails is shown.
pub(crate) fn ways() -> impl Iterator<Item = Way> {
    let formats = [WireFormat::Json, WireFormat::Protobuf];
    let all = formats
        .into_iter()
        .flat_map(|format| [false, true].map(|streaming| Way { streaming, format }));
    all.inspect(|way| println!("{way:?}"))
}

impl Way {
    pub(crate) fn options(self) -> InformerOptions<ConfigMap> {
        options(self.streaming).wire_format(self.format)
    }
}

/// The options of a scene: with LIST and WATCH, or with streaming lists.
pub(crate) fn options(streaming_lists: bool) -> InformerOptions<ConfigMap> {
    InformerOptions::new().streaming_lists(streaming_lists).max_object_bytes(4096)
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "value": value } })
}

impl Scene {
    /// An informer that was not started, of a collection with the objects `a`, `b` and `c`.
    pub(crate) async fn new(options: InformerOptions<ConfigMap>) -> Self {
        let server = TestServer::start().await.unwrap();
        let client = Client::new(server.service(), "default");
        let scene = Self::of(server, client, options);
        for name in ["a", "b", "c"] {
            scene.write(name, "first");
        }
        scene
    }

    /// The same after its start, when nothing is wrong yet.
    pub(crate) async fn watching(options: InformerOptions<ConfigMap>) -> Self {
        let scene = Self::new(options).await;
        scene.factory.start();
        scene.settles().await;
        scene
    }

    pub(crate) fn write(&self, name: &str, value: &str) {
        self.server.cluster().apply(&config_map(name, value)).unwrap();
    }

    pub(crate) fn delete(&self, name: &str) {
        self.server.cluster().delete("configmaps", "default", name).unwrap();
    }

    /// Creates, changes, deletes and recreates.
    pub(crate) fn change(&self) {
        self.round.set(self.round.get() + 1);
        let value = format!("round {}", self.round.get());
        for name in ["a", "b", "c", "d"] {
            self.write(name, &value);
        }
        self.delete("b");
        self.delete("c");
        self.write("c", "recreated");
        self.write(&format!("only-in-{}", self.round.get()), &value);
    }
}

impl<K> Scene<K>
where
    K: TypedResource + serde::de::DeserializeOwned + Kept + Debug,
{
    /// An informer that was not started, of whatever the server has.
    pub(crate) fn of(server: TestServer, client: Client, options: InformerOptions<K>) -> Self {
        let tasks = Handle::current().metrics().num_alive_tasks();
        let factory = SharedInformerFactory::builder(client).build();
        let informer = K::informer(&factory, options).unwrap();
        let new = |name| History::new(name).reading(informer.unsynced_store());
        let seen = [new("the callback"), new("the stream")];
        let history = Arc::clone(&seen[0]);
        informer.add_handler(|h| h.on_event(move |event| history.record(event))).unwrap();
        let mut events = informer.events_with(&HandlerOptions::new()).unwrap();
        let history = Arc::clone(&seen[1]);
        let reader = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                history.record(&event);
            }
        });
        Self {
            server,
            factory,
            informer,
            seen,
            reader,
            begun: Instant::now(),
            tasks,
            round: Cell::new(0),
        }
    }

    /// What the server has.
    pub(crate) fn truth(&self) -> Collection {
        let resource = informer::Resource::of::<K>();
        let name = match resource.group.as_str() {
            "" => resource.plural,
            group => format!("{}.{group}", resource.plural),
        };
        let entry = |object: &informer_testkit::Object| {
            let json: Value = serde_json::from_slice(object.json()).unwrap();
            let text =
                |field: &str| json["metadata"][field].as_str().unwrap_or_default().to_owned();
            (object.key().to_string(), (text("uid"), text("resourceVersion")))
        };
        self.server.cluster().list(&name).iter().map(entry).collect()
    }

    /// What the store has.
    pub(crate) fn held(&self) -> Collection {
        let snapshot = self.informer.unsynced_store().snapshot();
        let held = snapshot.iter().map(|entry| {
            let record = entry.record;
            (entry.key.to_string(), (record.uid.to_string(), record.version.to_string()))
        });
        held.collect()
    }

    /// The first status from now on that fits.
    pub(crate) async fn status_where(
        &self,
        what: &str,
        mut fits: impl FnMut(&Status) -> bool,
    ) -> Status {
        let mut changes = self.informer.status_changes();
        let first = async {
            while let Some(status) = changes.next().await {
                if fits(&status) {
                    return status;
                }
            }
            panic!("it stopped before {what}");
        };
        let found = timeout(LONG, first).await;
        found.unwrap_or_else(|_| panic!("never {what}: {:#?}", self.informer.status()))
    }

    /// G31: an error of this phase, with these words, is among the recent ones, or will be.
    pub(crate) async fn told(&self, phase: &str, words: &str) -> Status {
        let tells = |status: &Status| {
            status
                .recent_errors
                .iter()
                .any(|error| error.phase.to_string() == phase && error.message.contains(words))
        };
        let status = self.status_where(&format!("{phase}: {words}"), tells).await;
        assert!(status.counters.errors > 0, "{status:#?}");
        status
    }

    /// G1, G3 and G31: the store comes to be what the server has, every registration was given that
    /// by a legal history, and the status says that all is well again. Nothing has grown.
    pub(crate) async fn settles(&self) {
        self.settles_without(&[]).await;
    }

    /// As [`settles`](Self::settles), but for objects that cannot be decoded and were never in the
    /// store.
    pub(crate) async fn settles_without(&self, undecodable: &[&str]) {
        let mut truth = self.truth();
        truth.retain(|key, _| !undecodable.iter().any(|name| key.ends_with(&format!("/{name}"))));
        let mut changes = self.informer.status_changes();
        let equal = async {
            loop {
                let status = changes.next().await.expect("the informer lives");
                let watches = matches!(status.state, InformerState::Watching { .. });
                if watches && status.has_synced && self.held() == truth {
                    return status;
                }
            }
        };
        let status = timeout(LONG, equal).await.unwrap_or_else(|_| {
            panic!("{}\n{:#?}", differences(&self.held(), &truth), self.informer.status())
        });
        for history in &self.seen {
            history.reaches(&truth, LONG).await.unwrap();
        }
        assert_eq!(status.objects, truth.len(), "{status:#?}");
        assert_eq!(status.undecodable, undecodable.len(), "{status:#?}");
        self.is_bounded();
    }

    /// Nothing has grown: no queue, no list of errors, and above all not the number of requests.
    pub(crate) fn is_bounded(&self) {
        let status = self.informer.status();
        assert!(status.recent_errors.len() <= 16 && status.stale.len() <= 64, "{status:#?}");
        let depth = status.registrations.iter().map(|registration| registration.depth).max();
        // What is in hand, the capacity, the rest of an initial set or a resync, and two entries
        // per key.
        assert!(depth <= Some(64 + 1024 + 3 * status.objects), "{status:#?}");
        assert!(self.server.faults().open_watches(None) <= 1, "more than one watch");
        // At most 30 s apart, with jitter at least 15 s, after a few quick ones; at most three
        // requests each.
        let asked = status.counters.lists + status.counters.watches;
        let allowed = 40 + 3 * (self.begun.elapsed().as_secs() / 15);
        assert!(asked <= allowed, "{asked} requests, {allowed} allowed: {status:#?}");
        assert!(self.requests().len() as u64 <= asked, "requests that the status does not count");
    }

    /// G9: the callback and the stream were given the objects that were there at first, all and
    /// once. Parts of a list would have been told earlier, and again.
    pub(crate) fn began_with(&self, notes: &str) {
        for history in &self.seen {
            assert_eq!(history.sorted_from(0), notes);
        }
    }

    /// The requests about the collection.
    pub(crate) fn requests(&self) -> Requests {
        self.server.requests().resource(&informer::Resource::of::<K>().plural)
    }

    /// Stops everything: no task lives on.
    pub(crate) async fn end(self) {
        let Self { server, factory, informer, seen, reader, tasks, .. } = self;
        for history in &seen {
            history.is_legal().unwrap();
            history.forget_store();
        }
        let held = hold_clock();
        factory.shutdown().await;
        drop(held);
        assert_eq!(informer.status().state, InformerState::Stopped { cause: StopCause::Asked });
        timeout(LONG, reader).await.expect("the stream ends").unwrap();
        drop((factory, informer));
        let alive = || Handle::current().metrics().num_alive_tasks();
        for _ in 0..1000 {
            if alive() <= tasks {
                return drop(server);
            }
            tokio::task::yield_now().await;
        }
        panic!("{} tasks live on, of which {tasks} are the server's", alive());
    }
}
