//! Reading the store, in every form that objects can be kept in (G10 to G14), and the parts used
//! alone.

#[macro_use]
mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{config_map, note, object, scripted, scripted_informer, soon, value_of};
use futures_util::FutureExt;
use informer::reflector::Controller;
use informer::source::FailureKind;
use informer::store::IndexError;
use informer::{
    Delta, Error, EventHandler, HasLabels, Index, IndexValues, Informer, InformerOptions, Resource,
    SharedInformerFactory,
};
use informer_testkit::{TestServer, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::core::DynamicObject;
use serde_json::json;
use tokio::sync::mpsc;

run_tests! {
    on_both_runtimes:
        g11_an_index_added_while_running_is_complete_and_missing_from_older_snapshots,
        g11_an_index_function_that_panics_is_reported_and_harms_its_object_and_index_only,
        g14_wait_for_reads_ones_own_writes,
        an_observer_begins_where_its_snapshot_ends_and_ends_with_its_handle_or_the_informer,
        g14_a_version_that_cannot_be_ordered_cannot_be_waited_for,
        objects_may_be_kept_as_ones_own_struct_as_metadata_or_dynamically,
        for_resource_suggests_what_may_have_been_meant;
    on_one_thread:
        // Where the turn must be given up for another to have it.
        g11_the_informer_goes_on_while_an_index_is_built,
        g11_other_tasks_have_their_turn_while_a_large_store_is_indexed;
    on_a_paused_clock:
        g14_the_deadline_of_a_wait_says_where_the_store_stands,
        g14_the_wait_for_an_object_ends_although_it_is_deleted_replaced_or_excluded,
        a_controller_hands_every_delta_to_ones_own_function_and_syncs_on_time,
        an_informer_with_a_single_handler_runs_in_the_callers_task;
}

fn factory(server: &TestServer) -> SharedInformerFactory {
    SharedInformerFactory::builder(kube::Client::new(server.service(), "default")).build()
}

fn pod(name: &str, app: &str, node: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": app } },
        "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "i" }] },
    })
}

async fn g11_an_index_added_while_running_is_complete_and_missing_from_older_snapshots() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(9, &[object("a", 1, "x"), object("b", 2, "y")]).await;
    let lister = soon(informer.synced()).await.unwrap();
    let before = lister.snapshot();
    let index = informer
        .add_index("value", |object: &ConfigMap, values| values.extend(Some(value_of(object))))
        .await
        .unwrap();
    assert_eq!(lister.by_index(&index, "y").unwrap().len(), 1);
    assert!(matches!(before.by_index(&index, "y"), Err(IndexError::Missing { .. })));
    let error = informer.add_index("value", |_: &ConfigMap, _| ()).await.unwrap_err();
    assert!(matches!(error, Error::Index(IndexError::Duplicate { .. })), "{error}");
    let other = Index::new("value", |_: &ConfigMap, _| ());
    assert!(
        lister.by_index(&other, "y").is_err(),
        "indexes are told apart by more than their names"
    );

    let (_, feed) = script.watch().await;
    feed.send("MODIFIED", &object("b", 10, "x"));
    soon(informer.wait_for(10)).await.unwrap();
    assert_eq!(lister.index_keys(&index, "x").unwrap().len(), 2);
    assert!(lister.by_index(&index, "y").unwrap().is_empty());
}

async fn an_observer_begins_where_its_snapshot_ends_and_ends_with_its_handle_or_the_informer() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(9, &[object("a", 1, "x")]).await;
    let (_, feed) = script.watch().await;
    let lister = soon(informer.synced()).await.unwrap();
    let (told, mut history) = mpsc::unbounded_channel();
    let observe = || {
        let told = told.clone();
        let observed = informer.observe_publications(move |publication| {
            let names =
                publication.changes().map(|(version, event)| format!("{event:?}@{version}"));
            let names: Vec<_> = names.collect();
            told.send((publication.version().to_string(), names)).unwrap();
        });
        observed.unwrap()
    };
    let first = observe();
    assert_eq!(first.start().unwrap().version(), lister.snapshot().version());
    feed.send("MODIFIED", &object("a", 10, "y"));
    let (version, changes) = soon(history.recv()).await.unwrap();
    assert_eq!((&*version, &*changes), ("10", &["Updated(default/a, Change)@10".to_owned()][..]));

    drop(first);
    let second = observe();
    assert_eq!(second.start().unwrap().version(), &10.into());
    feed.send("BOOKMARK", &object("", 12, ""));
    assert_eq!(soon(history.recv()).await.unwrap(), ("12".to_owned(), vec![]));
    soon(informer.stop()).await;
    drop(told);
    assert!(soon(history.recv()).await.is_none(), "both observers are dropped");
    assert!(matches!(informer.observe_publications(|_| {}), Err(Error::Stopped { .. })));
}

