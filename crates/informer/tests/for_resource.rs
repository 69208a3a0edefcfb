//! Dynamic informers of resources that are not there yet (G32).

#[macro_use]
mod common;

use std::time::Duration;

use common::{soon, widget, widgets_crd};
use futures_util::FutureExt;
use http::Request;
use informer::{Error, SharedInformer, SharedInformerFactory};
use informer_testkit::{Fault, Status, TestServer, Verb};
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use kube::core::DynamicObject;
use tokio::task::JoinHandle;
use tower::retry::Retry;
use tower::{BoxError, ServiceExt};

run_tests! {
    on_a_paused_clock:
        g32_for_resource_waits_for_the_resource_when_told_to,
        g32_a_discovery_that_fails_for_a_while_is_waited_for,
        g32_a_discovery_that_is_refused_ends_the_wait,
        g28_the_wait_for_a_resource_obeys_retry_after,
        g28_the_wait_for_a_resource_keeps_the_clients_own_retries_out,
        g25_a_shutdown_ends_the_wait_for_a_resource;
}

/// In the process, so that the clock can be paused.
fn factory(server: &TestServer) -> SharedInformerFactory {
    SharedInformerFactory::builder(kube::Client::new(server.service(), "default")).build()
}

type Waiting = JoinHandle<Result<SharedInformer<DynamicObject>, Error>>;

fn waiting(factory: &SharedInformerFactory) -> Waiting {
    let factory = factory.clone();
    tokio::spawn(async move {
        factory.for_resource("example.com", "v1", "widgets").when_installed().await
    })
}

fn discoveries(server: &TestServer) -> usize {
    server.requests().verb(Verb::Other).len()
}

async fn g32_for_resource_waits_for_the_resource_when_told_to() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    factory.start();
    let error = factory.for_resource("example.com", "v1", "widgets").await.unwrap_err();
    assert!(
        matches!(error, Error::UnknownResource(_)),
        "without being told it does not wait: {error}"
    );
    let before = discoveries(&server);
    let waits = waiting(&factory);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(!waits.is_finished());
    let asked = discoveries(&server) - before;
    assert!((10..=30).contains(&asked), "asked {asked} times in 5 minutes");

    server.cluster().create(&widgets_crd()).unwrap();
    server.cluster().create(&widget("a", 1)).unwrap();
    let widgets = soon(waits).await.unwrap().unwrap();
    let lister = soon(widgets.synced()).await.unwrap();
    assert_eq!(lister.find("default", "a").unwrap().data["spec"]["size"], 1);
    assert_eq!(widgets.resource().kind, "Widget");
    // It is there: nobody waits any more, and it is the same informer.
    soon(factory.for_resource("example.com", "v1", "widgets").when_installed()).await.unwrap();
    soon(factory.for_resource("example.com", "v1", "widgets")).await.unwrap();
    assert_eq!(factory.statuses().len(), 1);
}

async fn g32_a_discovery_that_fails_for_a_while_is_waited_for() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let down = server.faults().inject(Fault::unavailable().on(Verb::Other).times(3));
    let busy = server.faults().inject(Fault::too_many_requests().on(Verb::Other).times(2));
    server.cluster().create(&widgets_crd()).unwrap();
    soon(waiting(&factory)).await.unwrap().unwrap();
    assert_eq!((down.hits(), busy.hits()), (3, 2));
}

async fn g32_a_discovery_that_is_refused_ends_the_wait() {
    for (code, reason) in [(401, "Unauthorized"), (403, "Forbidden")] {
        let server = TestServer::start().await.unwrap();
        let factory = factory(&server);
        server.faults().inject(Fault::answer(Status::new(code, reason, "not you")).on(Verb::Other));
        let error = soon(waiting(&factory)).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Discovery { .. }), "{error}");
        assert!(error.to_string().contains(&code.to_string()), "{error}");
    }
}

async fn g28_the_wait_for_a_resource_obeys_retry_after() {
    let server = TestServer::start().await.unwrap();
    server.cluster().create(&widgets_crd()).unwrap();
    for (asked, obeyed) in [(200, 200), (100_000, 300)] {
        let factory = factory(&server);
        server
            .faults()
            .inject(Fault::too_many_requests().retry_after(asked).on(Verb::Other).times(1));
        let begun = tokio::time::Instant::now();
        waiting(&factory).await.unwrap().unwrap();
        assert_eq!(begun.elapsed().as_secs(), obeyed);
    }
}

async fn g28_the_wait_for_a_resource_keeps_the_clients_own_retries_out() {
    let server = TestServer::start().await.unwrap();
    let service = ServiceExt::<Request<Body>>::map_err(server.service(), BoxError::from);
    let service = Retry::new(RetryPolicy::server_retry(), service);
    let factory = SharedInformerFactory::builder(kube::Client::new(service, "default")).build();
    server.faults().inject(Fault::unavailable().on(Verb::Other));
    let waits = waiting(&factory);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = discoveries(&server);
    assert!((2..=4).contains(&asked), "asked {asked} times in 2 s");
    waits.abort();
}

async fn g25_a_shutdown_ends_the_wait_for_a_resource() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let waits = waiting(&factory);
    tokio::time::sleep(Duration::from_secs(5)).await;
    factory.shutdown().await;
    let begun = tokio::time::Instant::now();
    assert_eq!(soon(waits).await.unwrap().unwrap_err(), Error::ShutDown);
    assert_eq!(begun.elapsed(), Duration::ZERO, "at once");
    let again =
        factory.for_resource("example.com", "v1", "widgets").when_installed().now_or_never();
    assert_eq!(again.unwrap().unwrap_err(), Error::ShutDown);
}
