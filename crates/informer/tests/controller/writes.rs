//! Own writes: seen before the next reconcile, whatever happens to the watch and to answers.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use informer::controller::{Action, Context, Controller};
use informer::{InformerOptions, SharedInformer};
use informer_testkit::{Cut, Fault, Status, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::client::Body;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::common::value_of;
use crate::world::{Ran, World, ms, next, nothing, secret, start};

run_tests! {
    on_a_paused_clock:
        a_key_that_wrote_is_not_reconciled_until_the_stores_show_it,
        reconciles_of_other_keys_can_wait_as_well,
        a_write_whose_answer_is_lost_is_not_repeated,
        refused_writes_are_tried_again_and_nothing_is_created_twice,
        a_conflict_is_read_and_tried_again_without_an_error,
        a_conflict_that_stays_becomes_an_error,
        a_conflict_that_the_reconcile_ignores_hides_no_other_error,
        a_create_that_lands_after_its_reconcile_was_cancelled_is_not_repeated,
        what_the_selector_excludes_is_said_to_be_in_the_way;
}

/// Creates, one for each reconcile, as many Secrets as the value says.
fn creating(world: &World, controller: Controller<ConfigMap>) -> (Ran, SharedInformer<Secret>) {
    let secrets = world.factory.informer::<Secret>().unwrap();
    let held = secrets.clone();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
        let secrets = held.clone();
        async move {
            if ctx.owned(&secrets)?.len() < value_of(&map).parse()? {
                ctx.create(&secret(&map, None)).await?;
                return Ok(Action::requeue_after(ms(1)));
            }
            Ok(Action::await_change())
        }
    };
    (start(controller.owns(&secrets), reconcile), secrets)
}

fn count(world: &World) -> usize {
    world.server.cluster().count("secrets")
}

async fn a_key_that_wrote_is_not_reconciled_until_the_stores_show_it() {
    let world = World::new().await;
    let (ran, _secrets) = creating(&world, world.controller());
    assert!(ran.handle.started().await);
    let blind =
        world.server.faults().inject(Fault::unavailable().resource("secrets").on(Verb::Watch));
    let blind_lists =
        world.server.faults().inject(Fault::unavailable().resource("secrets").on(Verb::List));
    world.server.faults().cut_watches(Cut::Close, Some("secrets"));
    world.set("a", "3");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(count(&world), 1);
    let status = ran.handle.status();
    assert_eq!(status.waiting_for_own_writes.len(), 1, "{status}");
    assert!(status.running.is_empty(), "the wait keeps no worker");
    world.set("b", "3");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(count(&world), 2, "another key is reconciled, and waits too");
    let metrics = ran.handle.metrics();
    assert!(metrics.own_writes.timeouts >= 4, "{metrics:?}");
    assert_eq!((metrics.reconcile_total.requeue_after, metrics.reconcile_total.error), (2, 0));
    let errors = ran.handle.status().recent_errors;
    assert!(errors.iter().all(|it| it.message.contains("secrets.v1")), "{errors:?}");
    blind.lift();
    blind_lists.lift();
    sleep(Duration::from_secs(120)).await;
    assert_eq!(count(&world), 6);
    assert!(ran.handle.metrics().reconcile_total.success >= 2);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

/// All ConfigMaps together have one Secret.
async fn reconciles_of_other_keys_can_wait_as_well() {
    for after_all in [false, true] {
        let world = World::new().await;
        let secrets = world.factory.informer::<Secret>().unwrap();
        let held = secrets.clone();
        let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
            let secrets = held.clone();
            async move {
                if secrets.synced().await?.is_empty() {
                    ctx.create(&secret(&map, None)).await?;
                }
                Ok(Action::await_change())
            }
        };
        let controller = world.controller().owns(&secrets);
        let controller = if after_all { controller.after_all_writes() } else { controller };
        let ran = start(controller, reconcile);
        assert!(ran.handle.started().await);
        let blind =
            world.server.faults().inject(Fault::unavailable().resource("secrets").on(Verb::Watch));
        world.server.faults().cut_watches(Cut::Close, Some("secrets"));
        world.set("a", "");
        sleep(Duration::from_secs(1)).await;
        world.set("b", "");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(count(&world), if after_all { 1 } else { 2 });
        blind.lift();
        sleep(Duration::from_secs(120)).await;
        assert_eq!(count(&world), if after_all { 1 } else { 2 });
        ran.stop().await.unwrap();
        world.factory.shutdown().await;
    }
}