async fn g11_the_informer_goes_on_while_an_index_is_built() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    let objects: Vec<_> =
        (1..=4000).map(|number| object(&format!("o{number:04}"), number, "x")).collect();
    script.list(4000, &objects).await;
    let (_, feed) = script.watch().await;
    let lister = soon(informer.synced()).await.unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let called = Arc::clone(&calls);
    let index = informer.add_index("value", move |object: &ConfigMap, values| {
        called.fetch_add(1, Ordering::Relaxed);
        values.extend(Some(value_of(object)));
    });
    // Its turn comes as soon as the index gives up its own.
    feed.send("MODIFIED", &object("o0001", 4001, "y"));
    feed.send("MODIFIED", &object("o4000", 4002, "y"));
    let (index, during) = tokio::join!(index, async {
        informer.wait_for(4002).await.unwrap();
        calls.load(Ordering::Relaxed)
    });
    let index = index.unwrap();
    assert!((1..4000).contains(&during), "{during} objects were filed when the informer went on");
    assert_eq!(lister.by_index(&index, "y").unwrap().len(), 2, "what changed meanwhile is in it");
    assert_eq!(lister.by_index(&index, "x").unwrap().len(), 3998);
}

async fn g11_other_tasks_have_their_turn_while_a_large_store_is_indexed() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    let objects: Vec<_> =
        (1..=2000).map(|number| object(&format!("o{number}"), number, "x")).collect();
    script.list(2000, &objects).await;
    let lister = soon(informer.synced()).await.unwrap();
    let (turns, during) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let turn = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            turn.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let seen = Arc::clone(&during);
    let values = move |object: &ConfigMap, values: &mut IndexValues| {
        seen.store(turns.load(Ordering::Relaxed), Ordering::Relaxed);
        values.extend(Some(value_of(object)));
    };
    let index = soon(informer.add_index("value", values)).await.unwrap();
    other.abort();
    assert!(
        during.load(Ordering::Relaxed) > 0,
        "nobody had a turn between the first object and the last"
    );
    assert_eq!(lister.by_index(&index, "x").unwrap().len(), 2000);
}

async fn g11_an_index_function_that_panics_is_reported_and_harms_its_object_and_index_only() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(9, &[object("bad", 1, "x"), object("good", 2, "x")]).await;
    let lister = soon(informer.synced()).await.unwrap();
    let picky = |object: &ConfigMap, values: &mut IndexValues| {
        assert!(object.metadata.name.as_deref() != Some("bad"), "not this one");
        values.push("all");
    };
    let index = informer.add_index("picky", picky).await.unwrap();
    assert_eq!(lister.index_keys(&index, "all").unwrap().len(), 1);
    let status = informer.status();
    assert_eq!(status.recent_errors.len(), 1, "told at once, not with the next event");
    assert_eq!(status.recent_errors[0].phase, informer::reflector::Phase::Index);
    assert!(
        status.recent_errors[0].message.contains("picky panicked on default/bad"),
        "{status:?}"
    );
    assert_eq!(lister.len(), 2);
}

async fn g14_wait_for_reads_ones_own_writes() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    for n in 0..20 {
        server.cluster().apply(&config_map("a", &n.to_string())).unwrap();
        let version = server.cluster().version();
        soon(informer.wait_for(version)).await.unwrap();
        let snapshot = informer.unsynced_store().snapshot();
        assert!(snapshot.version().has_reached(&version.into()));
        assert_eq!(value_of(snapshot.find("default", "a").unwrap().object()), n.to_string());
    }
    assert_eq!(informer.last_sync_resource_version(), server.cluster().version().into());
}

