//! What one client, one resource or one hanging server may cost the others.

use std::pin::pin;
use std::time::Duration;

use http::header::ACCEPT;
use informer_testkit::Fault;
use tokio::time::Instant;

use super::*;

const UNKNOWN: &str = "/apis/example.com/v1/widgets";

#[tokio::test(start_paused = true)]
async fn an_unknown_name_delays_only_those_who_ask_for_it() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let stalled = server.faults().inject(Fault::stall());
    let mut unknown = pin!(get(&endpoint, UNKNOWN));
    tokio::select! {
        biased;
        answer = &mut unknown => panic!("nobody could tell: {}", answer.text),
        answer = get(&endpoint, "/api/v1/pods") => assert_eq!(answer.items().len(), 4),
    }
    unknown.await.refusal(503, "ServiceUnavailable");
    // Nor is the server asked again at once.
    let begin = Instant::now();
    get(&endpoint, UNKNOWN).await.refusal(503, "ServiceUnavailable");
    assert_eq!(begin.elapsed(), Duration::ZERO);
    stalled.lift();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(get(&endpoint, UNKNOWN).await.code, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_stays_unknown_is_looked_up_less_and_less() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    assert_eq!(get(&endpoint, UNKNOWN).await.code, StatusCode::NOT_FOUND);
    let of_one = server.requests().len();
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(get(&endpoint, UNKNOWN).await.code, StatusCode::NOT_FOUND);
    }
    let discoveries = server.requests().len() / of_one;
    assert!((3..=7).contains(&discoveries), "{discoveries}");
}

#[tokio::test(start_paused = true)]
async fn documents_that_only_one_client_asks_for_are_not_remembered() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    let asked = async |path: &str, accept: &str| {
        server.clear_requests();
        let mut asked = request(Method::GET, "localhost", path);
        asked.headers_mut().insert(ACCEPT, accept.parse().unwrap());
        assert_eq!(ask(&endpoint, asked).await.code, StatusCode::OK, "{path}");
        server.requests().len()
    };
    let long = format!("application/json, {}", "application/x;q=0.1, ".repeat(60));
    for (path, accept, first, again) in [
        ("/api", "application/json", 1, 0),
        ("/api?timeout=32s", "application/json", 1, 0),
        ("/api", &*long, 1, 1),
        // What the API server does not know makes no other document.
        ("/api?x=1", "application/json", 0, 0),
        ("/api?y&timeout=32s&timeout=1s&x=%26", "application/json", 0, 0),
    ] {
        assert_eq!(asked(path, accept).await, first, "{path}");
        assert_eq!(asked(path, accept).await, again, "{path}");
    }
    // Too many push out the oldest.
    for second in 0..300 {
        asked(&format!("/api?timeout={second}s"), "application/json").await;
    }
    assert_eq!(asked("/api?timeout=299s", "application/json").await, 0);
    assert_eq!(asked("/api?timeout=1s", "application/json").await, 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_documents_are_fetched_at_a_time_than_allowed() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    assert_eq!(get(&endpoint, "/api").await.code, StatusCode::OK);
    tokio::time::sleep(Duration::from_secs(6)).await;
    server.faults().inject(Fault::stall());
    let paths = Vec::from_iter((0..8).map(|it| format!("/apis/g{it}.example.com")));
    let hanging = paths.iter().map(|it| get(&endpoint, it));
    let mut hanging = pin!(futures_util::future::join_all(hanging));
    let others = async {
        let refused = get(&endpoint, "/apis/other.example.com").await;
        refused.refusal(429, "TooManyRequests");
        assert_eq!(refused.headers["retry-after"], "1");
        assert_eq!(get(&endpoint, "/api").await.code, StatusCode::OK, "it is remembered");
    };
    tokio::select! {
        biased;
        _ = &mut hanging => panic!("the server answers"),
        () = others => {}
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_fits_is_not_listed_again_and_again() {
    let server = server().await;
    // As much as two Pods take: less than all four.
    let endpoint = unhurried(&server, Options { max_bytes: 1000, ..Options::default() });
    let mut begun = 0;
    for minute in 0..120 {
        assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
        begun += endpoint.statuses().len();
        endpoint.sweep().await;
        assert_eq!(endpoint.statuses().len(), 0, "{minute}");
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(begun, 2, "now and after an hour");
}
