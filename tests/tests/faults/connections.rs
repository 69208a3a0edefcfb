//! Connections that cannot be made, break, end or stall; and time that jumps.

use std::sync::Arc;
use std::time::Duration;

use informer::{InformerState, SharedInformerFactory};
use informer_testkit::{Cut, Fault, TestServer, Verb};
use informer_tests::observe::History;
use tokio::time::{Instant, advance, sleep};

use crate::scene::{Scene, options, ways};

const HOURS: Duration = Duration::from_secs(8 * 3600);

#[tokio::test(start_paused = true)]
async fn g01_connections_are_refused() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let faults = scene.server.faults();
        faults.refuse_connections();
        faults.cut_watches(Cut::Reset, None);
        scene.change();
        let status = scene.told("watch", "connection refused").await;
        assert!(status.has_synced && status.objects == 3, "the store stays: {status}");
        sleep(Duration::from_secs(1200)).await;
        assert!(matches!(scene.informer.status().state, InformerState::BackingOff { .. }));
        faults.accept_connections();
        scene.settles().await;
        scene.end().await;

        // From the very start.
        let scene = Scene::new(way.options()).await;
        scene.server.faults().refuse_connections();
        scene.factory.start();
        let status = scene.told("list", "connection refused").await;
        assert!(!status.has_synced, "{status}");
        scene.server.faults().accept_connections();
        scene.settles().await;
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_connections_are_reset_in_the_middle_of_a_frame() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        for _ in 0..4 {
            scene.change();
            scene.server.faults().cut_watches(Cut::Reset, None);
            scene.change();
            scene.settles().await;
        }
        scene.told("watch", "the response was cut").await;
        scene.end().await;

        // In the middle of lists: the first, and that after a compaction.
        let scene = Scene::new(way.options()).await;
        let verb = if way.streaming { Verb::Watch } else { Verb::List };
        let fault = scene.server.faults().inject(Fault::reset_after(300).on(verb).times(1));
        scene.factory.start();
        scene.told("list", "the response was cut").await;
        scene.settles().await;
        scene.began_with("*a#1 *b#1 *c#1");
        assert_eq!(fault.hits(), 1);
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        scene.server.cluster().compact();
        let again = scene.server.faults().inject(Fault::reset_after(300).on(verb).times(3));
        scene.settles().await;
        assert!(again.hits() > 0);
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_watches_are_closed_cleanly_in_a_loop() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let fault = scene.server.faults().inject(Fault::close_after(0).on(Verb::Watch));
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        scene.told("watch", "the server closed the watch").await;
        sleep(Duration::from_secs(1800)).await;
        assert!((60..=240).contains(&fault.hits()), "{} watches in half an hour", fault.hits());
        scene.is_bounded();
        fault.lift();
        scene.settles().await;
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_a_socket_stalls() {
    for way in ways() {
        // Before the answer.
        let scene = Scene::watching(way.options()).await;
        let fault = scene.server.faults().inject(Fault::stall().on(Verb::Watch));
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        scene.told("watch", "the watch was not answered in time").await;
        sleep(Duration::from_secs(600)).await;
        fault.lift();
        scene.settles().await;
        scene.end().await;

        // In the middle of a watch.
        let scene = Scene::watching(way.options()).await;
        scene.status_where("a bookmark", |status| status.counters.bookmarks > 1).await;
        let fault = scene.server.faults().inject(Fault::stall_after(0).on(Verb::Watch));
        scene.change();
        scene.told("watch", "the watch missed its bookmarks").await;
        fault.lift();
        scene.settles().await;
        scene.end().await;

        // In the middle of a list.
        let scene = Scene::new(way.options()).await;
        let fault = scene.server.faults().inject(Fault::stall_after(300).times(1));
        scene.factory.start();
        scene.told("list", "sent nothing for too long").await;
        scene.settles().await;
        scene.began_with("*a#1 *b#1 *c#1");
        assert_eq!(fault.hits(), 1);
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_bytes_drip() {
    for way in ways() {
        let scene = Scene::new(way.options()).await;
        let fault = scene.server.faults().inject(Fault::drip(10, Duration::from_secs(1)));
        scene.factory.start();
        let begun = Instant::now();
        scene
            .status_where("progress", |status| {
                matches!(status.state, InformerState::Listing { items: 1.., .. })
            })
            .await;
        scene.settles().await;
        // 300 bytes and more.
        assert!(begun.elapsed() > Duration::from_secs(30), "it did drip: {:?}", begun.elapsed());
        scene.change();
        scene.settles().await;
        // Slow is no failure.
        assert_eq!(scene.informer.status().counters.errors, 0, "{:#?}", scene.informer.status());
        assert!(fault.hits() > 0);
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_connections_end_instead_of_an_answer() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let fault = scene.server.faults().inject(Fault::hang_up().times(5));
        scene.server.faults().cut_watches(Cut::Reset, None);
        scene.change();
        scene.told("watch", "connection reset").await;
        scene.settles().await;
        assert_eq!(fault.hits(), 5);
        scene.end().await;
    }
}

/// Over sockets, as a restart is about them.
#[tokio::test]
async fn g01_the_server_restarts() {
    for way in ways() {
        let server = TestServer::start().await.unwrap();
        let client = server.client().unwrap();
        let mut scene = Scene::of(server, client, way.options());
        scene.change();
        scene.factory.start();
        scene.settles().await;

        let (cluster, port) = (scene.server.cluster().clone(), scene.server.address().port());
        let before = std::mem::replace(&mut scene.server, TestServer::start().await.unwrap());
        before.shutdown().await;
        scene.told("watch", "onnection refused").await;
        let builder = TestServer::builder().cluster(cluster).port(port);
        scene.server = builder.start().await.unwrap();
        scene.change();
        scene.settles().await;
        assert_eq!(
            scene.informer.status().counters.lists,
            u64::from(!way.streaming),
            "no relist was needed"
        );
        scene.factory.shutdown().await;
    }
}

/// A machine that was suspended: hours pass in one step, and every deadline is due at once. (The
/// wall clock is only told, in the times of recent errors; nothing is decided by it.)
#[tokio::test(start_paused = true)]
async fn g01_the_clock_jumps() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        // Which no change overtakes, so that a resync shows it, whatever else is on its way to the
        // handler then.
        scene.write("still", "as before");
        scene.settles().await;
        let resynced = History::new("resynced").resyncing();
        let history = Arc::clone(&resynced);
        scene
            .informer
            .add_handler(|h| {
                h.resync(Duration::from_secs(60)).on_event(move |event| history.record(event))
            })
            .unwrap();
        resynced.reaches(&scene.truth(), HOURS).await.unwrap();
        let before = scene.requests().len();

        // While watching.
        scene.change();
        advance(HOURS).await;
        scene.change();
        scene.settles().await;
        resynced.reaches(&scene.truth(), HOURS).await.unwrap();
        let asked = scene.requests().len() - before;
        assert!(asked <= 4, "{asked} requests for one wake-up");
        // Of 480 resyncs one is made up for.
        resynced.resyncs().await;
        sleep(Duration::from_secs(30)).await;
        let resyncs = resynced.counts().resynced;
        assert!((1..=scene.truth().len()).contains(&resyncs), "{resyncs} objects were resynced");

        // While backing off.
        scene.server.faults().refuse_connections();
        scene.server.faults().cut_watches(Cut::Reset, None);
        scene.told("watch", "connection refused").await;
        scene.change();
        advance(HOURS).await;
        scene.server.faults().accept_connections();
        scene.settles().await;

        // In the middle of a list.
        let fault = scene.server.faults().inject(Fault::stall_after(200).times(2));
        scene.server.faults().cut_watches(Cut::Expired, None);
        scene.change();
        scene
            .status_where("listing", |status| matches!(status.state, InformerState::Listing { .. }))
            .await;
        advance(HOURS).await;
        fault.lift();
        scene.settles().await;
        resynced.reaches(&scene.truth(), HOURS).await.unwrap();
        resynced.is_legal().unwrap();
        scene.end().await;
    }
}

