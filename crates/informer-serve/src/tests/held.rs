//! What is held, how long, and what becomes of it.

use std::pin::pin;
use std::time::Duration;

use informer::{InformerOptions, Resource, SharedInformer, SharedInformerFactory};
use informer_testkit::{Fault, Verb};
use k8s_openapi::api::core::v1::Pod;
use k8s_serve::ReadError;
use tokio::time::Instant;

use super::*;
use crate::definition::plain;

/// A factory with an informer of Pods, and that informer.
fn shared(server: &TestServer) -> (SharedInformerFactory, SharedInformer<Object>) {
    let client = kube::Client::new(server.service(), "default");
    let factory = SharedInformerFactory::builder(client).build();
    let pods =
        factory.informer_as::<Object>(Resource::of::<Pod>(), InformerOptions::new()).unwrap();
    factory.start();
    (factory, pods)
}

/// Lets go of everything that is idle.
async fn sweep_idle(endpoint: &Endpoint) {
    let idle = endpoint.inner.options.idle_timeout;
    endpoint.inner.collections.sweep(Instant::now() + idle + Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn informers_of_the_program_go_on_when_nobody_asks_the_endpoint() {
    let server = server().await;
    let (factory, pods) = shared(&server);
    // Of another type, which does not make the informer of the endpoint the program's.
    factory
        .dynamic(Resource::of::<k8s_openapi::api::core::v1::Node>(), InformerOptions::new())
        .unwrap();
    let endpoint = Endpoint::over(factory.clone(), Options::default());
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
    assert_eq!(get(&endpoint, "/api/v1/nodes").await.items().len(), 1);
    assert_eq!(factory.statuses().len(), 3);
    sweep_idle(&endpoint).await;
    assert!(endpoint.inner.collections.now().is_empty());
    assert_eq!(factory.statuses().len(), 2);
    server.cluster().create(&pod("shop", "later", "web", "node-1")).unwrap();
    pods.wait_for(server.cluster().version()).await.unwrap();
    assert!(get(&endpoint, "/api/v1/pods").await.items().contains(&"later".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn one_object_does_not_wait_for_the_first_list() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    get(&endpoint, "/readyz").await;
    server.faults().inject(Fault::stall().on(Verb::List).resource("pods"));
    server.faults().inject(Fault::stall().on(Verb::Watch).resource("pods"));
    get(&endpoint, "/api/v1/pods").await.refusal(429, "TooManyRequests");
    let begin = Instant::now();
    let path = "/api/v1/namespaces/shop/pods/web-0";
    assert_eq!(get(&endpoint, path).await.json()["metadata"]["name"], "web-0");
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_idle_time_begins_at_the_end_of_the_last_watch() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    let watched = request(Method::GET, "localhost", "/api/v1/pods?watch=1");
    let mut watch = endpoint.router().oneshot(watched).await.unwrap();
    watch.body_mut().frame().await.unwrap().unwrap();
    tokio::time::sleep(endpoint.inner.options.idle_timeout * 2).await;
    endpoint.sweep().await;
    drop(watch);
    endpoint.sweep().await;
    assert_eq!(endpoint.statuses().len(), 1);
    sweep_idle(&endpoint).await;
    assert_eq!(endpoint.statuses().len(), 0);
}

#[tokio::test]
async fn the_log_weighs_the_larger_state_of_each_change() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    get(&endpoint, "/api/v1/pods").await.items();
    let image = "i".repeat(10_000);
    let large = |app: &str| {
        let mut pod = pod("shop", "web-1", app, "node-2");
        pod["spec"]["containers"][0]["image"] = image.clone().into();
        pod
    };
    for app in ["a", "b", "c"] {
        server.cluster().apply(&large(app)).unwrap();
    }
    let version = server.cluster().version();
    get(&endpoint, &format!("/api/v1/pods?resourceVersion={version}")).await.items();
    let collection = endpoint.inner.collections.now().pop().unwrap();
    let weight = collection.history.watch_cache.weight();
    // Small to large, large to large, and once more: the larger one each time.
    assert!((30_000..35_000).contains(&weight), "{weight}");
}

#[tokio::test]
async fn an_informer_that_ended_elsewhere_is_replaced_and_what_waits_for_it_is_unavailable() {
    let server = server().await;
    let (factory, pods) = shared(&server);
    let endpoint = Endpoint::over(factory, Options::default());
    get(&endpoint, "/api/v1/pods").await.items();
    let collection = endpoint.inner.collections.now().pop().unwrap();
    let mut waiting = pin!(collection.history.reached(u64::MAX));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    pods.stop().await;
    let Err(ReadError::Refused(status)) = waiting.await else { panic!("it must be refused") };
    assert_eq!(status.code, 503);

    server.cluster().create(&pod("shop", "later", "web", "node-1")).unwrap();
    let path = "/api/v1/namespaces/shop/pods/later";
    assert_eq!(get(&endpoint, path).await.code, StatusCode::OK);
    assert!(get(&endpoint, "/api/v1/pods").await.items().contains(&"later".to_owned()));
    assert_eq!(endpoint.statuses().len(), 1);
}

#[tokio::test]
async fn a_snapshot_is_kept_only_for_lists_that_go_on() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    for (query, kept) in [("limit=500", 0), ("limit=500&resourceVersion=0", 0), ("limit=2", 1)] {
        get(&endpoint, &format!("/api/v1/pods?{query}")).await.items();
        let collection = endpoint.inner.collections.now().pop().unwrap();
        assert_eq!(collection.kept_pages(), kept, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_do_not_go_back_in_time_when_a_resource_is_held_again() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    let before = server.cluster().checkpoint();
    server.cluster().create(&pod("shop", "newer", "web", "node-1")).unwrap();
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 5);
    sweep_idle(&endpoint).await;

    // A server that lags behind, and does not answer when it is asked for the newest state.
    server.cluster().restore(&before);
    let pods = Resource::of::<Pod>();
    let collections = &endpoint.inner.collections;
    let Ok(Ok(held)) = collections.acquire(&pods, || plain(&pods), false).await else {
        panic!("it can be held");
    };
    assert_eq!(held.informer.synced().await.unwrap().len(), 4);
    let stalls = [Verb::List, Verb::Watch]
        .map(|verb| server.faults().inject(Fault::stall().on(verb).resource("pods")));
    get(&endpoint, "/api/v1/pods").await.refusal(429, "TooManyRequests");
    // The newest state is older: it is another history.
    for stall in stalls {
        stall.lift();
    }
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
    tokio::time::sleep(Duration::from_secs(30)).await;
    server.clear_requests();
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
    assert!(server.requests().resource("pods").verb(Verb::List).is_empty(), "not passed on");
}
