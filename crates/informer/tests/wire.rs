//! What goes over the wire and what is made of it (G26 to G30), against the test kit.

#[macro_use]
mod common;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use common::{config_map, soon, status_where, value_of};
use informer::{InformerOptions, InformerState, SharedInformer, SharedInformerFactory};
use informer_testkit::{Cut, Fault, Status, TestServer, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::Instant;

run_tests! {
    on_both_runtimes:
        g27_a_refusal_of_streaming_lists_is_remembered_for_the_resource,
        g28_kubes_retries_are_kept_out_of_real_clients_too,
        managed_fields_are_dropped_unless_asked_for;
    on_a_paused_clock:
        g26_lists_climb_down_the_ladder_of_versions,
        g26_g27_streaming_lists_start_without_a_version_and_go_on_from_the_last,
        g28_retry_after_is_obeyed_and_kubes_own_retries_are_kept_out,
        g28_a_retry_after_that_is_a_date_is_obeyed_up_to_five_minutes,
        g28_an_unreachable_server_is_not_asked_hot_and_comes_back,
        g26_a_restored_backup_is_noticed_and_relisted_at_the_newest;
}

/// In the process, so that the clock can be paused.
fn factory(server: &TestServer) -> SharedInformerFactory {
    SharedInformerFactory::builder(kube::Client::new(server.service(), "default")).build()
}

fn plain() -> InformerOptions<ConfigMap> {
    InformerOptions::new().streaming_lists(false)
}

fn write(server: &TestServer, name: &str, value: &str) -> String {
    server.cluster().apply(&config_map(name, value)).unwrap();
    server.cluster().version().to_string()
}

/// The `resourceVersion` of each request, oldest first.
fn versions(server: &TestServer, verb: Verb) -> Vec<String> {
    server.requests().verb(verb).resource("configmaps").parameter("resourceVersion")
}

async fn reaches(informer: &SharedInformer<ConfigMap>, version: &str) {
    soon(informer.wait_for(version)).await.unwrap();
}

async fn g26_lists_climb_down_the_ladder_of_versions() {
    let server = TestServer::start().await.unwrap();
    write(&server, "a", "1");
    let factory = factory(&server);
    let informer = factory.informer_with(plain()).unwrap();
    factory.start();
    soon(informer.synced()).await.unwrap();
    let first = informer.last_sync_resource_version().to_string();
    let seen = write(&server, "a", "2");
    reaches(&informer, &seen).await;
    assert_eq!(versions(&server, Verb::List), ["0"]);
    assert_eq!(versions(&server, Verb::Watch), [first.as_str()]);

    // 410 in the stream: a relist at the last version seen.
    let fault = server.faults().inject(Fault::expired().on(Verb::Watch).times(1));
    server.faults().cut_watches(Cut::Close, None);
    status_where(&informer, |status| status.counters.lists == 2 && is_watching(&status.state))
        .await;
    assert_eq!(fault.hits(), 1);
    assert_eq!(versions(&server, Verb::List), ["0", seen.as_str()]);

    // That one answered 410, too: a relist at the newest.
    server.faults().inject(Fault::expired().on(Verb::Watch).times(1));
    server.faults().inject(Fault::expired().on(Verb::List).times(1));
    server.faults().cut_watches(Cut::Close, None);
    status_where(&informer, |status| status.counters.lists == 4 && is_watching(&status.state))
        .await;
    assert_eq!(versions(&server, Verb::List)[1..], [seen.as_str(), seen.as_str(), ""]);
    factory.shutdown().await;
}

fn is_watching(state: &InformerState) -> bool {
    matches!(state, InformerState::Watching { .. })
}

async fn g26_g27_streaming_lists_start_without_a_version_and_go_on_from_the_last() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    soon(informer.synced()).await.unwrap();
    let seen = write(&server, "a", "2");
    reaches(&informer, &seen).await;
    server.faults().inject(Fault::expired().on(Verb::Watch).times(1));
    server.faults().cut_watches(Cut::Reset, None);
    status_where(&informer, |status| status.counters.watches == 3 && is_watching(&status.state))
        .await;
    assert_eq!(versions(&server, Verb::Watch), ["", seen.as_str(), seen.as_str()]);
    let streaming = server.requests().verb(Verb::Watch).parameter("sendInitialEvents");
    assert_eq!(streaming, ["true", "", "true"]);
    assert!(versions(&server, Verb::List).is_empty());
    let all = server.requests().verb(Verb::Watch);
    assert!(all.iter().all(|request| request.accept_encoding == "identity"));
    assert!(all.parameter("allowWatchBookmarks").iter().all(|value| value == "true"));
    for timeout in all.parameter("timeoutSeconds") {
        assert!((200..=280).contains(&timeout.parse::<u32>().unwrap()), "{timeout}");
    }
}

async fn g27_a_refusal_of_streaming_lists_is_remembered_for_the_resource() {
    let server = TestServer::builder().disable_watch_list().start().await.unwrap();
    let factory = factory(&server);
    let first = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    soon(first.synced()).await.unwrap();
    let streaming = |server: &TestServer| {
        let asked = server.requests().verb(Verb::Watch).parameter("sendInitialEvents");
        asked.into_iter().filter(|value| value == "true").count()
    };
    assert_eq!(streaming(&server), 1);
    let second = factory.informer_with(InformerOptions::<ConfigMap>::new().namespace("x")).unwrap();
    soon(second.synced()).await.unwrap();
    assert_eq!(streaming(&server), 1, "it was known for the resource");
    factory.stop(&first).await;
    let again = factory.informer::<ConfigMap>().unwrap();
    soon(again.synced()).await.unwrap();
    assert_eq!(streaming(&server), 1, "and is known after a stop");
}