async fn g14_a_version_that_cannot_be_ordered_cannot_be_waited_for() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    for version in ["", "abc", "007"] {
        let error = soon(informer.wait_for(version)).await.unwrap_err();
        assert_eq!(error, Error::UnorderedVersion { version: version.to_owned() });
    }
}

/// An object as a write returned it, which the store may never show.
fn written(name: &str, version: u64) -> ConfigMap {
    serde_json::from_value(object(name, version, "written")).unwrap()
}

async fn g14_the_wait_for_an_object_ends_although_it_is_deleted_replaced_or_excluded() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(9, &[object("a", 1, "1"), object("b", 2, "1")]).await;
    let (_, feed) = script.watch().await;
    let lister = soon(informer.synced()).await.unwrap();
    let mut replacement = object("b", 13, "other");
    replacement["metadata"]["uid"] = "another".into();
    for (write, kind, next) in [
        (written("a", 10), "DELETED", object("a", 11, "1")),
        (written("b", 12), "ADDED", replacement),
        // A selector keeps it out, so only others' events and bookmarks show that its version has
        // passed.
        (written("excluded", 14), "BOOKMARK", object("", 15, "")),
    ] {
        let mut wait = std::pin::pin!(informer.wait_for_object(&write));
        assert!((&mut wait).now_or_never().is_none(), "{kind} has not come yet");
        feed.send(kind, &next);
        soon(wait).await.unwrap();
        soon(informer.wait_for_object_within(&write, Duration::ZERO)).await.unwrap();
    }
    assert!(lister.find("default", "a").is_none() && lister.find("default", "excluded").is_none());
    assert_eq!(lister.find("default", "b").unwrap().metadata.uid.as_deref(), Some("another"));

    let unsaved = ConfigMap::default();
    let error = soon(informer.wait_for_object(&unsaved)).await.unwrap_err();
    assert_eq!(error, Error::UnorderedVersion { version: String::new() });
    assert!(error.to_string().contains("as the server returned it"), "{error}");
    informer.stop().await;
    let error = soon(informer.wait_for_object(&written("a", 99))).await.unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error}");
}

