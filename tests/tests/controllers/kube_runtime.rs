//! kube-runtime's `Controller` and `Writer`, fed by an informer: `docs/kube-runtime.md` shows the
//! code of this file.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::{Stream, StreamExt, stream};
use informer::{Event, EventStream, ObjectKey, SharedInformerFactory};
use informer_testkit::{Cut, Fault, TestServer, Verb};
use informer_tests::helpers::eventually;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube_runtime::controller::{Action, Controller};
use kube_runtime::reflector::store::Writer;
use kube_runtime::reflector::{self, Lookup, ObjectRef, Store};
use kube_runtime::watcher;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// What kube-runtime calls the object of a key.
fn object_ref<K: Lookup<DynamicType = ()>>(key: &ObjectKey) -> ObjectRef<K> {
    let object = ObjectRef::new(key.name());
    if key.namespace().is_empty() { object } else { object.within(key.namespace()) }
}

/// Makes a kube-runtime store what the informer's is, and says which objects have changed, each
/// once the store shows it. It works while it is polled, which a `Controller` does.
fn feed<K>(events: EventStream<K>, mut writer: Writer<K>) -> impl Stream<Item = ObjectRef<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    writer.apply_watcher_event(&watcher::Event::Init);
    stream::unfold((events, writer, false), |(mut events, mut writer, mut is_ready)| async move {
        let registration = events.registration();
        let event = loop {
            tokio::select! {
                biased;
                event = events.next() => break event?,
                // Every object of the first list was taken.
                Ok(()) = registration.synced(), if !is_ready => {
                    writer.apply_watcher_event(&watcher::Event::InitDone);
                    is_ready = true;
                }
            }
        };
        if !event.is_initial() && !is_ready {
            writer.apply_watcher_event(&watcher::Event::InitDone);
            is_ready = true;
        }
        let object = K::clone(event.object());
        writer.apply_watcher_event(&match &event {
            Event::Added { initial: true, .. } => watcher::Event::InitApply(object),
            Event::Added { .. } | Event::Updated { .. } => watcher::Event::Apply(object),
            Event::Deleted(_) => watcher::Event::Delete(object),
        });
        Some((object_ref(event.key()), (events, writer, is_ready)))
    })
}

/// A `Controller` without a watch of its own.
fn controller(events: EventStream<ConfigMap>) -> (Controller<ConfigMap>, Store<ConfigMap>) {
    let (reader, writer) = reflector::store();
    let no_watch = stream::pending::<Result<ConfigMap, watcher::Error>>();
    let controller =
        Controller::for_stream(no_watch, reader.clone()).reconcile_on(feed(events, writer));
    (controller, reader)
}

fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default" }, "data": { "value": value },
    })
}

fn value_of(object: &ConfigMap) -> String {
    object.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default()
}

type Reconciled = mpsc::UnboundedSender<(String, String)>;

async fn reconcile(object: Arc<ConfigMap>, tell: Arc<Reconciled>) -> Result<Action, Infallible> {
    _ = tell.send((object.name_any(), value_of(&object)));
    Ok(Action::await_change())
}

/// Waits until a ConfigMap was reconciled with a value.
async fn told(
    told: &mut mpsc::UnboundedReceiver<(String, String)>,
    name: &str,
    value: &str,
) -> anyhow::Result<()> {
    let wait = async {
        while let Some((told_name, told_value)) = told.recv().await {
            if (told_name.as_str(), told_value.as_str()) == (name, value) {
                return Ok(());
            }
        }
        anyhow::bail!("the controller ended")
    };
    timeout(Duration::from_secs(60), wait).await.with_context(|| format!("{name}={value}"))?
}

fn contents(objects: impl IntoIterator<Item = Arc<ConfigMap>>) -> BTreeMap<String, String> {
    objects.into_iter().map(|object| (object.name_any(), value_of(&object))).collect()
}

