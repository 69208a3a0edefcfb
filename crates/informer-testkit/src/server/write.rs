//! Requests that change something.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Response, header};
use http_body_util::{BodyExt, Limited};
use k8s_serve::answer::{self, collection, not_found};
use k8s_serve::{Body, Parameters, Resource, ResourcePath, Route, Status, Verb};
use serde_json::{Value, json};

use super::Core;
use crate::cluster::{Cluster, ClusterSnapshot, DeleteOptions, Part, PatchKind, Target};
use crate::object::Object;

/// The largest body that is read, as on a real server.
const BODY_LIMIT: usize = 3 << 20;

pub(super) async fn respond<B>(
    core: &Core,
    route: &Route,
    verb: Verb,
    parts: &Parts,
    query: &str,
    body: B,
) -> Response<Body>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let refuse = |status: &Status| core.read.refuse(status, &parts.headers);
    let Route::Resource(path) = route else {
        let known = !matches!(route, Route::Unknown);
        return if known { refuse(&Status::method_not_allowed()) } else { not_found() };
    };
    let resource = core.read.resolve(path).await;
    if resource.is_err() && verb == Verb::Create && path.name.is_none() {
        return review(core, path, body).await;
    }
    let Ok(resource) = resource else { return not_found() };
    let part = match path.subresource.as_deref() {
        None => Part::Main,
        Some("status") if resource.has_status && matches!(verb, Verb::Update | Verb::Patch) => {
            Part::Status
        }
        Some(_) => return not_found(),
    };
    let target = Target {
        namespace: path.namespace.clone().unwrap_or_default(),
        name: path.name.clone().unwrap_or_default(),
        resource,
        part,
    };
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {BODY_LIMIT}");
            return refuse(&Status::new(413, "RequestEntityTooLarge", message));
        }
        Err(_) => return refuse(&Status::bad_request("the body could not be read")),
    };
    write(core, &target, path, verb, &parts.headers, query, &body)
        .await
        .unwrap_or_else(|status| refuse(&status))
}

/// Answers a review of a token or of access; there is nothing else to create.
async fn review<B>(core: &Core, path: &ResourcePath, body: B) -> Response<Body>
where
    B: http_body::Body + Send,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Ok(body) = Limited::new(body, BODY_LIMIT).collect().await else { return not_found() };
    let Some(review) = core.auth.review(path, &body.to_bytes()) else { return not_found() };
    let mut response = Response::new(Body::full(review.to_string().into()));
    *response.status_mut() = http::StatusCode::CREATED;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

async fn write(
    core: &Core,
    target: &Target,
    path: &ResourcePath,
    verb: Verb,
    headers: &HeaderMap,
    query: &str,
    body: &Bytes,
) -> Result<Response<Body>, Status> {
    let (cluster, resource) = (core.read.backend(), &*target.resource);
    let negotiated = core.read.negotiate(headers, resource)?;
    let parameters = Parameters::parse(query)?;
    let in_namespace = !resource.namespaced || path.namespace.is_some();
    if verb == Verb::DeleteCollection {
        let form = negotiated.list(&parameters)?;
        // That of the list of what is to be deleted.
        let version = cluster.version();
        let deleted =
            delete_collection(cluster, target, path, &parameters, &delete_options(body)?)?;
        return collection::<ClusterSnapshot>(&target.resource, deleted, version, form).await;
    }
    let form = negotiated.object(&parameters)?;
    let answer = |code, object: &Object| answer::object(code, &target.resource, object, form);
    match verb {
        Verb::Create if path.name.is_none() && in_namespace => {
            require_json(headers)?;
            answer(201, &cluster.api_create(target, body, parameters.dry_run)?)
        }
        Verb::Update if path.name.is_some() && in_namespace => {
            require_json(headers)?;
            answer(200, &cluster.api_update(target, body, parameters.dry_run)?)
        }
        Verb::Patch if path.name.is_some() && in_namespace => {
            let kind = patch_kind(headers)?;
            let patch: Value = serde_json::from_slice(body)
                .map_err(|error| Status::bad_request(format!("the patch is no JSON: {error}")))?;
            answer(200, &cluster.api_patch(target, kind, &patch, parameters.dry_run)?)
        }
        Verb::Delete if in_namespace => {
            let (object, gone) =
                cluster.api_delete(target, &delete_options(body)?, parameters.dry_run)?;
            if !gone || returns_deleted_object(resource) {
                return answer(200, &object);
            }
            Ok(core.read.document(200, &success(resource, &object), headers))
        }
        _ => Err(Status::method_not_allowed()),
    }
}

/// Deletes what is selected, and returns the last states.
fn delete_collection(
    cluster: &Cluster,
    target: &Target,
    path: &ResourcePath,
    parameters: &Parameters,
    options: &DeleteOptions,
) -> Result<Vec<Object>, Status> {
    let resource = &*target.resource;
    let selectors = parameters.selectors(resource)?;
    let selected = cluster.list(&resource.to_string()).into_iter().filter(|object| {
        path.namespace.as_deref().is_none_or(|namespace| object.key().namespace() == namespace)
            && selectors.select(object)
    });
    let mut deleted = Vec::new();
    for object in selected {
        let target = Target {
            namespace: object.key().namespace().to_owned(),
            name: object.key().name().to_owned(),
            ..target.clone()
        };
        match cluster.api_delete(&target, options, parameters.dry_run) {
            Ok((last, _)) => deleted.push(last),
            // Somebody else was faster.
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    Ok(deleted)
}

fn delete_options(body: &Bytes) -> Result<DeleteOptions, Status> {
    if body.is_empty() {
        return Ok(DeleteOptions::default());
    }
    serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("no DeleteOptions: {error}")))
}

fn success(resource: &Resource, object: &Object) -> Value {
    let mut details = json!({
        "name": object.key().name(),
        "kind": resource.plural,
        "uid": object.uid().to_string(),
    });
    if !resource.group.is_empty() {
        details["group"] = resource.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Some resources answer a delete with the object, the others with a `Status`.
fn returns_deleted_object(resource: &Resource) -> bool {
    const CORE: [&str; 8] = [
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ];
    const STORAGE: [&str; 4] = ["csidrivers", "csinodes", "storageclasses", "volumeattachments"];
    match resource.group.as_str() {
        "" => CORE.contains(&resource.plural.as_str()),
        "storage.k8s.io" => STORAGE.contains(&resource.plural.as_str()),
        _ => false,
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Status> {
    match content_type(headers) {
        "" | "application/json" => Ok(()),
        _ => Err(unsupported("application/json")),
    }
}

fn patch_kind(headers: &HeaderMap) -> Result<PatchKind, Status> {
    match content_type(headers) {
        "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
            Ok(PatchKind::Merge)
        }
        "application/json-patch+json" => Ok(PatchKind::Json),
        "application/apply-patch+yaml" => Ok(PatchKind::Apply),
        _ => Err(unsupported(
            "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, \
             application/apply-patch+yaml",
        )),
    }
}

fn content_type(headers: &HeaderMap) -> &str {
    let value =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

fn unsupported(accepted: &str) -> Status {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    );
    Status::new(415, "UnsupportedMediaType", message)
}