async fn g14_the_deadline_of_a_wait_says_where_the_store_stands() {
    let deadline = Duration::from_millis(300);
    let (informer, mut script) = scripted_informer();
    let unstarted = informer.wait_for_within(20, deadline).await.unwrap_err().to_string();
    for part in ["version 20", "has no version yet", "configmaps.v1", "not started: call `start()`"]
    {
        assert!(unstarted.contains(part), "{part}: {unstarted}");
    }
    informer.start();
    script.list(9, &[object("a", 1, "1")]).await;
    soon(informer.wait_for_within(9, deadline)).await.unwrap();
    script.fail(FailureKind::Server, "watch: 503 on fire").await;
    let begun = tokio::time::Instant::now();
    let error = soon(informer.wait_for_within(20, deadline)).await.unwrap_err();
    assert_eq!(begun.elapsed().as_millis(), deadline.as_millis());
    let of_object =
        soon(informer.wait_for_object_within(&written("a", 20), deadline)).await.unwrap_err();
    for error in [error, of_object] {
        let Error::NotReached(it) = &error else { panic!("{error:?}") };
        assert_eq!((it.wanted.clone(), it.reached.clone()), (20.into(), 9.into()));
        let text = error.to_string();
        for part in [
            "version 20",
            "stands at version 9",
            "configmaps.v1",
            "attempt 1 failed",
            "503 on fire",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[derive(serde::Deserialize)]
struct Slim {
    metadata: SlimMeta,
    spec: SlimSpec,
}

#[derive(serde::Deserialize)]
struct SlimMeta {
    labels: std::collections::BTreeMap<String, String>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimSpec {
    node_name: String,
}

impl HasLabels for Slim {
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.get(key).map(String::as_str)
    }
}

async fn objects_may_be_kept_as_ones_own_struct_as_metadata_or_dynamically() {
    let server = TestServer::start().await.unwrap();
    server.cluster().create(&pod("a", "web", "node-1")).unwrap();
    let factory = factory(&server);
    let slim = factory.informer_as::<Slim>(Resource::of::<Pod>(), InformerOptions::new()).unwrap();
    let metadata = factory.metadata::<Pod>(InformerOptions::new()).unwrap();
    let dynamic = factory
        .informer_as::<DynamicObject>(Resource::of::<Pod>(), InformerOptions::new())
        .unwrap();
    factory.start();
    let lister = soon(slim.synced()).await.unwrap();
    assert_eq!(lister.find("default", "a").unwrap().spec.node_name, "node-1");
    assert_eq!(lister.select("app=web").unwrap().count(), 1);
    let held = soon(metadata.synced()).await.unwrap().find("default", "a").unwrap();
    assert_eq!(held.metadata.labels.as_ref().map(|labels| labels["app"].as_str()), Some("web"));
    let accepts: Vec<String> = server
        .requests()
        .verb(Verb::Watch)
        .iter()
        .map(|request| request.accept.clone())
        .filter(|accept| accept.contains("as=PartialObjectMetadata"))
        .collect();
    assert_eq!(accepts.len(), 1, "the server is asked for no more than that");
    let held = soon(dynamic.synced()).await.unwrap().find("default", "a").unwrap();
    let types = held.types.clone().unwrap();
    assert_eq!((types.api_version.as_str(), types.kind.as_str()), ("v1", "Pod"));
    assert_eq!(held.data["spec"]["nodeName"], "node-1");
    assert_eq!(factory.statuses().len(), 3, "three representations are three collections");
}

async fn for_resource_suggests_what_may_have_been_meant() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let error = factory.for_resource("", "v1", "deployments").await.unwrap_err();
    assert!(error.to_string().contains("did you mean deployments.v1.apps"), "{error}");
    let error = factory.for_resource("apps", "v1", "deployment").await.unwrap_err();
    assert!(error.to_string().contains("did you mean deployments"), "{error}");
    assert!(factory.statuses().is_empty());
}

async fn a_controller_hands_every_delta_to_ones_own_function_and_syncs_on_time() {
    let (source, mut script) = scripted();
    let options =
        InformerOptions::<ConfigMap>::new().streaming_lists(false).resync(Duration::from_secs(10));
    let controller = Controller::new(source, Resource::of::<ConfigMap>(), options);
    let (sender, mut deltas) = mpsc::unbounded_channel();
    let task = tokio::spawn(
        controller.run(move |delta: Delta<ConfigMap>| _ = sender.send(format!("{delta:?}"))),
    );
    script.list(9, &[object("a", 1, "1")]).await;
    let (_, feed) = script.watch().await;
    feed.send("DELETED", &object("a", 10, "1"));
    let mut seen = Vec::new();
    while seen.len() < 7 {
        seen.push(soon(deltas.recv()).await.unwrap());
    }
    assert!(
        seen[0].starts_with("ReplaceStarted") && seen[2].starts_with("ReplaceFinished(9"),
        "{seen:?}"
    );
    assert!(seen[1].starts_with("Listed(") && seen[3].starts_with("Deleted("), "{seen:?}");
    assert!(seen[4..].iter().all(|delta| delta == "Sync"), "{seen:?}");
    task.abort();
}

struct Notes(Arc<Mutex<Vec<String>>>, mpsc::UnboundedSender<()>);

impl EventHandler<ConfigMap> for Notes {
    fn on_event(&mut self, event: &informer::Event<ConfigMap>) {
        self.0.lock().unwrap().push(note(event));
        _ = self.1.send(());
    }
}

async fn an_informer_with_a_single_handler_runs_in_the_callers_task() {
    let (source, mut script) = scripted();
    let options =
        InformerOptions::<ConfigMap>::new().streaming_lists(false).resync(Duration::from_secs(10));
    let informer = Informer::new(source, Resource::of::<ConfigMap>(), options);
    let store = informer.store();
    let (seen, (sender, mut told)) =
        (Arc::<Mutex<Vec<String>>>::default(), mpsc::unbounded_channel());
    let task = tokio::spawn(informer.run(Notes(Arc::clone(&seen), sender)));
    script.fail(FailureKind::Server, "list: 500").await;
    script.list(9, &[object("a", 1, "1")]).await;
    let (_, feed) = script.watch().await;
    feed.send("MODIFIED", &object("a", 10, "2"));
    for _ in 0..3 {
        soon(told.recv()).await.unwrap();
    }
    assert_eq!(*seen.lock().unwrap(), ["add a=1 initial", "update a=1>2", "resync a=2"]);
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(store.snapshot().len(), 1, "the store outlives it");
}
