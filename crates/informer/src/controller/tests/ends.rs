//! What ends a wait beside the write being shown.

use serde_json::json;

use super::*;
use crate::SharedInformer;

#[derive(kube::CustomResource, Debug, Clone, serde::Deserialize, serde::Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced, schema = "disabled")]
struct WidgetSpec {
    size: u32,
}

fn widgets_crd() -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}

/// Waits far beyond the deadline of a reconcile.
async fn ends(bed: &Bed) {
    bed.own.caught_up(&owner(), Duration::from_secs(3600)).await.expect("it has ended");
    assert_eq!(bed.own.metrics().remembered, 0);
}

#[tokio::test(start_paused = true)]
async fn a_changed_history_ends_the_wait() {
    let bed = Bed::new().await;
    let backup = bed.server.cluster().checkpoint();
    bed.writer.create(&map("a", "1")).await.unwrap();
    bed.caught_up().await.unwrap();
    let broken = bed.break_watches();
    bed.writer.create(&map("b", "1")).await.unwrap();
    assert!(bed.caught_up().await.is_err());
    bed.server.cluster().restore(&backup);
    broken.lift();
    ends(&bed).await;
    assert!(bed.lister().is_empty(), "what was written is gone");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_informer_ends_the_wait() {
    let bed = Bed::new().await;
    let _held = bed.hold_watches();
    bed.writer.create(&map("a", "1")).await.unwrap();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bed.maps.stop().await;
    };
    tokio::join!(ends(&bed), stop);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_goes_away_ends_the_wait() {
    let bed = Bed::new().await;
    bed.server.cluster().create(&widgets_crd()).unwrap();
    let widgets: SharedInformer<Widget> = bed.factory.informer().unwrap();
    bed.follow(&widgets).await;
    bed.writer.create(&Widget::new("before", WidgetSpec { size: 1 })).await.unwrap();
    bed.caught_up().await.unwrap();
    let broken = bed.break_watches();
    bed.writer.create(&Widget::new("a", WidgetSpec { size: 1 })).await.unwrap();
    assert!(bed.caught_up().await.is_err());
    bed.server.cluster().delete("customresourcedefinitions", "", "widgets.example.com").unwrap();
    broken.lift();
    ends(&bed).await;
    assert!(widgets.unsynced_store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_own_write_that_cannot_be_decoded_is_an_error_of_its_key() {
    let bed = Bed::new().await;
    bed.writer.create(&map("a", "1")).await.unwrap();
    bed.caught_up().await.unwrap();
    let broken = bed.server.faults().inject(Fault::undecodable("a").on(Verb::Watch));
    let mut changed = map("a", "2");
    changed.metadata.resource_version = None;
    bed.writer.replace(&changed).await.unwrap();
    let error = bed.own.caught_up(&owner(), Duration::from_secs(3600)).await.unwrap_err();
    let [NotShown::Undecodable { key, cause, .. }] = &error.missing[..] else { panic!("{error}") };
    assert_eq!(key.to_string(), "default/a");
    assert!(!cause.is_empty());
    assert_eq!(bed.value("a").as_deref(), Some("1"), "the store holds the last good state");
    assert!(bed.caught_up().await.is_err(), "it stays an error");
    broken.lift();
    bed.writer.replace(&map("a", "3")).await.unwrap();
    bed.caught_up().await.unwrap();
    assert_eq!(bed.value("a").as_deref(), Some("3"));
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_is_not_waited_for() {
    let bed = Bed::new().await;
    let _held = bed.hold_watches();
    bed.writer.create(&map("a", "1")).await.unwrap();
    let forget = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bed.own.forget_all();
    };
    tokio::join!(ends(&bed), forget);
}
