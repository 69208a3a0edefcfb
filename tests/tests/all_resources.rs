//! Every resource that a server lets one list and watch, custom ones included, syncs through
//! `for_resource`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::future::join_all;
use informer::discovery::Discovery;
use informer::{Error, Resource, SharedInformer, SharedInformerFactory};
use informer_tests::fixtures::{install_widgets, pod, widget};
use informer_tests::helpers::{eventually_equal, eventually_ok, raw_list};
use informer_tests::on_both_arms;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::json;

/// For a hundred first lists at once.
const SOON: Duration = Duration::from_secs(60);

/// Resources that a server offers to list and watch, and then refuses. There are none on a 1.36
/// server; if one turns up, it is named here with the reason.
const REFUSED: [&str; 0] = [];

on_both_arms!(every_watchable_resource_syncs_through_for_resource, |arm| async {
    let namespace = arm.namespace("everything").await?;
    let direct = arm.direct();
    let client = arm.client().await?;
    let factory = SharedInformerFactory::builder(client.clone()).build();
    factory.start();
    let unknown = factory.for_resource("sky.example.com", "v1", "stars").await.err();
    ensure!(matches!(unknown, Some(Error::UnknownResource(_))), "{unknown:?}");

    install_widgets(direct).await?;
    install_stars(direct).await?;
    let pods = Api::namespaced(direct.clone(), &namespace);
    let widgets = Api::namespaced(direct.clone(), &namespace);
    for name in ["one", "two"] {
        pods.create(&PostParams::default(), &pod(&namespace, name, &[])).await?;
        widgets.create(&PostParams::default(), &widget(&namespace, name, &[], "red", 1)).await?;
        create_star(direct, name).await?;
    }

    let discovery = Discovery::fetch(&client).await?;
    ensure!(discovery.failed().is_empty(), "{:?}", discovery.failed());
    let watchable = discovery.resources().iter().filter(|info| info.can_be_watched());
    let resources: Vec<&Resource> = watchable.map(|info| &info.resource).collect();
    ensure!(resources.len() >= 60, "only {} resources: {resources:?}", resources.len());
    for expected in [
        "pods.v1",
        "deployments.v1.apps",
        "events.v1.events.k8s.io",
        "widgets.v1.example.com",
        "stars.v1.sky.example.com",
        "stars.v1beta1.sky.example.com",
    ] {
        ensure!(
            resources.iter().any(|it| it.to_string() == expected),
            "no {expected} in {resources:?}"
        );
    }

    let synced = join_all(resources.iter().map(|resource| sync(&factory, resource))).await;
    let mut refused = Vec::new();
    let mut informers = Vec::new();
    for (resource, synced) in resources.iter().zip(synced) {
        match synced {
            Ok(informer) => informers.push(informer),
            Err(error) => refused.push((resource.to_string(), error.to_string())),
        }
    }
    let names: Vec<_> = refused.iter().map(|(name, _)| name.as_str()).collect();
    ensure!(names == REFUSED, "refused although offered: {refused:#?}");
    assert_eq!(factory.statuses().len(), resources.len(), "one informer for each");

    for informer in &informers {
        equals_raw_list(informer, direct).await?;
    }
    let stars = factory.for_resource("sky.example.com", "v1", "stars").await?;
    create_star(direct, "three").await?;
    equals_raw_list(&stars, direct).await?;
    let star = stars.synced().await?.find("", "three").context("it follows")?;
    assert_eq!(star.data["spec"], json!({ "magnitude": 4 }));
    factory.shutdown().await;
    Ok(())
});

async fn sync(
    factory: &SharedInformerFactory,
    resource: &Resource,
) -> Result<SharedInformer<DynamicObject>, Error> {
    let informer =
        factory.for_resource(&resource.group, &resource.version, &resource.plural).await?;
    informer.synced_within(SOON).await?;
    assert_eq!(informer.resource(), resource);
    Ok(informer)
}

/// Keys, UIDs and versions; some resources, such as the server's own Lease, never rest for long.
async fn equals_raw_list(
    informer: &SharedInformer<DynamicObject>,
    direct: &Client,
) -> anyhow::Result<()> {
    let resource = informer.resource();
    let lister = informer.synced().await?;
    let store = || -> BTreeMap<String, (String, String)> {
        let entry = |entry: informer::store::Entry<'_, DynamicObject>| {
            let record = entry.record;
            (entry.key.to_string(), (record.uid.to_string(), record.version.to_string()))
        };
        lister.snapshot().iter().map(entry).collect()
    };
    let path = resource.path(None);
    eventually_equal(&format!("{resource} is complete"), SOON, store, async || {
        raw_list(direct, &path).await
    })
    .await;
    for object in lister.list() {
        let types = object.types.as_ref().with_context(|| format!("no kind in a {resource}"))?;
        assert_eq!((&types.kind, &types.api_version), (&resource.kind, &resource.api_version()));
    }
    Ok(())
}

/// Defines Stars: cluster-scoped, in two versions. Returns once they are served.
async fn install_stars(client: &Client) -> anyhow::Result<()> {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name,
            "served": true,
            "storage": storage,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                "type": "object",
                "properties": { "magnitude": { "type": "integer" } },
            } } } },
        })
    };
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": { "name": "stars.sky.example.com" },
        "spec": {
            "group": "sky.example.com",
            "scope": "Cluster",
            "names": { "plural": "stars", "singular": "star", "kind": "Star", "listKind": "StarList" },
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    }))?;
    Api::all(client.clone()).create(&PostParams::default(), &definition).await?;
    for version in ["v1", "v1beta1"] {
        let path = format!("/apis/sky.example.com/{version}/stars");
        let list = async || raw_list(client, &path).await.map(drop);
        eventually_ok("stars.sky.example.com are served", SOON, list).await?;
    }
    // Discovery may take a moment longer.
    let known = async || {
        let discovery =
            Discovery::fetch_group_version(client, "sky.example.com", "v1beta1").await?;
        discovery.require("sky.example.com", "v1beta1", "stars")?;
        let all = Discovery::fetch(client).await?;
        all.require("sky.example.com", "v1beta1", "stars")?;
        all.require("example.com", "v1", "widgets")?;
        Ok(())
    };
    eventually_ok("discovery tells of the custom resources", SOON, known).await
}

async fn create_star(client: &Client, name: &str) -> anyhow::Result<()> {
    let resource = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("sky.example.com", "v1", "Star"),
        "stars",
    );
    let star = DynamicObject::new(name, &resource).data(json!({ "spec": { "magnitude": 4 } }));
    Api::<DynamicObject>::all_with(client.clone(), &resource)
        .create(&PostParams::default(), &star)
        .await?;
    Ok(())
}
