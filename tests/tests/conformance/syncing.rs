//! Being synced, and waiting for it (G19, G21).

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use futures_util::FutureExt;
use informer::{Error, InformerOptions, InformerState, StopCause};
use informer_tests::observe::{DEADLINE, GateKeeper, History, Scene, comes_true, soon};
use informer_tests::on_both_arms;
use k8s_openapi::api::core::v1::Pod;

use crate::common::{error_text, says, status_where, tells};
use crate::form::Form;
use crate::objects::Objects;

on_both_arms!(flavours g19_the_store_the_handlers_and_a_stream_each_have_their_own_sync, |arm| async {
    let objects = Objects::new(&arm, "three").await?;
    objects.create_all(&["a", "b"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let (gate, keeper) = GateKeeper::new(true);
    let prompt = scene.observe(&maps, "prompt", |h| h)?;
    let slow = scene.observe_with(&maps, History::new("slow"), |h| h.name("slow"), move |_| gate.pass())?;
    let mut stream = maps.events()?;
    ensure!(!maps.has_synced() && !prompt.registration().has_synced(), "synced before the start");
    scene.start();
    soon("the stores", scene.factory().wait_for_sync()).await??;
    ensure!(maps.has_synced(), "the factory said so");
    prompt.synced().await?;
    ensure!(!slow.registration().has_synced() && slow.counts().events() == 0, "its callback has not returned");
    ensure!(scene.factory().wait_for_handlers().now_or_never().is_none());
    let missing = error_text(scene.factory().wait_for_handlers_within(Duration::from_millis(10)).await);
    says(&missing, &["not synced in time: handler slow of configmaps.v1 in namespace ", &objects.namespace])?;
    keeper.open();
    // A stream that nobody reads does not count for the factory.
    soon("the handlers", scene.factory().wait_for_handlers()).await??;
    ensure!(slow.registration().has_synced() && slow.counts().initial == 2 && !stream.has_synced());
    for _ in 0..2 {
        soon("an event", futures_util::StreamExt::next(&mut stream)).await?;
        ensure!(!stream.has_synced(), "the reader may still work on the last object");
    }
    ensure!(futures_util::StreamExt::next(&mut stream).now_or_never().is_none());
    soon("the stream", stream.synced()).await??;
    scene.settles(&maps, &objects.path(), &[&prompt, &slow]).await?;
    drop(stream);
    scene.end().await
});

on_both_arms!(g19_every_waiter_is_woken_by_an_empty_list_too, |arm| async {
    let objects = Objects::new(&arm, "waiters").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    arm.begin_outage().await;
    scene.start();
    let mut waiters = Vec::new();
    for _ in 0..20 {
        let (maps, registration) = (maps.clone(), seen.registration().clone());
        let factory = scene.factory().clone();
        waiters.push(tokio::spawn(async move {
            let (store, handler, stores, handlers) = tokio::join!(
                maps.synced(),
                registration.synced(),
                factory.wait_for_sync(),
                factory.wait_for_handlers()
            );
            handler.and(stores).and(handlers)?;
            store.map(|lister| lister.len())
        }));
    }
    status_where(&maps, |status| !status.recent_errors.is_empty()).await?;
    ensure!(waiters.iter().all(|waiter| !waiter.is_finished()), "synced with nothing");
    arm.end_outage().await;
    for waiter in waiters {
        assert_eq!(soon("a waiter", waiter).await???, 0);
    }
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    scene.end().await
});

on_both_arms!(g19_initial_objects_that_change_or_vanish_meanwhile_count_as_handled, |arm| async {
    let objects = Objects::new(&arm, "meanwhile").await?;
    objects.create_all(&["a", "changed", "gone", "replaced"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let prompt = scene.observe(&maps, "the prompt handler", |h| h)?;
    scene.start();
    prompt.synced().await?;
    // One whose first call waits, so that the others of its initial set are behind that: their
    // cursor moves on in steps of many, so the handler is added while it is closed and the set is
    // changed before it is read.
    let (gate, keeper) = GateKeeper::new(true);
    let slow =
        scene.observe_with(&maps, History::new("slow"), |h| h.capacity(1), move |_| gate.pass())?;
    objects.change("changed", "2").await?;
    objects.delete("gone").await?;
    objects.replace("replaced").await?;
    objects.catch_up(&maps).await?;
    ensure!(!slow.registration().has_synced(), "it has handled nothing");
    keeper.open();
    slow.synced().await?;
    scene.settles(&maps, &objects.path(), &[&prompt, &slow]).await?;
    // How far the cursor had come is a matter of timing; the end is not.
    ensure!(slow.counts().initial >= 1 && slow.text_of("a") == "*a#1", "{}", slow.text());
    scene.end().await
});

on_both_arms!(g19_a_deadlines_error_names_what_is_missing_with_its_last_error, |arm| async {
    let objects = Objects::new(&arm, "deadline").await?;
    let other = arm.namespace("forbidden").await?;
    // The user may read Pods in namespace default, and nothing elsewhere on the real arm.
    let (scene, _) = Scene::recorded(&arm, Some("nobody")).await?;
    let maps = objects.informer(&scene)?;
    let pods = scene.informer(InformerOptions::<Form<Pod>>::new().namespace(&other))?;
    let handler = scene.observe(&pods, "printer", |h| h.name("printer"))?;
    let unstarted = error_text(scene.factory().wait_for_sync_within(Duration::ZERO).await);
    says(
        &unstarted,
        &["configmaps.v1 in namespace", "(not started: call `start()`); pods.v1 in namespace"],
    )?;
    scene.start();
    status_where(&maps, |status| tells(status, "403")).await?;
    status_where(&pods, |status| tells(status, "403")).await?;
    let errors = [
        error_text(scene.factory().wait_for_sync_within(Duration::from_millis(10)).await),
        error_text(scene.factory().wait_for_handlers_within(Duration::from_millis(10)).await),
    ];
    for error in &errors {
        says(
            error,
            &[
                "not synced in time: ",
                &format!("configmaps.v1 in namespace {}", objects.namespace),
                &format!("pods.v1 in namespace {other}"),
                "403",
                "grant the verbs list and watch on resource \"pods\"",
            ],
        )?;
    }
    says(&errors[1], &[&format!("handler printer of pods.v1 in namespace {other}")])?;
    let own = error_text(handler.registration().synced_within(Duration::from_millis(10)).await);
    says(&own, &["handler printer of pods.v1", "403"])?;
    ensure!(!maps.has_synced() && !pods.has_synced() && !handler.registration().has_synced());
    // A wait that is dropped is over, and the next one waits as well.
    ensure!(scene.factory().wait_for_sync().now_or_never().is_none());
    scene.end().await
});

on_both_arms!(g21_a_lister_can_be_had_often_and_outlives_its_informer, |arm| async {
    let objects = Objects::new(&arm, "lister").await?;
    objects.create("a", "1").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    scene.start();
    let lister = soon("a lister", maps.synced()).await??;
    let seen = scene.observe(&maps, "the late handler", |h| h)?;
    let again = soon("a lister", maps.synced_within(DEADLINE)).await??;
    ensure!(Arc::ptr_eq(&lister.list()[0], &again.list()[0]), "one store");
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    ensure!(matches!(lister.state(), InformerState::Watching { .. }), "{:?}", lister.state());
    scene.factory().stop(&maps).await;
    objects.create("b", "1").await?;
    assert_eq!(
        (lister.len(), again.len(), lister.state()),
        (1, 1, InformerState::Stopped { cause: StopCause::Asked })
    );
    ensure!(matches!(maps.add_handler(|h| h), Err(Error::Stopped { .. })));
    assert_eq!(
        soon("a lister", maps.synced()).await??.state(),
        InformerState::Stopped { cause: StopCause::Asked }
    );
    seen.forget_store();
    drop((lister, again, seen, maps));
    let next = objects.informer(&scene)?;
    comes_true("the next informer has both", || next.unsynced_store().len() == 2).await?;
    drop(next);
    scene.end().await
});