/// Several informers that lose their server do not come back in step.
#[tokio::test(start_paused = true)]
async fn g28_many_informers_do_not_come_back_in_step() {
    let server = TestServer::start().await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let factory = SharedInformerFactory::builder(client).build();
    let informers: Vec<_> = (0..40)
        .map(|n| factory.informer_with(options(false).namespace(format!("namespace-{n}"))).unwrap())
        .collect();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    server.faults().refuse_connections();
    server.faults().cut_watches(Cut::Reset, None);
    sleep(Duration::from_secs(300)).await;
    let until = |status: informer::Status| match status.state {
        InformerState::BackingOff { until, .. } => until,
        other => panic!("{other}"),
    };
    let mut next: Vec<_> = informers.iter().map(|informer| until(informer.status())).collect();
    next.sort();
    let spread = next[next.len() - 1].duration_since(next[0]).unwrap();
    assert!(spread > Duration::from_secs(10), "{spread:?}");
    factory.shutdown().await;
}

/// A server that fails for a moment is not asked for a thousand lists.
#[tokio::test(start_paused = true)]
async fn g28_many_informers_do_not_list_after_a_moment_of_failures() {
    let server = TestServer::start().await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let factory = SharedInformerFactory::builder(client).build();
    let informers: Vec<_> = (0..1000)
        .map(|n| {
            factory.informer_with(options(n % 2 == 0).namespace(format!("namespace-{n}"))).unwrap()
        })
        .collect();
    factory.start();
    factory.wait_for_sync().await.unwrap();
    sleep(Duration::from_secs(30)).await;
    let streamed = |server: &TestServer| {
        let asked = server.requests().parameter("sendInitialEvents");
        asked.iter().filter(|value| *value == "true").count()
    };
    let (lists, streams) = (server.requests().verb(Verb::List).len(), streamed(&server));
    let down = server.faults().inject(Fault::unavailable());
    server.faults().cut_watches(Cut::Reset, None);
    sleep(Duration::from_secs(5)).await;
    down.lift();
    sleep(Duration::from_secs(60)).await;
    assert!(down.hits() >= 2000, "{} requests failed", down.hits());
    for informer in &informers {
        let status = informer.status();
        assert!(matches!(status.state, InformerState::Watching { .. }), "{status}");
    }
    assert_eq!((server.requests().verb(Verb::List).len(), streamed(&server)), (lists, streams));
    factory.shutdown().await;
}

/// Watches are opened and deliver nothing, while lists work.
#[tokio::test(start_paused = true)]
async fn g29_watches_are_deaf() {
    for way in ways() {
        let scene = Scene::new(way.options()).await;
        let fault = scene.server.faults().inject(Fault::stall_after(0).on(Verb::Watch));
        scene.factory.start();
        scene.status_where("synced", |status| status.has_synced).await;
        sleep(Duration::from_secs(1)).await;
        scene.change();
        scene.told("watch", "the watch is deaf").await;
        // The list that has shown it is in the store.
        scene.settles().await;
        scene.change();
        scene.settles().await;
        fault.lift();
        scene.change();
        scene.settles().await;
        scene.end().await;
    }
}
