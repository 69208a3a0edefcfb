//! Answers that are no lists and no watches.

use std::time::Duration;

use informer::InformerState;
use informer_testkit::{Cut, Fault, Status, Verb};
use tokio::time::Instant;

use crate::scene::{Scene, ways};

/// Lets the first three requests be answered like that, from the start on, and then again in the
/// middle.
async fn requests_fail(fault: Fault, words: &str, at_least: Duration) {
    for way in ways() {
        let fault = fault.clone().resource("configmaps").times(3);
        let scene = Scene::new(way.options()).await;
        let first = scene.server.faults().inject(fault.clone());
        let begun = Instant::now();
        scene.factory.start();
        scene.told("list", words).await;
        scene.settles().await;
        scene.began_with("*a#1 *b#1 *c#1");
        assert_eq!(first.hits(), 3);
        assert!(begun.elapsed() >= at_least * 3, "{:?}", begun.elapsed());
        scene.end().await;

        let scene = Scene::watching(way.options()).await;
        let later = scene.server.faults().inject(fault);
        scene.change();
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        let status = scene.told("watch", words).await;
        assert!(status.has_synced, "{status}");
        scene.settles().await;
        assert_eq!(later.hits(), 3);
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_versions_expire_as_an_event() {
    requests_fail(Fault::expired(), "410", Duration::ZERO).await;
    // In watches that are open.
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        for _ in 0..5 {
            scene.change();
            scene.server.faults().cut_watches(Cut::Expired, None);
            scene.change();
            scene.settles().await;
        }
        scene.told("watch", "410").await;
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_versions_expire_as_a_status() {
    requests_fail(Fault::answer(Status::expired("too old")), "410 too old", Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn g01_too_many_requests_with_and_without_advice() {
    requests_fail(Fault::too_many_requests(), "429", Duration::ZERO).await;
    requests_fail(Fault::too_many_requests().retry_after(90), "429", Duration::from_secs(90)).await;
}

#[tokio::test(start_paused = true)]
async fn g28_watches_that_are_too_many_go_on_without_a_relist() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let lists = scene.requests().verb(Verb::List).len();
        let fault = scene.server.faults().inject(Fault::too_many_requests().times(5));
        scene.server.faults().cut_watches(Cut::Reset, None);
        scene.change();
        scene.told("watch", "429").await;
        scene.settles().await;
        assert_eq!((fault.hits(), scene.requests().verb(Verb::List).len()), (5, lists));
        let streamed = scene.requests().parameter("sendInitialEvents");
        assert_eq!(
            streamed.iter().filter(|value| *value == "true").count(),
            usize::from(way.streaming)
        );
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g28_watches_that_are_never_opened_are_replaced_by_lists() {
    let forbidden = Status::new(403, "Forbidden", "no watches");
    for fault in [Fault::internal_error(), Fault::answer(forbidden), Fault::close_after(0)] {
        for way in ways() {
            let scene = Scene::watching(way.options()).await;
            let fault = scene.server.faults().inject(fault.clone().on(Verb::Watch));
            scene.server.faults().cut_watches(Cut::Reset, None);
            for _ in 0..3 {
                scene.change();
                let truth = scene.truth();
                let is_degraded = |status: &informer::Status| {
                    matches!(status.state, InformerState::Degraded { .. }) && scene.held() == truth
                };
                scene.status_where("degraded, and up to date", is_degraded).await;
            }
            assert!(scene.requests().verb(Verb::List).len() >= 3);
            scene.is_bounded();
            fault.lift();
            scene.change();
            scene.settles().await;
            scene.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g01_the_server_fails_with_500() {
    requests_fail(Fault::internal_error(), "500", Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn g01_the_server_is_unavailable_with_503() {
    requests_fail(Fault::unavailable(), "503", Duration::ZERO).await;
    requests_fail(Fault::unavailable().retry_after(60), "503", Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn g01_the_version_is_too_large() {
    requests_fail(Fault::too_large_version(), "Too large resource version", Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn g01_the_token_expires() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        // From now on nobody is let in without a token, and the client has none that counts.
        scene.server.auth().add_token("another", "somebody else");
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        let status = scene.told("watch", "401").await;
        assert!(status.has_synced && status.objects == 3, "the store stays: {status}");
        assert!(status.recent_errors.iter().any(|error| error.message.contains("renew the token")));
        tokio::time::sleep(Duration::from_secs(1200)).await;
        assert_eq!(
            scene.requests().verb(Verb::Watch).last().and_then(|request| request.status),
            Some(401)
        );
        scene.server.auth().clear();
        scene.settles().await;
        scene.end().await;
    }
}
