//! One watch for each collection; starting and stopping, and that nothing is left behind (G22 to
//! G25).

use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::{FutureExt, StreamExt};
use informer::source::WireFormat;
use informer::{Error, HasLabels, InformerOptions, InformerState, SharedInformer, StopCause};
use informer_tests::observe::{DEADLINE, GateKeeper, History, Kept, Scene, comes_true, soon};
use informer_tests::on_both_arms;
use informer_tests::wire::asked_for;
use tokio::time::Instant;

use crate::common::{error_text, is_backing_off, reaches, status_where};
use crate::form::metadata;
use crate::objects::{Map, Objects};

on_both_arms!(flavours g22_starting_often_and_from_anywhere_is_starting_once, |arm| async {
    let objects = Objects::new(&arm, "start").await?;
    objects.create("a", "1").await?;
    let (scene, recorder) = Scene::recorded(&arm, None).await?;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    let waiting = {
        let (factory, maps) = (scene.factory().clone(), maps.clone());
        tokio::spawn(async move {
            factory.wait_for_handlers().await?;
            maps.synced().await.map(|lister| lister.len())
        })
    };
    tokio::task::yield_now().await;
    ensure!(recorder.all().is_empty() && !waiting.is_finished(), "nobody has started it");
    assert_eq!(maps.status().state, InformerState::NotStarted);
    let elsewhere = scene.factory().clone();
    // A plain thread has no runtime of its own.
    std::thread::spawn(move || elsewhere.start()).join().map_err(|_| anyhow::anyhow!("start panicked"))?;
    scene.start();
    maps.start();
    let start = scene.factory().clone();
    tokio::spawn(async move { start.start() }).await?;
    assert_eq!(soon("the wait", waiting).await???, 1);
    // One that is asked for afterwards runs without another call.
    let everywhere = scene.informer(InformerOptions::<Map>::new().all_namespaces())?;
    soon("the later one", everywhere.synced()).await??;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    assert_eq!(recorder.watches("configmaps").len(), 2, "{:#?}", recorder.all());
    scene.end().await
});

on_both_arms!(g23_each_scope_of_a_kind_is_one_shared_collection, |arm| async {
    let objects = Objects::new(&arm, "scopes").await?;
    let other = Objects::new(&arm, "elsewhere").await?;
    objects.create_labelled("web", "1", &[("app", "web"), ("tier", "front")]).await?;
    objects.create_labelled("db", "1", &[("app", "db")]).await?;
    other.create_labelled("web", "1", &[("app", "web")]).await?;
    let (scene, recorder) = Scene::recorded(&arm, None).await?;
    let selected = |text: &str| objects.options().labels(text);
    let all = scene
        .informer(InformerOptions::<Map>::new().all_namespaces().fields("metadata.name=web")?)?;
    let one = objects.informer(&scene)?;
    let web = scene.informer(selected("app=web,tier in (front,back)")?)?;
    let named = scene.informer(objects.options().fields("metadata.name=db")?)?;
    // Asked again, in other words.
    let again = [objects.informer(&scene)?, scene.informer(selected("")?)?];
    let web_again = scene.informer(selected("tier in (back,front),app=web")?)?;
    let labels = scene.enter(|| {
        metadata(scene.factory(), InformerOptions::new().namespace(&objects.namespace))
    })?;
    let seen = scene.observe(&one, "of the namespace", |h| h)?;
    let seen_again = scene.observe(&again[0], "of the namespace too", |h| h)?;
    let seen_web = scene.observe(&web, "of the selection", |h| h)?;
    let seen_all = scene.observe(&all, "of all namespaces", |h| h)?;
    scene.start();
    soon("all of them", scene.factory().wait_for_handlers()).await??;
    assert_eq!(scene.factory().statuses().len(), 5);
    assert_eq!(recorder.watches("configmaps").len(), 5, "one watch each: {:#?}", recorder.all());
    assert_eq!(
        (one.unsynced_store().len(), web.unsynced_store().len(), named.unsynced_store().len()),
        (2, 1, 1)
    );
    let ours =
        |informer: &SharedInformer<Map>| informer.unsynced_store().find(&objects.namespace, "web");
    let shared = (ours(&one).context("web")?, ours(&again[1]).context("web")?);
    ensure!(Arc::ptr_eq(&shared.0, &shared.1), "the same informer has one store");
    ensure!(ours(&web).is_some() && ours(&web_again).is_some() && ours(&all).is_some());
    let held = labels.unsynced_store().find(&objects.namespace, "web").context("web")?;
    assert_eq!(HasLabels::label(&*held, "app"), Some("web"));

    // An object that changes leaves and enters selections (client-go's 213).
    objects.label("web", "tier", "none").await?;
    scene
        .settles(
            &web,
            &format!("{}?labelSelector=app%3Dweb,tier%3Dfront", objects.path()),
            &[&seen_web],
        )
        .await?;
    objects.label("web", "tier", "back").await?;
    let path = format!("{}?labelSelector=tier%3Dback", objects.path());
    scene.settles(&web, &path, &[&seen_web]).await?;
    assert_eq!(seen_web.text(), "*web#1 -web#1 +web#1");
    scene.settles(&one, &objects.path(), &[&seen, &seen_again]).await?;
    assert_eq!(seen.text_of("web"), "*web#1 ~web#1 ~web#1");
    scene
        .settles(&all, "/api/v1/configmaps?fieldSelector=metadata.name%3Dweb", &[&seen_all])
        .await?;
    scene.end().await
});

