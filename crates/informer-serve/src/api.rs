//! Kubernetes' own paths. Decides whether the cache or the API server answers a request.

mod pass_on;
mod path;
mod reads;

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use k8s_serve::{
    Miss, ReadOptions, ReadSide, ResourcePath, Route, Status, Verb, answer as answers, websocket,
};

use crate::access::{Caller, Credential, Permission};
use crate::backend::{FirstPage, Source, Use};
use crate::catalog::{Found, Served, not_allowed};
use crate::collection::Collection;
use crate::collections::{REFRESH_DEADLINE, Unready};
use crate::definition::described;
use crate::endpoint::{Endpoint, Inner};
use crate::forward::{is_impersonated, may_be_cached, on_version, relay};
use crate::listen::Slot;
use crate::metrics::Origin;
use crate::options::Options;
use crate::per_user::Lasting;
use crate::refusal::Refusal;
use crate::sockets;
use pass_on::{pass_on, pass_on_as_caller, pass_on_as_own, pass_on_unheld, until_lost};
pub(crate) use path::url;
use path::{is_plain, segments};
pub(crate) use reads::MAX_WATCH_TERMS;
use reads::{lasts, reads_only, selects_too_finely};

/// Maximum size of the body of a self-subject review.
const MAX_REVIEW_BYTES: usize = 64 * 1024;

/// The only resources that may be created with the endpoint's own account: self-subject reviews,
/// which store nothing.
const REVIEWS: [(&str, &str); 3] = [
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
];

/// Subresources that a GET uses for more than reading.
const NO_READS: [&str; 4] = ["exec", "attach", "portforward", "proxy"];

/// A response and its origin.
struct Answer {
    response: Response,
    origin: Origin,
}

/// A request for a resource, parsed.
struct Asked<'a> {
    path: ResourcePath,
    verb: Verb,
    query: &'a str,
    headers: &'a HeaderMap,
    caller: &'a Caller,
    /// The permission of the caller; `None` without access control.
    permission: Option<&'a Permission>,
    parts: &'a Parts,
}

/// Answers a request for one of Kubernetes' own paths.
pub(crate) async fn answer(endpoint: &Endpoint, request: Request) -> Response {
    let inner = &*endpoint.inner;
    let (mut parts, body) = request.into_parts();
    let route = Route::parse(parts.uri.path());
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let query = query.as_str();
    // Only watches are upgraded here. All other upgrades are forwarded to the API server.
    let is_watch =
        matches!(&route, Route::Resource(it) if it.verb(&parts.method, query) == Verb::Watch);
    let socket = match is_watch && websocket::is_requested(&parts.headers) {
        true => WebSocketUpgrade::from_request_parts(&mut parts, &()).await.ok(),
        false => None,
    };
    if !is_plain(parts.uri.path()) {
        let refusal = Refusal::bad_request("a segment of the path is no name of an object");
        return refused(refusal, &parts.headers).response;
    }
    // The guard inserts the caller and the permission. A request without them has bypassed it.
    let Some(caller) = parts.extensions.get::<Arc<Caller>>().cloned() else {
        return refused(Refusal::unguarded(), &parts.headers).response;
    };
    let caller = &*caller;
    let permission = parts.extensions.get::<Permission>().cloned();
    let permission = permission.as_ref();
    let is_own = matches!(caller.credential, Credential::Own);
    if permission.is_none() && !is_own {
        return refused(Refusal::unguarded(), &parts.headers).response;
    }
    let lasts = matches!(&route, Route::Resource(it) if lasts(&parts, it, query));
    let lasting = match lasts && !is_own {
        true => match inner.per_user.open(&caller.user) {
            Ok(lasting) => Some(lasting),
            Err(refusal) => return refused(refusal, &parts.headers).response,
        },
        false => None,
    };
    if let Some(lasting) = &lasting {
        parts.extensions.insert(lasting.clone());
    }
    let (mut verb, mut resource) = ("other", String::new());
    let answered = match &route {
        Route::Resource(path) => {
            let of = path.verb(&parts.method, query);
            verb = word(of);
            match inner.catalog.served(path).await {
                Ok(Found::Served(served)) => {
                    resource = served.info.resource.to_string();
                    let (path, headers) = (path.clone(), &parts.headers);
                    let parts = &parts;
                    let asked = Asked { path, verb: of, query, headers, caller, permission, parts };
                    of_resource(inner, &asked, &served, (body, socket)).await
                }
                Ok(Found::NothingBuiltIn) => {
                    let status = Status::unknown_resource();
                    Ok(from_cache(answers::refusal(&status, &parts.headers)))
                }
                Ok(Found::Nothing) => Ok(from_cache(answers::not_found())),
                Err(refusal) => Err(refusal),
            }
        }
        _ => document(inner, &parts, caller).await,
    };
    let Answer { response, origin } =
        answered.unwrap_or_else(|refusal| refused(refusal, &parts.headers));
    let mut response = inner.metrics.api_answered(verb, &resource, origin, response);
    response.extensions_mut().insert(origin);
    match lasting {
        Some(lasting) => lasting.of(response),
        None => response,
    }
}

