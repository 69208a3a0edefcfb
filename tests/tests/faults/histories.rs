//! The server forgets, or goes back in time; and what happens while nobody watches.

use informer_testkit::Cut;
use std::time::Duration;
use tokio::time::sleep;

use crate::scene::{LONG, Scene, ways};

#[tokio::test(start_paused = true)]
async fn g01_the_history_is_compacted() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        for _ in 0..3 {
            scene.change();
            scene.server.faults().cut_watches(Cut::Close, None);
            scene.change();
            scene.server.cluster().compact();
            scene.settles().await;
            // Under an open watch it means nothing.
            scene.server.cluster().compact();
            scene.change();
            scene.settles().await;
        }
        scene.told("watch", "410").await;
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g05_g06_objects_are_deleted_and_recreated_across_a_gap() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let faults = scene.server.faults();
        for relists in [false, true] {
            faults.refuse_connections();
            faults.cut_watches(Cut::Reset, None);
            scene.delete("a");
            scene.write("a", "its successor");
            scene.delete("b");
            scene.write("b", "one that nobody sees");
            scene.delete("b");
            if relists {
                scene.server.cluster().compact();
            }
            scene.told("watch", "connection refused").await;
            faults.accept_connections();
            scene.settles().await;
            for history in &scene.seen {
                let (a, b) = match relists {
                    // The watch goes on where it was, and tells everything.
                    false => ("*a#1 -a#1 +a#2", "*b#1 -b#1 +b#2 -b#2"),
                    true => ("*a#1 -a#1 +a#2 -a#2? +a#3", "*b#1 -b#1 +b#2 -b#2 +b#3 -b#3?"),
                };
                history.tells("a", a, LONG).await.unwrap();
                history.tells("b", b, LONG).await.unwrap();
            }
            scene.write("b", "again");
            scene.settles().await;
        }
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g26_the_history_is_replaced() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let cluster = scene.server.cluster();
        let backup = cluster.checkpoint();
        scene.change();
        scene.change();
        scene.settles().await;
        let lost = cluster.version();

        for history in &scene.seen {
            history.expect_older_versions();
        }
        cluster.restore(&backup);
        assert!(cluster.version() < lost);
        scene.write("e", "in the new history");
        scene.settles().await;
        let status = scene.informer.status();
        assert!(status.counters.errors > 0, "{status:#?}");
        // The new history grows past the old one, with other objects under the same versions.
        while cluster.version() <= lost {
            scene.change();
        }
        scene.settles().await;
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g26_the_history_is_replaced_while_the_server_is_away() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let cluster = scene.server.cluster();
        let backup = cluster.checkpoint();
        scene.change();
        scene.settles().await;
        let seen = cluster.version();
        scene.server.faults().refuse_connections();
        scene.server.faults().cut_watches(Cut::Reset, None);
        scene.told("watch", "connection refused").await;
        for history in &scene.seen {
            history.expect_older_versions();
        }
        cluster.restore(&backup);
        // It comes back as a server whose version is smaller than what was seen. (One that has come
        // further already cannot be told from one that never lost anything.)
        scene.write("a", "in the new history");
        scene.write("e", "in the new history");
        assert!(cluster.version() < seen);
        sleep(Duration::from_secs(60)).await;
        scene.server.faults().accept_connections();
        scene.settles().await;
        for history in &scene.seen {
            assert_eq!(history.text_of("only-in-1"), "+only-in-1#1 -only-in-1#1?");
        }
        scene.end().await;
    }
}
