//! Handlers that panic, block or are slow; index functions that panic.
//!
//! On a clock that runs: a paused one does not wait for the threads of callbacks.

use std::sync::Arc;
use std::time::Duration;

use informer::IndexValues;
use informer_tests::observe::{GateKeeper, History};
use k8s_openapi::api::core::v1::ConfigMap;

use crate::scene::{Scene, options};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn g15_a_handler_panics() {
    let scene = Scene::watching(options(true)).await;
    let history = History::new("the one that panics");
    let record = Arc::clone(&history);
    let panics = scene.informer.add_handler(|h| {
        h.name("hot-headed").on_event(move |event| {
            record.record(event);
            assert!(event.key().name() != "a", "cannot stand it");
        })
    });
    let panics = panics.unwrap();
    for _ in 0..10 {
        scene.change();
    }
    scene.settles().await;
    history.reaches(&scene.truth(), SOON).await.unwrap();
    assert!(panics.has_synced());
    let status = scene.told("handler", "hot-headed").await;
    let registration = status.registrations.iter().find(|one| one.name == "hot-headed").unwrap();
    assert!(registration.panics >= 2, "{status:#?}");
    assert_eq!(status.counters.handler_panics, registration.panics);
    scene.end().await;
}

#[tokio::test]
async fn g15_g16_a_handler_blocks() {
    let scene = Scene::watching(options(true)).await;
    let (gate, keeper) = GateKeeper::new(true);
    let history = History::new("the one that blocks");
    let record = Arc::clone(&history);
    scene
        .informer
        .add_handler(|h| {
            h.name("blocked").capacity(8).on_event(move |event| {
                gate.pass();
                record.record(event);
            })
        })
        .unwrap();
    for _ in 0..200 {
        scene.change();
    }
    // The store and the others are not held up.
    scene.settles().await;
    let status = scene.informer.status();
    let blocked = status.registrations.iter().find(|one| one.name == "blocked").unwrap();
    // What is in hand, which is of its initial set, the rest of that, the capacity, and two entries
    // per key.
    assert!(blocked.depth <= 8 + 4 * status.objects, "{status:#?}");
    assert!(blocked.merged > 500 && !blocked.has_synced, "{status:#?}");
    assert_eq!(history.counts().events(), 0);
    keeper.open();
    history.reaches(&scene.truth(), SOON).await.unwrap();
    scene.end().await;
}

#[tokio::test]
async fn g15_g16_a_handler_is_slow() {
    let scene = Scene::watching(options(true)).await;
    let history = History::new("the slow one");
    let record = Arc::clone(&history);
    scene
        .informer
        .add_handler(|h| {
            h.name("slow").capacity(4).on_event(move |event| {
                std::thread::sleep(Duration::from_millis(1));
                record.record(event);
            })
        })
        .unwrap();
    let mut deepest = 0;
    for _ in 0..100 {
        for name in ["x", "y"] {
            scene.write(name, "first");
            scene.write(name, "second");
            scene.delete(name);
        }
        tokio::task::yield_now().await;
        let status = scene.informer.status();
        let slow = status.registrations.iter().find(|one| one.name == "slow").unwrap();
        deepest = deepest.max(slow.depth);
    }
    scene.change();
    scene.settles().await;
    history.reaches(&scene.truth(), SOON).await.unwrap();
    assert!(history.counts().events() < 600, "some were merged: {:?}", history.counts());
    let slow =
        scene.informer.status().registrations.into_iter().find(|one| one.name == "slow").unwrap();
    // What waits, and as much in hand.
    assert!(slow.merged > 0 && deepest <= 2 * (4 + 3 * 5), "{slow:?}, deepest {deepest}");
    scene.end().await;
}

#[tokio::test]
async fn g11_an_index_function_panics() {
    let scene = Scene::watching(options(true)).await;
    let fussy = |object: &ConfigMap, values: &mut IndexValues| {
        let value = object.data.as_ref().unwrap()["value"].as_str();
        assert!(value != "nonsense", "cannot stand it");
        values.push(value);
    };
    scene.write("b", "nonsense");
    scene.settles().await;
    let fussy = scene.informer.add_index("fussy", fussy).await.unwrap();
    let names = scene
        .informer
        .add_index("name", |object: &ConfigMap, values| {
            values.push(object.metadata.name.as_deref().unwrap())
        })
        .await
        .unwrap();
    scene.told("index", "index fussy panicked on default/b").await;
    for _ in 0..10 {
        scene.change();
    }
    for name in ["e", "f", "g"] {
        scene.write(name, "alike");
    }
    scene.settles().await;
    let lister = scene.informer.unsynced_store();
    assert_eq!(lister.by_index(&fussy, "alike").unwrap().len(), 3);
    scene.write("f", "nonsense");
    scene.settles().await;
    scene.told("index", "index fussy panicked on default/f").await;
    // The object is missing in that index, and nowhere else.
    assert_eq!(lister.by_index(&fussy, "alike").unwrap().len(), 2);
    assert_eq!(lister.by_index(&names, "f").unwrap().len(), 1);
    scene.write("f", "alike");
    scene.settles().await;
    assert_eq!(lister.by_index(&fussy, "alike").unwrap().len(), 3);
    scene.end().await;
}
