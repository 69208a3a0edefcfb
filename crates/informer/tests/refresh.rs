//! Refreshes: the store is as new as the call, whatever the watch holds back (G14, G26).

#[macro_use]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{
    LONG, Script, config_map, noting, object, scripted, scripted_informer, soon, value_of,
};
use futures_util::FutureExt;
use futures_util::future::join_all;
use informer::source::FailureKind;
use informer::{Error, InformerOptions, Resource, SharedInformer, SharedInformerFactory};
use informer_testkit::{Fault, TestServer, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc;

run_tests! {
    on_both_runtimes:
        a_stop_ends_the_wait_for_a_refresh;
    on_a_paused_clock:
        g14_a_refresh_shows_what_a_stalled_watch_holds_back,
        concurrent_refreshes_share_one_list_and_a_list_under_way_does_not_count,
        g07_unchanged_objects_are_neither_replaced_nor_delivered_by_a_refresh,
        g22_a_refresh_before_the_start_waits_for_it_and_makes_the_first_list_at_the_newest,
        g25_a_refresh_that_is_dropped_is_made_all_the_same,
        g28_a_refresh_while_backing_off_waits_for_the_retry_and_says_why,
        g32_a_removal_of_the_resource_ends_the_wait,
        g26_only_a_list_at_the_newest_makes_a_refresh_needless;
}

const SECOND: Duration = Duration::from_secs(1);

/// An informer over a script whose first list, at version 0, is at 9, and whose watch is open for
/// long enough that a list may be made.
async fn watching(
    items: &[serde_json::Value],
) -> (SharedInformer<ConfigMap>, Script, common::Feed) {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(9, items).await;
    let (_, feed) = script.watch().await;
    informer.synced().await.unwrap();
    tokio::time::sleep(10 * SECOND).await;
    (informer, script, feed)
}

async fn g14_a_refresh_shows_what_a_stalled_watch_holds_back() {
    for streaming in [true, false] {
        let server = TestServer::start().await.unwrap();
        let client = kube::Client::new(server.service(), "default");
        let factory = SharedInformerFactory::builder(client).build();
        let options = InformerOptions::<ConfigMap>::new().streaming_lists(streaming);
        let informer = factory.informer_with(options).unwrap();
        factory.start();
        let lister = soon(informer.synced()).await.unwrap();

        let stalled = server.faults().inject(Fault::stall_after(0).on(Verb::Watch));
        for round in 0..3 {
            // All watches stall, and so do streaming lists, after which a LIST comes.
            server.cluster().apply(&config_map("a", &round.to_string())).unwrap();
            server.cluster().apply(&config_map(&format!("b-{round}"), "new")).unwrap();
            if round > 0 {
                server
                    .cluster()
                    .delete("configmaps", "default", &format!("b-{}", round - 1))
                    .unwrap();
            }
            soon(informer.refresh_within(LONG)).await.unwrap();
            let names: Vec<_> =
                lister.snapshot().iter().map(|it| it.key.name().to_owned()).collect();
            assert_eq!(names, ["a".to_owned(), format!("b-{round}")]);
            let shown = lister.find("default", "a").unwrap();
            assert_eq!(value_of(&shown), round.to_string());
        }
        stalled.lift();
        factory.shutdown().await;
    }
}

async fn concurrent_refreshes_share_one_list_and_a_list_under_way_does_not_count() {
    let (informer, mut script, feed) = watching(&[]).await;
    let begun = tokio::time::Instant::now();
    let mut first = std::pin::pin!(join_all((0..10).map(|_| informer.refresh())));
    assert!((&mut first).now_or_never().is_none());
    let common::Call::List(request, reply) = script.call().await else { panic!("a list") };
    assert!(request.version.is_unset(), "{request:?}");
    assert!(feed.is_closed());
    assert_eq!(begun.elapsed(), Duration::ZERO, "the task is woken");

    // This one is answered with what may be older than the next call.
    let mut late = std::pin::pin!(informer.refresh());
    assert!((&mut late).now_or_never().is_none());
    _ = reply.send(Ok(common::list_of(20, &[])));
    assert!(soon(first).await.iter().all(Result::is_ok));
    assert_eq!(begun.elapsed(), Duration::ZERO);

    let (request, feed) = script.watch().await;
    assert_eq!(request.version, 20.into());
    feed.send("ADDED", &object("a", 30, "1"));
    soon(informer.wait_for(30)).await.unwrap();
    assert!((&mut late).now_or_never().is_none(), "an event completes no refresh");
    let request = script.list(40, &[object("a", 30, "1")]).await;
    assert!(request.version.is_unset(), "{request:?}");
    assert!(begun.elapsed() >= SECOND, "{:?} after the list before", begun.elapsed());
    soon(late).await.unwrap();
    assert_eq!(informer.last_sync_resource_version(), 40.into());
    // The one after is a watch, which stays.
    let (request, _feed) = script.watch().await;
    assert_eq!(request.version, 40.into());
    tokio::time::sleep(60 * SECOND).await;
    assert!(script.call_now().is_none());
}

async fn g07_unchanged_objects_are_neither_replaced_nor_delivered_by_a_refresh() {
    let (informer, mut script, _feed) =
        watching(&[object("a", 1, "1"), object("b", 2, "1"), object("c", 3, "1")]).await;
    let (sender, mut told) = mpsc::unbounded_channel();
    informer.add_handler(|handlers| noting(handlers, sender)).unwrap();
    common::notes(&mut told, 3).await;
    let lister = informer.synced().await.unwrap();
    let before = lister.find("default", "a").unwrap();

    let items = [object("a", 1, "1"), object("b", 12, "2")];
    let (refreshed, _) = tokio::join!(informer.refresh(), script.list(20, &items));
    refreshed.unwrap();
    assert!(Arc::ptr_eq(&before, &lister.find("default", "a").unwrap()));
    assert_eq!(informer.status().counters.unchanged, 1);
    let told = common::notes(&mut told, 2).await;
    assert_eq!(told, ["delete c=1 Unknown", "update b=1>2"]);
    informer.stop().await;
}

async fn g22_a_refresh_before_the_start_waits_for_it_and_makes_the_first_list_at_the_newest() {
    let (informer, mut script) = scripted_informer();
    let error = informer.refresh_within(10 * SECOND).await.unwrap_err();
    assert!(matches!(error, Error::NotRefreshed(_)), "{error:?}");
    let text =
        "not refreshed in time: configmaps.v1 in the whole cluster (not started: call `start()`)";
    assert!(error.to_string().contains(text), "{error}");

    let waiting = tokio::spawn({
        let informer = informer.clone();
        async move { informer.refresh().await }
    });
    tokio::task::yield_now().await;
    informer.start();
    let request = script.list(9, &[]).await;
    assert!(request.version.is_unset(), "{request:?}");
    soon(waiting).await.unwrap().unwrap();
    assert!(!informer.needs_refresh());
    script.watch().await;
}

async fn g25_a_refresh_that_is_dropped_is_made_all_the_same() {
    let (informer, mut script, _feed) = watching(&[]).await;
    assert!(informer.refresh().now_or_never().is_none());
    let request = script.list(20, &[object("a", 12, "1")]).await;
    assert!(request.version.is_unset(), "{request:?}");
    let (_, _feed) = script.watch().await;
    soon(informer.wait_for(20)).await.unwrap();
    assert_eq!(informer.unsynced_store().len(), 1);
    // A later call is not satisfied by it.
    let (refreshed, _) = tokio::join!(informer.refresh(), script.list(21, &[]));
    refreshed.unwrap();
    assert_eq!(informer.last_sync_resource_version(), 21.into());
}

async fn g28_a_refresh_while_backing_off_waits_for_the_retry_and_says_why() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    for _ in 0..6 {
        script.fail(FailureKind::Forbidden, "list configmaps: 403 grant the verbs").await;
    }
    let begun = tokio::time::Instant::now();
    let error = informer.refresh_within(5 * SECOND).await.unwrap_err();
    assert!(error.to_string().contains("403 grant the verbs"), "{error}");
    let (refreshed, request) = tokio::join!(informer.refresh(), script.list(9, &[]));
    refreshed.unwrap();
    assert!(request.version.is_unset(), "{request:?}");
    // The delay after six failures.
    assert!(begun.elapsed() >= Duration::from_millis(12_800), "{:?}", begun.elapsed());
    script.watch().await;
}

