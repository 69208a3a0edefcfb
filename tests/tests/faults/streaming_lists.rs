//! Streaming lists that are refused, stall, or never end.

use std::time::Duration;

use informer_testkit::{Cut, Fault, Status, Verb};
use tokio::time::sleep;

use crate::scene::{Scene, Way, ways};

fn streaming_ways() -> impl Iterator<Item = Way> {
    ways().filter(|way| way.streaming)
}

/// The informer does without them, and never asks again: all without anything being lifted.
async fn falls_back(fault: Fault, words: &str) {
    for way in streaming_ways() {
        let scene = Scene::new(way.options()).await;
        let fault = scene.server.faults().inject(fault.clone());
        scene.factory.start();
        scene.told("list", words).await;
        scene.settles().await;
        scene.began_with("*a#1 *b#1 *c#1");
        assert_eq!((fault.hits(), scene.requests().verb(Verb::List).len()), (1, 1));
        // What was learnt holds for relists.
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        scene.server.cluster().compact();
        scene.settles().await;
        assert_eq!((fault.hits(), scene.requests().verb(Verb::List).len()), (1, 2));
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g27_streaming_lists_are_refused() {
    falls_back(Fault::streaming_lists_refused(), "sendInitialEvents").await;
}

#[tokio::test(start_paused = true)]
async fn g27_streaming_lists_stall_before_they_begin() {
    falls_back(Fault::stall().streaming_lists(), "sent nothing for too long").await;
}

#[tokio::test(start_paused = true)]
async fn g27_streaming_lists_stall_in_the_middle() {
    falls_back(Fault::stall_after(300).streaming_lists(), "sent nothing for too long").await;
}

#[tokio::test(start_paused = true)]
async fn g27_streaming_lists_never_tell_their_end() {
    falls_back(Fault::without_end_bookmark().streaming_lists(), "sent nothing for too long").await;
}

#[tokio::test(start_paused = true)]
async fn g27_streaming_lists_never_tell_their_end_and_are_never_silent() {
    for way in streaming_ways() {
        let scene = Scene::new(way.options()).await;
        scene.server.faults().inject(Fault::without_end_bookmark().streaming_lists());
        let cluster = scene.server.cluster().clone();
        let writer = tokio::spawn(async move {
            for n in 0.. {
                sleep(Duration::from_secs(5)).await;
                cluster.apply(&crate::scene::config_map("busy", &n.to_string())).unwrap();
            }
        });
        scene.factory.start();
        let status = scene.status_where("synced", |status| status.has_synced).await;
        assert!(status.counters.errors > 0, "{status:#?}");
        writer.abort();
        scene.told("list", "before the end of the initial events").await;
        scene.settles().await;
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g27_streaming_lists_always_fail_in_ordinary_ways() {
    let forbidden = Status::new(403, "Forbidden", "no streaming lists");
    for fault in [
        Fault::internal_error(),
        Fault::answer(forbidden),
        Fault::hang_up(),
        Fault::reset_after(300),
    ] {
        for way in streaming_ways() {
            let scene = Scene::new(way.options()).await;
            let fault = scene.server.faults().inject(fault.clone().streaming_lists());
            scene.factory.start();
            scene.settles().await;
            scene.began_with("*a#1 *b#1 *c#1");
            assert_eq!((fault.hits(), scene.requests().verb(Verb::List).len()), (1, 1));
            // They are not given up for good.
            scene.server.faults().cut_watches(Cut::Close, None);
            scene.change();
            scene.server.cluster().compact();
            scene.settles().await;
            assert_eq!((fault.hits(), scene.requests().verb(Verb::List).len()), (2, 2));
            scene.end().await;
        }
    }
}