async fn g28_retry_after_is_obeyed_and_kubes_own_retries_are_kept_out() {
    for code in [429, 503, 504] {
        let server = TestServer::start().await.unwrap();
        let factory = factory(&server);
        let informer = factory.informer_with(plain()).unwrap();
        let status = Status::new(code, "TooBusy", "too busy");
        server.faults().inject(Fault::answer(status).retry_after(120).on(Verb::List).times(2));
        let begun = Instant::now();
        factory.start();
        let backing_off = status_where(&informer, |status| status.counters.errors == 1).await;
        assert_eq!(versions(&server, Verb::List).len(), 1);
        assert!(
            matches!(backing_off.state, InformerState::BackingOff { attempt: 1, .. }),
            "{backing_off}"
        );
        soon(informer.synced()).await.unwrap();
        assert!(begun.elapsed() >= Duration::from_secs(240), "{:?}", begun.elapsed());
        assert_eq!(versions(&server, Verb::List).len(), 3, "one request per attempt");
    }
}

async fn g28_kubes_retries_are_kept_out_of_real_clients_too() {
    let server = TestServer::start().await.unwrap();
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    let informer = factory.informer_with(plain()).unwrap();
    server.faults().inject(Fault::too_many_requests().on(Verb::List).times(1));
    factory.start();
    soon(informer.synced()).await.unwrap();
    let requests = server.requests().verb(Verb::List);
    assert_eq!(requests.len(), 2);
    // A retry of kube's would have been out of sight.
    assert_eq!(informer.status().counters.lists, 2);
}

async fn g28_a_retry_after_that_is_a_date_is_obeyed_up_to_five_minutes() {
    // On the server's clock, if it tells it; and no longer than 5 minutes, whatever it says.
    let date = |seconds| httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(seconds));
    for (date_now, until, least) in [
        (Some(date(7200)), date(7200 + 120), 120),
        (None, date(100_000), 300),
        (None, date(200_000), 300),
    ] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            noted.lock().unwrap().push(Instant::now());
            let mut response = http::Response::builder().status(429).header("retry-after", &until);
            if let Some(date) = &date_now {
                response = response.header("date", date);
            }
            std::future::ready(Ok::<_, std::convert::Infallible>(
                response.body(kube::client::Body::empty()).unwrap(),
            ))
        });
        let factory = SharedInformerFactory::builder(kube::Client::new(service, "default")).build();
        let informer = factory.informer_with(plain()).unwrap();
        factory.start();
        tokio::time::timeout(Duration::from_secs(1000), informer.synced()).await.unwrap_err();
        let asked = asked.lock().unwrap().clone();
        for pair in asked.windows(2) {
            let waited = pair[1] - pair[0];
            let range = Duration::from_secs(least)..=Duration::from_secs(least + 31);
            assert!(range.contains(&waited), "{waited:?} instead of {range:?}");
        }
        assert!(asked.len() >= 3, "{} requests", asked.len());
    }
}

async fn g28_an_unreachable_server_is_not_asked_hot_and_comes_back() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    soon(informer.synced()).await.unwrap();
    let before = informer.status().counters.watches;
    server.faults().refuse_connections();
    server.faults().reset_connections();
    server.faults().cut_watches(Cut::Reset, None);
    status_where(&informer, |status| matches!(status.state, InformerState::BackingOff { .. }))
        .await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let asked = informer.status().counters.watches - before;
    assert!((10..=30).contains(&asked), "{asked} requests in 5 minutes");
    server.faults().accept_connections();
    let seen = write(&server, "a", "1");
    reaches(&informer, &seen).await;
    assert_eq!(informer.status().counters.lists, 0, "no relist was needed");
}

async fn g26_a_restored_backup_is_noticed_and_relisted_at_the_newest() {
    let server = TestServer::start().await.unwrap();
    write(&server, "kept", "1");
    let checkpoint = server.cluster().checkpoint();
    let lost = write(&server, "lost", "1");
    for n in 0..20 {
        write(&server, "kept", &n.to_string());
    }
    let factory = factory(&server);
    let informer = factory.informer_with(plain()).unwrap();
    factory.start();
    let lister = soon(informer.synced()).await.unwrap();
    assert_eq!(lister.len(), 2);
    let far = tokio::spawn({
        let informer = informer.clone();
        async move { informer.wait_for("999999999").await }
    });
    tokio::task::yield_now().await;
    server.cluster().restore(&checkpoint);
    assert_eq!(soon(far).await.unwrap(), Err(informer::Error::HistoryChanged));
    assert!(lister.find("default", "lost").is_none());
    assert_eq!(value_of(&lister.find("default", "kept").unwrap()), "1");
    assert_eq!(versions(&server, Verb::List).last().map(String::as_str), Some(""));
    // The versions of the new history count again.
    let seen = write(&server, "new", "1");
    assert!(seen.parse::<u64>().unwrap() < lost.parse::<u64>().unwrap() + 20);
    reaches(&informer, &seen).await;
}

async fn managed_fields_are_dropped_unless_asked_for() {
    let server = TestServer::start().await.unwrap();
    let mut object = config_map("a", "1");
    object["metadata"]["managedFields"] = serde_json::json!([{ "manager": "me", "operation": "Update", "fieldsV1": { "f:data": {} } }]);
    server.cluster().create(&object).unwrap();
    for keep in [false, true] {
        let options = InformerOptions::<ConfigMap>::new();
        let options = if keep { options.keep_managed_fields() } else { options };
        let factory = factory(&server);
        let informer = factory.informer_with(options).unwrap();
        factory.start();
        let held = soon(informer.synced()).await.unwrap().find("default", "a").unwrap();
        assert_eq!(held.metadata.managed_fields.is_some(), keep);
    }
}
