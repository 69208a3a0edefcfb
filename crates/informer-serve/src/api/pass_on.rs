//! Forwards requests that the cache does not answer, with the endpoint's own account or with the
//! caller's token.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Method;
use http::header::CONTENT_TYPE;
use informer::source::MediaType;
use k8s_serve::{Verb, answer as answers, websocket};

use super::path::canonical;
use super::{Answer, Answered, Asked};
use crate::access::Permission;
use crate::catalog::Served;
use crate::endpoint::Inner;
use crate::forward::{forward, is_long, relay, telling};
use crate::metrics::Origin;
use crate::refusal::Refusal;
use crate::unheld::Unheld;

/// Forwards a read.
pub(super) async fn pass_on(inner: &Inner, asked: &Asked<'_>, served: &Served) -> Answered {
    not_over_websocket(asked)?;
    match asked.is_own() {
        true => pass_on_as_own(inner, Method::GET, asked, Bytes::new()).await,
        false => pass_on_as_caller(inner, asked, served, Body::empty()).await,
    }
}

/// Forwards a read of a resource that is not held. If it cannot be forwarded, the error says why
/// the resource is not held.
pub(super) async fn pass_on_unheld(
    inner: &Inner,
    asked: &Asked<'_>,
    served: &Served,
    unheld: &Unheld,
) -> Answered {
    pass_on(inner, asked, served).await.map_err(|refusal| {
        let message = format!("{}; it is not held: {unheld}", refusal.message);
        Refusal { message, ..refusal }
    })
}

/// Refuses to forward a watch over WebSocket, because the endpoint could not end it in order when
/// its permission is lost.
fn not_over_websocket(asked: &Asked<'_>) -> Result<(), Refusal> {
    if asked.verb == Verb::Watch && websocket::is_requested(asked.headers) {
        let message = "this watch is not answered from the cache, and over WebSocket no other is: use plain HTTP, or ask the API server itself";
        return Err(Refusal::forbidden(message));
    }
    Ok(())
}

/// Forwards a request with the endpoint's own account.
pub(super) async fn pass_on_as_own(
    inner: &Inner,
    method: Method,
    asked: &Asked<'_>,
    body: Bytes,
) -> Answered {
    let path = canonical(&asked.path, asked.query);
    let response = forward(&inner.client, method, &path, asked.headers, body).await?;
    Ok(Answer { response: asked.until_lost(response), origin: Origin::Upstream })
}

/// Forwards a request with the caller's token.
pub(super) async fn pass_on_as_caller(
    inner: &Inner,
    asked: &Asked<'_>,
    served: &Served,
    body: Body,
) -> Answered {
    let Asked { path, verb, query, parts, caller, .. } = asked;
    not_over_websocket(asked)?;
    let told = telling(&inner.writes, &served.info.resource, path, (&parts.method, *verb, query));
    let lasting = (is_long(path, *verb, query), told);
    let to = canonical(path, query);
    let response = relay(inner, parts, to, (caller, body), lasting).await?;
    Ok(Answer { response: asked.until_lost(response), origin: Origin::Upstream })
}

/// Ends a forwarded watch when its permission is lost, because the API server would continue it.
pub(super) fn until_lost(response: Response, permission: Permission) -> Response {
    let json = MediaType::Json.as_str().as_bytes();
    let content_type = response.headers().get(CONTENT_TYPE);
    let is_json = content_type.is_some_and(|it| it.as_bytes().starts_with(json));
    if !response.status().is_success() {
        return response;
    }
    response.map(|body| {
        let (chunks, lost) = (body.into_data_stream(), Box::pin(permission.lost()));
        let state = Some((chunks, lost, true));
        Body::from_stream(stream::unfold(state, move |state| async move {
            let (mut chunks, mut lost, is_between) = state?;
            tokio::select! {
                biased;
                // An error event can only be inserted between two events.
                status = &mut lost => (is_json && is_between)
                    .then(|| (Ok(answers::error_event(&status, MediaType::Json)), None)),
                chunk = chunks.next() => match chunk? {
                    Ok(chunk) => {
                        let is_between = chunk.last().is_none_or(|it| *it == b'\n');
                        Some((Ok(chunk), Some((chunks, lost, is_between))))
                    }
                    Err(error) => Some((Err(error), None)),
                },
            }
        }))
    })
}
