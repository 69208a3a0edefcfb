//! What one client, one resource or one hanging server may cost the others.

use std::pin::pin;
use std::time::Duration;

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