#[tokio::test]
async fn an_informer_feeds_a_kube_runtime_controller_and_its_store() -> anyhow::Result<()> {
    let server = TestServer::start().await?;
    let cluster = server.cluster();
    cluster.create(&config_map("a", "1"))?;
    cluster.create(&config_map("b", "1"))?;
    let factory = SharedInformerFactory::builder(server.client()?).build();
    let informer = factory.informer::<ConfigMap>()?;
    factory.start();

    let (tell, mut reconciled) = mpsc::unbounded_channel();
    let (controller, store) = controller(informer.events()?);
    let run = controller.run(reconcile, |_, _, _| Action::await_change(), Arc::new(tell));
    let running = tokio::spawn(async move { pin!(run).for_each(async |_| {}).await });
    told(&mut reconciled, "a", "1").await?;

    // A change while it runs, and one that a gap in the watch has swallowed, with a delete.
    cluster.update(&config_map("a", "2"))?;
    told(&mut reconciled, "a", "2").await?;
    let refused = server.faults().inject(Fault::hang_up().on(Verb::Watch));
    server.faults().cut_watches(Cut::Reset, Some("configmaps"));
    cluster.delete("configmaps", "default", "b")?;
    cluster.update(&config_map("a", "3"))?;
    cluster.compact();
    refused.lift();
    told(&mut reconciled, "a", "3").await?;

    // The store is the informer's, and nobody else has listed or watched.
    let lister = informer.synced().await?;
    eventually("the stores are equal", Duration::from_secs(60), || {
        contents(store.state()) == contents(lister.list())
    })
    .await;
    assert_eq!(contents(store.state()), BTreeMap::from([("a".to_owned(), "3".to_owned())]));
    let watches = server.faults().open_watches(Some("configmaps"));
    assert_eq!(watches, 1, "the informer's alone");
    factory.shutdown().await;
    running.abort();
    Ok(())
}

#[tokio::test]
async fn a_store_fed_from_an_empty_collection_is_ready() -> anyhow::Result<()> {
    let server = TestServer::start().await?;
    let factory = SharedInformerFactory::builder(server.client()?).build();
    let informer = factory.informer::<ConfigMap>()?;
    factory.start();
    let (reader, writer) = reflector::store();
    let changes = feed(informer.events()?, writer);
    let changes =
        tokio::spawn(async move { pin!(changes).collect::<Vec<ObjectRef<ConfigMap>>>().await });
    timeout(Duration::from_secs(60), reader.wait_until_ready()).await??;
    assert!(reader.is_empty());
    server.cluster().create(&config_map("a", "1"))?;
    eventually("it is in the store", Duration::from_secs(60), || reader.len() == 1).await;
    factory.shutdown().await;
    let changes = timeout(Duration::from_secs(60), changes).await??;
    assert_eq!(changes, [object_ref(&ObjectKey::namespaced("default", "a"))]);
    Ok(())
}

#[tokio::test]
async fn g17_a_store_fed_while_its_first_objects_change_loses_none() -> anyhow::Result<()> {
    let server = TestServer::start().await?;
    let cluster = server.cluster();
    for number in 0..200 {
        cluster.create(&config_map(&format!("o{number:03}"), "1"))?;
    }
    let factory = SharedInformerFactory::builder(server.client()?).build();
    let informer = factory.informer::<ConfigMap>()?;
    factory.start();
    let lister = informer.synced().await?;
    let (reader, writer) = reflector::store();
    let mut changes = pin!(feed(informer.events()?, writer));
    assert_eq!(changes.next().await, Some(object_ref(&ObjectKey::namespaced("default", "o000"))));
    // One that was given, and one that was not.
    cluster.update(&config_map("o000", "2"))?;
    cluster.update(&config_map("o199", "2"))?;
    eventually("the informer has both", Duration::from_secs(60), || {
        contents(lister.list()).values().filter(|value| *value == "2").count() == 2
    })
    .await;
    let fed = async {
        while contents(reader.state()) != contents(lister.list()) {
            changes.next().await.expect("the informer runs");
        }
    };
    timeout(Duration::from_secs(60), fed).await.with_context(|| {
        format!("the store has {} of {} objects", reader.len(), lister.list().len())
    })?;
    assert_eq!(reader.len(), 200);
    factory.shutdown().await;
    Ok(())
}