async fn g32_a_removal_of_the_resource_ends_the_wait() {
    let (informer, mut script, feed) = watching(&[object("a", 1, "1")]).await;
    feed.fail(FailureKind::NotFound, "gone");
    let refreshed = tokio::spawn({
        let informer = informer.clone();
        async move { informer.refresh().await }
    });
    while !informer.unsynced_store().is_empty() {
        assert!(!refreshed.is_finished());
        tokio::select! {
            () = script.exists(false) => {}
            () = tokio::time::sleep(LONG) => panic!("no discovery"),
        }
        tokio::task::yield_now().await;
    }
    soon(refreshed).await.unwrap().unwrap();
    assert!(informer.needs_refresh(), "nothing is known of what comes then");
}

async fn a_stop_ends_the_wait_for_a_refresh() {
    let (source, mut script) = scripted();
    let options = InformerOptions::<ConfigMap>::new().streaming_lists(false);
    let informer = SharedInformer::new(source, Resource::of::<ConfigMap>(), options);
    informer.start();
    script.list(9, &[]).await;
    let (_, _feed) = script.watch().await;
    let mut refresh = std::pin::pin!(informer.refresh());
    assert!((&mut refresh).now_or_never().is_none());
    // The list is never answered.
    informer.stop().await;
    let error = soon(refresh).await.unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error:?}");
    let error = soon(informer.refresh()).await.unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error:?}");
}

async fn g26_only_a_list_at_the_newest_makes_a_refresh_needless() {
    let (informer, mut script, feed) = watching(&[]).await;
    assert!(informer.needs_refresh(), "the first list was at version 0");
    feed.fail(FailureKind::Expired, "gone");
    let request = script.list(20, &[]).await;
    assert_eq!(request.version, 9.into());
    let (_, _feed) = script.watch().await;
    soon(informer.wait_for(20)).await.unwrap();
    assert!(informer.needs_refresh(), "the second was at the version of the first");
    let (refreshed, _) = tokio::join!(informer.refresh(), script.list(21, &[]));
    refreshed.unwrap();
    assert!(!informer.needs_refresh());

    // A streaming list is at the newest version from the start.
    let server = TestServer::start().await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let factory = SharedInformerFactory::builder(client).build();
    let informer = factory.informer::<ConfigMap>().unwrap();
    assert!(informer.needs_refresh());
    factory.start();
    soon(informer.synced()).await.unwrap();
    assert!(!informer.needs_refresh());
    factory.shutdown().await;
}
