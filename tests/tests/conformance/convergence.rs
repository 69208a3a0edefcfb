//! Whatever happens to connections and servers, the store becomes the collection, and what was
//! missed is told (G1, G6, G7, G9).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{bail, ensure};
use informer::{HandlerOptions, Index};
use informer_tests::observe::{DEADLINE, GateKeeper, History, Identified, Scene, comes_true};
use informer_tests::on_both_arms;

use crate::common::is_back;
use crate::form::value_of;
use crate::objects::Objects;

on_both_arms!(g01_after_cuts_and_outages_all_copies_are_the_collection, |arm| async {
    let objects = Objects::new(&arm, "faults").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let prompt = scene.observe(&maps, "the prompt handler", |h| h)?;
    let (gate, keeper) = GateKeeper::new(false);
    let slow = scene.observe_with(
        &maps,
        History::new("the slow handler"),
        |h| h.capacity(3),
        move |_| gate.pass(),
    )?;
    let stream = scene.read(
        &maps,
        History::new("the stream"),
        &HandlerOptions::new(),
        tokio::task::yield_now,
    )?;
    scene.start();
    objects.create_all(&["a", "b", "c", "d", "e", "f"]).await?;
    for round in 0..3 {
        let value = format!("round {round}");
        keeper.close();
        objects.change("a", &value).await?;
        arm.cut_watches().await;
        objects.replace("b").await?;
        objects.change("c", &value).await?;
        arm.begin_outage().await;
        objects.replace("d").await?;
        objects.delete("e").await?;
        objects.create(&format!("new-{round}"), &value).await?;
        for _ in 0..5 {
            objects.change("f", &format!("{value}+")).await?;
            objects.change("f", &value).await?;
        }
        arm.end_outage().await;
        objects.create("e", &value).await?;
        scene.settles(&maps, &objects.path(), &[&prompt, &stream]).await?;
        keeper.open();
        scene.settles(&maps, &objects.path(), &[&prompt, &slow, &stream]).await?;
    }
    // History went on behind each gap, so nothing was missed.
    assert_eq!(prompt.counts().unknown, 0);
    assert_eq!(prompt.text_of("d"), stream.text_of("d"));
    scene.end().await
});