on_both_arms!(g23_other_options_for_the_same_collection_are_an_error, |arm| async {
    let objects = Objects::new(&arm, "options").await?;
    let scene = Scene::new(&arm).await?;
    let change = |_: &mut Map| Ok(());
    let options = || objects.options().transform("nothing", change);
    let maps = scene.informer(options())?;
    scene.informer(options())?;
    let second = Duration::from_secs(1);
    let format = if asked_for()? == WireFormat::Json { WireFormat::Auto } else { WireFormat::Json };
    for (other, named) in [
        (objects.options(), "transform"),
        (objects.options().transform("something", change), "transform"),
        (options().resync(second), "resync"),
        (options().page_size(None), "page_size"),
        (options().streaming_lists(false), "streaming_lists"),
        (options().strict(), "strict"),
        (options().keep_managed_fields(), "keep_managed_fields"),
        (options().max_object_bytes(1024), "max_object_bytes"),
        (options().wire_format(format), "wire_format"),
    ] {
        let error = scene.enter(|| Map::informer(scene.factory(), other));
        let error = error.err().with_context(|| format!("another {named} was taken"))?;
        ensure!(
            matches!(error, Error::ConflictingOptions { option, .. } if option == named),
            "{error:?}"
        );
    }
    assert_eq!(scene.factory().statuses().len(), 1);
    drop(maps);
    scene.end().await
});

on_both_arms!(g24_one_informer_is_stopped_alone_and_can_be_asked_for_again, |arm| async {
    let objects = Objects::new(&arm, "stop").await?;
    let others = Objects::new(&arm, "go-on").await?;
    objects.create("a", "1").await?;
    let (scene, recorder) = Scene::recorded(&arm, None).await?;
    let (first, other) = (objects.informer(&scene)?, others.informer(&scene)?);
    let seen = scene.observe(&first, "the first handler", |h| h)?;
    let seen_other = scene.observe(&other, "the other handler", |h| h)?;
    let mut stream = first.events()?;
    scene.start();
    soon("both", scene.factory().wait_for_handlers()).await??;
    let open = arm.proxy().open();
    soon("the stop", scene.factory().stop(&first)).await?;
    // Its connection is closed, its stream has ended, its handler is told nothing more.
    comes_true("its connection is closed", || arm.proxy().open() < open).await?;
    ensure!(
        first.is_stopped()
            && first.status().state == InformerState::Stopped { cause: StopCause::Asked },
        "{}",
        first.status()
    );
    while soon("the end of the stream", stream.next()).await?.is_some() {}
    let asked = recorder.all().len();
    objects.create("b", "1").await?;
    others.create("c", "1").await?;
    scene.settles(&other, &others.path(), &[&seen_other]).await?;
    assert_eq!((seen.text().as_str(), seen_other.text().as_str()), ("*a#1", "+c#1"));
    assert_eq!(recorder.all().len(), asked, "it asks on: {:#?}", recorder.all());

    let second = objects.informer(&scene)?;
    let seen_second = scene.observe(&second, "the second handler", |h| h)?;
    scene.settles(&second, &objects.path(), &[&seen_second]).await?;
    ensure!(
        seen_second.counts().initial == 2 && first.unsynced_store().len() == 1,
        "{}",
        seen_second.text()
    );
    assert_eq!(scene.factory().statuses().len(), 2);
    // With a factory that is shut down it is over (client-go's 215).
    soon("the shutdown", scene.factory().shutdown()).await?;
    scene.factory().start();
    ensure!(second.is_stopped() && other.is_stopped());
    assert_eq!(
        error_text(Map::informer(scene.factory(), InformerOptions::new())),
        "the factory was shut down; build a new one"
    );
    assert_eq!(
        error_text(scene.factory().wait_for_sync().await),
        "the factory was shut down; build a new one"
    );
    scene.end().await
});

