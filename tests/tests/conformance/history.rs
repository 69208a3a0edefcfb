//! What registrations are given: the store first, in order, one object at a time (G2 to G5).

use informer::HandlerOptions;
use informer_tests::observe::{DEADLINE, GateKeeper, History, Scene, comes_true};
use informer_tests::on_both_arms;

use crate::objects::Objects;

on_both_arms!(g03_an_objects_life_is_add_updates_and_delete, |arm| async {
    let objects = Objects::new(&arm, "life").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    maps.synced().await?;
    objects.create("a", "1").await?;
    objects.change("a", "2").await?;
    objects.delete("a").await?;
    seen.receives(3, DEADLINE).await?;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    assert_eq!(seen.text(), "+a#1 ~a#1 -a#1");
    scene.end().await
});

on_both_arms!(g02_every_observer_finds_the_store_there_already, |arm| async {
    // Histories look into the store at every event, and fail if it is behind.
    let objects = Objects::new(&arm, "store-first").await?;
    objects.create_all(&["a", "b", "c", "d"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let prompt = scene.observe(&maps, "the prompt handler", |h| h)?;
    let (gate, keeper) = GateKeeper::new(true);
    let slow = scene.observe_with(
        &maps,
        History::new("the slow handler"),
        |h| h.capacity(2),
        move |_| gate.pass(),
    )?;
    let stream = scene.read(
        &maps,
        History::new("the stream"),
        &HandlerOptions::new(),
        tokio::task::yield_now,
    )?;
    scene.start();
    prompt.synced().await?;
    for round in 0..8 {
        objects.change("a", &round.to_string()).await?;
        objects.replace("b").await?;
        objects.delete("c").await?;
        objects.create("c", &round.to_string()).await?;
        objects.change("d", &round.to_string()).await?;
    }
    scene.settles(&maps, &objects.path(), &[&prompt, &stream]).await?;
    keeper.open();
    scene.settles(&maps, &objects.path(), &[&prompt, &slow, &stream]).await?;
    // Four objects, and each round six events.
    assert_eq!((prompt.counts().events(), stream.counts().events()), (52, 52));
    assert!(slow.counts().events() < 20, "{}", slow.text());
    scene.end().await
});

on_both_arms!(g04_events_come_in_the_servers_order, |arm| async {
    let objects = Objects::new(&arm, "order").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    let stream =
        scene.read(&maps, History::new("the stream"), &HandlerOptions::new(), async || ())?;
    scene.start();
    maps.synced().await?;
    objects.create_all(&["c", "a", "b"]).await?;
    objects.change("b", "2").await?;
    objects.delete("a").await?;
    objects.change("c", "2").await?;
    objects.change("b", "3").await?;
    objects.create("a", "2").await?;
    objects.delete("b").await?;
    scene.settles(&maps, &objects.path(), &[&seen, &stream]).await?;
    let told = "+c#1 +a#1 +b#1 ~b#1 -a#1 ~c#1 ~b#1 +a#2 -b#1";
    assert_eq!((seen.text().as_str(), stream.text().as_str()), (told, told));
    scene.end().await
});

on_both_arms!(g05_another_object_under_a_name_is_a_delete_and_an_add, |arm| async {
    let objects = Objects::new(&arm, "identity").await?;
    objects.create_all(&["a", "b"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let prompt = scene.observe(&maps, "the prompt handler", |h| h)?;
    let (gate, keeper) = GateKeeper::new(false);
    let slow = scene.observe_with(
        &maps,
        History::new("the slow handler"),
        |h| h.capacity(1),
        move |_| gate.pass(),
    )?;
    scene.start();
    prompt.synced().await?;
    slow.synced().await?;
    keeper.close();
    // The call that waits at the gate is of the marker.
    objects.catch_up(&maps).await?;
    comes_true("it waits", || keeper.is_waited_at()).await?;
    objects.replace("a").await?;
    arm.begin_outage().await;
    objects.replace("a").await?;
    objects.replace("b").await?;
    objects.change("b", "changed").await?;
    arm.end_outage().await;
    scene.settles(&maps, &objects.path(), &[&prompt]).await?;
    assert_eq!(prompt.text_of("a"), "*a#1 -a#1 +a#2 -a#2 +a#3");
    assert_eq!(prompt.text_of("b"), "*b#1 -b#1 +b#2 ~b#2");
    keeper.open();
    scene.settles(&maps, &objects.path(), &[&slow]).await?;
    // The second object of the name came and went unseen: what is added is a third, the second seen
    // here.
    assert_eq!(slow.text_of("a"), "*a#1 -a#1 +a#2");
    assert_eq!(slow.text_of("b"), "*b#1 -b#1 +b#2");
    scene.end().await
});
