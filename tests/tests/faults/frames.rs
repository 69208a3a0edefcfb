//! Bodies that cannot be read: compressed, truncated, malformed, far too large.

use std::time::Duration;

use informer::InformerState;
use informer::source::WireFormat;
use informer_testkit::{Cut, Fault, Verb};
use tokio::time::sleep;

use crate::scene::{Scene, Way, ways};

/// What is told of something else than objects: in a watch in protobuf its first letters are the
/// length of a frame.
const HTML: fn(Way, bool) -> &'static str = |way, is_watch| match (way.format, is_watch) {
    (WireFormat::Protobuf, true) => "larger than the limit",
    _ => "malformed",
};

/// One event, then every first event of a watch, cannot be read: no lifting is needed in either
/// case.
async fn events_cannot_be_read(fault: Fault, words: impl Fn(Way, bool) -> &'static str) {
    for way in ways() {
        let words = words(way, true);
        for times in [1, u64::MAX] {
            let scene = Scene::watching(way.options()).await;
            let lists = scene.informer.status().counters.lists;
            let fault = scene.server.faults().inject(fault.clone().on(Verb::Watch).times(times));
            scene.change();
            scene.told("watch", words).await;
            scene.settles().await;
            if times == 1 {
                let status = scene.informer.status();
                assert_eq!(
                    (status.counters.lists, fault.hits()),
                    (lists, 1),
                    "no relist for one: {status:#?}"
                );
            }
            // Never the same frame a third time; the list that follows may be a stream, too.
            let expected = if times == 1 { 1 } else { 2 + u64::from(way.streaming) };
            assert_eq!(fault.hits(), expected);
            scene.end().await;
        }
    }
}

/// One item of every list cannot be read, for half an hour: the others are there all the same, and
/// the status tells of it. `says_who` tells whether it is clear whose state it is.
async fn one_item_cannot_be_read(fault: Fault, words: &str, says_who: fn(Way) -> bool) {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let before = scene.held()["default/a"].clone();
        let lasting =
            scene.server.faults().inject(fault.clone().object("a").resource("configmaps"));
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.write("b", "second");
        scene.delete("c");
        scene.server.cluster().compact();
        let left_out = |status: &informer::Status| {
            status.undecodable == 1 && matches!(status.state, InformerState::Watching { .. })
        };
        let status = scene.status_where("a list without it", left_out).await;
        assert!(
            status.recent_errors.iter().any(|error| error.message.contains(words)),
            "{status:#?}"
        );
        let mut expected = scene.truth();
        expected.remove("default/a");
        if says_who(way) {
            expected.insert("default/a".to_owned(), before);
        }
        assert_eq!(
            (scene.held(), status.unreadable),
            (expected.clone(), usize::from(!says_who(way)))
        );
        assert_eq!(status.to_string().contains("incomplete"), !says_who(way), "{status}");
        sleep(Duration::from_secs(1800)).await;
        scene.is_bounded();
        assert_eq!(scene.held(), expected);

        lasting.lift();
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        scene.server.cluster().compact();
        scene.settles().await;
        scene.end().await;
    }
}

/// The first list cannot be read, once and then for half an hour; and a relist.
async fn lists_cannot_be_read(fault: Fault, words: impl Fn(Way, bool) -> &'static str) {
    for way in ways() {
        let (words, words_of_lists) = (words(way, way.streaming), words(way, false));
        let scene = Scene::new(way.options()).await;
        let once = scene.server.faults().inject(fault.clone().resource("configmaps").times(1));
        scene.factory.start();
        scene.told("list", words).await;
        scene.settles().await;
        scene.began_with("*a#1 *b#1 *c#1");
        assert_eq!(once.hits(), 1);

        let lasting = scene.server.faults().inject(fault.clone().resource("configmaps"));
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        scene.server.cluster().compact();
        let degraded =
            |status: &informer::Status| matches!(status.state, InformerState::Degraded { .. });
        let status = scene.status_where("degraded", degraded).await;
        assert!(status.has_synced && status.objects == 3, "the store stays: {status:#?}");
        assert!(status.state.to_string().contains(words_of_lists), "{status}");
        sleep(Duration::from_secs(1800)).await;
        scene.is_bounded();
        lasting.lift();
        scene.settles().await;
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g30_events_are_truncated() {
    events_cannot_be_read(Fault::truncated(), |_, _| "the body ended unexpectedly").await;
}

#[tokio::test(start_paused = true)]
async fn g30_lists_are_truncated() {
    lists_cannot_be_read(Fault::truncated().object("a"), |_, _| "the body ended unexpectedly")
        .await;
}

#[tokio::test(start_paused = true)]
async fn g30_events_are_malformed() {
    events_cannot_be_read(Fault::malformed(), |_, _| "malformed").await;
    events_cannot_be_read(Fault::instead("<html>no</html>\n"), HTML).await;
}

#[tokio::test(start_paused = true)]
async fn g30_lists_are_malformed() {
    lists_cannot_be_read(Fault::instead("<html>no</html>\n"), HTML).await;
}

#[tokio::test(start_paused = true)]
async fn g30_events_are_oversized() {
    events_cannot_be_read(Fault::oversized(5000), |_, _| "larger than the limit of 4096 bytes")
        .await;
}

#[tokio::test(start_paused = true)]
async fn g30_one_item_of_a_list_is_malformed() {
    one_item_cannot_be_read(Fault::malformed(), "malformed", |_| false).await;
}

#[tokio::test(start_paused = true)]
async fn g30_one_item_of_a_list_is_oversized() {
    // The padding stands before all else in JSON, and behind it in protobuf.
    let words = "larger than the limit of 4096 bytes";
    one_item_cannot_be_read(Fault::oversized(5000), words, |way| {
        way.format == WireFormat::Protobuf
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn g30_bodies_are_compressed_though_nobody_asked() {
    let words = "encoded as \"gzip\" although that was not asked for";
    lists_cannot_be_read(Fault::gzip(), |_, _| words).await;
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let fault = scene.server.faults().inject(Fault::gzip().on(Verb::Watch).times(1));
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        scene.told("watch", words).await;
        scene.settles().await;
        assert_eq!(fault.hits(), 1);
        assert!(scene.requests().iter().all(|request| request.accept_encoding == "identity"));
        scene.end().await;
    }
}
