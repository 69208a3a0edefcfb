//! Lists whose pages expire, and lists that say things twice.

use informer_testkit::{Cut, Fault, Verb};

use crate::scene::{Scene, Way, ways};

/// The ways with LIST, which alone has pages.
fn plain_ways() -> impl Iterator<Item = Way> {
    ways().filter(|way| !way.streaming)
}

/// Seven objects in pages of two.
async fn paged(way: Way) -> Scene {
    let scene = Scene::new(way.options().page_size(Some(2))).await;
    for name in ["d", "e", "f", "g"] {
        scene.write(name, "first");
    }
    next_list_is_paged(&scene);
    scene
}

/// Lists from the server's cache come whole, whatever the limit; those at the newest version in
/// pages.
fn next_list_is_paged(scene: &Scene) {
    scene.server.faults().inject(Fault::expired().on(Verb::List).times(1));
}

#[tokio::test(start_paused = true)]
async fn g01_the_continue_token_expires_on_each_page() {
    // All pages expire, until the last but this one; or only once.
    for page in 2..=4 {
        for (way, times) in plain_ways().flat_map(|way| [1, u64::MAX].map(|times| (way, times))) {
            let scene = paged(way).await;
            let fault =
                Fault::expired().on(Verb::List).resource("configmaps").page(page).times(times);
            let fault = scene.server.faults().inject(fault);
            scene.factory.start();
            scene.settles().await;
            assert_eq!(fault.hits(), 1, "page {page}");
            // The one that was too large, the pages up to this, and then all in one.
            assert_eq!(scene.requests().verb(Verb::List).len() as u64, page + 2);
            assert_eq!(scene.seen[0].counts().initial, 7);
            scene.told("list", "410").await;

            // The same in a relist.
            scene.server.faults().cut_watches(Cut::Close, None);
            scene.change();
            scene.server.cluster().compact();
            next_list_is_paged(&scene);
            scene.settles().await;
            assert_eq!(fault.hits(), times.min(2), "page {page}");
            scene.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g01_a_history_ends_between_two_pages() {
    // A compaction, instead of a fault: the server forgets while a list is under way.
    for way in plain_ways() {
        let scene = paged(way).await;
        let stalled = scene.server.faults().inject(Fault::stall().on(Verb::List).page(3));
        scene.factory.start();
        scene.status_where("the third page", |status| status.counters.lists == 4).await;
        scene.change();
        scene.server.cluster().compact();
        stalled.lift();
        scene.settles().await;
        scene.told("list", "410").await;
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g26_pages_are_of_different_versions() {
    for way in plain_ways() {
        let scene = paged(way).await;
        // The store stands at the version of the first page, also where it has newer objects of
        // later ones.
        scene.seen.iter().for_each(|history| history.forget_store());
        let moving = scene.server.faults().inject(Fault::moving_pages());
        let stalled = scene.server.faults().inject(Fault::stall().on(Verb::List).page(3));
        scene.factory.start();
        scene.status_where("the third page", |status| status.counters.lists == 4).await;
        // What the first two pages have is outdated; only a watch from the first one's version
        // tells of it.
        scene.change();
        stalled.lift();
        scene.settles().await;
        assert!(moving.hits() >= 3);
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_keys_come_twice() {
    for way in ways() {
        let scene = Scene::new(way.options()).await;
        let fault = scene.server.faults().inject(Fault::duplicates());
        scene.factory.start();
        scene.settles().await;
        for history in &scene.seen {
            assert_eq!(history.sorted_from(0), "*a#1 *b#1 *c#1");
        }
        // Events, and a relist.
        scene.change();
        scene.settles().await;
        scene.server.faults().cut_watches(Cut::Close, None);
        scene.change();
        scene.server.cluster().compact();
        scene.settles().await;
        assert!(fault.hits() >= 2);
        assert_eq!(scene.informer.status().counters.undecodable, 0);
        scene.told("watch", "410").await;
        scene.end().await;
    }
}
