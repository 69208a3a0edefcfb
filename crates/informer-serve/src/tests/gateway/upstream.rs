//! Informers behind the short paths: how many there are, and what is answered when the API server
//! refuses them or does not respond.

use std::time::Duration;

use futures_util::future::join_all;
use informer_testkit::Verb;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::listening::Listening;
use super::*;

#[tokio::test]
async fn requests_share_an_informer_and_there_are_not_too_many() {
    let server = server().await;
    let gateway = endpoint(&server, Options { max_collections: 2, ..Options::default() });
    let answers = join_all((0..20).map(|_| get(&gateway, "/pods"))).await;
    assert!(answers.iter().all(|it| names(it).len() == 4));
    assert_eq!(gateway.statuses().len(), 1);
    names(&get(&gateway, "/nodes").await);
    let refused = get(&gateway, "/deploy").await;
    assert!(refused.refusal(429, "TooManyRequests").contains("--max-collections"));
    assert!(refused.headers.contains_key("retry-after"));
    // Those that are held are still answered.
    names(&get(&gateway, "/pods").await);

    // An hour later, nobody having asked:
    let collections = &gateway.inner.collections;
    collections.sweep(Instant::now() + Duration::from_secs(3600)).await;
    assert_eq!(gateway.statuses().len(), 0);
    assert_eq!(names(&get(&gateway, "/deploy").await), ["coredns"]);
    assert_eq!(names(&get(&gateway, "/pods").await).len(), 4);
    // What was just asked for stays.
    collections.sweep(Instant::now()).await;
    assert_eq!(gateway.statuses().len(), 2);
}

#[tokio::test]
async fn refusals_of_the_server_are_passed_on() {
    let server = server().await;
    server.auth().add_token("t", "eve");
    for verb in [Verb::List, Verb::Watch] {
        server.auth().deny("eve", verb, "pods");
    }
    let gateway = Endpoint::new(server.client_for("t").unwrap(), Options::default());
    let message = get(&gateway, "/pods").await.refusal(403, "Forbidden");
    assert!(message.contains("eve") && message.contains("pods"), "{message}");
    assert_eq!(names(&get(&gateway, "/nodes").await), ["node-1"]);

    server.auth().revoke_token("t");
    get(&gateway, "/deploy").await.refusal(401, "Unauthorized");
}

#[tokio::test]
async fn while_it_cannot_sync_the_answer_is_503_with_the_reason() {
    let server = server().await;
    let options = Options { sync_timeout: Duration::from_millis(300), ..Options::default() };
    let gateway = endpoint(&server, options);
    assert_eq!(get(&gateway, "/readyz").await.text, "ok\n");
    server.faults().refuse_connections();
    server.faults().reset_connections();
    let answer = get(&gateway, "/pods").await;
    let message = answer.refusal(503, "ServiceUnavailable");
    assert!(message.contains("pods.v1") && message.contains("failed, next in"), "{message}");
    assert!(answer.headers.contains_key("retry-after"));
    server.faults().accept_connections();
    let patient = Endpoint::new(server.client().unwrap(), Options::default());
    assert_eq!(names(&get(&patient, "/pods").await).len(), 4);
}

#[tokio::test]
async fn without_a_server_it_lives_but_is_not_ready() {
    let server = TestServer::start().await.unwrap();
    let gateway = endpoint(&server, Options::default());
    server.shutdown().await;
    assert_eq!(get(&gateway, "/livez").await.text, "ok\n");
    let ready = get(&gateway, "/readyz").await;
    assert_eq!(ready.code, StatusCode::SERVICE_UNAVAILABLE);
    assert!(ready.text.contains("does not answer"), "{}", ready.text);
    get(&gateway, "/pods").await.refusal(503, "ServiceUnavailable");
}

#[tokio::test]
async fn over_tcp_it_serves_until_it_is_stopped() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    let listening = Listening::start(gateway, "127.0.0.1", None).await;
    let address = listening.address.clone();
    let answer = listening.get("/deploy").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"coredns\""), "{answer}");
    listening.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
    while server.faults().open_watches(None) > 0 {
        tokio::task::yield_now().await;
    }
}
