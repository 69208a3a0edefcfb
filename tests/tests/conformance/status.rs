//! What an informer says of itself, and what it never says (G30, G31, G34).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use informer::{Event, InformerOptions, InformerState, Resource, Status};
use informer_tests::observe::{Scene, comes_true, soon};
use informer_tests::on_both_arms;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::config::Kubeconfig;

use crate::common::{Numbered, error_text, is_backing_off, is_watching, reaches, status_where, tells};
use crate::objects::{Objects, value_of};

on_both_arms!(g31_the_status_tells_every_state_and_its_stream_ends, |arm| async {
    let objects = Objects::new(&arm, "states").await?;
    objects.create("a", "1").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let mut changes = maps.status_changes();
    let first = soon("a status", changes.next()).await?.context("the first status")?;
    assert_eq!((first.state, first.has_synced, first.objects), (InformerState::NotStarted, false, 0));
    let all = tokio::spawn(changes.map(|status| status.state).collect::<Vec<_>>());
    scene.start();
    let status = status_where(&maps, is_watching).await?;
    ensure!(status.has_synced && status.objects == 1 && !status.version.is_unset(), "{status:#?}");
    let shown = format!(
        "configmaps.v1 in namespace {}: watching at version {}, 1 objects",
        objects.namespace, status.version
    );
    assert_eq!(status.to_string(), shown);
    let counters = status.counters;
    ensure!(counters.watches == 1 && counters.lists == 0 && counters.bookmarks >= 1, "{counters:?}");
    assert_eq!((counters.decoded, counters.errors), (1, 0));

    arm.begin_outage().await;
    let status = status_where(&maps, |status| is_backing_off(status) && tells(status, "refused")).await?;
    let InformerState::BackingOff { cause, attempt, .. } = &status.state else { anyhow::bail!("{status}") };
    ensure!(!cause.is_empty() && *attempt >= 1, "{status}");
    let error = status.recent_errors.last().context("an error")?;
    assert_eq!(error.phase, "watch");
    ensure!(error.message.starts_with("watch configmaps.v1 in namespace "), "{}", error.message);
    arm.end_outage().await;
    let status = status_where(&maps, is_watching).await?;
    ensure!(status.counters.errors >= 2 && status.recent_errors.len() >= 2, "{status:#?}");
    scene.settles(&maps, &objects.path(), &[]).await?;
    soon("the stop", scene.factory().stop(&maps)).await?;
    let states = soon("the end of the changes", all).await??;
    assert_eq!(states.last(), Some(&InformerState::Stopped));
    let kinds: BTreeSet<_> =
        states.iter().map(std::mem::discriminant).map(|kind| format!("{kind:?}")).collect();
    // A slow reader gets the latest one, so the list may have passed unseen.
    ensure!(kinds.len() >= 3, "{states:?}");
    drop(maps);
    scene.end().await
});

on_both_arms!(g31_what_fails_anywhere_reaches_the_status_with_its_phase, |arm| async {
    let objects = Objects::new(&arm, "phases").await?;
    objects.create_all(&["good", "untransformable", "unindexable", "unhandled"]).await?;
    let scene = Scene::new(&arm).await?;
    let named = |map: &ConfigMap, name: &str| map.metadata.name.as_deref() == Some(name);
    let maps = scene.informer(objects.options().transform("picky", move |map: &mut ConfigMap| {
        if named(map, "untransformable") { Err("not this one".to_owned()) } else { Ok(()) }
    }))?;
    let by_value = maps
        .add_index("value", move |map, values| {
            assert!(!named(map, "unindexable"), "the index function panics, as it should");
            values.push(value_of(map));
        })
        .await?;
    let handler = maps.add_handler(|h| {
        h.name("picky").on_add(move |map, _| {
            assert!(!named(map, "unhandled"), "the handler panics, as it should");
        })
    })?;
    scene.start();
    soon("the handler", handler.synced()).await??;
    let lister = soon("the store", maps.synced()).await??;
    let status = status_where(&maps, |status| {
        let phases: BTreeSet<_> = status.recent_errors.iter().map(|error| error.phase).collect();
        ["handler", "index", "transform"].iter().all(|phase| phases.contains(phase))
    })
    .await?;
    for (phase, name) in
        [("transform", "untransformable"), ("index", "unindexable"), ("handler", "unhandled")]
    {
        let told =
            status.recent_errors.iter().any(|error| error.phase == phase && error.message.contains(name));
        ensure!(told, "{phase} {name}: {status:#?}");
    }
    assert_eq!((status.counters.handler_panics, status.undecodable), (1, 1));
    // Each loses only what it is about.
    assert_eq!(lister.len(), 3);
    assert_eq!(lister.by_index(&by_value, "1")?.len(), 2);
    arm.begin_outage().await;
    status_where(&maps, |status| status.recent_errors.iter().any(|error| error.phase == "watch")).await?;
    arm.end_outage().await;
    reaches(&maps, &objects.change("good", "2").await?).await?;
    drop(lister);
    scene.end().await
});

