//! Forwards requests to the API server, with the endpoint's own account or with the caller's token
//! ([`Forwarder`]).

mod exchange;
mod headers;
mod named;
mod relay;
mod tap;
#[cfg(test)]
mod tests;
mod upgrade;
mod upstream;
mod version;
mod writes;

pub(crate) use named::on_version;
pub(crate) use relay::{is_impersonated, is_long, may_be_cached, relay, telling};
pub(crate) use upstream::{Forward, Forwarder};
pub use upstream::{Upstream, UpstreamError};
pub(crate) use writes::{Kind, Telling, Writes};

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    LAST_MODIFIED, RETRY_AFTER, USER_AGENT, VARY, WARNING, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, Method, Request, Uri};
use informer::source::unretried_body;
use kube::Client;

use crate::refusal::Refusal;

/// Time limit for the head of a response.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Request headers that are forwarded. None of them names a caller, because the endpoint sends the
/// request with its own account. The API server indents JSON depending on the user agent.
const OF_REQUESTS: [HeaderName; 5] =
    [ACCEPT, ACCEPT_ENCODING, IF_NONE_MATCH, CONTENT_TYPE, USER_AGENT];

/// Response headers that are forwarded.
const OF_ANSWERS: [HeaderName; 12] = [
    CONTENT_TYPE,
    CONTENT_ENCODING,
    ETAG,
    LAST_MODIFIED,
    RETRY_AFTER,
    VARY,
    WARNING,
    X_CONTENT_TYPE_OPTIONS,
    http::header::CACHE_CONTROL,
    HeaderName::from_static("audit-id"),
    HeaderName::from_static("x-kubernetes-pf-flowschema-uid"),
    HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid"),
];

/// Sends a request to the API server and returns its response, whatever the status. `path` includes
/// the query.
///
/// # Errors
/// If the API server sends no response.
pub(crate) async fn forward(
    client: &Client,
    method: Method,
    path: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let response = send(client, method, path, headers, body).await?;
    let (parts, body) = response.into_parts();
    let mut passed = Response::new(Body::new(body));
    *passed.status_mut() = parts.status;
    *passed.headers_mut() = pick_answer_headers(&parts.headers);
    if let Some(length) = parts.headers.get(CONTENT_LENGTH) {
        passed.headers_mut().insert(CONTENT_LENGTH, length.clone());
    }
    Ok(passed)
}

/// Sends a request to the API server.
///
/// # Errors
/// If the API server sends no response.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<http::Response<kube::client::Body>, Refusal> {
    let unreachable = |error: &dyn std::fmt::Display| {
        Refusal::unavailable(format!("the API server does not answer: {error}"))
    };
    let uri: Uri =
        path.parse().map_err(|_| Refusal::bad_request("the path or query is no part of a URL"))?;
    let body = unretried_body(body).await.map_err(|error| unreachable(&error))?;
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = pick(headers, &OF_REQUESTS);
    match tokio::time::timeout(TIMEOUT, client.send(request)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(unreachable(&error)),
        Err(_) => Err(unreachable(&format_args!("nothing came within {} s", TIMEOUT.as_secs()))),
    }
}

/// The response headers that are forwarded, except `Content-Length`.
pub(crate) fn pick_answer_headers(headers: &HeaderMap) -> HeaderMap {
    pick(headers, &OF_ANSWERS)
}

fn pick(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let mut picked = HeaderMap::new();
    for name in names {
        for value in headers.get_all(name) {
            picked.append(name, value.clone());
        }
    }
    picked
}