type Answered = Result<Answer, Refusal>;

async fn document(inner: &Inner, parts: &Parts, caller: &Caller) -> Answered {
    if is_impersonated(&parts.headers) {
        let segments = segments(parts.uri.path());
        let path = url(segments.iter().map(|it| &**it), parts.uri.query().unwrap_or_default());
        let response = relay(inner, parts, path, (caller, Body::empty()), (false, None)).await?;
        return Ok(Answer { response, origin: Origin::Upstream });
    }
    reads_only(&parts.method, &parts.headers)?;
    if matches!(Route::parse(parts.uri.path()), Route::Unknown | Route::Health)
        && !parts.uri.path().starts_with("/openapi/")
    {
        return Ok(from_cache(answers::not_found()));
    }
    let segments = segments(parts.uri.path());
    let path = url(segments.iter().map(|it| &**it), parts.uri.query().unwrap_or_default());
    let response = inner.documents.get(&path, &parts.headers).await?;
    Ok(Answer { response, origin: Origin::Document })
}

async fn of_resource(
    inner: &Inner,
    asked: &Asked<'_>,
    served: &Served,
    (body, socket): (Body, Option<WebSocketUpgrade>),
) -> Answered {
    let Asked { path, verb, parts, .. } = asked;
    let may_be_cached = served.is_allowed && may_be_cached(parts, path, socket.is_some());
    if !asked.is_own() && !may_be_cached {
        return pass_on_as_caller(inner, asked, served, body).await;
    }
    if parts.method == Method::POST
        && path.name.is_none()
        && REVIEWS.contains(&(&path.group, &path.resource))
    {
        let body = to_bytes(body, MAX_REVIEW_BYTES)
            .await
            .map_err(|_| Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large"))?;
        return pass_on_as_own(inner, Method::POST, asked, body).await;
    }
    if socket.is_none() {
        reads_only(&parts.method, asked.headers)?;
    }
    if !served.is_allowed {
        return Err(Refusal::forbidden(not_allowed(&served.info.resource)));
    }
    if let Some(subresource) = path.subresource.as_deref() {
        // The path of a proxied request follows the subresource, as in `proxy/x`.
        let (name, rest) = subresource.split_once('/').unwrap_or((subresource, ""));
        if NO_READS.contains(&name) {
            let message = format!(
                "{name} is not answered here: it does more than read, and would be done with the account of this endpoint; ask the API server itself"
            );
            return Err(Refusal::forbidden(message));
        }
        if !rest.is_empty() {
            return Ok(from_cache(answers::not_found()));
        }
    }
    let is_in_scope = match (inner.collections.namespace(), &path.namespace) {
        (Some(held), asked) if served.info.resource.namespaced => asked.as_deref() == Some(held),
        _ => true,
    };
    let is_whole = path.subresource.is_none();
    let is_held_for = is_in_scope && is_whole && !selects_too_finely(*verb, asked.query);
    if served.is_strict || !is_held_for || !served.info.can_be_watched() {
        return pass_on(inner, asked, served).await;
    }
    let collection = match verb {
        // A get of one object neither starts to hold the resource nor waits for its first list,
        // because the API server can answer it. The get of a caller with a certificate does both,
        // because it cannot be forwarded.
        Verb::Get if !matches!(asked.caller.credential, Credential::Certificate) => inner
            .collections
            .held(&served.info.resource)
            .await
            .filter(|it| it.informer.has_synced()),
        _ => {
            let describe = || described(&served.info);
            match inner.collections.acquire(&served.info.resource, describe, false).await? {
                Ok(collection) => Some(collection),
                Err(unheld) => return pass_on_unheld(inner, asked, served, &unheld).await,
            }
        }
    };
    let Some(collection) = collection else {
        return pass_on(inner, asked, served).await;
    };
    match inner.collections.ready(&collection).await {
        Ok(()) => {}
        Err(Unready::Forward(unheld)) => {
            return pass_on_unheld(inner, asked, served, &unheld).await;
        }
        Err(Unready::Listing) => {
            let message = format!("{}: the first list is still coming in", served.info.resource);
            let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, message);
            refusal.retry_after = Some(1);
            return Err(refusal);
        }
        Err(Unready::Refusal(refusal)) => return Err(refusal),
    }
    if reads_newest(asked)
        && socket.is_none()
        && inner.writes.must_forward(&collection, REFRESH_DEADLINE)
    {
        // This is needed even if the request is a list: the version in its response cannot be read
        // in every encoding.
        inner.writes.find_version(&collection, &inner.client);
        let is_certified = matches!(asked.caller.credential, Credential::Certificate);
        return match pass_on(inner, asked, served).await {
            Err(refusal) if is_certified => Err(Refusal {
                code: StatusCode::SERVICE_UNAVAILABLE,
                retry_after: Some(1),
                ..refusal
            }),
            passed => passed,
        };
    }
    let epoch = collection.epoch();
    let response = read(inner, asked, Arc::clone(&collection)).await;
    if let Some(socket) = socket.filter(|_| response.status().is_success()) {
        let slot = parts.extensions.get::<Slot>().cloned();
        let lasting = parts.extensions.get::<Lasting>().cloned();
        let response = sockets::upgrade(socket, asked.headers, response, (slot, lasting));
        return Ok(Answer { response, origin: Origin::Cache });
    }
    // Forward requests that the cache refuses: the API server may support the encoding or the
    // selector, or refuses it with its own message. Watches over WebSocket are never forwarded.
    let is_refused = [StatusCode::BAD_REQUEST, StatusCode::NOT_ACCEPTABLE];
    if is_refused.contains(&response.status()) && !websocket::is_requested(asked.headers) {
        let passed = pass_on(inner, asked, served).await;
        return Ok(passed.unwrap_or_else(|_| from_cache(response)));
    }
    // Forward reads of a version that the cache has not reached or no longer has.
    match response.extensions().get::<Miss>() {
        None => Ok(from_cache(response)),
        // A client whose watch has expired lists again. The cache can answer that list, so
        // forwarding the watch would only cost the API server.
        Some(Miss::Expired) if asked.verb == Verb::Watch => Ok(from_cache(response)),
        Some(miss) => match pass_on(inner, asked, served).await {
            Ok(Answer { mut response, origin }) => {
                // A successful watch does not prove that the API server has reached the version,
                // because it accepts the watch before it checks the version.
                let is_reached = asked.verb != Verb::Watch && response.status().is_success();
                if *miss == Miss::Ahead && is_reached {
                    // Use the version in the response rather than the requested one, because some
                    // servers answer a request for any version.
                    response = on_version(response, move |version| {
                        collection.told(version, epoch, REFRESH_DEADLINE);
                    });
                }
                Ok(Answer { response, origin })
            }
            Err(_) => Ok(from_cache(response)),
        },
    }
}

