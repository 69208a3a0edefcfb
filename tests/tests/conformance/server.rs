//! Talking to the server (G26 to G29): what is asked for, and when.

use std::time::Duration;

use anyhow::{bail, ensure};
use informer::InformerState;
use informer_tests::helpers::eventually;
use informer_tests::observe::Scene;
use informer_tests::on_both_arms;

use crate::common::{LONG, is_watching, reaches, status_where};
use crate::objects::Objects;

on_both_arms!(
    g26_g27_g29_a_streaming_list_comes_first_and_a_cut_goes_on_from_the_last_version,
    |arm| async {
        let objects = Objects::new(&arm, "ladder").await?;
        objects.create("a", "1").await?;
        let (scene, recorder) = Scene::recorded(&arm, None).await?;
        let maps = objects.informer(&scene)?;
        let seen = scene.observe(&maps, "the handler", |h| h)?;
        scene.start();
        // An initial object that changes before it is given is given as it is then.
        seen.synced().await?;
        let last = objects.change("a", "2").await?;
        reaches(&maps, &last).await?;
        arm.cut_watches().await;
        status_where(&maps, |status| status.counters.watches >= 2 && is_watching(status)).await?;
        reaches(&maps, &objects.change("a", "3").await?).await?;

        let asked = recorder.watches("configmaps");
        // A connection that died in the client's pool may take a try more.
        let [first, again @ ..] = &asked[..] else { bail!("no watch") };
        ensure!(
            first.is_streaming_list() && first.parameter("resourceVersion").is_empty(),
            "{first:?}"
        );
        assert_eq!(first.parameter("resourceVersionMatch"), "NotOlderThan");
        ensure!(
            !again.is_empty() && again.iter().all(|sent| !sent.is_streaming_list()),
            "{again:?}"
        );
        ensure!(
            again.iter().all(|sent| sent.parameter("resourceVersion") == last),
            "{last}: {again:?}"
        );
        ensure!(recorder.lists("configmaps").is_empty(), "a cut needs no list");
        for watch in &asked {
            let seconds: u64 = watch.parameter("timeoutSeconds").parse()?;
            ensure!((200..=280).contains(&seconds), "{watch:?}");
            assert_eq!(watch.parameter("allowWatchBookmarks"), "true");
            assert_eq!(watch.headers["accept-encoding"], "identity");
        }
        scene.settles(&maps, &objects.path(), &[&seen]).await?;
        assert_eq!(seen.text(), "*a#1 ~a#1 ~a#1");
        scene.end().await
    }
);

on_both_arms!(
    g26_without_streaming_lists_the_first_list_is_at_0_and_the_watch_goes_on_from_it,
    |arm| async {
        let objects = Objects::new(&arm, "plain").await?;
        objects.create_all(&["a", "b", "c"]).await?;
        let (scene, recorder) = Scene::recorded(&arm, None).await?;
        let maps = scene.informer(objects.options().streaming_lists(false))?;
        let seen = scene.observe(&maps, "the handler", |h| h)?;
        scene.start();
        maps.synced().await?;
        status_where(&maps, is_watching).await?;
        let (lists, watches) = (recorder.lists("configmaps"), recorder.watches("configmaps"));
        let ([list], [watch]) = (&lists[..], &watches[..]) else {
            bail!("{lists:#?} {watches:#?}")
        };
        // Any state will do: what is missing comes in the watch.
        assert_eq!(
            (list.parameter("resourceVersion"), list.parameter("resourceVersionMatch")),
            ("0", "")
        );
        assert_eq!(list.parameter("limit"), "500");
        assert_eq!(list.headers["accept-encoding"], "identity");
        ensure!(!watch.is_streaming_list(), "{watch:?}");
        let from = watch.parameter("resourceVersion");
        ensure!(
            from.parse::<u64>()? > 0 && maps.last_sync_resource_version().has_reached(&from.into()),
            "{from}"
        );
        scene.settles(&maps, &objects.path(), &[&seen]).await?;
        scene.end().await
    }
);

on_both_arms!(
    g28_a_watch_that_ends_at_its_own_timeout_reopens_and_that_is_no_failure,
    |arm| async {
        let objects = Objects::new(&arm, "timeouts").await?;
        let (scene, recorder) = Scene::recorded(&arm, None).await?;
        let seconds = Duration::from_secs(10);
        let maps = scene
            .informer(objects.options().streaming_lists(false).watch_timeout(seconds..=seconds))?;
        scene.start();
        maps.synced().await?;
        let asked = || recorder.watches("configmaps").len();
        eventually("the third watch", LONG, || asked() >= 3).await;
        let status = maps.status();
        ensure!(status.recent_errors.is_empty() && is_watching(&status), "{status:#?}");
        let at: Vec<_> = recorder.watches("configmaps").iter().map(|sent| sent.at).collect();
        ensure!(at[2] - at[0] >= Duration::from_secs(18), "{at:?}");
        scene.settles(&maps, &objects.path(), &[]).await?;
        scene.end().await
    }
);

on_both_arms!(g28_a_list_that_nobody_answers_is_tried_again_and_not_hot, |arm| async {
    let objects = Objects::new(&arm, "outage").await?;
    objects.create("a", "1").await?;
    let (scene, recorder) = Scene::recorded(&arm, None).await?;
    arm.begin_outage().await;
    let maps = objects.informer(&scene)?;
    let seen = scene.observe(&maps, "the handler", |h| h)?;
    scene.start();
    let third = |status: &informer::Status| {
        matches!(status.state, InformerState::BackingOff { attempt: 3.., .. })
    };
    let status = status_where(&maps, third).await?;
    ensure!(!status.has_synced && status.counters.errors >= 3, "{status:#?}");
    let at: Vec<_> = recorder.all().iter().map(|sent| sent.at).collect();
    // One request for each failure; no LIST is tried where nobody is there to refuse a streaming
    // list.
    ensure!(recorder.lists("configmaps").is_empty() && at.len() == 3, "{:#?}", recorder.all());
    ensure!(
        at[1] - at[0] >= Duration::from_millis(400) && at[2] - at[1] >= Duration::from_millis(800),
        "{at:?}"
    );
    arm.end_outage().await;
    scene.settles(&maps, &objects.path(), &[&seen]).await?;
    assert_eq!(seen.text(), "*a#1");
    scene.end().await
});