on_both_arms!(own g05_g06_g07_a_gap_that_the_server_forgot_is_told_as_what_it_changed, |arm| async {
    let objects = Objects::new(&arm, "gap").await?;
    objects.create_all(&["changed", "gone", "kept", "other", "replaced"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let by_value = maps.add_index("value", |map, values| values.push(value_of(map))).await?;
    let gap = Arc::new(AtomicBool::new(false));
    let in_store = Arc::new(Mutex::new(Vec::new()));
    let (after_gap, store, note) = (Arc::clone(&gap), maps.unsynced_store(), Arc::clone(&in_store));
    let seen = scene.observe_with(
        &maps,
        History::new("the handler"),
        |h| h,
        move |_| {
            if after_gap.load(Ordering::Acquire) {
                let names: Vec<_> = store.list().iter().map(|map| map.identity().name.into_owned()).collect();
                note.lock().expect("no panic").push(names.join(" "));
            }
        },
    )?;
    scene.start();
    let lister = maps.synced().await?;
    seen.synced().await?;
    let before = lister.snapshot();
    let known: Vec<_> = before.iter().map(|entry| Arc::clone(entry.object())).collect();

    arm.begin_outage().await;
    objects.delete("gone").await?;
    objects.replace("replaced").await?;
    objects.change("changed", "2").await?;
    objects.create("new", "1").await?;
    // What happens before history is forgotten for good is nobody's last known state.
    objects.create("brief", "1").await?;
    objects.delete("brief").await?;
    gap.store(true, Ordering::Release);
    arm.compact().await?;
    arm.end_outage().await;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;

    let initial = seen.counts().initial;
    assert_eq!(
        seen.notes()[initial..].join(" "),
        "-gone#1? ~changed#1 +new#1 -replaced#1? +replaced#2",
        "what vanished first, then the rest, each in the order of the keys"
    );
    let after = lister.snapshot();
    for name in ["kept", "other"] {
        let [old, new] = [&before, &after].map(|snapshot| snapshot.find(&objects.namespace, name));
        let same = old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(old.object(), new.object()));
        assert!(same, "G7: {name} keeps its allocation");
    }
    let seen_in_store = in_store.lock().expect("no panic").clone();
    assert_eq!(seen_in_store, ["changed kept new other replaced"; 5], "G9: a relist is one step");
    // G10, G11: the old snapshot is what it was, the new one is right in its index too.
    assert!(before.iter().zip(&known).all(|(entry, known)| Arc::ptr_eq(entry.object(), known)));
    assert_eq!(before.by_index(&by_value, "1")?.count(), 5);
    let names = |index: &Index<_>, value| -> anyhow::Result<String> {
        Ok(after.by_index(index, value)?.map(|entry| entry.key.name()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(names(&by_value, "1")?, "kept new other");
    assert_eq!(names(&by_value, "2")?, "changed");
    assert_eq!(names(&by_value, "another")?, "replaced");
    drop(lister);
    scene.end().await
});

on_both_arms!(own g01_g07_a_server_that_dies_and_comes_back_costs_what_changed, |arm| async {
    let objects = Objects::new(&arm, "restart").await?;
    objects.create_all(&["a", "b", "c"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    let lister = maps.synced().await?;
    seen.synced().await?;
    let before = lister.list();
    arm.kill_server().await?;
    comes_true("the outage is told", || !maps.status().recent_errors.is_empty()).await?;
    assert_eq!(lister.len(), 3, "the store stays through an outage");
    arm.start_server().await?;
    is_back(&arm).await?;
    objects.create("d", "1").await?;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    assert_eq!(seen.text(), "*a#1 *b#1 *c#1 +d#1");
    ensure!(lister.list().iter().zip(&before).all(|(new, old)| Arc::ptr_eq(new, old)), "G7");
    drop(lister);
    scene.end().await
});

on_both_arms!(g09_handlers_see_nothing_before_the_whole_list, |arm| async {
    let objects = Objects::new(&arm, "atomic").await?;
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    objects.create_all(&names).await?;
    for streaming in [true, false] {
        let scene = Scene::new(&arm).await?;
        let maps = scene.informer(objects.options().streaming_lists(streaming))?;
        let (store, sizes) = (maps.unsynced_store(), Arc::new(Mutex::new(Vec::new())));
        let note = Arc::clone(&sizes);
        let seen = scene.observe_with(
            &maps,
            History::new("the handler"),
            |h| h,
            move |_| note.lock().expect("no panic").push(store.len()),
        )?;
        assert!(maps.unsynced_store().is_empty());
        scene.start();
        seen.synced().await?;
        assert_eq!(*sizes.lock().expect("no panic"), [names.len(); 7]);
        assert_eq!(seen.text(), "*a#1 *b#1 *c#1 *d#1 *e#1 *f#1 *g#1");
        scene.settles(&maps, &objects.path(), &[&seen]).await?;
        scene.end().await?;
    }
    Ok(())
});

on_both_arms!(g06_a_delete_that_the_watch_shows_carries_the_final_state, |arm| async {
    let objects = Objects::new(&arm, "final").await?;
    objects.create("a", "1").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let last = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&last);
    maps.add_handler(|h| {
        h.on_delete(move |gone| {
            let version = gone.last.identity().version.into_owned();
            note.lock().expect("no panic").push((value_of(&gone.last).into_owned(), version));
        })
    })?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    seen.synced().await?;
    // Both happen behind a gap, and the watch goes on where it was: nothing is lost.
    arm.begin_outage().await;
    let changed = objects.change("a", "final").await?;
    objects.delete("a").await?;
    arm.end_outage().await;
    seen.receives(3, DEADLINE).await?;
    assert_eq!(seen.text(), "*a#1 ~a#1 -a#1");
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    let is_told = || !last.lock().expect("no panic").is_empty();
    comes_true("the other handler is told", is_told).await?;
    scene.end().await?;
    let last = last.lock().expect("no panic").clone();
    let [(value, version)] = &last[..] else { bail!("deleted once, not {last:?}") };
    assert_eq!(value, "final");
    // The server gives a deletion a version of its own.
    assert_ne!(*version, changed, "the state before the final one");
    Ok(())
});
