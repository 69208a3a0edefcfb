//! Figures of the held collections that the caller may list.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::Method;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use informer::source::{Failure, FailureKind};
use informer::{RecentError, Resource};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::query::of_list;
use crate::access::{Asker, Attributes};
use crate::collection::Collection;
use crate::endpoint::{Endpoint, Inner};
use crate::guard::refuse;
use crate::refusal::Refusal;

/// What is offered where nothing is held yet, and how much of it.
const COMMON: [&str; 6] =
    ["pods", "deployments.apps", "services", "configmaps", "jobs.batch", "nodes"];
const OFFERED: usize = 4;
/// How long the API server has to tell what it has: the offer can wait until it does.
const OFFER_TIMEOUT: Duration = Duration::from_secs(1);

/// Answers what is held: to those who may read `/metrics` all of it, to others what they may list.
/// With `namespace=` resources that may be listed there are named, without their figures: those
/// count all namespaces.
pub(crate) async fn answer(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let inner = &*endpoint.inner;
    let Some(asker) = request.extensions().get::<Asker>() else {
        return Refusal::unguarded().into_response();
    };
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let namespace = pairs.find(|(key, value)| key == "namespace" && !value.is_empty());
    let namespace = namespace.map(|(_, value)| value.into_owned());
    let reads_all = match asker.may(Attributes::of_path(&Method::GET, "/metrics")).await {
        Ok(_) => true,
        Err(refused) if refused.status().code == 403 => false,
        Err(refused) => return refuse(&refused, request.headers()),
    };
    let mut held = Vec::new();
    for collection in inner.collections.now().into_iter().filter(|it| !it.has_ended()) {
        let view = match reads_all {
            true => View::Whole,
            false => view(inner, asker, &collection.own, namespace.as_deref()).await,
        };
        match view {
            View::Whole => held.push(figures(&collection)),
            View::Name => held.push(named(&collection.own)),
            View::Nothing => {}
        }
    }
    held.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
    let mut forwarded = Vec::new();
    for (resource, why) in inner.collections.unheld().await {
        let is_shown =
            reads_all || matches!(view(inner, asker, &resource, None).await, View::Whole);
        if is_shown {
            forwarded.push(json!({"id": resource.to_string(), "why": why}));
        }
    }
    let mut offer = Vec::new();
    if held.is_empty() {
        let offered = timeout(OFFER_TIMEOUT, offered(inner, asker, namespace.as_deref())).await;
        offer = offered.unwrap_or_default();
    }
    let caller = asker.caller();
    let totals = reads_all.then(|| {
        json!({"maxBytes": inner.options.max_bytes, "maxCollections": inner.options.max_collections})
    });
    let answer = json!({
        "run": inner.run.id,
        "started": inner.run.started.to_string(),
        "now": Timestamp::now().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "user": caller.user,
        "namespace": inner.collections.namespace(),
        "totals": totals,
        "collections": held,
        "forwarded": forwarded,
        "offered": offer,
    });
    let headers = [
        (CONTENT_TYPE, "application/json"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, answer.to_string()).into_response()
}

/// How much of a collection a caller sees.
enum View {
    Whole,
    Name,
    Nothing,
}

async fn view(inner: &Inner, asker: &Asker, resource: &Resource, asked: Option<&str>) -> View {
    let held = inner.collections.namespace().filter(|_| resource.namespaced);
    if asker.may(of_list(resource, held)).await.is_ok() {
        return View::Whole;
    }
    match asked.filter(|_| resource.namespaced) {
        Some(asked) if asker.may(of_list(resource, Some(asked))).await.is_ok() => View::Name,
        _ => View::Nothing,
    }
}

/// Names of what may be held and the caller may list.
async fn offered(inner: &Inner, asker: &Asker, namespace: Option<&str>) -> Vec<&'static str> {
    let mut offered = Vec::new();
    for name in COMMON {
        let Ok(resource) = inner.catalog.find_by_arg(name).await else { continue };
        if !matches!(view(inner, asker, &resource, namespace).await, View::Nothing) {
            offered.push(name);
        }
        if offered.len() == OFFERED {
            break;
        }
    }
    offered
}

/// Which resource it is.
pub(super) fn named(resource: &Resource) -> Value {
    let Resource { group, version, plural, kind, namespaced } = resource;
    json!({
        "id": resource.to_string(),
        "name": resource.group_resource(),
        "group": group,
        "version": version,
        "plural": plural,
        "kind": kind,
        "namespaced": namespaced,
    })
}

fn figures(collection: &Arc<Collection>) -> Value {
    let status = collection.informer.status();
    let watch_cache = &collection.history.watch_cache;
    let advice = status.state.cause().and_then(|it| advice(it, &collection.own));
    let errors = status.recent_errors.iter().rev().map(|it| error(it, &collection.own));
    let mut figures = named(&collection.own);
    figures["figures"] = json!({
        "state": status.state,
        "advice": advice,
        "synced": status.has_synced,
        "resourceVersion": status.version.to_string(),
        "objects": status.objects,
        "bytes": collection.bytes(),
        "events": status.counters.events,
        "received": status.counters.bytes,
        "lists": status.counters.lists,
        "errors": status.counters.errors,
        "undecodable": status.undecodable,
        "staleness": collection.history.staleness().map(|it| it.as_secs_f64()),
        "watchers": watch_cache.watchers(),
        "expired": watch_cache.expired(),
        "hits": collection.hits(),
        "eager": collection.is_eager,
        "recentErrors": Vec::from_iter(errors),
    });
    figures
}

fn error(error: &RecentError, resource: &Resource) -> Value {
    let mut value = json!(error);
    value["advice"] = json!(error.failure.as_ref().and_then(|it| advice(it, resource)));
    value
}

/// What to do about a failure; `None` where there is nothing to do but to wait.
fn advice(failure: &Failure, resource: &Resource) -> Option<String> {
    let name = resource.group_resource();
    Some(match failure.kind {
        FailureKind::Refused | FailureKind::Transport | FailureKind::Timeout => {
            "The API server cannot be reached. It is tried again by itself; see whether `kubectl get --raw /readyz` answers.".to_owned()
        }
        FailureKind::Unauthorized => {
            "The endpoint's own credentials are not accepted: renew its token or kubeconfig.".to_owned()
        }
        FailureKind::Forbidden => format!(
            "The endpoint's own account may not read {name}: kubectl create clusterrole read-{} --verb=list,watch --resource={name}, and bind it to the account.",
            resource.plural
        ),
        FailureKind::NotFound => format!(
            "The API server does not have {name} (any more). It is held again as soon as it is installed."
        ),
        FailureKind::TooManyRequests => {
            "The API server limits requests. It is tried again by itself; look at its flow control (`kubectl get flowschemas`) if it goes on.".to_owned()
        }
        FailureKind::Server => {
            "The API server fails. It is tried again by itself; look at the API server's log if it goes on.".to_owned()
        }
        FailureKind::Malformed | FailureKind::Undecodable => format!(
            "Objects cannot be read. Look at them with `kubectl get {name} -A -o yaml`, and at proxies in between."
        ),
        FailureKind::Deaf => {
            "A watch had stopped to send changes, and was opened anew. Look at proxies in between if it goes on.".to_owned()
        }
        FailureKind::Invalid => {
            "The API server does not take the request. Look at its version, and at proxies in between.".to_owned()
        }
        _ => return None,
    })
}
