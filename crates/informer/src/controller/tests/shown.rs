//! Writes that are answered, until the stores show them.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, PartialObjectMeta};
use serde_json::json;

use super::*;
use crate::{InformerOptions, Resource};

fn merge(value: &str) -> Patch<serde_json::Value> {
    Patch::Merge(json!({ "data": { "value": value } }))
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_write_is_shown_to_the_next_reconcile() {
    let bed = Bed::new().await;
    let Bed { writer, .. } = &bed;
    assert!(bed.caught_up().await.is_ok(), "nothing was written");

    let held = bed.hold_watches();
    let created = writer.create(&map("a", "1")).await.unwrap();
    assert_eq!(created.metadata.namespace.as_deref(), Some("default"), "that of the key");
    bed.is_waited_for(held).await;
    assert_eq!(bed.value("a").as_deref(), Some("1"));

    let held = bed.hold_watches();
    let mut changed = created;
    changed.data = map("a", "2").data;
    writer.replace(&changed).await.unwrap();
    bed.is_waited_for(held).await;
    assert_eq!(bed.value("a").as_deref(), Some("2"));

    let held = bed.hold_watches();
    writer.patch(&map("a", ""), &PatchParams::default(), &merge("3")).await.unwrap();
    bed.is_waited_for(held).await;
    assert_eq!(bed.value("a").as_deref(), Some("3"));

    let held = bed.hold_watches();
    writer.apply(&map("b", "1"), "tests").await.unwrap();
    bed.is_waited_for(held).await;
    assert_eq!(bed.value("b").as_deref(), Some("1"));
    assert_eq!(bed.own.metrics().waits, 4);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_a_part_of_the_object() {
    let bed = Bed::new().await;
    let pods = bed.factory.informer::<Pod>().unwrap();
    bed.follow(&pods).await;
    let metadata = ObjectMeta { name: Some("web".to_owned()), ..ObjectMeta::default() };
    let mut pod = bed.writer.create(&Pod { metadata, ..Pod::default() }).await.unwrap();
    bed.caught_up().await.unwrap();
    let phase = || {
        let pod = pods.unsynced_store().find("default", "web").unwrap();
        pod.status.as_ref().and_then(|it| it.phase.clone()).unwrap_or_default()
    };

    let held = bed.hold_watches();
    pod.status.get_or_insert_default().phase = Some("Running".to_owned());
    let pod = bed.writer.replace_status(&pod).await.unwrap();
    bed.is_waited_for(held).await;
    assert_eq!(phase(), "Running");

    let held = bed.hold_watches();
    let patch = Patch::Merge(json!({ "status": { "phase": "Failed" } }));
    bed.writer.patch_status(&pod, &PatchParams::default(), &patch).await.unwrap();
    bed.is_waited_for(held).await;
    assert_eq!(phase(), "Failed");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_names_what_is_missing_and_nothing_is_forgotten() {
    let bed = Bed::new().await;
    let held = bed.hold_watches();
    let created = bed.writer.create(&map("a", "1")).await.unwrap();
    let version = created.metadata.resource_version.unwrap();
    let error = bed.caught_up().await.unwrap_err();
    let [NotShown::Version { key, wanted, informer, .. }] = &error.missing[..] else {
        panic!("{error}")
    };
    assert_eq!((key.to_string(), wanted.to_string()), ("default/a".to_owned(), version.clone()));
    assert_eq!(informer.informer, "configmaps.v1 in the whole cluster");
    assert!(error.to_string().contains(&format!("version {version} of default/a")), "{error}");
    let metrics = bed.own.metrics();
    assert_eq!((metrics.waits, metrics.timeouts, metrics.remembered), (1, 1, 1));
    bed.is_waited_for(held).await;
}

#[tokio::test(start_paused = true)]
async fn another_key_is_held_up_by_all_writes_only() {
    let bed = Bed::new().await;
    let held = bed.hold_watches();
    bed.writer.create(&map("a", "1")).await.unwrap();
    let other = ObjectKey::namespaced("default", "other");
    bed.own.caught_up(&other, DEADLINE).await.unwrap();
    assert!(bed.own.all_caught_up(DEADLINE).await.is_err());
    held.lift();
    bed.own.all_caught_up(DEADLINE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_is_shown_already() {
    let bed = Bed::new().await;
    bed.writer.create(&map("a", "1")).await.unwrap();
    bed.caught_up().await.unwrap();
    bed.server
        .cluster()
        .create(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "other" },
        }))
        .unwrap();
    let _held = bed.hold_watches();
    bed.writer.patch(&map("a", ""), &PatchParams::default(), &merge("1")).await.unwrap();
    bed.caught_up().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_waited_for_by_its_uid() {
    let bed = Bed::new().await;
    let first = bed.writer.create(&map("a", "1")).await.unwrap();
    bed.caught_up().await.unwrap();

    let held = bed.hold_watches();
    bed.writer.delete(&first).await.unwrap();
    let missing = bed.not_shown().await;
    assert!(
        matches!(&missing[..], [NotShown::Delete { uid, .. }] if Some(uid.to_string()) == first.metadata.uid),
        "{missing:?}"
    );
    bed.is_waited_for(held).await;
    assert_eq!(bed.value("a"), None);

    // Another object of the name is not the one that was deleted.
    let second = bed.writer.create(&map("a", "2")).await.unwrap();
    bed.caught_up().await.unwrap();
    let held = bed.hold_watches();
    bed.writer.delete(&second).await.unwrap();
    bed.writer.create(&map("a", "3")).await.unwrap();
    bed.is_waited_for(held).await;
    assert_eq!(bed.value("a").as_deref(), Some("3"));
    assert!(bed.writer.delete(&second).await.unwrap_err().is_conflict());
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_waited_for_although_the_store_does_not_show_the_object_yet() {
    let bed = Bed::new().await;
    let held = bed.hold_watches();
    let created = bed.writer.create(&map("a", "1")).await.unwrap();
    bed.writer.delete(&created).await.unwrap();
    bed.is_waited_for(held).await;
    assert_eq!(bed.value("a"), None);
}

#[tokio::test(start_paused = true)]
async fn finalizers_make_a_delete_an_update_and_their_removal_a_delete() {
    let bed = Bed::new().await;
    let mut finalized = map("a", "1");
    finalized.metadata.finalizers = Some(vec!["example.com/tests".to_owned()]);
    let created = bed.writer.create(&finalized).await.unwrap();
    bed.caught_up().await.unwrap();

    let held = bed.hold_watches();
    bed.writer.delete(&created).await.unwrap();
    bed.is_waited_for(held).await;
    let shown = bed.lister().find("default", "a").unwrap();
    assert!(shown.metadata.deletion_timestamp.is_some());

    let held = bed.hold_watches();
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    bed.writer.patch(&created, &PatchParams::default(), &patch).await.unwrap();
    let missing = bed.not_shown().await;
    assert!(matches!(&missing[..], [NotShown::Delete { .. }]), "{missing:?}");
    bed.is_waited_for(held).await;
    assert_eq!(bed.value("a"), None);
}

#[tokio::test(start_paused = true)]
async fn what_the_selector_excludes_is_waited_for_only_while_the_store_holds_it() {
    let bed = Bed::new().await;
    let web = InformerOptions::new().labels("app=web").unwrap();
    let web = bed.factory.informer_with::<ConfigMap>(web).unwrap();
    let own = OwnWrites::new(Client::new(bed.server.service(), "default"));
    own.follow(&web);
    bed.factory.start();
    web.synced().await.unwrap();
    let writer = own.writer(owner(), Gate::new(None));

    let held = bed.hold_watches();
    writer.create(&labelled(map("other", "1"), "db")).await.unwrap();
    own.caught_up(&owner(), DEADLINE).await.unwrap();
    held.lift();

    let created = writer.create(&labelled(map("a", "1"), "web")).await.unwrap();
    own.caught_up(&owner(), DEADLINE).await.unwrap();
    assert!(web.unsynced_store().find("default", "a").is_some());
    let held = bed.hold_watches();
    let leave = Patch::Merge(json!({ "metadata": { "labels": { "app": "db" } } }));
    writer.patch(&created, &PatchParams::default(), &leave).await.unwrap();
    assert!(own.caught_up(&owner(), DEADLINE).await.is_err());
    held.lift();
    own.caught_up(&owner(), DEADLINE).await.unwrap();
    assert!(web.unsynced_store().find("default", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn what_the_field_selector_excludes_is_not_waited_for() {
    let bed = Bed::new().await;
    let one = InformerOptions::new().fields("metadata.name=one").unwrap();
    let one = bed.factory.informer_with::<ConfigMap>(one).unwrap();
    let own = OwnWrites::new(Client::new(bed.server.service(), "default"));
    own.follow(&one);
    bed.factory.start();
    one.synced().await.unwrap();
    let writer = own.writer(owner(), Gate::new(None));
    let _held = bed.hold_watches();
    writer.create(&map("two", "1")).await.unwrap();
    own.caught_up(&owner(), DEADLINE).await.unwrap();
    writer.create(&map("one", "1")).await.unwrap();
    assert!(own.caught_up(&owner(), DEADLINE).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn writes_outside_of_the_informers_namespace_are_not_waited_for() {
    let bed = Bed::new().await;
    let here = InformerOptions::new().namespace("default");
    let here = bed.factory.informer_with::<ConfigMap>(here).unwrap();
    let own = OwnWrites::new(Client::new(bed.server.service(), "default"));
    own.follow(&here);
    bed.factory.start();
    here.synced().await.unwrap();
    let _held = bed.hold_watches();
    let mut elsewhere = map("a", "1");
    elsewhere.metadata.namespace = Some("kube-system".to_owned());
    own.writer(owner(), Gate::new(None)).create(&elsewhere).await.unwrap();
    own.caught_up(&owner(), DEADLINE).await.unwrap();
}

/// A struct of the user's own, which keeps nothing that identifies the object.
#[derive(serde::Deserialize)]
struct Value {
    data: std::collections::BTreeMap<String, String>,
}

#[tokio::test(start_paused = true)]
async fn informers_of_any_representation_are_waited_for() {
    let bed = Bed::new().await;
    let metadata: SharedInformer<PartialObjectMeta<ConfigMap>> =
        bed.factory.metadata::<ConfigMap>(InformerOptions::new()).unwrap();
    let lazy = bed.factory.lazy::<ConfigMap>().unwrap();
    let value = bed
        .factory
        .informer_as::<Value>(Resource::of::<ConfigMap>(), InformerOptions::new())
        .unwrap();
    bed.follow(&metadata).await;
    bed.follow(&lazy).await;
    bed.follow(&value).await;
    let held = bed.hold_watches();
    bed.writer.create(&map("a", "1")).await.unwrap();
    assert_eq!(bed.not_shown().await.len(), 4);
    bed.is_waited_for(held).await;
    assert!(metadata.unsynced_store().find("default", "a").is_some());
    assert!(lazy.unsynced_store().find("default", "a").is_some());
    assert_eq!(value.unsynced_store().find("default", "a").unwrap().data["value"], "1");
}

#[tokio::test(start_paused = true)]
async fn writes_through_the_writers_client_are_remembered() {
    let bed = Bed::new().await;
    let held = bed.hold_watches();
    let resource = ApiResource::erase::<ConfigMap>(&());
    let maps: Api<DynamicObject> = Api::namespaced_with(bed.writer.client(), "default", &resource);
    let mut wanted = DynamicObject::new("a", &resource);
    wanted.data = json!({ "data": { "value": "1" } });
    maps.create(&PostParams::default(), &wanted).await.unwrap();
    assert_eq!(maps.get("a").await.unwrap().data["data"]["value"], "1");
    bed.is_waited_for(held).await;
}

#[tokio::test(start_paused = true)]
async fn dry_runs_are_not_remembered() {
    let bed = Bed::new().await;
    let params = PostParams { dry_run: true, ..PostParams::default() };
    bed.writer.create_with(&map("a", "1"), &params).await.unwrap();
    let created = bed.writer.create(&map("b", "1")).await.unwrap();
    bed.caught_up().await.unwrap();
    let params = kube::api::DeleteParams { dry_run: true, ..Default::default() };
    bed.writer.delete_with(&created, &params).await.unwrap();
    assert_eq!(bed.own.metrics().remembered, 0);
    assert_eq!(bed.server.cluster().count("configmaps"), 1);
}
