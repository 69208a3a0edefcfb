//! Resources that come and go, transforms, and what memory is kept (G32, G33, G35).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{bail, ensure};
use informer::{InformerOptions, InformerState};
use informer_tests::helpers::{eventually_ok, raw_list};
use informer_tests::observe::{DEADLINE, Identified, Identity, Scene, comes_true, soon};
use informer_tests::wire::asked_for_custom_resources;
use informer_tests::{kept_decoded, on_both_arms};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, CustomResource};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::common::{is_watching, says, status_where};
use crate::form::{Form, change, value_of};
use crate::objects::{Map, Objects};

/// A kind of these scenarios alone: others share the cluster.
#[derive(CustomResource, Serialize, Deserialize, Debug, Clone)]
#[kube(
    group = "conformance.example.com",
    version = "v1",
    kind = "Gizmo",
    namespaced,
    schema = "disabled"
)]
pub(crate) struct GizmoSpec {
    size: i64,
}

kept_decoded!(Gizmo);

async fn install(client: &Client) -> anyhow::Result<()> {
    let definition = serde_json::from_value(json!({
        "metadata": { "name": "gizmos.conformance.example.com" },
        "spec": {
            "group": "conformance.example.com",
            "scope": "Namespaced",
            "names": { "plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                    "type": "object", "properties": { "size": { "type": "integer", "format": "int64" } },
                } } } },
            }],
        },
    }))?;
    Api::<CustomResourceDefinition>::all(client.clone())
        .create(&PostParams::default(), &definition)
        .await?;
    let list = async || raw_list(client, "/apis/conformance.example.com/v1/gizmos").await.map(drop);
    eventually_ok("gizmos are served", DEADLINE, list).await
}

async fn uninstall(client: &Client) -> anyhow::Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    definitions.delete("gizmos.conformance.example.com", &DeleteParams::default()).await?;
    let gone = async || match definitions.get_opt("gizmos.conformance.example.com").await? {
        Some(_) => bail!("it still exists"),
        None => Ok(()),
    };
    eventually_ok("gizmos are gone", DEADLINE, gone).await
}

async fn create(client: &Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let gizmos = Api::<Gizmo>::namespaced(client.clone(), namespace);
    let create = async || {
        gizmos.create(&PostParams::default(), &Gizmo::new(name, GizmoSpec { size: 1 })).await?;
        Ok(())
    };
    // A resource that was just installed may be refused for a moment.
    eventually_ok("a gizmo is created", DEADLINE, create).await
}

// On real time: absence counts only after three discoveries over half a minute. That the store
// stays for a passing 404 needs a server that lies: informer's
// `g32_only_three_absences_over_30_s_empty_the_store`.
on_both_arms!(g32_a_resource_that_comes_goes_and_returns_is_waited_for_each_time, |arm| async {
    let namespace = arm.namespace("gizmos").await?;
    let path = format!("/apis/conformance.example.com/v1/namespaces/{namespace}/gizmos");
    let scene = Scene::new(&arm).await?;
    let options = InformerOptions::<Form<Gizmo>>::new().namespace(&namespace);
    let gizmos = scene.informer(options.wire_format(asked_for_custom_resources()?))?;
    let seen = scene.observe(&gizmos, "the handler", |h| h)?;
    scene.start();
    let status =
        status_where(&gizmos, |status| matches!(status.state, InformerState::Unavailable { .. }))
            .await?;
    says(
        &status.to_string(),
        &["gizmos.v1.conformance.example.com", "waiting for the resource", "install its CRD"],
    )?;
    ensure!(!status.has_synced && !seen.registration().has_synced(), "synced with nothing");

    install(arm.direct()).await?;
    create(arm.direct(), &namespace, "first").await?;
    let lister = soon("the store", gizmos.synced())
        .await
        .map_err(|error| error.context(gizmos.status().to_string()))??;
    seen.synced().await?;
    scene.settles(&gizmos, &path, &[&seen]).await?;
    assert_eq!(lister.len(), 1);

    uninstall(arm.direct()).await?;
    let absent = |status: &informer::Status| {
        matches!(status.state, InformerState::Unavailable { absent: 3.., .. })
    };
    status_where(&gizmos, absent).await?;
    comes_true("the store is empty", || lister.is_empty()).await?;
    seen.reaches(&BTreeMap::new(), DEADLINE).await?;
    // The server deletes the objects before it goes, or it does not.
    let text = seen.text_of("first");
    ensure!(
        ["*first#1 -first#1", "+first#1 -first#1", "*first#1 -first#1?", "+first#1 -first#1?"]
            .contains(&text.as_str()),
        "{text}"
    );
    ensure!(matches!(lister.state(), InformerState::Unavailable { .. }), "{:?}", lister.state());

    install(arm.direct()).await?;
    create(arm.direct(), &namespace, "second").await?;
    status_where(&gizmos, |status| is_watching(status) && status.objects == 1).await?;
    scene.settles(&gizmos, &path, &[&seen]).await?;
    assert_eq!(seen.text_of("second"), "+second#1");
    uninstall(arm.direct()).await?;
    drop((lister, gizmos));
    scene.end().await
});

