//! kube-rs' clients and watchers, and our own informers, through the endpoint and through an
//! endpoint before it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::{StreamExt, TryStreamExt};
use informer::source::WireFormat;
use informer::{InformerOptions, SharedInformerFactory};
use informer_tests::fixtures::{Widget, install_widgets, pod, widget};
use informer_tests::harness::Arm;
use informer_tests::helpers::raw_list;
use informer_tests::on_both_arms;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt};
use kube_runtime::watcher::{self, Event, watcher};
use serde_json::json;
use tokio::time::timeout;

use crate::endpoint::Endpoint;

const SOON: Duration = Duration::from_secs(60);

on_both_arms!(kube_rs_gets_lists_and_watches, |arm| async {
    let (namespace, direct) = filled(&arm, "kube-rs").await?;
    let endpoint = Endpoint::start(&arm.kubeconfig(), &[]).await?;
    let through = Api::<Pod>::namespaced(endpoint.client()?, &namespace);

    let expected = direct.get("one").await?;
    ensure!(without_managed_fields(through.get("one").await?) == without_managed_fields(expected));
    match through.get("absent").await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        other => panic!("{other:?}"),
    }
    let metadata = through.get_metadata("one").await?;
    ensure!(metadata.name_any() == "one" && metadata.metadata.uid.is_some(), "{metadata:?}");

    let mut pages = Vec::new();
    let mut parameters = ListParams::default().limit(2);
    loop {
        let page = through.list(&parameters).await?;
        pages.push(page.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>());
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => parameters.continue_token = Some(token),
            _ => break,
        }
    }
    ensure!(pages == [vec!["one", "three"], vec!["two"]], "{pages:?}");
    let selected = through.list_metadata(&ListParams::default().labels("app=web")).await?;
    ensure!(selected.items.len() == 3, "{selected:?}");
    match through.list(&ListParams::default().fields("spec.nothing=1")).await {
        Err(kube::Error::Api(status)) if status.code == 400 => {}
        other => panic!("{other:?}"),
    }

    let version = through.list(&ListParams::default()).await?.metadata.resource_version;
    let events = through.watch(&WatchParams::default(), &version.context("a version")?).await?;
    let mut events = events.boxed();
    change(&direct, &namespace).await?;
    let mut told = Vec::new();
    while told.last().is_none_or(|it| it != "added last") {
        let event = timeout(SOON, events.try_next()).await.context("an event")??;
        told.push(match event.context("the watch ended")? {
            WatchEvent::Added(it) => format!("added {}", it.name_any()),
            WatchEvent::Modified(it) => format!("modified {}", it.name_any()),
            WatchEvent::Deleted(it) => format!("deleted {}", it.name_any()),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(error) => anyhow::bail!("{error:?}"),
        });
    }
    // A real API server marks a Pod as deleted first.
    told.retain(|it| it != "modified two");
    ensure!(told == ["modified one", "deleted two", "added last"], "{told:?}");
    endpoint.stop().await
});

on_both_arms!(kube_rs_watcher_converges, |arm| async {
    let (namespace, direct) = filled(&arm, "watcher").await?;
    let endpoint = Endpoint::start(&arm.kubeconfig(), &[]).await?;
    let configs = [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
        watcher::Config::default().page_size(1),
        watcher::Config::default().any_semantic(),
    ];
    let mut running = Vec::new();
    for config in configs {
        let api = Api::<Pod>::namespaced(endpoint.client()?, &namespace);
        let mut events = watcher(api, config.clone()).boxed();
        let mut held = BTreeMap::new();
        follow(&mut events, &mut held, |_, ready| ready).await.context("the first list")?;
        running.push((config, events, held));
    }
    change(&direct, &namespace).await?;
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let expected = raw_list(arm.direct(), &path).await?;
    for (config, mut events, mut held) in running {
        follow(&mut events, &mut held, |held, _| *held == expected)
            .await
            .with_context(|| format!("{config:?}: {held:?}, not {expected:?}"))?;
    }
    endpoint.stop().await
});

