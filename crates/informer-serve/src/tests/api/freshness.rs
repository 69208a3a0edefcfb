//! How old a response may be, and what happens when the cache is behind.

use std::time::Duration;

use informer_testkit::Cut;
use tower::service_fn;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_document_is_asked_for_again_after_a_while_and_believed_if_nobody_answers() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    let first = get(&endpoint, "/apis").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    server.clear_requests();
    get(&endpoint, "/apis").await;
    assert_eq!(server.requests().len(), 0);
    tokio::time::sleep(Duration::from_secs(4)).await;
    get(&endpoint, "/apis").await;
    assert_eq!(server.requests().len(), 1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    server.faults().inject(Fault::hang_up());
    assert_eq!(get(&endpoint, "/apis").await.json(), first.json());
    get(&endpoint, "/version").await.refusal(503, "ServiceUnavailable");
}

#[tokio::test(start_paused = true)]
async fn versions_ahead_are_waited_for_then_asked_of_the_server() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    let list = get(&endpoint, "/api/v1/pods").await;
    let version: u64 =
        list.json()["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    // It comes while it is waited for.
    let next = format!("/api/v1/pods?resourceVersion={}", version + 1);
    let (answer, ()) = tokio::join!(get(&endpoint, &next), async {
        tokio::task::yield_now().await;
        server.cluster().create(&pod("shop", "late", "web", "node-1")).unwrap();
    });
    assert!(answer.items().contains(&"late".to_owned()));

    // The server is ahead of a cache whose watch is not answered.
    let stalled = server.faults().inject(Fault::stall().on(Verb::Watch).resource("pods"));
    server.faults().cut_watches(Cut::Close, Some("pods"));
    server.cluster().create(&pod("shop", "later", "web", "node-1")).unwrap();
    let ahead = format!("/api/v1/pods?resourceVersion={}", version + 2);
    let answer = get(&endpoint, &ahead).await;
    assert!(answer.items().contains(&"later".to_owned()));
    // What the server has told, the cache must not deny.
    assert!(get(&endpoint, "/api/v1/pods").await.items().contains(&"later".to_owned()));
    // Nobody has a version of twenty digits, and asking for it harms no other reader.
    let far = get(&endpoint, "/api/v1/pods?resourceVersion=18446744073709551615").await;
    far.refusal(504, "Timeout");
    let far = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=18446744073709551615";
    assert!(get(&endpoint, far).await.text.contains("Too large resource version"));
    stalled.lift();
    get(&endpoint, "/api/v1/pods").await.items();
    let lists = asked(&server, Verb::List, "pods");
    get(&endpoint, "/api/v1/pods").await.items();
    assert_eq!(asked(&server, Verb::List, "pods"), lists);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_only_a_request_names_is_not_believed() {
    const FAR: &str = "resourceVersion=10000000000000000000";
    let server = server().await;
    let (service, version) = (server.service(), server.cluster().version());
    // As a server may that does not look at it.
    let list = json!({"kind": "PodList", "apiVersion": "v1",
        "metadata": {"resourceVersion": version.to_string()}, "items": []});
    let careless = service_fn(move |request: Request<kube::client::Body>| {
        let (service, list) = (service.clone(), list.to_string());
        async move {
            if request.uri().query() != Some(FAR) {
                return service.oneshot(request).await;
            }
            let answer = http::Response::builder().header("content-type", "application/json");
            Ok(answer.body(k8s_serve::Body::full(list.into())).unwrap())
        }
    });
    let endpoint = Endpoint::new(kube::Client::new(careless, "default"), Options::default());
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
    assert!(get(&endpoint, &format!("/api/v1/pods?{FAR}")).await.items().is_empty());
    let collection = endpoint.inner.collections.now().pop().unwrap();
    assert!(collection.history.floor() <= version, "{}", collection.history.floor());
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_hears_nothing_is_refreshed_then_refused_unless_told_otherwise() {
    let never = Duration::from_secs(1 << 30);
    let server = TestServer::builder().bookmark_interval(never).start().await.unwrap();
    for name in ["a", "b", "c", "d"] {
        server.cluster().create(&pod("web", name, "web", "node-1")).unwrap();
    }
    let endpoint = unhurried(&server, Options::default());
    let patient = unhurried(&server, Options { serve_stale: true, ..Options::default() });
    for it in [&endpoint, &patient] {
        assert_eq!(get(it, "/api/v1/pods").await.items().len(), 4);
    }
    tokio::time::sleep(Duration::from_secs(80)).await;
    get(&endpoint, "/api/v1/pods").await.items();
    tokio::time::sleep(Duration::from_secs(12)).await;
    let answer = get(&endpoint, "/api/v1/pods").await;
    let message = answer.refusal(503, "ServiceUnavailable");
    assert!(message.contains("--max-staleness"), "{message}");
    assert!(answer.headers.contains_key("retry-after"));
    for path in ["/pods", "/core/v1/pods/shop/web-0"] {
        let answer = get(&endpoint, path).await;
        assert_eq!(answer.refusal(503, "ServiceUnavailable"), message, "{path}");
        assert!(answer.headers.contains_key("retry-after"), "{path}");
    }
    assert_eq!(get(&patient, "/api/v1/pods").await.items().len(), 4);
    // A list stands in for the bookmarks that do not come.
    endpoint.sweep().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
}

#[tokio::test]
async fn while_the_first_list_runs_readers_are_told_to_come_back() {
    let server = server().await;
    let options = Options { sync_timeout: Duration::from_millis(50), ..Options::default() };
    let endpoint = endpoint(&server, options);
    get(&endpoint, "/readyz").await;
    server.faults().inject(Fault::stall().resource("pods"));
    let answer = get(&endpoint, "/api/v1/pods").await;
    answer.refusal(429, "TooManyRequests");
    assert_eq!(answer.headers["retry-after"], "1");
}
