//! The faults of a server: killed, compacted, restored from a backup, too busy, forgetful of tokens
//! (G26, G28, G31). After each of them the store becomes the collection, histories are legal, and
//! the status has told of it.

use std::time::Duration;

use anyhow::{Context, ensure};
use informer::reflector::Phase;
use informer::{Error, InformerOptions, InformerState, Status};
use informer_tests::harness::{Arm, Sharing};
use informer_tests::observe::Scene;
use informer_tests::on_both_arms;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use tokio::time::{Instant, timeout};

use crate::common::{
    LONG, PODS, is_back, is_backing_off, is_watching, reaches, says, status_where, tells,
};
use crate::form::Form;
use crate::objects::Objects;

on_both_arms!(own g28_g31_a_server_that_is_killed_is_asked_again_and_not_hot, |arm| async {
    let objects = Objects::new(&arm, "killed").await?;
    objects.create_all(&["a", "b", "c"]).await?;
    let (scene, recorder) = Scene::recorded(&arm, None).await?;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    let before = recorder.all().len();
    let killed = Instant::now();
    arm.begin_outage().await;
    arm.kill_server().await?;
    // Delays of 0.4, 0.8 and 1.6 s at the least before the fourth.
    let fourth = |status: &Status| matches!(status.state, InformerState::BackingOff { attempt: 4.., .. });
    let status = status_where(&maps, fourth).await?;
    ensure!(killed.elapsed() >= Duration::from_millis(2800), "{:?}", killed.elapsed());
    let asked = recorder.all().len() - before;
    ensure!(asked <= 4, "{asked} requests for four failures");
    ensure!(status.recent_errors.iter().all(|error| error.phase == Phase::Watch), "{status:#?}");
    ensure!(maps.has_synced() && maps.unsynced_store().len() == 3, "the store was emptied");
    arm.start_server().await?;
    is_back(&arm).await?;
    objects.delete("b").await?;
    objects.replace("c").await?;
    objects.create("d", "1").await?;
    arm.end_outage().await;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    reaches(&maps, &objects.change("a", "2").await?).await?;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    ensure!(seen.text_of("c").ends_with("+c#2"), "{}", seen.text());
    assert_eq!(seen.text_of("a"), "*a#1 ~a#1");
    scene.end().await
});

on_both_arms!(own g26_g31_a_history_that_was_compacted_away_is_relisted_at_the_last_version, |arm| async {
    let objects = Objects::new(&arm, "compacted").await?;
    objects.create_all(&["kept", "changed", "reborn", "lost"]).await?;
    let (scene, recorder) = Scene::recorded(&arm, None).await?;
    let (plain_scene, plain_recorder) = Scene::recorded(&arm, None).await?;
    let streaming = objects.informer(&scene)?;
    let plain = plain_scene.informer(objects.options().streaming_lists(false))?;
    let seen = scene.observe(&streaming, "the streaming one's handler", |h| h)?;
    let plain_seen = plain_scene.observe(&plain, "the plain one's handler", |h| h)?;
    scene.start();
    plain_scene.start();
    scene.settles(&streaming, &objects.path(), &[&seen]).await?;
    plain_scene.settles(&plain, &objects.path(), &[&plain_seen]).await?;
    let (before, plain_before) = (recorder.all().len(), plain_recorder.all().len());

    arm.begin_outage().await;
    status_where(&streaming, is_backing_off).await?;
    status_where(&plain, is_backing_off).await?;
    let held = [&streaming, &plain].map(|informer| informer.last_sync_resource_version().to_string());
    objects.change("changed", "2").await?;
    objects.delete("lost").await?;
    objects.replace("reborn").await?;
    arm.compact().await?;
    arm.end_outage().await;
    is_back(&arm).await?;
    for informer in [&streaming, &plain] {
        let status = status_where(informer, |status| tells(status, "410")).await?;
        let gone = status.recent_errors.iter().find(|error| error.message.contains("410"));
        let gone = gone.context("it was there")?;
        assert_eq!(gone.phase, Phase::Watch);
        says(&gone.message, &["watch configmaps.v1 in namespace", &objects.namespace])?;
    }
    scene.settles(&streaming, &objects.path(), &[&seen]).await?;
    plain_scene.settles(&plain, &objects.path(), &[&plain_seen]).await?;
    // What was missed is told nevertheless, and what did not change is not.
    for seen in [&seen, &plain_seen] {
        let told = ["kept", "changed", "reborn", "lost"].map(|name| seen.text_of(name));
        assert_eq!(told, ["*kept#1", "*changed#1 ~changed#1", "*reborn#1 -reborn#1? +reborn#2", "*lost#1 -lost#1?"]);
    }
    // The watch from the version seen, then the list at that version; never at none, and never at 0
    // again.
    let (after, plain_after) = (&recorder.all()[before..], &plain_recorder.all()[plain_before..]);
    ensure!(after.iter().all(|sent| sent.parameter("resourceVersion") == held[0]), "{held:?}: {after:#?}");
    ensure!(after.last().is_some_and(|last| last.is_streaming_list()), "{after:#?}");
    let lists: Vec<_> = plain_after.iter().filter(|sent| !sent.is_watch()).collect();
    ensure!(lists.len() == 1 && lists[0].parameter("resourceVersion") == held[1], "{held:?}: {plain_after:#?}");
    assert_eq!(lists[0].parameter("resourceVersionMatch"), "NotOlderThan");
    scene.end().await?;
    plain_scene.end().await
});

