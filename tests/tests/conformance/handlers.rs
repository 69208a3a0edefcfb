//! Registrations beside each other: resyncs, isolation, backlogs, late ones, removed ones (G8, G15
//! to G18).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use informer::{Error, HandlerOptions, InformerState, Removal, StopCause};
use informer_tests::observe::{DEADLINE, GateKeeper, History, Scene, comes_true, soon};
use informer_tests::on_both_arms;

use crate::form::value_of;
use crate::objects::Objects;

on_both_arms!(g08_a_resync_shows_the_store_to_those_who_asked_and_asks_no_server, |arm| async {
    let objects = Objects::new(&arm, "resync").await?;
    objects.create_all(&["a", "b"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let often = History::new("the one who asks often").resyncing();
    let often =
        scene.observe_with(&maps, often, |h| h.resync(Duration::from_millis(100)), |_| ())?;
    let seldom = History::new("the one who asks seldom").resyncing();
    let seldom =
        scene.observe_with(&maps, seldom, |h| h.resync(Duration::from_secs(3600)), |_| ())?;
    let never = scene.observe(&maps, "the one who does not ask", |h| h)?;
    scene.start();
    maps.synced().await?;
    objects.catch_up(&maps).await?;
    scene.settles(&maps, &objects.path(), &[&often, &seldom, &never]).await?;
    let (from, before) = (often.counts().events(), maps.status().counters);
    often.receives(from + 12, DEADLINE).await?;
    let after = maps.status().counters;
    assert_eq!(
        (before.lists, before.watches, before.events),
        (after.lists, after.watches, after.events)
    );
    assert_eq!((seldom.counts().resynced, never.counts().resynced), (0, 0));
    // Whole rounds, in the order of the keys.
    let rounds = often.notes().split_off(from);
    let begin = rounds.iter().position(|note| note == "@a#1").context("a round begins")?;
    assert_eq!(rounds[begin..begin + 6].join(" "), "@a#1 @b#1 @marker#1 @a#1 @b#1 @marker#1");
    scene.settles(&maps, &objects.path(), &[&often, &seldom, &never]).await?;
    scene.end().await
});

on_both_arms!(g08_the_informers_resync_is_the_default_that_a_handler_may_turn_off, |arm| async {
    let objects = Objects::new(&arm, "default-resync").await?;
    objects.create("a", "1").await?;
    let scene = Scene::new(&arm).await?;
    let maps = scene.informer(objects.options().resync(Duration::from_millis(100)))?;
    let asks = scene.observe_with(&maps, History::new("the default").resyncing(), |h| h, |_| ())?;
    let off = scene.observe(&maps, "turned off", |h| h.resync(Duration::ZERO))?;
    scene.start();
    asks.receives(4, DEADLINE).await?;
    scene.settles(&maps, &objects.path(), &[&asks, &off]).await?;
    assert_eq!(off.text(), "*a#1");
    assert!(asks.text().starts_with("*a#1 @a#1 @a#1 @a#1"), "{}", asks.text());
    scene.end().await
});

on_both_arms!(g08_a_resync_shows_also_what_changed_behind_a_gap, |arm| async {
    let objects = Objects::new(&arm, "resync-gap").await?;
    objects.create_all(&["a", "b", "c"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let asks = History::new("the one who asks").resyncing();
    let asks = scene.observe_with(&maps, asks, |h| h.resync(Duration::from_millis(100)), |_| ())?;
    let never = scene.observe(&maps, "the one who does not ask", |h| h)?;
    scene.start();
    never.synced().await?;
    arm.begin_outage().await;
    objects.change("b", "2").await?;
    objects.change("c", "2").await?;
    // Resyncs go on while no server answers.
    let seen = asks.counts().events();
    asks.receives(seen + 6, DEADLINE).await?;
    arm.end_outage().await;
    scene.settles(&maps, &objects.path(), &[&asks, &never]).await?;
    assert_eq!(never.text(), "*a#1 *b#1 *c#1 ~b#1 ~c#1");
    for name in ["a", "b", "c"] {
        assert!(asks.text_of(name).contains(&format!("@{name}#1")), "{}", asks.text_of(name));
    }
    scene.end().await
});

on_both_arms!(g15_handlers_that_block_and_panic_delay_nobody_on_a_single_thread, |arm| async {
    let objects = Objects::new(&arm, "isolation").await?;
    objects.create_all(&["a", "bad"]).await?;
    let scene = Scene::on_current_thread(&arm).await?;
    let maps = objects.informer(&scene)?;
    let (gate, keeper) = GateKeeper::new(true);
    let arrived = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&arrived);
    let blocked = scene.observe_with(
        &maps,
        History::new("the blocked handler"),
        |h| h,
        move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            gate.pass();
        },
    )?;
    let panicking = scene.observe_with(
        &maps,
        History::new("the panicking handler"),
        |h| h.name("fragile"),
        |event| assert!(event.key().name() != "bad", "cannot stand this one"),
    )?;
    let other = scene.observe(&maps, "the other handler", |h| h)?;
    let stream =
        scene.read(&maps, History::new("the stream"), &HandlerOptions::new(), async || ())?;
    scene.start();
    maps.synced().await?;
    comes_true("the blocked handler is called", || arrived.load(Ordering::Relaxed) == 1).await?;
    // An initial object that changes before it is given is given as it is then.
    for observer in [&panicking, &other, &stream] {
        observer.synced().await?;
    }
    for round in 0..10 {
        objects.change("a", &round.to_string()).await?;
        objects.catch_up(&maps).await?;
    }
    arm.cut_watches().await;
    objects.change("a", "last").await?;
    scene.settles(&maps, &objects.path(), &[&other, &stream]).await?;
    let late = scene.observe(&maps, "the late handler", |h| h)?;
    late.synced().await?;
    scene.settles(&maps, &objects.path(), &[&late]).await?;
    assert_eq!(arrived.load(Ordering::Relaxed), 1, "it still waits");
    assert_eq!(panicking.text_of("a"), other.text_of("a"), "a panic costs one event");
    assert_eq!(panicking.text_of("bad"), "");
    let status = maps.status();
    assert_eq!(status.counters.handler_panics, 1);
    let told =
        status.recent_errors.iter().any(|error| error.message.contains("fragile panicked on"));
    ensure!(told, "{:#?}", status.recent_errors);
    keeper.open();
    scene.settles(&maps, &objects.path(), &[&blocked]).await?;
    scene.end().await
});

on_both_arms!(g16_a_backlog_is_bounded_by_capacity_and_keys_and_ends_in_the_newest, |arm| async {
    let objects = Objects::new(&arm, "backlog").await?;
    objects.create_all(&["a", "b", "c"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let (gate, keeper) = GateKeeper::new(false);
    let slow = scene.observe_with(
        &maps,
        History::new("the slow handler"),
        |h| h.capacity(4),
        move |_| gate.pass(),
    )?;
    let (stream_gate, stream_opened) = tokio::sync::watch::channel(true);
    let unread = scene.read(
        &maps,
        History::new("the stream that nobody reads"),
        &HandlerOptions::new().capacity(2),
        move || {
            let mut opened = stream_opened.clone();
            async move { _ = opened.wait_for(|open| *open).await }
        },
    )?;
    let roomy = scene.observe(&maps, "the handler with room", |h| h)?;
    scene.start();
    for observer in [&slow, &unread, &roomy] {
        observer.synced().await?;
    }
    keeper.close();
    stream_gate.send_replace(false);
    objects.catch_up(&maps).await?;
    for round in 0..15 {
        for name in ["a", "b", "c"] {
            objects.change(name, &round.to_string()).await?;
        }
        objects.create("brief", "1").await?;
        objects.delete("brief").await?;
    }
    objects.delete("c").await?;
    scene.settles(&maps, &objects.path(), &[&roomy]).await?;
    assert_eq!(roomy.counts().events(), 3 + 1 + 15 * 5 + 1);
    for observer in [&slow, &unread] {
        let status = observer.registration().status();
        // Capacity, one entry of each of four keys, and two of one that is replaced; as much was
        // taken at once at most.
        assert!(status.depth <= 2 * (4 + 4 + 2), "{status:?}");
        assert!(status.merged >= 50, "{status:?}");
    }
    keeper.open();
    stream_gate.send_replace(true);
    scene.settles(&maps, &objects.path(), &[&slow, &unread]).await?;
    for observer in [&slow, &unread] {
        assert!(observer.counts().events() < 25, "{}", observer.text());
    }
    scene.end().await
});

on_both_arms!(g17_late_registrations_get_the_store_then_what_follows, |arm| async {
    let objects = Objects::new(&arm, "late").await?;
    objects.create_all(&["a", "b", "c", "d"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let early = scene.observe(&maps, "the early handler", |h| h)?;
    scene.start();
    early.synced().await?;
    objects.create("later", "1").await?;
    objects.catch_up(&maps).await?;
    let quiet = scene.observe(&maps, "the quiet late handler", |h| h)?;
    quiet.synced().await?;
    // Initial is what was there when the registration began, not what the first list had.
    assert_eq!(quiet.text(), "*a#1 *b#1 *c#1 *d#1 *later#1 *marker#1");
    // Six before the churn, and five events a round.
    let all = 6 + 25 * 5;
    let churn = async {
        for round in 0..25 {
            objects.change("a", &round.to_string()).await?;
            objects.replace("b").await?;
            objects.delete("later").await?;
            objects.create("later", &round.to_string()).await?;
        }
        anyhow::Ok(())
    };
    let register = async {
        let mut late = Vec::new();
        for number in 0..8 {
            // The churn may be over before the last of them is there.
            let next = early.counts().events() + 5;
            early.receives(next.min(all), DEADLINE).await?;
            let name = format!("late handler {number}");
            late.push(scene.observe(&maps, &name, |h| h.capacity(1 + number))?);
            let history = History::new(format!("late stream {number}"));
            late.push(scene.read(
                &maps,
                history,
                &HandlerOptions::new(),
                tokio::task::yield_now,
            )?);
        }
        anyhow::Ok(late)
    };
    let (churned, late) = tokio::join!(churn, register);
    churned?;
    let late = late?;
    scene.settles(&maps, &objects.path(), &[&early, &quiet]).await?;
    scene.settles(&maps, &objects.path(), &late.iter().collect::<Vec<_>>()).await?;
    for observer in &late {
        ensure!(observer.counts().initial >= 4, "{observer:?} was given {}", observer.text());
    }
    assert_eq!(early.counts().events(), all, "the late ones took and disturbed nothing");
    scene.end().await
});

on_both_arms!(g18_a_removed_registration_is_never_called_again, |arm| async {
    let objects = Objects::new(&arm, "removal").await?;
    objects.create("a", "1").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let (gate, keeper) = GateKeeper::new(false);
    let removed = scene.observe_with(
        &maps,
        History::new("the removed handler"),
        |h| h.name("removed"),
        move |_| gate.pass(),
    )?;
    let other = scene.observe(&maps, "the other handler", |h| h)?;
    let mut stream = maps.events_with(&HandlerOptions::new().name("stream"))?;
    scene.start();
    removed.synced().await?;
    assert!(soon("the stream yields", stream.next()).await?.is_some());
    keeper.close();
    for round in 0..10 {
        objects.change("a", &round.to_string()).await?;
    }
    objects.catch_up(&maps).await?;
    // One call waits at the gate, ten are behind it: removing waits for the one and drops the
    // others.
    let removal = removed.registration().clone();
    let mut removing = std::pin::pin!(removal.remove());
    let still = tokio::time::timeout(Duration::from_millis(20), &mut removing).await;
    assert!(still.is_err(), "a call is under way");
    keeper.open();
    assert_eq!(soon("the call returns", removing).await?, Removal::Removed);
    let (text, events) = (removed.text(), removed.counts().events());
    assert_eq!(text, "*a#1 ~a#1");
    assert_eq!(removal.remove().await, Removal::Removed, "again does nothing");
    drop(stream);
    objects.change("a", "last").await?;
    scene.settles(&maps, &objects.path(), &[&other]).await?;
    assert_eq!(removed.counts().events(), events, "{}", removed.text());
    let names: Vec<_> = maps.status().registrations.into_iter().map(|one| one.name).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    scene.end().await
});

on_both_arms!(g18_a_dropped_handle_leaves_its_callback_running, |arm| async {
    let objects = Objects::new(&arm, "detached").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    drop(
        maps.add_handler(|h| h.on_add(move |map, _| _ = sender.send(value_of(map).into_owned())))?,
    );
    scene.start();
    maps.synced().await?;
    objects.create("a", "1").await?;
    assert_eq!(soon("the callback is called", heard.recv()).await?, Some("1".to_owned()));
    scene.end().await
});

on_both_arms!(g18_after_a_stop_nothing_can_be_added_and_everything_removed, |arm| async {
    let objects = Objects::new(&arm, "stopped").await?;
    objects.create("a", "1").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    assert!(!maps.is_stopped() && maps.status().state == InformerState::NotStarted);
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    seen.synced().await?;
    assert!(!maps.is_stopped() && maps.status().state != InformerState::NotStarted);
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    scene.factory().stop(&maps).await;
    assert!(
        maps.is_stopped()
            && maps.status().state == InformerState::Stopped { cause: StopCause::Asked }
    );
    assert!(matches!(maps.add_handler(|h| h), Err(Error::Stopped { .. })));
    assert!(matches!(maps.events(), Err(Error::Stopped { .. })));
    assert_eq!(soon("a removal", seen.registration().remove()).await?, Removal::Removed);
    assert_eq!(seen.text(), "*a#1", "a stop deletes nothing");
    assert_eq!(maps.unsynced_store().len(), 1);
    scene.end().await
});
