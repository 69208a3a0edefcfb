//! Who is reconciled, because of what.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use informer::controller::{Action, Context, Controller, Predicate};
use informer::{InformerOptions, ObjectKey};
use informer_testkit::Cut;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::common::{soon, value_of};
use crate::world::{World, ms, next, nothing, owned, start, telling};

run_tests! {
    on_a_paused_clock:
        every_object_is_reconciled_at_the_start_and_when_it_changes_and_not_once_it_is_gone,
        an_owner_is_reconciled_when_what_it_controls_changes_in_every_representation,
        what_a_map_says_is_reconciled_for_the_old_state_and_the_new,
        a_filter_leaves_events_out_and_one_that_panics_does_not,
        five_controllers_over_pods_are_one_watch,
        a_name_deleted_and_created_again_in_a_gap_is_reconciled_as_another,
        another_reason_to_reconcile_can_be_told;
}

async fn every_object_is_reconciled_at_the_start_and_when_it_changes_and_not_once_it_is_gone() {
    let world = World::new().await;
    world.set("a", "1");
    world.set("b", "1");
    let (ran, mut told) = telling(world.controller());
    assert_eq!(next(&mut told, 2).await, ["a=1", "b=1"]);
    world.set("b", "2");
    assert_eq!(next(&mut told, 1).await, ["b=2"]);
    world.set("c", "1");
    assert_eq!(next(&mut told, 1).await, ["c=1"]);
    world.delete("configmaps", "c");
    nothing(&mut told).await;
    let metrics = ran.handle.metrics();
    assert_eq!((metrics.reconcile_total.success, metrics.reconcile_total.error), (4, 0));
    assert_eq!((metrics.reconcile_time.count(), metrics.max_concurrent_reconciles), (4, 1));
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn an_owner_is_reconciled_when_what_it_controls_changes_in_every_representation() {
    let world = World::new().await;
    for name in ["a", "b"] {
        world.set(name, "1");
    }
    let pods = world.factory.informer::<Pod>().unwrap();
    let lazy = world.factory.lazy::<Secret>().unwrap();
    let metadata = world.factory.metadata::<Pod>(InformerOptions::new()).unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let held = (pods.clone(), lazy.clone(), metadata.clone());
    let reconcile = move |_: Arc<ConfigMap>, ctx: Context<()>| {
        let mut names: Vec<String> = Vec::new();
        names.extend(ctx.owned(&held.0).unwrap().iter().filter_map(|it| it.metadata.name.clone()));
        names.extend(ctx.owned(&held.1).unwrap().iter().map(|it| it.name().into_owned()));
        let partial = ctx.owned(&held.2).unwrap();
        assert_eq!(partial.len(), ctx.owned(&held.0).unwrap().len());
        tell.send(format!("{}: {}", ctx.key().name(), names.join(" "))).unwrap();
        async { Ok(Action::await_change()) }
    };
    // In one go for the two informers of Pods, which hear of each by themselves.
    let controller = world.controller().owns(&pods).owns(&lazy).owns(&metadata);
    let ran = start(controller, reconcile);
    assert_eq!(next(&mut told, 2).await, ["a: ", "b: "]);

    let owner = |name| -> ConfigMap {
        let object = world.server.cluster().get("configmaps", "default", name).unwrap();
        serde_json::from_slice(object.json()).unwrap()
    };
    let (a, b) = (owner("a"), owner("b"));
    let apply = |object: &Value| drop(world.server.cluster().apply(object).unwrap());
    apply(&owned("Secret", "s", &a, "1"));
    assert_eq!(next(&mut told, 1).await, ["a: s"]);
    apply(&owned("Secret", "s", &b, "1"));
    assert_eq!(next(&mut told, 2).await, ["a: ", "b: s"], "it changes hands");
    world.delete("secrets", "s");
    assert_eq!(next(&mut told, 1).await, ["b: "]);
    nothing(&mut told).await;
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn what_a_map_says_is_reconciled_for_the_old_state_and_the_new() {
    let world = World::new().await;
    for name in ["a", "b"] {
        world.set(name, "1");
    }
    let secrets = world.factory.informer::<Secret>().unwrap();
    let of = |secret: &Secret| {
        let name = secret.metadata.labels.as_ref()?.get("of")?;
        assert_ne!(name, "panic", "a bug of the map");
        Some(ObjectKey::namespaced("default", name))
    };
    let (ran, mut told) = telling(world.controller().watches(&secrets, of));
    next(&mut told, 2).await;
    let apply = |of: &str| {
        let labels = json!({ "of": of });
        let secret = json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "s", "namespace": "default", "labels": labels } });
        drop(world.server.cluster().apply(&secret).unwrap());
    };
    apply("a");
    assert_eq!(next(&mut told, 1).await, ["a=1"]);
    apply("b");
    assert_eq!(next(&mut told, 2).await, ["a=1", "b=1"]);
    world.delete("secrets", "s");
    assert_eq!(next(&mut told, 1).await, ["b=1"]);
    apply("nobody");
    apply("panic");
    nothing(&mut told).await;
    assert_eq!(ran.handle.metrics().mapping_panics_total, 1);
    apply("a");
    assert_eq!(next(&mut told, 1).await, ["a=1"], "one event is lost, not those after it");
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn a_filter_leaves_events_out_and_one_that_panics_does_not() {
    let world = World::new().await;
    world.set("a", "keep");
    world.set("b", "drop");
    let keeps = Predicate::object(|map: &ConfigMap| match value_of(map) {
        "panic" => panic!("a bug of the filter"),
        value => value == "keep",
    });
    let (ran, mut told) = telling(world.controller().filter(keeps));
    assert_eq!(next(&mut told, 1).await, ["a=keep"]);
    world.set("b", "drop too");
    nothing(&mut told).await;
    world.set("a", "drop");
    assert_eq!(next(&mut told, 1).await, ["a=drop"], "it leaves the filtered set");
    world.set("b", "panic");
    assert_eq!(next(&mut told, 1).await, ["b=panic"]);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn five_controllers_over_pods_are_one_watch() {
    let world = World::new().await;
    world.server.cluster().load(informer_testkit::generate::pods(20)).unwrap();
    let reconciled = Arc::new(AtomicUsize::new(0));
    let ran: Vec<_> = (0..5)
        .map(|at| {
            let pods = world.factory.informer::<Pod>().unwrap();
            let reconciled = Arc::clone(&reconciled);
            let controller = Controller::new(world.client.clone(), &pods)
                .name(format!("pods-{at}"))
                .owns(&pods)
                .concurrency(4);
            start(controller, move |_: Arc<Pod>, _| {
                reconciled.fetch_add(1, Ordering::Relaxed);
                async { Ok(Action::await_change()) }
            })
        })
        .collect();
    soon(async {
        while reconciled.load(Ordering::Relaxed) < 100 {
            sleep(ms(1)).await;
        }
    })
    .await;
    let requests = world.server.requests().resource("pods");
    assert_eq!(requests.len(), 1, "one streaming list, which goes on as a watch: {requests:?}");
    for ran in ran {
        assert_eq!(ran.handle.metrics().reconcile_total.success, 20);
        ran.stop().await.unwrap();
    }
    world.factory.shutdown().await;
}

async fn a_name_deleted_and_created_again_in_a_gap_is_reconciled_as_another() {
    let world = World::new().await;
    world.set("a", "old");
    let (tell, mut told) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
        assert_eq!(Some(ctx.uid().to_string()), map.metadata.uid);
        tell.send(format!("{} {}", value_of(&map), ctx.uid())).unwrap();
        async { Ok(Action::await_change()) }
    };
    let ran = start(world.controller(), reconcile);
    let old = next(&mut told, 1).await;
    world.server.faults().cut_watches(Cut::Reset, None);
    world.delete("configmaps", "a");
    world.set("a", "new");
    world.server.cluster().compact();
    let new = next(&mut told, 1).await;
    assert!(old[0].starts_with("old ") && new[0].starts_with("new "), "{old:?} {new:?}");
    nothing(&mut told).await;
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn another_reason_to_reconcile_can_be_told() {
    let world = World::new().await;
    world.set("a", "1");
    let (ran, mut told) = telling(world.controller());
    next(&mut told, 1).await;
    ran.handle.enqueue(ObjectKey::namespaced("default", "a"));
    ran.handle.enqueue(ObjectKey::namespaced("default", "nobody"));
    assert_eq!(next(&mut told, 1).await, ["a=1"]);
    nothing(&mut told).await;
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}
