//! An object that cannot be decoded, among good ones.

use informer::Status;
use informer::source::WireFormat;
use informer_testkit::{Cut, Fault};

use crate::scene::{Scene, Way, ways};

/// What is told of such an object.
fn undecodable(way: Way, name: &str) -> String {
    let why = match way.format {
        WireFormat::Protobuf => ".: malformed protobuf",
        _ => "data: invalid type",
    };
    format!("default/{name}: {why}")
}

fn names_stale(status: &Status) -> Vec<&str> {
    status.stale.iter().map(|stale| stale.key.name()).collect()
}

#[tokio::test(start_paused = true)]
async fn g30_an_object_in_a_list_cannot_be_decoded() {
    for way in ways() {
        let scene = Scene::new(way.options()).await;
        let fault = scene.server.faults().inject(Fault::undecodable("b"));
        scene.factory.start();
        let status = scene.told("decode", &undecodable(way, "b")).await;
        assert!(
            !status.recent_errors.iter().any(|error| error.message.contains("of another type"))
        );
        scene.settles_without(&["b"]).await;
        assert_eq!(names_stale(&scene.informer.status()), ["b"]);
        // It stays so through a relist, and the others go on.
        scene.write("a", "second");
        scene.server.faults().cut_watches(Cut::Expired, None);
        scene.settles_without(&["b"]).await;
        fault.lift();
        scene.write("b", "second");
        scene.settles().await;
        for history in &scene.seen {
            assert_eq!(history.text_of("b"), "+b#1");
        }
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g30_an_added_object_cannot_be_decoded() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let fault = scene.server.faults().inject(Fault::undecodable("new"));
        scene.write("new", "first");
        scene.change();
        scene.told("decode", &undecodable(way, "new")).await;
        scene.settles_without(&["new"]).await;
        fault.lift();
        scene.write("new", "second");
        scene.settles().await;
        for history in &scene.seen {
            assert_eq!(history.text_of("new"), "+new#1");
        }
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g30_a_modified_object_cannot_be_decoded() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let before = scene.held();
        let fault = scene.server.faults().inject(Fault::undecodable("a"));
        scene.write("a", "second");
        scene.write("b", "second");
        scene.told("decode", &undecodable(way, "a")).await;
        let reached = scene.informer.wait_for(scene.server.cluster().version());
        reached.await.unwrap();
        assert_eq!(scene.held()["default/a"], before["default/a"], "the last good state is kept");
        assert_eq!(scene.held()["default/b"], scene.truth()["default/b"]);
        assert_eq!(names_stale(&scene.informer.status()), ["a"]);
        // In a relist it counts as present.
        scene.server.faults().cut_watches(Cut::Expired, None);
        scene.write("c", "second");
        scene.informer.wait_for(scene.server.cluster().version()).await.unwrap();
        assert_eq!(scene.held()["default/a"], before["default/a"], "the last good state is kept");
        fault.lift();
        scene.write("a", "third");
        scene.settles().await;
        for history in &scene.seen {
            assert_eq!(history.text_of("a"), "*a#1 ~a#1");
        }
        scene.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g30_a_deleted_object_cannot_be_decoded() {
    for way in ways() {
        let scene = Scene::watching(way.options()).await;
        let _fault = scene.server.faults().inject(Fault::undecodable("a"));
        scene.delete("a");
        scene.write("b", "second");
        scene.told("decode", &undecodable(way, "a")).await;
        scene.settles().await;
        for history in &scene.seen {
            assert_eq!(history.text_of("a"), "*a#1 -a#1?");
        }
        scene.end().await;
    }
}
