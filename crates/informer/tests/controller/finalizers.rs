//! Finalizers: what is done before an object goes, and again if that was cut short.

use std::sync::Arc;
use std::time::Duration;

use informer::controller::{
    Action, Context, Controller, FinalizerEvent, Predicate, annotations_changed, finalizer,
    generation_changed, labels_changed,
};
use informer::{HasMetadata, SharedInformer};
use informer_testkit::{Fault, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::common::soon;
use crate::world::{Ran, World, next, nothing, start};

run_tests! {
    on_a_paused_clock:
        an_object_is_applied_under_a_finalizer_and_cleaned_up_before_it_goes,
        a_cleanup_that_fails_keeps_the_object,
        no_filter_hides_that_the_finalizer_was_added_or_that_the_deletion_began,
        a_cleanup_may_write_the_object,
        a_cleanup_that_was_cut_short_by_a_restart_is_done_again;
}

const NAME: &str = "example.com/test";

fn finalizing<T: HasMetadata + Send + Sync + 'static>(
    world: &World,
    objects: &SharedInformer<T>,
    cleanup: impl Fn() -> anyhow::Result<Action> + Clone + Send + Sync + 'static,
) -> (Ran, mpsc::UnboundedReceiver<String>) {
    finalizing_with(world, objects, generation_changed(), cleanup)
}

fn finalizing_with<T: HasMetadata + Send + Sync + 'static>(
    world: &World,
    objects: &SharedInformer<T>,
    filter: Predicate<T>,
    cleanup: impl Fn() -> anyhow::Result<Action> + Clone + Send + Sync + 'static,
) -> (Ran, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let reconcile = move |object: Arc<T>, ctx: Context<()>| {
        let (tell, cleanup) = (tell.clone(), cleanup.clone());
        async move {
            let name = ctx.key().name();
            finalizer(&ctx, NAME, object, async |event| match event {
                FinalizerEvent::Apply(_) => {
                    tell.send(format!("apply {name}"))?;
                    Ok(Action::await_change())
                }
                FinalizerEvent::Cleanup(_) => {
                    tell.send(format!("clean up {name}"))?;
                    cleanup()
                }
            })
            .await
        }
    };
    let controller = Controller::new(world.client.clone(), objects).filter(filter);
    (start(controller, reconcile), told)
}

fn done() -> anyhow::Result<Action> {
    Ok(Action::await_change())
}

fn finalizers(world: &World) -> Option<Vec<String>> {
    let object = world.server.cluster().get("configmaps", "default", "a")?;
    let map: ConfigMap = serde_json::from_slice(object.json()).unwrap();
    Some(map.metadata.finalizers.unwrap_or_default())
}

async fn an_object_is_applied_under_a_finalizer_and_cleaned_up_before_it_goes() {
    let world = World::new().await;
    let lazy = world.factory.lazy::<ConfigMap>().unwrap();
    world.set("a", "1");
    for round in 0..2 {
        let (ran, mut told) = match round {
            0 => finalizing(&world, &world.maps, done),
            _ => finalizing(&world, &lazy, done),
        };
        assert_eq!(next(&mut told, 1).await, ["apply a"]);
        assert_eq!(finalizers(&world).as_deref(), Some(&[NAME.to_owned()][..]));
        world.delete("configmaps", "a");
        assert_eq!(next(&mut told, 1).await, ["clean up a"]);
        nothing(&mut told).await;
        assert_eq!(finalizers(&world), None);
        assert_eq!(ran.handle.metrics().reconcile_total.error, 0);
        ran.stop().await.unwrap();
        world.set("a", "1");
    }
    world.factory.shutdown().await;
}

async fn a_cleanup_may_write_the_object() {
    let world = World::new().await;
    world.set("a", "1");
    let (tell, mut told) = mpsc::unbounded_channel();
    let reconcile = move |map: Arc<ConfigMap>, ctx: Context<()>| {
        let tell = tell.clone();
        async move {
            finalizer(&ctx, NAME, map, async |event| {
                match event {
                    FinalizerEvent::Apply(_) => tell.send("apply".to_owned())?,
                    FinalizerEvent::Cleanup(map) => {
                        tell.send("clean up".to_owned())?;
                        let mut map = ConfigMap::clone(&map);
                        map.metadata.annotations = Some([("a".into(), "b".into())].into());
                        ctx.replace(&map).await?;
                    }
                }
                Ok(Action::await_change())
            })
            .await
        }
    };
    let ran = start(world.controller(), reconcile);
    assert_eq!(next(&mut told, 1).await, ["apply"]);
    world.delete("configmaps", "a");
    assert_eq!(next(&mut told, 1).await, ["clean up"]);
    nothing(&mut told).await;
    assert_eq!(finalizers(&world), None);
    ran.stop().await.unwrap();
}

async fn no_filter_hides_that_the_finalizer_was_added_or_that_the_deletion_began() {
    for filter in [labels_changed, annotations_changed] {
        let world = World::new().await;
        world.set("a", "1");
        let (ran, mut told) = finalizing_with(&world, &world.maps, filter(), done);
        assert_eq!(next(&mut told, 1).await, ["apply a"]);
        nothing(&mut told).await;
        world.delete("configmaps", "a");
        assert_eq!(next(&mut told, 1).await, ["clean up a"]);
        nothing(&mut told).await;
        assert_eq!(finalizers(&world), None);
        ran.stop().await.unwrap();
        world.factory.shutdown().await;
    }
}

async fn a_cleanup_that_fails_keeps_the_object() {
    let world = World::new().await;
    world.set("a", "1");
    let (succeed, may_succeed) = tokio::sync::watch::channel(false);
    let cleanup = move || match *may_succeed.borrow() {
        true => done(),
        false => anyhow::bail!("not yet"),
    };
    let (ran, mut told) = finalizing(&world, &world.maps, cleanup);
    next(&mut told, 1).await;
    world.delete("configmaps", "a");
    assert_eq!(next(&mut told, 3).await, ["clean up a"; 3]);
    assert_eq!(finalizers(&world).map(|it| it.len()), Some(1));
    succeed.send(true).unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(finalizers(&world), None);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}

async fn a_cleanup_that_was_cut_short_by_a_restart_is_done_again() {
    let world = World::new().await;
    world.set("a", "1");
    let (ran, mut told) = finalizing(&world, &world.maps, done);
    next(&mut told, 1).await;
    let stalled = world.server.faults().inject(Fault::stall().on(Verb::Patch));
    world.delete("configmaps", "a");
    assert_eq!(next(&mut told, 1).await, ["clean up a"]);
    soon(async {
        while stalled.hits() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // The process is killed with the patch on its way.
    ran.task.abort();
    assert!(soon(told.recv()).await.is_none());
    stalled.lift();
    let (ran, mut told) = finalizing(&world, &world.maps, done);
    let again = next(&mut told, 1).await;
    assert_eq!(again, ["clean up a"]);
    nothing(&mut told).await;
    assert_eq!(finalizers(&world), None);
    ran.stop().await.unwrap();
    world.factory.shutdown().await;
}
