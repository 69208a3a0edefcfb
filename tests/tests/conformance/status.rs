//! What an informer says of itself, and what it never says (G31, G34).

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use informer::TransformError;
use informer::reflector::Phase;
use informer::{InformerState, StopCause};
use informer_tests::observe::{Identified, Scene, soon};
use informer_tests::on_both_arms;
use kube::config::Kubeconfig;

use crate::common::{error_text, is_backing_off, is_watching, reaches, status_where, tells};
use crate::form::value_of;
use crate::objects::{Map, Objects};

on_both_arms!(g31_the_status_tells_every_state_and_its_stream_ends, |arm| async {
    let objects = Objects::new(&arm, "states").await?;
    objects.create("a", "1").await?;
    let scene = Scene::new(&arm).await?;
    let maps = objects.informer(&scene)?;
    let mut changes = maps.status_changes();
    let first = soon("a status", changes.next()).await?.context("the first status")?;
    assert_eq!(
        (first.state, first.has_synced, first.objects),
        (InformerState::NotStarted, false, 0)
    );
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
    ensure!(
        counters.watches == 1 && counters.lists == 0 && counters.bookmarks >= 1,
        "{counters:?}"
    );
    assert_eq!((counters.decoded, counters.errors), (1, 0));

    arm.begin_outage().await;
    let status =
        status_where(&maps, |status| is_backing_off(status) && tells(status, "refused")).await?;
    let InformerState::BackingOff { cause, attempt, .. } = &status.state else {
        anyhow::bail!("{status}")
    };
    ensure!(!cause.message.is_empty() && *attempt >= 1, "{status}");
    let error = status.recent_errors.last().context("an error")?;
    assert_eq!(error.phase, Phase::Watch);
    ensure!(error.message.starts_with("watch configmaps.v1 in namespace "), "{}", error.message);
    arm.end_outage().await;
    let status = status_where(&maps, is_watching).await?;
    ensure!(status.counters.errors >= 2 && status.recent_errors.len() >= 2, "{status:#?}");
    scene.settles(&maps, &objects.path(), &[]).await?;
    soon("the stop", scene.factory().stop(&maps)).await?;
    let states = soon("the end of the changes", all).await??;
    assert_eq!(states.last(), Some(&InformerState::Stopped { cause: StopCause::Asked }));
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
    let named = |map: &Map, name: &str| map.identity().name == name;
    let maps = scene.informer(objects.options().transform("picky", move |map: &mut Map| {
        if named(map, "untransformable") {
            Err(TransformError::new("not this one"))
        } else {
            Ok(())
        }
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
        [Phase::Handler, Phase::Index, Phase::Transform].iter().all(|phase| phases.contains(phase))
    })
    .await?;
    for (phase, name) in [
        (Phase::Transform, "untransformable"),
        (Phase::Index, "unindexable"),
        (Phase::Handler, "unhandled"),
    ] {
        let told = status
            .recent_errors
            .iter()
            .any(|error| error.phase == phase && error.message.contains(name));
        ensure!(told, "{phase} {name}: {status:#?}");
    }
    assert_eq!((status.counters.handler_panics, status.undecodable), (1, 1));
    // Each loses only what it is about.
    assert_eq!(lister.len(), 3);
    assert_eq!(lister.by_index(&by_value, "1")?.len(), 2);
    arm.begin_outage().await;
    status_where(&maps, |status| {
        status.recent_errors.iter().any(|error| error.phase == Phase::Watch)
    })
    .await?;
    arm.end_outage().await;
    reaches(&maps, &objects.change("good", "2").await?).await?;
    drop(lister);
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
    let picky = |_: &mut Map| Err(TransformError::new("this one fails"));
    let maps = objects.informer(&scene)?;
    let failing = scene.informer(objects.options().labels("!x")?.transform("fails", picky))?;
    let (forbidden, _) = Scene::recorded(&arm, Some("nobody")).await?;
    let refused = objects.informer(&forbidden)?;
    let registration = maps.add_handler(|h| {
        h.on_add(|map, _| {
            assert!(map.identity().name != "a", "a panic that does not tell the object")
        })
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