async fn a_write_whose_answer_is_lost_is_not_repeated() {
    let world = World::new().await;
    let (ran, _secrets) = creating(&world, world.controller());
    let lost = Fault::reset_after(10).resource("secrets").on(Verb::Create).times(3);
    let lost = world.server.faults().inject(lost);
    world.set("a", "5");
    sleep(Duration::from_secs(120)).await;
    assert_eq!((lost.hits(), count(&world)), (3, 5));
    let metrics = ran.handle.metrics();
    assert_eq!(metrics.reconcile_total.error, 3);
    assert!(metrics.own_writes.refreshes > 0, "{metrics:?}");
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn refused_writes_are_tried_again_and_nothing_is_created_twice() {
    let world = World::new().await;
    let (ran, _secrets) = creating(&world, world.controller());
    let on_create = |fault: Fault| {
        world.server.faults().inject(fault.resource("secrets").on(Verb::Create).times(2))
    };
    let faults = [
        on_create(Fault::too_many_requests().retry_after(1)),
        on_create(Fault::unavailable()),
        on_create(Fault::hang_up()),
    ];
    world.set("a", "3");
    sleep(Duration::from_secs(120)).await;
    assert_eq!(faults.map(|fault| fault.hits()), [2, 2, 2]);
    assert_eq!(count(&world), 3);
    assert_eq!(ran.handle.metrics().reconcile_total.error, 6);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

/// Writes what it was told into the annotations, once.
fn annotating(world: &World) -> (Ran, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
        let tell = tell.clone();
        async move {
            let mut map = ConfigMap::clone(&map);
            let done = [("done".to_owned(), value_of(&map).to_owned())].into();
            if map.metadata.annotations.as_ref() != Some(&done) {
                map.metadata.annotations = Some(done);
                ctx.replace(&map).await?;
                _ = tell.send(value_of(&map).to_owned());
            }
            Ok(Action::await_change())
        }
    };
    (start(world.controller(), reconcile), told)
}

fn conflict() -> Fault {
    let conflict = Status::new(409, "Conflict", "the object has been modified");
    Fault::answer(conflict).resource("configmaps").on(Verb::Update)
}

async fn a_conflict_is_read_and_tried_again_without_an_error() {
    let world = World::new().await;
    world.set("a", "1");
    let (ran, mut told) = annotating(&world);
    assert_eq!(next(&mut told, 1).await, ["1"]);

    // Somebody changes it while the informer is blind: the write is of an old version.
    let blind =
        world.server.faults().inject(Fault::unavailable().resource("configmaps").on(Verb::Watch));
    world.server.faults().cut_watches(Cut::Close, Some("configmaps"));
    world.set("a", "2");
    let conflict = world.server.faults().inject(conflict().times(1));
    ran.handle.enqueue(informer::ObjectKey::namespaced("default", "a"));
    sleep(ms(100)).await;
    assert_eq!(conflict.hits(), 0, "there is nothing to write in the old version");
    blind.lift();
    assert_eq!(next(&mut told, 1).await, ["2"]);
    assert_eq!(conflict.hits(), 1);
    let metrics = ran.handle.metrics();
    assert_eq!((metrics.conflicts_total, metrics.reconcile_total.error), (1, 0), "{metrics:?}");
    assert_eq!(world.server.requests().verb(Verb::Get).resource("configmaps").len(), 1);
    assert!(ran.handle.status().recent_errors.is_empty());
    nothing(&mut told).await;
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn a_conflict_that_stays_becomes_an_error() {
    let world = World::new().await;
    let conflict = world.server.faults().inject(conflict());
    world.set("a", "1");
    let (ran, mut told) = annotating(&world);
    sleep(Duration::from_secs(60)).await;
    let metrics = ran.handle.metrics();
    assert_eq!(metrics.conflicts_total, 5, "{metrics:?}");
    assert!(metrics.reconcile_total.error > 0);
    let errors = ran.handle.status().recent_errors;
    assert!(errors.iter().all(|it| it.message.contains("modified")), "{errors:?}");
    conflict.lift();
    sleep(Duration::from_secs(1000)).await;
    assert_eq!(next(&mut told, 1).await, ["1"]);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn a_conflict_that_the_reconcile_ignores_hides_no_other_error() {
    let world = World::new().await;
    let secrets = world.factory.informer::<Secret>().unwrap();
    world.set("a", "1");
    let reconcile = |map: Arc<ConfigMap>, ctx: Context<()>| async move {
        match ctx.create(&secret(&map, Some("s"))).await {
            Err(error) if !error.is_already_exists() => Err(error.into()),
            Ok(_) | Err(_) => anyhow::bail!("the disk is full"),
        }
    };
    let ran = start(world.controller().owns(&secrets), reconcile);
    sleep(Duration::from_secs(10)).await;
    let metrics = ran.handle.metrics();
    assert_eq!(metrics.conflicts_total, 1, "the second one says nothing new: {metrics:?}");
    assert!(metrics.reconcile_total.error > 5, "{metrics:?}");
    let errors = ran.handle.status().recent_errors;
    assert!(errors.iter().all(|it| it.message == "the disk is full"), "{errors:?}");
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

/// A client whose creates reach the server late, whether the answer is still waited for or not.
fn late(world: &World) -> Client {
    let client = world.client.clone();
    let serve = move |request: Request<Body>| {
        let client = client.clone();
        async move {
            if request.method() != Method::POST {
                return client.send(request).await;
            }
            let served = tokio::spawn(async move {
                sleep(Duration::from_secs(3)).await;
                client.send(request).await
            });
            served.await.unwrap()
        }
    };
    Client::new(tower::service_fn(serve), "default")
}

async fn a_create_that_lands_after_its_reconcile_was_cancelled_is_not_repeated() {
    let world = World::new().await;
    let controller =
        Controller::new(late(&world), &world.maps).reconcile_timeout(Duration::from_secs(1));
    let (ran, _secrets) = creating(&world, controller);
    world.set("a", "2");
    sleep(Duration::from_secs(120)).await;
    assert_eq!(count(&world), 2);
    let metrics = ran.handle.metrics();
    assert_eq!(metrics.reconcile_timeouts_total, 2);
    assert_eq!((metrics.own_writes.reads, metrics.own_writes.refreshes), (0, 0), "{metrics:?}");
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn what_the_selector_excludes_is_said_to_be_in_the_way() {
    let world = World::new().await;
    let options = InformerOptions::<Secret>::new().labels("mine=yes").unwrap();
    let secrets = world.factory.informer_with(options).unwrap();
    world.set("a", "1");
    let other = serde_json::json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "s", "namespace": "default" } });
    world.server.cluster().create(&other).unwrap();
    let reconcile = |map: Arc<ConfigMap>, ctx: Context<()>| async move {
        ctx.create(&secret(&map, Some("s"))).await?;
        Ok(Action::await_change())
    };
    let ran = start(world.controller().owns(&secrets), reconcile);
    sleep(Duration::from_secs(1)).await;
    let errors = ran.handle.status().recent_errors;
    let said = |words: &str| errors.iter().any(|it| it.message.contains(words));
    assert!(said("secrets default/s exists already, and is excluded"), "{errors:?}");
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}
