//! Reading: snapshots, indexes, namespaces, versions (G10 to G14).

use std::sync::Arc;

use anyhow::ensure;
use informer::store::IndexError;
use informer::{Error, Index, InformerOptions, Lister};
use informer_tests::observe::{Identified, Scene, comes_true, soon};
use informer_tests::on_both_arms;

use crate::form::value_of;
use crate::objects::{Map, Objects};

/// Names, in the order of the store.
fn names<'a>(objects: impl IntoIterator<Item = &'a Arc<Map>>) -> String {
    let names = objects.into_iter().map(|map| map.identity().name);
    names.collect::<Vec<_>>().join(" ")
}

fn indexed(lister: &Lister<Map>, index: &Index<Map>, value: &str) -> anyhow::Result<String> {
    Ok(names(&lister.by_index(index, value)?))
}

on_both_arms!(g10_g13_a_snapshot_is_one_state_of_objects_and_indexes_for_ever, |arm| async {
    let objects = Objects::new(&arm, "snapshot").await?;
    objects.create_all(&["a", "b", "c"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let index = maps.add_index("value", |map, values| values.push(value_of(map))).await?;
    scene.start();
    let lister = maps.synced().await?;
    let mut held = vec![(lister.snapshot(), "a=1 b=1 c=1".to_owned())];
    for round in 2..6 {
        objects.change("a", &round.to_string()).await?;
        objects.replace("b").await?;
        objects.change("b", &round.to_string()).await?;
        arm.cut_watches().await;
        objects.catch_up(&maps).await?;
        held.push((lister.snapshot(), format!("a={round} b={round} c=1")));
    }
    for (snapshot, expected) in &held {
        let objects = snapshot.iter().filter(|entry| entry.key.name() != "marker");
        let found: Vec<_> = objects
            .map(|entry| format!("{}={}", entry.key.name(), value_of(entry.object())))
            .collect();
        assert_eq!(found.join(" "), *expected);
        for entry in snapshot.iter() {
            let value = value_of(entry.object());
            let mut filed = snapshot.by_index(&index, &value)?;
            ensure!(filed.any(|hit| hit.key == entry.key), "{} is not in its index", entry.key);
            // G13, and what the store says of an object is what the object says.
            assert_eq!(entry.object().identity().version, entry.record.version.to_string());
        }
        let filed: usize = snapshot
            .index_values(&index)?
            .iter()
            .map(|value| snapshot.by_index(&index, value).map_or(0, Iterator::count))
            .sum();
        assert_eq!(filed, snapshot.len(), "nothing else is in the index");
    }
    let versions: Vec<_> = held.iter().map(|(snapshot, _)| snapshot.version().clone()).collect();
    let rising = versions
        .windows(2)
        .all(|pair| pair[0].compare(&pair[1]).is_some_and(|order| order.is_lt()));
    assert!(rising, "{versions:?}");
    scene.settles(&maps, &objects.path(), &[]).await?;
    drop(lister);
    scene.end().await
});

on_both_arms!(g11_an_index_added_while_running_is_exact_from_then_on, |arm| async {
    let objects = Objects::new(&arm, "index").await?;
    objects.create_all(&["a", "b", "c"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    let lister = maps.synced().await?;
    seen.synced().await?;
    let before = lister.snapshot();
    // Any number of values: each letter of the value.
    let letters = |map: &Map, values: &mut informer::IndexValues| {
        values.extend(value_of(map).chars().map(|letter| letter.to_string()));
    };
    let index = maps.add_index("letters", letters).await?;
    assert_eq!(indexed(&lister, &index, "1")?, "a b c");
    let older = before.by_index(&index, "1").map(Iterator::count);
    assert_eq!(older, Err(IndexError::Missing { name: "letters".to_owned() }));
    let again = maps.add_index("letters", letters).await;
    assert!(matches!(again, Err(Error::Index(IndexError::Duplicate { .. }))), "{again:?}");

    objects.change("a", "12").await?;
    objects.change("b", "23").await?;
    objects.catch_up(&maps).await?;
    assert_eq!([indexed(&lister, &index, "1")?, indexed(&lister, &index, "2")?], ["a c", "a b"]);
    arm.begin_outage().await;
    objects.replace("b").await?;
    objects.change("b", "3").await?;
    objects.delete("a").await?;
    arm.end_outage().await;
    objects.catch_up(&maps).await?;
    let values = lister.snapshot().index_values(&index)?;
    let values: Vec<&str> =
        values.iter().map(AsRef::as_ref).filter(|value| *value != "+").collect();
    assert_eq!(values, ["1", "3"], "values that nothing has are not listed");
    assert_eq!([indexed(&lister, &index, "1")?, indexed(&lister, &index, "3")?], ["c", "b"]);
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    drop(lister);
    scene.end().await
});

on_both_arms!(g11_two_informers_with_one_index_share_no_state, |arm| async {
    let (here, there) = (Objects::new(&arm, "here").await?, Objects::new(&arm, "there").await?);
    here.create_all(&["a", "b"]).await?;
    there.create_all(&["c"]).await?;
    let scene = Scene::new(&arm).await?;
    let (left, right) = (here.informer(&scene)?, there.informer(&scene)?);
    let index = Index::new("value", |map: &Map, values| values.push(value_of(map)));
    left.add_ready_index(&index).await?;
    right.add_ready_index(&index).await?;
    scene.start();
    let (left_lister, right_lister) = (left.synced().await?, right.synced().await?);
    assert_eq!(indexed(&left_lister, &index, "1")?, "a b");
    assert_eq!(indexed(&right_lister, &index, "1")?, "c");
    let more = left.add_index("more", |_, values| values.push("all")).await?;
    assert!(right_lister.by_index(&more, "all").is_err());
    right.add_index("more", |_, values| values.push("other")).await?;
    assert_eq!(indexed(&left_lister, &more, "all")?, "a b");
    here.change("a", "2").await?;
    here.catch_up(&left).await?;
    assert_eq!(indexed(&left_lister, &index, "2")?, "a");
    assert_eq!(indexed(&right_lister, &index, "1")?, "c");
    drop((left_lister, right_lister));
    scene.end().await
});

on_both_arms!(g11_an_index_function_that_panics_is_told_and_harms_nothing_else, |arm| async {
    let objects = Objects::new(&arm, "index-panic").await?;
    objects.create_all(&["a", "bad", "c"]).await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let good = maps.add_index("good", |map, values| values.push(value_of(map))).await?;
    let fragile = maps.add_index("fragile", |map: &Map, values| {
        assert!(map.identity().name != "bad", "not this one");
        values.push(value_of(map));
    });
    let fragile = fragile.await?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    let lister = maps.synced().await?;
    let told = || {
        maps.status().recent_errors.iter().filter(|error| error.message.contains("fragile")).count()
    };
    comes_true("the panic is told", || told() == 1).await?;
    assert_eq!(
        [indexed(&lister, &good, "1")?, indexed(&lister, &fragile, "1")?],
        ["a bad c", "a c"]
    );
    objects.change("bad", "2").await?;
    objects.change("a", "2").await?;
    objects.catch_up(&maps).await?;
    assert_eq!([indexed(&lister, &good, "2")?, indexed(&lister, &fragile, "2")?], ["a bad", "a"]);
    comes_true("the second panic is told", || told() == 2).await?;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    drop(lister);
    scene.end().await
});

on_both_arms!(g12_reads_of_a_namespace_and_of_selectors_find_what_the_server_finds, |arm| async {
    let (here, there) = (Objects::new(&arm, "read-a").await?, Objects::new(&arm, "read-b").await?);
    // A label of this test alone, on a cluster that others use too.
    let mine = ("mine", here.namespace.as_str());
    for objects in [&here, &there] {
        for (name, app) in [("a", "web"), ("b", "db"), ("c", "web")] {
            objects.create_labelled(name, "1", &[mine, ("app", app)]).await?;
        }
        objects.create_labelled("d", "1", &[mine]).await?;
        objects.create_labelled("not-mine", "1", &[("app", "web")]).await?;
    }
    let scene = Scene::new(&arm).await?;
    let selector = format!("mine={}", mine.1);
    let options = InformerOptions::<Map>::new().all_namespaces().labels(selector)?;
    let maps = scene.informer(options)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    let lister = maps.synced().await?;
    let path = format!("/api/v1/configmaps?labelSelector=mine%3D{}", mine.1);
    scene.settles(&maps, &path, &[&seen]).await?;
    let lists = |selector: &str| -> anyhow::Result<[String; 3]> {
        let [in_here, in_there] = [&here, &there].map(|one| lister.namespace(&one.namespace));
        Ok([
            names(lister.select(selector)?.iter()),
            names(in_here.select(selector)?.iter()),
            names(in_there.select(selector)?.iter()),
        ])
    };
    assert_eq!(names(&lister.namespace(&there.namespace).list()), "a b c d");
    assert!(lister.namespace("nowhere").list().is_empty());
    assert!(lister.namespace(&here.namespace).get("not-mine").is_none());
    // A scan first, then through the index: the same.
    for _ in 0..2 {
        assert_eq!(lists("app=web")?, ["a c a c", "a c", "a c"]);
        assert_eq!(lists("app in (web,db)")?, ["a b c a b c", "a b c", "a b c"]);
        assert_eq!(lists("app!=web")?, ["b d b d", "b d", "b d"]);
        assert_eq!(lists("!app")?, ["d d", "d", "d"]);
        maps.add_label_index("app").await?;
    }
    // Out of the selection and in again: a delete, and an add of the same object.
    there.label("a", "mine", "no").await?;
    there.label("a", "mine", mine.1).await?;
    there.label("c", "app", "db").await?;
    scene.settles(&maps, &path, &[&seen]).await?;
    assert_eq!(lists("app=web")?, ["a c a", "a c", "a"]);
    let end = seen.notes().split_off(8).join(" ");
    assert_eq!(end, "-a#1 +a#1 ~c#1");
    drop(lister);
    scene.end().await
});

on_both_arms!(g14_the_store_knows_its_version_and_ones_own_writes_can_be_waited_for, |arm| async {
    let objects = Objects::new(&arm, "version").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    assert!(maps.last_sync_resource_version().is_unset());
    scene.start();
    let lister = maps.synced().await?;
    for round in 0..20 {
        let version = match round {
            0 => objects.create("a", "0").await?,
            _ => objects.change("a", &round.to_string()).await?,
        };
        if round == 10 {
            arm.cut_watches().await;
        }
        soon("the store reaches a write", maps.wait_for(version.as_str())).await??;
        let snapshot = lister.snapshot();
        let held = snapshot
            .find(&objects.namespace, "a")
            .map(|entry| value_of(entry.object()).into_owned());
        assert_eq!(held, Some(round.to_string()));
        assert!(snapshot.version().has_reached(&version.as_str().into()));
    }
    let unordered = maps.wait_for("no number").await;
    assert!(matches!(unordered, Err(Error::UnorderedVersion { .. })), "{unordered:?}");
    scene.settles(&maps, &objects.path(), &[]).await?;
    drop(lister);
    scene.end().await
});