on_both_arms!(flavours g24_a_shutdown_lets_callbacks_return_and_is_back_in_time, |arm| async {
    let objects = Objects::new(&arm, "shutdown").await?;
    objects.create("a", "1").await?;
    for patient in [true, false] {
        let scene = Scene::new(&arm).await?;
        let maps = objects.informer(&scene)?;
        let (gate, keeper) = GateKeeper::new(true);
        let (tell, mut entered) = tokio::sync::mpsc::unbounded_channel();
        let slow = scene.observe_with(&maps, History::new("slow"), |h| h, move |_| {
            _ = tell.send(());
            gate.pass();
        })?;
        scene.start();
        soon("the callback begins", entered.recv()).await?;
        let began = Instant::now();
        let deadline = if patient { DEADLINE } else { Duration::from_millis(200) };
        let shutdown = {
            let factory = scene.factory().clone();
            tokio::spawn(async move { factory.shutdown_within(deadline).await })
        };
        if patient {
            comes_true("it stops", || maps.is_stopped()).await?;
            ensure!(!shutdown.is_finished(), "it does not wait for the callback");
            keeper.open();
        }
        soon("the shutdown", shutdown).await??;
        ensure!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
        // Handled, or left behind while it waits.
        assert_eq!(slow.counts().events(), usize::from(patient));
        assert_eq!(maps.status().state, InformerState::Stopped { cause: StopCause::Asked });
        keeper.open();
        scene.end().await?;
    }
    Ok(())
});

on_both_arms!(flavours g24_after_the_last_owner_nothing_runs, |arm| async {
    let objects = Objects::new(&arm, "owners").await?;
    objects.create("a", "1").await?;
    let scene = Scene::new(&arm).await?;
    let kept = Arc::new(());
    let alive = Arc::downgrade(&kept);
    let object: Weak<Map> = {
        let factory = scene.builder().await?;
        let factory = scene.enter(|| factory.namespace(&objects.namespace).build());
        let maps = scene.enter(|| Map::informer(&factory, InformerOptions::new()))?;
        let registration = maps.add_handler(|h| h.on_add(move |_, _| _ = Arc::strong_count(&kept)))?;
        let stream = maps.events()?;
        scene.enter(|| factory.start());
        soon("its handler", registration.synced()).await??;
        let lister = soon("its store", maps.synced()).await??;
        drop(factory);
        // Handles outlive the factory, and the informer with them.
        drop((registration, stream));
        reaches(&maps, &objects.change("a", "2").await?).await?;
        drop(maps);
        let first = lister.find(&objects.namespace, "a").context("a")?;
        objects.change("a", "3").await?;
        comes_true("a lister alone keeps it running", || {
            !lister.find(&objects.namespace, "a").is_some_and(|now| Arc::ptr_eq(&now, &first))
        })
        .await?;
        Arc::downgrade(&lister.find(&objects.namespace, "a").context("a")?)
    };
    comes_true("the handler is dropped", || alive.strong_count() == 0).await?;
    comes_true("the store is dropped", || object.strong_count() == 0).await?;
    comes_true("no connection is left", || arm.proxy().open() == 0).await?;
    scene.end().await
});

on_both_arms!(flavours g25_every_wait_ends_with_its_informer_and_can_be_dropped, |arm| async {
    let objects = Objects::new(&arm, "cancel").await?;
    let scene = Scene::new(&arm).await?;
    arm.begin_outage().await;
    let maps = objects.informer(&scene)?;
    let registration = maps.add_handler(|h| h)?;
    let mut stream = maps.events()?;
    scene.start();
    // In the middle of a backoff.
    status_where(&maps, is_backing_off).await?;
    ensure!(maps.synced().now_or_never().is_none() && registration.synced().now_or_never().is_none());
    ensure!(stream.next().now_or_never().is_none() && stream.synced().now_or_never().is_none());
    ensure!(scene.factory().wait_for_sync().now_or_never().is_none());
    let (tell, waiting) = tokio::sync::oneshot::channel();
    let waits = {
        let (maps, factory) = (maps.clone(), scene.factory().clone());
        tokio::spawn(async move {
            let all = async {
                tokio::join!(
                    async { maps.synced().await.err() },
                    async { registration.synced().await.err() },
                    async { maps.wait_for("1").await.err() },
                    async { factory.wait_for_sync().await.err() },
                    async { stream.next().await.map(drop) },
                    maps.run(),
                )
            };
            let mut all = std::pin::pin!(all);
            let begun = futures_util::poll!(&mut all).is_pending();
            _ = tell.send(begun);
            all.await
        })
    };
    ensure!(soon("the waits begin", waiting).await??, "they did not wait");
    let began = Instant::now();
    soon("the stop", scene.factory().stop(&maps)).await?;
    let (store, handler, version, all, end, ()) = soon("the waits", waits).await??;
    for error in [store, handler, version, all] {
        ensure!(matches!(error, Some(Error::Stopped { .. })), "{error:?}");
    }
    ensure!(end.is_none() && began.elapsed() < DEADLINE);
    arm.end_outage().await;
    scene.end().await
});
