//! Cases of client-go's reflector, pager and WatchList tests that no other test shows (see
//! `tests/CASES.md`).

#[macro_use]
mod common;

use bytes::Bytes;
use common::{Call, config_map, object, scripted, scripted_informer, soon, status_where};
use futures_util::StreamExt;
use futures_util::future::FutureExt;
use futures_util::stream;
use informer::source::{FailureKind, ListChunk, ListHead, ListPart, ListStream, WatchRequest};
use informer::{InformerOptions, InformerState, Resource, SharedInformer, SharedInformerFactory};
use informer_testkit::{Fault, TestServer, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

run_tests! {
    on_both_runtimes:
        g24_what_is_stopped_before_its_start_asks_for_nothing,
        g24_a_stop_drops_the_watch_that_is_open_and_opens_no_other,
        g09_a_streaming_list_that_never_ends_leaves_the_store_alone,
        g27_changes_before_the_end_of_a_streaming_list_are_part_of_it,
        g14_the_last_event_counts_even_where_it_is_not_the_newest;
    on_a_paused_clock:
        g27_a_streaming_list_that_breaks_off_is_followed_by_a_list,
        g28_four_refused_watches_cost_no_list,
        g26_a_list_takes_as_many_pages_as_it_needs,
        g26_a_page_size_that_was_set_holds_for_relists_too,
        g28_pages_without_objects_are_given_up;
}

fn bookmark(version: u64, end: bool) -> Value {
    let annotations = if end { json!({ "k8s.io/initial-events-end": "true" }) } else { json!({}) };
    json!({ "kind": "ConfigMap", "metadata": { "resourceVersion": version.to_string(), "annotations": annotations } })
}

fn streaming() -> (SharedInformer<ConfigMap>, common::Script) {
    let (source, script) = scripted();
    (SharedInformer::new(source, Resource::of::<ConfigMap>(), InformerOptions::new()), script)
}

fn is_first_of_all(request: &WatchRequest) -> bool {
    request.send_initial_events && request.version.is_unset()
}

async fn g24_what_is_stopped_before_its_start_asks_for_nothing() {
    let (informer, mut script) = scripted_informer();
    informer.stop().await;
    informer.start();
    soon(informer.run()).await;
    assert!(informer.synced().await.is_err());
    drop(informer);
    assert!(script.is_over().await);
}

async fn g24_a_stop_drops_the_watch_that_is_open_and_opens_no_other() {
    let (informer, mut script) = scripted_informer();
    let running = tokio::spawn({
        let informer = informer.clone();
        async move { informer.run().await }
    });
    script.list(9, &[]).await;
    let (request, feed) = script.watch().await;
    assert_eq!(request.version, "9".into());
    status_where(&informer, |status| matches!(status.state, InformerState::Watching { .. })).await;
    soon(informer.stop()).await;
    soon(running).await.unwrap();
    assert!(feed.is_closed());
    drop(informer);
    assert!(script.is_over().await, "one list, one watch");
}

async fn g09_a_streaming_list_that_never_ends_leaves_the_store_alone() {
    let (informer, mut script) = streaming();
    informer.start();
    let (request, feed) = script.watch().await;
    assert!(is_first_of_all(&request));
    feed.send("ADDED", &object("a", 1, "1"));
    status_where(&informer, |status| {
        matches!(status.state, InformerState::Listing { items: 1, .. })
    })
    .await;
    assert!(informer.last_sync_resource_version().is_unset());
    assert!(informer.unsynced_store().is_empty() && informer.synced().now_or_never().is_none());
    soon(informer.stop()).await;
    assert!(informer.unsynced_store().is_empty() && feed.is_closed());
    drop(informer);
    assert!(script.is_over().await, "one watch, no list");
}

async fn g27_changes_before_the_end_of_a_streaming_list_are_part_of_it() {
    let (informer, mut script) = streaming();
    let mut events = informer.events().unwrap();
    informer.start();
    let (_, feed) = script.watch().await;
    feed.send("ADDED", &object("a", 1, "1"));
    feed.send("ADDED", &object("b", 2, "1"));
    feed.send("MODIFIED", &object("a", 3, "2"));
    feed.send("DELETED", &object("b", 4, "1"));
    assert!(informer.last_sync_resource_version().is_unset());
    feed.send("BOOKMARK", &bookmark(5, true));
    assert_eq!(soon(informer.synced()).await.unwrap().len(), 1);
    assert_eq!(informer.last_sync_resource_version(), "5".into());
    assert_eq!(common::note(&soon(events.next()).await.unwrap()), "add a=2 initial");
    // The stream goes on as the watch.
    feed.send("ADDED", &object("c", 6, "1"));
    assert_eq!(common::note(&soon(events.next()).await.unwrap()), "add c=1");
    assert!(script.call_now().is_none());
}

async fn g27_a_streaming_list_that_breaks_off_is_followed_by_a_list() {
    let (informer, mut script) = streaming();
    informer.start();
    let (request, feed) = script.watch().await;
    assert!(is_first_of_all(&request));
    feed.send("ADDED", &object("lost", 1, "1"));
    drop(feed);
    let waiting =
        status_where(&informer, |status| matches!(status.state, InformerState::BackingOff { .. }))
            .await;
    assert!(!waiting.has_synced && waiting.objects == 0, "{waiting}");
    let request = script.list(3, &[object("a", 2, "1")]).await;
    assert_eq!(request.version, "0".into(), "from scratch");
    let (request, _feed) = script.watch().await;
    assert!(!request.send_initial_events);
    let lister = soon(informer.synced()).await.unwrap();
    assert_eq!(lister.list().len(), 1);
    assert!(lister.find("default", "a").is_some());
}

async fn g28_four_refused_watches_cost_no_list() {
    let server = TestServer::start().await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let factory = SharedInformerFactory::builder(client).build();
    let informer =
        factory.informer_with(InformerOptions::<ConfigMap>::new().streaming_lists(false)).unwrap();
    let refused = server.faults().inject(Fault::too_many_requests().on(Verb::Watch).times(4));
    factory.start();
    status_where(&informer, |status| matches!(status.state, InformerState::Watching { .. })).await;
    assert_eq!(refused.hits(), 4);
    let counters = informer.status().counters;
    assert_eq!((counters.lists, counters.watches, counters.errors), (1, 5, 4));
}

async fn g26_a_list_takes_as_many_pages_as_it_needs() {
    for (objects, pages) in [(0, 1), (9, 1), (10, 1), (11, 2), (21, 3)] {
        let server = TestServer::start().await.unwrap();
        for number in 0..objects {
            server.cluster().create(&config_map(&format!("map-{number:02}"), "1")).unwrap();
        }
        let client = kube::Client::new(server.service(), "default");
        let factory = SharedInformerFactory::builder(client).build();
        let options =
            InformerOptions::<ConfigMap>::new().streaming_lists(false).page_size(Some(10));
        let informer = factory.informer_with(options).unwrap();
        // A list at version 0 may come whole from the server's cache; one at none is paged.
        server.faults().inject(Fault::expired().on(Verb::List).times(1));
        factory.start();
        assert_eq!(soon(informer.synced()).await.unwrap().len(), objects);
        let lists = server.requests().verb(Verb::List).resource("configmaps");
        assert_eq!(lists.len() - 1, pages, "{objects} objects");
        // Later pages name the first one's state by their token alone.
        let later = lists.iter().skip(2);
        assert!(later.clone().all(|page| page.parameter("resourceVersion").is_none()));
        assert!(later.clone().all(|page| page.parameter("continue").is_some()));
    }
}

async fn g26_a_page_size_that_was_set_holds_for_relists_too() {
    let options = || InformerOptions::new().streaming_lists(false);
    for (options, limits) in [
        (options(), [Some(500), None]),
        (options().page_size(Some(500)), [Some(500), Some(500)]),
        (options().page_size(Some(7)), [Some(7), Some(7)]),
        (options().page_size(None), [None, None]),
    ] {
        let (source, mut script) = scripted();
        let informer =
            SharedInformer::<ConfigMap>::new(source, Resource::of::<ConfigMap>(), options);
        informer.start();
        assert_eq!(script.list(9, &[object("a", 1, "1")]).await.limit, limits[0]);
        let (_, feed) = script.watch().await;
        feed.fail(FailureKind::Expired, "gone");
        let relist = script.list(20, &[object("a", 1, "1")]).await;
        assert_eq!((relist.version, relist.limit), ("9".into(), limits[1]));
    }
}

async fn g28_pages_without_objects_are_given_up() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    let mut pages = 0;
    loop {
        let Call::List(request, reply) = soon(script.call()).await else {
            panic!("a list was expected")
        };
        assert_eq!(request.continue_token.is_some(), pages > 0 && pages < 9);
        if pages == 9 {
            break;
        }
        // Only the first page has an object; of the others the server says that there are more.
        let items = if pages == 0 { vec![object("a", 1, "1")] } else { vec![] };
        pages += 1;
        let head = ListHead {
            kind: "ConfigMapList".into(),
            resource_version: "9".into(),
            continue_token: Some(pages.to_string()),
            ..ListHead::default()
        };
        let items =
            items.iter().map(|item| ListPart::Item(Bytes::from(item.to_string()).into())).collect();
        let chunks = [Ok(ListChunk::Parts(items)), Ok(ListChunk::End(head))];
        _ = reply.send(Ok(ListStream(stream::iter(chunks).boxed())));
    }
    let told = informer.status().recent_errors;
    assert!(told[0].message.contains("do not come to an end"), "{told:?}");
}

async fn g14_the_last_event_counts_even_where_it_is_not_the_newest() {
    let (informer, mut script) = scripted_informer();
    informer.start();
    script.list(20, &[object("foo", 9, "1"), object("bar", 10, "1")]).await;
    let (_, feed) = script.watch().await;
    feed.send("DELETED", &object("foo", 50, "1"));
    feed.send("MODIFIED", &object("bar", 55, "2"));
    feed.send("ADDED", &object("baz", 32, "1"));
    // Nothing of the kind asked for: it is told, and the rest goes on.
    feed.send("ADDED", &json!({ "kind": "Pod", "metadata": { "name": "pod", "namespace": "default", "uid": "u", "resourceVersion": "33" }, "data": 7 }));
    let status = status_where(&informer, |status| status.version == "33".into()).await;
    assert_eq!((status.objects, status.undecodable), (2, 1));
    assert_eq!(status.stale[0].key.name(), "pod");
    feed.fail(FailureKind::Transport, "cut");
    let Call::Watch(request, _) = soon(script.call()).await else { panic!("a watch was expected") };
    assert_eq!(request.version, "33".into());
}