on_both_arms!(informers_work_through_an_endpoint_before_an_endpoint, |arm| async {
    let (namespace, direct) = filled(&arm, "chained").await?;
    install_widgets(arm.direct()).await?;
    let widgets = Api::<Widget>::namespaced(arm.direct().clone(), &namespace);
    widgets.create(&PostParams::default(), &widget(&namespace, "w", &[], "red", 1)).await?;
    let first = Endpoint::start(&arm.kubeconfig(), &[]).await?;
    let second = Endpoint::start(&first.kubeconfig(), &[]).await?;
    let mut factories = Vec::new();
    for format in [WireFormat::Protobuf, WireFormat::Json] {
        for streaming in [true, false] {
            let client: Client = second.client()?;
            let factory = SharedInformerFactory::builder(client).wire_format(format).build();
            let options = || InformerOptions::new().streaming_lists(streaming).page_size(Some(2));
            let pods = factory.informer_with::<Pod>(options())?;
            let metadata = factory.informer_with::<PartialObjectMeta<Pod>>(
                InformerOptions::new().streaming_lists(streaming),
            )?;
            let custom = SharedInformerFactory::builder(second.client()?).build();
            let widgets = custom
                .informer_with::<Widget>(InformerOptions::new().streaming_lists(streaming))?;
            factory.start();
            custom.start();
            factory.wait_for_sync_within(SOON).await?;
            custom.wait_for_sync_within(SOON).await?;
            factories.push((factory, custom, pods, metadata, widgets));
        }
    }
    let version = change(&direct, &namespace).await?;
    let patch = Patch::Merge(json!({ "spec": { "colour": "green" } }));
    let changed = widgets.patch("w", &PatchParams::default(), &patch).await?;
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let expected = raw_list(arm.direct(), &path).await?;
    for (factory, custom, pods, metadata, widgets) in factories {
        timeout(SOON, pods.wait_for(&*version)).await??;
        timeout(SOON, metadata.wait_for(&*version)).await??;
        timeout(SOON, widgets.wait_for(&*changed.resource_version().context("a version")?))
            .await??;
        let in_namespace =
            |namespace_of: Option<String>| namespace_of.as_deref() == Some(&namespace);
        let store = pods.unsynced_store().list();
        let held = store.iter().filter(|it| in_namespace(it.namespace()));
        let held = held.map(|it| entry(&it.metadata)).collect::<BTreeMap<_, _>>();
        ensure!(held == expected, "{held:?}, not {expected:?}");
        let store = metadata.unsynced_store().list();
        let held = store.iter().filter(|it| in_namespace(it.namespace()));
        let held = held.map(|it| entry(&it.metadata)).collect::<BTreeMap<_, _>>();
        ensure!(held == expected, "{held:?}, not {expected:?}");
        let widget = widgets.unsynced_store().find(&namespace, "w").context("the Widget")?;
        ensure!(widget.spec.colour == "green", "{widget:?}");
        factory.shutdown().await;
        custom.shutdown().await;
    }
    second.stop().await?;
    first.stop().await
});

/// A namespace with three Pods.
async fn filled(arm: &Arm, prefix: &str) -> anyhow::Result<(String, Api<Pod>)> {
    let namespace = arm.namespace(prefix).await?;
    let pods = Api::namespaced(arm.direct().clone(), &namespace);
    for name in ["one", "two", "three"] {
        let pod = pod(&namespace, name, &[("app", "web")]);
        pods.create(&PostParams::default(), &pod).await?;
    }
    Ok((namespace, pods))
}

/// Changes a Pod, deletes one and creates one, whose version is returned.
async fn change(pods: &Api<Pod>, namespace: &str) -> anyhow::Result<String> {
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "colour": "red" } } }));
    pods.patch("one", &PatchParams::default(), &patch).await?;
    pods.delete("two", &DeleteParams::default().grace_period(0)).await?;
    let last = pods.create(&PostParams::default(), &pod(namespace, "last", &[])).await?;
    last.resource_version().context("a version")
}

/// What a watcher's events come to, until it is enough.
async fn follow(
    events: &mut (impl StreamExt<Item = watcher::Result<Event<Pod>>> + Unpin),
    held: &mut BTreeMap<String, (String, String)>,
    is_enough: impl Fn(&BTreeMap<String, (String, String)>, bool) -> bool,
) -> anyhow::Result<()> {
    let mut ready = false;
    while !is_enough(held, ready) {
        match timeout(SOON, events.next()).await?.context("the watcher ended")?? {
            Event::Apply(object) | Event::InitApply(object) => {
                held.extend([entry(&object.metadata)]);
            }
            Event::Delete(object) => {
                held.remove(&entry(&object.metadata).0);
            }
            Event::Init => held.clear(),
            Event::InitDone => ready = true,
        }
    }
    Ok(())
}

fn entry(metadata: &kube::api::ObjectMeta) -> (String, (String, String)) {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let key = format!("{}/{}", text(&metadata.namespace), text(&metadata.name));
    (key, (text(&metadata.uid), text(&metadata.resource_version)))
}

fn without_managed_fields(mut pod: Pod) -> Pod {
    pod.metadata.managed_fields = None;
    pod
}