/// Reads from a collection.
async fn read(
    inner: &Inner,
    asked: &Asked<'_>,
    collection: Arc<Collection>,
) -> http::Response<k8s_serve::Body> {
    let Options { kept_snapshots, .. } = inner.options;
    let is_first_page =
        asked.verb == Verb::List && has(asked.query, "limit") && !has(asked.query, "continue");
    let first_page = is_first_page.then(FirstPage::default);
    let source = Source {
        in_use: Use::of(Arc::clone(&collection)),
        max_staleness: inner.options.staleness_limit(),
        first_page: first_page.clone(),
        stopping: inner.stopping.clone(),
        permission: asked.permission.cloned(),
    };
    let read = ReadSide::new(source, ReadOptions::default());
    let route = Route::Resource(asked.path.clone());
    let response = read.respond(&route, asked.query, asked.headers).await;
    if response.status().is_success() {
        collection.hit();
    }
    if let Some(first_page) = first_page {
        first_page.keep_if_more(&response, &collection, kept_snapshots);
    }
    response
}

impl Asked<'_> {
    /// Whether the request uses the rights of the endpoint's own account.
    fn is_own(&self) -> bool {
        matches!(self.caller.credential, Credential::Own)
    }

    /// Ends the response to a watch when its permission is lost.
    fn until_lost(&self, response: Response) -> Response {
        match self.permission.filter(|_| self.verb == Verb::Watch) {
            Some(permission) => until_lost(response, permission.clone()),
            None => response,
        }
    }
}

/// Whether a read asks for the newest state.
fn reads_newest(asked: &Asked<'_>) -> bool {
    !has(asked.query, "resourceVersion") && !has(asked.query, "continue")
}

fn refused(refusal: Refusal, headers: &HeaderMap) -> Answer {
    let mut status = Status::new(refusal.code.as_u16(), "Unknown", refusal.message);
    status.reason = refusal.reason.into();
    status.details.retry_after_seconds = refusal.retry_after.unwrap_or_default();
    let response = answers::refusal(&status, headers).map(Body::new);
    Answer { response, origin: Origin::Refused }
}

fn from_cache(response: http::Response<k8s_serve::Body>) -> Answer {
    Answer { response: response.map(Body::new).into_response(), origin: Origin::Cache }
}

/// Whether a query has a parameter that is not empty.
fn has(query: &str, name: &str) -> bool {
    form_urlencoded::parse(query.as_bytes()).any(|(key, value)| key == name && !value.is_empty())
}

fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Create => "create",
        Verb::Update => "update",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
        Verb::Other => "other",
    }
}