on_both_arms!(g33_a_transform_runs_once_for_each_version_before_anything_sees_it, |arm| async {
    let objects = Objects::new(&arm, "transform").await?;
    objects.create_all(&["a", "b"]).await?;
    let scene = Scene::new(&arm).await?;
    let runs = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let count = Arc::clone(&runs);
    let maps = scene.informer(objects.options().transform("shout", move |map: &mut Map| {
        let Identity { name, version, .. } = map.identity();
        let state = format!("{name} {version}");
        *count.lock().unwrap_or_else(PoisonError::into_inner).entry(state).or_default() += 1;
        change(map, |map| map.data.iter_mut().flatten().for_each(|(_, value)| value.insert(0, '!')))
    }))?;
    let by_value = maps.add_index("value", |map, values| values.push(value_of(map))).await?;
    let quiet = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&quiet);
    let seen = scene.observe_with(
        &maps,
        informer_tests::observe::History::new("the handler"),
        |h| h,
        move |event| {
            if !value_of(event.object()).starts_with('!') {
                note.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{event:?}"));
            }
        },
    )?;
    scene.start();
    seen.synced().await?;
    objects.change("a", "2").await?;
    objects.replace("b").await?;
    arm.cut_watches().await;
    objects.create("c", "1").await?;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    let lister = soon("the store", maps.synced()).await??;
    let values: BTreeMap<_, _> = lister
        .list()
        .iter()
        .map(|map| (map.identity().name.into_owned(), value_of(map).into_owned()))
        .collect();
    let expected = [("a", "!2"), ("b", "!another"), ("c", "!1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(values, BTreeMap::from(expected));
    assert_eq!(lister.index_keys(&by_value, "!2")?.len(), 1);
    ensure!(lister.index_keys(&by_value, "2")?.is_empty());
    let untransformed = quiet.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ensure!(untransformed.is_empty(), "{untransformed:?}");
    let runs = runs.lock().unwrap_or_else(PoisonError::into_inner).clone();
    // Two listed, one changed, two new: each once. (A DELETED has a version of its own.)
    ensure!(runs.len() >= 5 && runs.values().all(|&runs| runs == 1), "{runs:?}");
    scene.end().await
});

on_both_arms!(g35_what_is_deleted_is_free_again_whatever_list_or_page_it_came_in, |arm| async {
    let objects = Objects::new(&arm, "pages").await?;
    let names: Vec<_> = (0..50).map(|number| format!("map-{number:02}")).collect();
    futures_util::future::try_join_all(names.iter().map(|name| objects.create(name, "1"))).await?;
    let scene = Scene::new(&arm).await?;
    let maps = scene.informer(objects.options().streaming_lists(false).page_size(Some(10)))?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    let held: Vec<Weak<Map>> = maps.unsynced_store().list().iter().map(Arc::downgrade).collect();
    assert_eq!(held.len(), 50);
    let gone: Vec<_> = names.iter().filter(|name| !name.ends_with('0')).collect();
    futures_util::future::try_join_all(gone.iter().map(|name| objects.delete(name))).await?;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    comes_true("only what is left is in memory", || {
        held.iter().filter(|map| map.strong_count() > 0).count() == 5
    })
    .await?;
    scene.end().await
});