on_both_arms!(g30_what_cannot_be_decoded_keeps_its_last_good_state_and_a_delete_is_a_delete, |arm| async {
    let objects = Objects::new(&arm, "stale").await?;
    objects.create("good", "1").await?;
    objects.create("bad", "hunter2").await?;
    let scene = Scene::new(&arm).await?;
    let options = InformerOptions::<Numbered>::new().namespace(&objects.namespace);
    let maps =
        scene.enter(|| scene.factory().informer_as::<Numbered>(Resource::of::<ConfigMap>(), options))?;
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&told);
    let handler = maps.add_handler(|h| {
        h.on_event(move |event| {
            let (name, value) = (event.key().name().to_owned(), event.object().data.value);
            let what = match event {
                Event::Added { .. } => '+',
                Event::Updated { .. } => '~',
                Event::Deleted(_) => '-',
            };
            notes.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{what}{name}={value}"));
        })
    })?;
    let is_told = |expected: &'static [&'static str]| {
        let told = Arc::clone(&told);
        async move {
            let told = || told.lock().unwrap_or_else(PoisonError::into_inner).clone();
            comes_true("the handler is told", || told().len() >= expected.len()).await?;
            ensure!(told() == expected, "{:?}, not {expected:?}", told());
            Ok(())
        }
    };
    let stale = |names: &'static [&'static str]| {
        let maps = maps.clone();
        async move {
            let fits = |status: &Status| {
                status.undecodable == names.len()
                    && status.stale.iter().map(|stale| stale.key.name()).eq(names.iter().copied())
            };
            let status = status_where(&maps, fits).await?;
            let right = status.stale.iter().all(|stale| stale.cause == "data.value: invalid value");
            ensure!(right && !format!("{status:?}").contains("hunter2"), "{status:#?}");
            Ok(())
        }
    };
    scene.start();
    soon("the handler", handler.synced()).await??;
    // In the list.
    stale(&["bad"]).await?;
    is_told(&["+good=1"]).await?;
    // In an ADDED, and in a MODIFIED.
    objects.create("worse", "hunter2").await?;
    stale(&["bad", "worse"]).await?;
    reaches(&maps, &objects.change("good", "hunter2").await?).await?;
    stale(&["bad", "good", "worse"]).await?;
    let held = maps.unsynced_store().find(&objects.namespace, "good").map(|map| map.data.value);
    assert_eq!((held, maps.unsynced_store().len()), (Some(1), 1));
    // In a DELETED: of what was never good, and of what was.
    objects.delete("worse").await?;
    stale(&["bad", "good"]).await?;
    objects.delete("good").await?;
    stale(&["bad"]).await?;
    is_told(&["+good=1", "-good=1"]).await?;
    objects.change("bad", "5").await?;
    stale(&[]).await?;
    is_told(&["+good=1", "-good=1", "+bad=5"]).await?;
    // The watch lived through it all.
    let status = maps.status();
    ensure!(is_watching(&status) && status.counters.watches == 1, "{status:#?}");
    drop(maps);
    scene.end().await
});

on_both_arms!(g34_neither_tokens_nor_contents_are_ever_shown, |arm| async {
    let objects = Objects::new(&arm, "secrets").await?;
    objects.create("a", "hunter2").await?;
    let config = serde_json::to_value(Kubeconfig::read_from(arm.kubeconfig())?)?;
    let users = config["users"].as_array().context("users")?;
    let tokens: Vec<_> = users.iter().filter_map(|user| user["user"]["token"].as_str()).collect();
    ensure!(tokens.len() == 3, "tokens to look for");
    let scene = Scene::new(&arm).await?;
    let picky = |_: &mut ConfigMap| Err("this one fails".to_owned());
    let maps = objects.informer(&scene)?;
    let failing = scene.informer(objects.options().labels("!x".parse()?).transform("fails", picky))?;
    let (forbidden, _) = Scene::recorded(&arm, Some("nobody")).await?;
    let refused = objects.informer(&forbidden)?;
    let registration = maps.add_handler(|h| {
        h.on_add(|map, _| assert!(map.name_any() != "a", "a panic that does not tell the object"))
    })?;
    let mut stream = maps.events()?;
    scene.start();
    forbidden.start();
    let lister = soon("the store", maps.synced()).await??;
    soon("the handler", registration.synced()).await??;
    let event = soon("an event", stream.next()).await?.context("an event")?;
    let hopeless = error_text(soon("an error", failing.synced()).await?);
    status_where(&refused, |status| tells(status, "403")).await?;
    arm.cut_watches().await;
    status_where(&maps, |status| status.counters.errors >= 2).await?;
    let selection = lister.select("x")?;
    let shown = [
        format!("{maps:?} {lister:?} {event:?} {stream:?} {registration:?} {selection:?}"),
        format!("{:?} {:?} {:?}", scene.factory(), maps.status(), maps.status().to_string()),
        format!("{:?} {:?} {hopeless}", failing.status(), refused.status()),
        format!("{:?} {:?}", lister.snapshot(), lister.namespace("x")),
        format!("{:?}", refused.synced_within(std::time::Duration::ZERO).await.err()),
    ]
    .join("\n");
    ensure!(shown.contains("403") && shown.contains("this one fails"), "{shown}");
    ensure!(!shown.contains("hunter2"), "content is shown: {shown}");
    ensure!(tokens.iter().all(|token| !shown.contains(token)), "a token is shown: {shown}");
    drop((lister, selection, stream, event, registration, maps, failing, refused));
    scene.end().await?;
    forbidden.end().await
});
