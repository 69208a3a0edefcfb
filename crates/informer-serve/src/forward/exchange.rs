//! Sends one request to the API server and waits for the head of the response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper_util::client::legacy::Error;

use super::relay::is_impersonated;
use super::upstream::{InFlight, Upstream};
use super::writes::Telling;
use crate::body::{Observed, Observer};
use crate::refusal::Refusal;

/// Time limit for the head of a response. It is longer than the API server's own limit of 60 s, so
/// that callers get the API server's timeout error.
const HEAD_TIMEOUT: Duration = Duration::from_secs(70);

/// A response whose body may still name a version. `telling` is dropped before `in_flight`, so
/// that a request that no longer counts as in flight has recorded its write.
pub(super) struct Answered {
    pub(super) answer: http::Response<Incoming>,
    pub(super) telling: Option<Telling>,
    pub(super) in_flight: InFlight,
}

/// A request that got no response.
pub(super) struct Unanswered {
    pub(super) refusal: Refusal,
    pub(super) was_not_sent: bool,
}

/// Sends a request and waits for the head of its response, without a time limit if `is_long`.
///
/// # Errors
/// If the API server sends no response.
///
/// # Cancel safety
/// A read is cancelled. A write runs to its end, because only the response says whether it was
/// refused.
pub(super) async fn exchange(
    upstream: &Upstream,
    request: Request<Body>,
    is_long: bool,
    (telling, in_flight): (Option<Telling>, InFlight),
) -> Result<Answered, Unanswered> {
    if !telling.as_ref().is_some_and(Telling::is_write) {
        return run(upstream.clone(), request, is_long, (telling, in_flight)).await;
    }
    // No write is a long request, so the time limit always applies.
    let running = run(upstream.clone(), request, false, (telling, in_flight));
    tokio::spawn(running).await.unwrap_or_else(|error| {
        let refusal = Refusal::unavailable(format!("the request was given up: {error}"));
        Err(Unanswered { refusal, was_not_sent: false })
    })
}

async fn run(
    upstream: Upstream,
    request: Request<Body>,
    is_long: bool,
    (mut telling, in_flight): (Option<Telling>, InFlight),
) -> Result<Answered, Unanswered> {
    let is_sent = Arc::<AtomicBool>::default();
    let sent = Sent(Arc::clone(&is_sent));
    let is_impersonated = is_impersonated(request.headers());
    let request = request.map(|body| Body::new(Observed::new(body, sent)));
    let answer = send(&upstream, request, is_long).await;
    // A refused request changed nothing, and neither did one whose body was not sent completely.
    // After any other failure the write may have happened.
    let changed_nothing = match &answer {
        Ok(answer) => {
            telling.as_ref().is_some_and(|it| it.is_refused_by(answer.status(), is_impersonated))
        }
        Err(unanswered) => unanswered.was_not_sent || !is_sent.load(Ordering::Acquire),
    };
    if changed_nothing && let Some(mut telling) = telling.take() {
        telling.changed_nothing();
    }
    // Dropping the `Telling` of a write records a write without a version.
    let telling = telling.filter(Telling::needs_version);
    Ok(Answered { answer: answer?, telling, in_flight })
}

async fn send(
    upstream: &Upstream,
    request: Request<Body>,
    is_long: bool,
) -> Result<http::Response<Incoming>, Unanswered> {
    let sending = upstream.client.request(request);
    let answered = match is_long {
        true => Ok(sending.await),
        false => tokio::time::timeout(HEAD_TIMEOUT, sending).await,
    };
    match answered {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Unanswered {
            was_not_sent: error.is_connect(),
            refusal: Refusal::unavailable(format!(
                "the API server does not answer: {}",
                innermost(&error)
            )),
        }),
        Err(_) => Err(Unanswered {
            was_not_sent: false,
            refusal: Refusal::unavailable(format!(
                "the API server does not answer: nothing came within {} s",
                HEAD_TIMEOUT.as_secs()
            )),
        }),
    }
}

/// The root cause of an error, without the addresses that the outer errors contain.
fn innermost(error: &Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Records that the whole body of a request was sent.
struct Sent(Arc<AtomicBool>);

impl Observer for Sent {
    fn end(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
