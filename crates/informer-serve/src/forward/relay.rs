//! Forwards requests with their callers' own credentials, and decides which requests need it.

use axum::body::Body;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, Method, Request};
use informer::Resource;
use k8s_serve::{ResourcePath, Verb};

use super::{Forward, Kind, Telling, Writes, upgrade};
use crate::access::{Caller, Credential};
use crate::endpoint::Inner;
use crate::refusal::Refusal;

/// Subresources whose writes do not change the object that they belong to.
const CHANGING_NOTHING: [&str; 5] = ["token", "exec", "attach", "portforward", "proxy"];

/// Whether a request impersonates a user. Such a request is forwarded, because the API server
/// decides whether the caller may impersonate.
pub(crate) fn is_impersonated(headers: &HeaderMap) -> bool {
    headers.keys().any(|it| it.as_str().starts_with("impersonate-"))
}

/// Whether the cache may answer a request of a caller with its own credentials.
pub(crate) fn may_be_cached(parts: &Parts, path: &ResourcePath, is_socket: bool) -> bool {
    parts.method == Method::GET
        && path.subresource.is_none()
        && (is_socket || upgrade::requested(&parts.headers).is_none())
        && !is_impersonated(&parts.headers)
}

/// Forwards a request with the caller's token.
///
/// # Errors
/// If the caller has no token, or the API server sends no response.
pub(crate) async fn relay(
    inner: &Inner,
    parts: &Parts,
    path: String,
    (caller, body): (&Caller, Body),
    (is_long, telling): (bool, Option<Telling>),
) -> Result<Response, Refusal> {
    let token = match &caller.credential {
        Credential::Token(token) => token,
        Credential::Certificate | Credential::Own => {
            if let Some(mut telling) = telling {
                telling.changed_nothing();
            }
            return Err(Refusal::forbidden(
                "this is not answered from the cache, and a client certificate cannot be passed on to the API server: present a bearer token, or ask the API server itself",
            ));
        }
    };
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.version_mut() = parts.version;
    *request.headers_mut() = parts.headers.clone();
    *request.extensions_mut() = parts.extensions.clone();
    let user = caller.user.clone();
    inner.forwarder.forward(Forward { request, user, path, is_long, telling }, token).await
}

/// Whether a request may stay open without a time limit, such as a watch.
pub(crate) fn is_long(path: &ResourcePath, verb: Verb, query: &str) -> bool {
    let subresource = path.subresource.as_deref().unwrap_or_default();
    let subresource = subresource.split('/').next().unwrap_or_default();
    let follows = || {
        let mut parameters = form_urlencoded::parse(query.as_bytes());
        parameters.any(|(key, value)| key == "follow" && matches!(&*value, "true" | "1"))
    };
    verb == Verb::Watch
        || matches!(subresource, "exec" | "attach" | "portforward" | "proxy")
        || subresource == "log" && follows()
}

/// The observer of the response to a request; `None` if no version in the response is of use.
pub(crate) fn telling(
    writes: &std::sync::Arc<Writes>,
    resource: &Resource,
    path: &ResourcePath,
    (method, verb, query): (&Method, Verb, &str),
) -> Option<Telling> {
    let subresource = path.subresource.as_deref().unwrap_or_default();
    let subresource = subresource.split('/').next().unwrap_or_default();
    let value = |name: &str| {
        let mut parameters = form_urlencoded::parse(query.as_bytes());
        parameters.find(|(key, _)| key == name).is_some_and(|(_, value)| !value.is_empty())
    };
    let kind = match verb {
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection
            if CHANGING_NOTHING.contains(&subresource) =>
        {
            return None;
        }
        Verb::Create | Verb::Update | Verb::Patch if value("dryRun") => return None,
        // `dryRun` in the query does not count for deletions: the API server ignores the query of a
        // deletion that has a body.
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete => Kind::Write,
        Verb::DeleteCollection => Kind::DeleteCollection,
        Verb::Get | Verb::List if !subresource.is_empty() || *method != Method::GET => return None,
        Verb::Get => Kind::Read,
        Verb::List if value("resourceVersion") || value("continue") => Kind::Read,
        Verb::List => Kind::NewestList,
        Verb::Watch | Verb::Other => return None,
    };
    Some(writes.telling(resource, kind))
}
