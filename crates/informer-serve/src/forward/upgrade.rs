//! Upgraded connections: `exec`, `attach` and `port-forward` over SPDY or WebSocket.

use axum::body::Body;
use axum::response::Response;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Version};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio_util::sync::CancellationToken;

use super::headers;
use crate::refusal::Refusal;

/// The protocol of the upgrade that a request asks for.
pub(crate) fn requested(headers: &HeaderMap) -> Option<&HeaderValue> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|it| it.to_str().ok());
    let asks =
        values.flat_map(|it| it.split(',')).any(|it| it.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(UPGRADE).filter(|_| asks)
}

/// Takes the pending upgrade of the caller's connection from its request.
///
/// # Errors
/// If the request was not sent over HTTP/1.1.
pub(super) fn take(request: &mut Request<Body>) -> Result<OnUpgrade, Refusal> {
    match request.version() {
        Version::HTTP_11 if request.extensions().get::<OnUpgrade>().is_some() => {
            Ok(hyper::upgrade::on(request))
        }
        _ => Err(Refusal::bad_request("connections are upgraded over HTTP/1.1 only")),
    }
}

/// Copies between both connections after the API server has accepted the upgrade, until one of them
/// ends or `stop` is cancelled. `kept` holds the permits and counters of the caller's connection
/// and is dropped at the end.
pub(super) fn join<K: Send + 'static>(
    caller: OnUpgrade,
    mut answer: http::Response<Incoming>,
    stop: CancellationToken,
    kept: K,
) -> Response {
    let server = hyper::upgrade::on(&mut answer);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    *response.headers_mut() = headers::of_answer(answer.headers());
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(protocol) = answer.headers().get(UPGRADE) {
        response.headers_mut().insert(UPGRADE, protocol.clone());
    }
    tokio::spawn(async move {
        tokio::select! {
            () = copy(caller, server) => {}
            () = stop.cancelled() => {}
        }
        drop(kept);
    });
    response
}

/// Copies in both directions until both sides have ended. Errors are ignored, because they only
/// mean that one side closed its connection.
async fn copy(caller: OnUpgrade, server: OnUpgrade) {
    let (Ok(caller), Ok(server)) = tokio::join!(caller, server) else { return };
    let (mut caller, mut server): (TokioIo<Upgraded>, TokioIo<Upgraded>) =
        (TokioIo::new(caller), TokioIo::new(server));
    drop(copy_bidirectional(&mut caller, &mut server).await);
}