// The real arm only: a restored backup is noticed by the probe that follows two minutes of silence.
// On the test kit, with a paused clock: informer's
// `g26_a_restored_backup_is_noticed_and_relisted_at_the_newest`.
#[tokio::test(flavor = "multi_thread")]
async fn g14_g26_an_etcd_restored_from_a_backup_is_noticed() -> anyhow::Result<()> {
    let Some(arm) = Arm::real(Sharing::Own).await? else { return Ok(()) };
    let objects = Objects::new(&arm, "restored").await?;
    objects.create_all(&["kept", "changed", "doomed", "reborn"]).await?;
    let backup = arm.save().await?;
    objects.change("changed", "2").await?;
    objects.delete("doomed").await?;
    objects.replace("reborn").await?;
    objects.create("lost", "").await?;
    // More than the server writes of itself until the silence is noticed: a history that has
    // overtaken the version held by then cannot be told from the old one.
    for round in 0..20 {
        let changes =
            (0..50).map(async |number| objects.change("lost", &format!("{round} {number}")).await);
        futures_util::future::try_join_all(changes).await?;
    }
    let (scene, recorder) = Scene::recorded(&arm, None).await?;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    let (before, held) = (recorder.all().len(), maps.last_sync_resource_version());

    // Somebody waits for a write that the backup does not have.
    let waiting = tokio::spawn({
        let maps = maps.clone();
        async move { maps.wait_for("999999999").await }
    });
    seen.expect_older_versions();
    arm.restore(&backup).await?;
    let ended = timeout(LONG, waiting).await.with_context(|| format!("{:#?}", maps.status()))??;
    assert_eq!(ended, Err(Error::HistoryChanged));
    is_back(&arm).await?;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    ensure!(!maps.last_sync_resource_version().has_reached(&held), "versions did not go back");
    let told = ["changed", "doomed", "reborn", "lost"].map(|name| seen.text_of(name));
    let expected = [
        "*changed#1 ~changed#1",
        "+doomed#1",
        "*reborn#1 -reborn#1? +reborn#2",
        "*lost#1 -lost#1?",
    ];
    assert_eq!(told, expected);
    let newest = recorder.all()[before..].iter().any(|sent| {
        sent.parameter("resourceVersion").is_empty()
            && (sent.is_streaming_list() || !sent.is_watch())
    });
    ensure!(newest, "no list at the newest: {:#?}", recorder.all());
    // The versions of the new history count.
    reaches(&maps, &objects.change("kept", "9").await?).await?;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    scene.end().await
}

on_both_arms!(own g28_g31_too_many_requests_are_waited_out_without_a_relist, |arm| async {
    create_pod(&arm, "one").await?;
    let (scene, recorder) = Scene::recorded(&arm, Some("viewer")).await?;
    let pods = scene.informer(InformerOptions::<Form<Pod>>::new().namespace("default"))?;
    let seen = scene.observe(&pods, "the handler", |h| h)?;
    scene.start();
    scene.settles(&pods, PODS, &[&seen]).await?;

    let throttled = arm.throttle("viewer").await?;
    arm.cut_watches().await;
    let rejected = |status: &Status| {
        let told = status.recent_errors.iter().filter(|error| error.message.contains("429")).count();
        told >= 2 && is_backing_off(status)
    };
    let status = status_where(&pods, rejected).await?;
    let last = status.recent_errors.last().context("there are errors")?;
    assert_eq!(last.phase, Phase::Watch);
    says(&last.message, &["watch pods.v1 in namespace default: 429"])?;
    create_pod(&arm, "two").await?;
    throttled.lift(&arm, "viewer").await?;
    scene.settles(&pods, PODS, &[&seen]).await?;
    assert_eq!(seen.text(), "*one#1 +two#1");

    // One request for each attempt, spaced as `Retry-After` says (a second on both arms), and no
    // relist.
    let asked = recorder.watches("pods");
    ensure!(asked.iter().skip(1).all(|sent| !sent.is_streaming_list()), "{asked:#?}");
    ensure!(recorder.lists("pods").is_empty(), "{:#?}", recorder.lists("pods"));
    let rejected: Vec<_> = asked.iter().filter(|sent| sent.status == Some(429)).collect();
    ensure!(rejected.len() >= 2, "{asked:#?}");
    ensure!(rejected.windows(2).all(|pair| pair[1].at - pair[0].at >= Duration::from_secs(1)), "{rejected:#?}");
    scene.end().await
});

on_both_arms!(own g31_a_token_taken_back_is_told_and_the_informer_goes_on_once_it_is_good_again, |arm| async {
    create_pod(&arm, "one").await?;
    let (scene, _) = Scene::recorded(&arm, Some("viewer")).await?;
    let pods = scene.informer(InformerOptions::<Form<Pod>>::new().namespace("default"))?;
    let seen = scene.observe(&pods, "the handler", |h| h)?;
    scene.start();
    scene.settles(&pods, PODS, &[&seen]).await?;

    arm.revoke("viewer").await?;
    let refused = |status: &Status| is_backing_off(status) && tells(status, ": 401");
    let status = status_where(&pods, refused).await?;
    let error = status.recent_errors.iter().rev().find(|error| error.message.contains(": 401"));
    says(&error.context("it was there")?.message, &["pods.v1 in namespace default", "renew the token"])?;
    ensure!(pods.unsynced_store().len() == 1 && pods.has_synced(), "the store was emptied");
    arm.grant("viewer").await?;
    is_back(&arm).await?;
    create_pod(&arm, "two").await?;
    status_where(&pods, is_watching).await?;
    scene.settles(&pods, PODS, &[&seen]).await?;
    assert_eq!(seen.text(), "*one#1 +two#1");
    scene.end().await
});

/// Creates a Pod in namespace `default`.
async fn create_pod(arm: &Arm, name: &str) -> anyhow::Result<()> {
    let pods = Api::<Pod>::namespaced(arm.direct().clone(), "default");
    pods.create(&PostParams::default(), &informer_tests::fixtures::pod("default", name, &[]))
        .await?;
    Ok(())
}
