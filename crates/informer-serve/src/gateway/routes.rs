//! From short paths to answers.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path, RawQuery, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};
use informer::{ObjectKey, Resource, Selection};
use serde::de::DeserializeOwned;

use super::answer::{List, object, warn_if_behind};
use super::current::Current;
use super::page::{Asked, NoPage, Token};
use super::query::ListQuery;
use crate::access::{Asker, Attributes, ResourceAttributes};
use crate::audit::About;
use crate::endpoint::Endpoint;
use crate::guard::refuse;
use crate::object::Object;
use crate::refusal::Refusal;

pub(crate) const HELP: &str = "\
GET /{name}                                  a list: a name as kubectl knows it (pods, deploy, Node, widgets.example.com)
GET /{group}/{version}/{resource}            a list; group `core` for the core group
GET /{group}/{version}/{resource}/{namespace}/{name}   one object; without the namespace for cluster-scoped ones
    lists take ?labels[KEY]=VALUE (repeated), labelSelector=, fieldSelector=, namespace=, limit=, continue=
GET /api /apis /openapi /version             Kubernetes' own API: kubectl --server http://HOST:PORT get pods
GET /livez /readyz /metrics
GET /                                        the status page, in a browser
";

/// The short paths, beside others that only read as well.
pub(crate) fn router(others: Router<Endpoint>) -> Router<Endpoint> {
    others
        .route("/{name}", get(by_name))
        .route("/{group}/{version}/{resource}", get(by_resource))
        .route("/{group}/{version}/{resource}/{name}", get(cluster_object))
        .route("/{group}/{version}/{resource}/{namespace}/{name}", get(namespaced_object))
        .fallback(nothing)
        .layer(middleware::from_fn(reads_only))
}

async fn reads_only(request: Request, next: Next) -> Response {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let message = format!("{}: the gateway only reads; use GET or HEAD", request.method());
        return Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message).into_response();
    }
    next.run(request).await
}

async fn nothing(asker: Asking, method: Method, uri: Uri) -> Response {
    if let Err(refused) = asker.may(Attributes::of_path(&method, uri.path())).await {
        return refused;
    }
    let message = format!("no such path: {}; there are:\n{HELP}", uri.path());
    Refusal::not_found(message).into_response()
}

/// Who asks. Nothing is looked up before [`may`](Self::may) has said yes.
struct Asking {
    asker: Asker,
    /// Of the audit line.
    about: Option<About>,
    headers: HeaderMap,
}

impl Asking {
    async fn may(&self, attributes: Attributes) -> Result<(), Response> {
        if let Some(about) = &self.about {
            about.set([attributes.clone()]);
        }
        match self.asker.may(attributes).await {
            Ok(_) => Ok(()),
            Err(refused) => Err(refuse(&refused, &self.headers)),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asking {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let asker = parts.extensions.get::<Asker>().cloned().ok_or_else(Refusal::unguarded)?;
        let about = parts.extensions.get::<About>().cloned();
        Ok(Self { asker, about, headers: parts.headers.clone() })
    }
}

/// The names in a path; what is no text is refused as everything else is.
struct Names<N>(N);

impl<N: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Names<N> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let names = Path::from_request_parts(parts, state).await;
        names
            .map(|Path(it)| Self(it))
            .map_err(|rejection| Refusal::bad_request(rejection.body_text()))
    }
}

async fn by_name(
    State(gateway): State<Endpoint>,
    asking: Asking,
    uri: Uri,
    Names(name): Names<String>,
) -> Result<Response, Response> {
    let found = gateway.inner.catalog.resource(|discovery| discovery.find_by_arg(&name)).await;
    let resource = match found {
        Ok(resource) => resource,
        Err(refusal) => {
            // Which resources there are is not for everybody.
            asking.may(Attributes::of_path(&Method::GET, uri.path())).await?;
            return Err(refusal.into_response());
        }
    };
    let query = uri.query().unwrap_or_default();
    let Resource { group, version, plural, .. } = &resource;
    asking.may(of_list(group, version, plural, query)).await?;
    list(&gateway, resource, query, &asking).await.map_err(Refusal::into_response)
}

async fn by_resource(
    State(gateway): State<Endpoint>,
    asking: Asking,
    uri: Uri,
    Names((group, version, plural)): Names<(String, String, String)>,
) -> Result<Response, Response> {
    let query = uri.query().unwrap_or_default();
    asking.may(of_list(core(&group), &version, &plural, query)).await?;
    let listed = async {
        let resource = exact(&gateway, &group, &version, &plural).await?;
        list(&gateway, resource, query, &asking).await
    };
    listed.await.map_err(Refusal::into_response)
}

async fn cluster_object(
    State(gateway): State<Endpoint>,
    asking: Asking,
    Names((group, version, plural, name)): Names<(String, String, String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    asking.may(of_get(&group, &version, &plural, ("", &name))).await?;
    let got = async {
        let resource = exact(&gateway, &group, &version, &plural).await?;
        if resource.namespaced {
            return Err(Refusal::bad_request(format!(
                "{plural} live in namespaces: ask for /{group}/{version}/{plural}/NAMESPACE/{name}, or for /{group}/{version}/{plural}?namespace={name}"
            )));
        }
        one(&gateway, resource, "", &name, query).await
    };
    got.await.map_err(Refusal::into_response)
}

async fn namespaced_object(
    State(gateway): State<Endpoint>,
    asking: Asking,
    Names((group, version, plural, namespace, name)): Names<(
        String,
        String,
        String,
        String,
        String,
    )>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    asking.may(of_get(&group, &version, &plural, (&namespace, &name))).await?;
    let got = async {
        let resource = exact(&gateway, &group, &version, &plural).await?;
        if !resource.namespaced {
            return Err(Refusal::bad_request(format!(
                "{plural} do not live in namespaces: ask for /{group}/{version}/{plural}/{name}"
            )));
        }
        one(&gateway, resource, &namespace, &name, query).await
    };
    got.await.map_err(Refusal::into_response)
}

/// What a list reads, in the words of the API.
fn of_list(group: &str, version: &str, plural: &str, query: &str) -> Attributes {
    // What cannot be read is refused later, and selects nothing.
    let ListQuery { labels, fields, namespace, .. } = ListQuery::parse(query).unwrap_or_default();
    let name = fields.required_value("metadata.name").unwrap_or_default().to_owned();
    let attributes = ResourceAttributes {
        verb: "list".into(),
        group: group.to_owned(),
        version: version.to_owned(),
        resource: plural.to_owned(),
        namespace: namespace.unwrap_or_default(),
        name,
        ..ResourceAttributes::default()
    };
    Attributes::Resource(Box::new(attributes.with_selectors(fields, labels)))
}

/// What the read of an object reads, in the words of the API.
fn of_get(group: &str, version: &str, plural: &str, (namespace, name): (&str, &str)) -> Attributes {
    let group = core(group);
    let is_namespace = group.is_empty() && plural == "namespaces";
    Attributes::Resource(Box::new(ResourceAttributes {
        verb: "get".into(),
        group: group.to_owned(),
        version: version.to_owned(),
        resource: plural.to_owned(),
        namespace: if is_namespace { name } else { namespace }.to_owned(),
        name: name.to_owned(),
        ..ResourceAttributes::default()
    }))
}

fn core(group: &str) -> &str {
    if group == "core" { "" } else { group }
}

async fn exact(
    gateway: &Endpoint,
    group: &str,
    version: &str,
    plural: &str,
) -> Result<Resource, Refusal> {
    let group = core(group);
    gateway.inner.catalog.resource(|discovery| discovery.require(group, version, plural)).await
}

async fn one(
    gateway: &Endpoint,
    resource: Resource,
    namespace: &str,
    name: &str,
    query: Option<String>,
) -> Result<Response, Refusal> {
    if query.is_some_and(|it| !it.is_empty()) {
        return Err(Refusal::bad_request("one object is asked for: there are no parameters"));
    }
    if resource.namespaced {
        check_namespace(gateway, Some(namespace))?;
    }
    let current = Current::of(gateway, &resource).await?;
    let snapshot = current.newest().await?;
    let found = snapshot.find(namespace, name).ok_or_else(|| {
        // As the API server says it.
        Refusal::not_found(format!("{} {name:?} not found", resource.group_resource()))
    })?;
    let mut response = object(&resource, found.object(), &gateway.inner.metrics)?;
    warn_if_behind(&mut response, &current.synced.lister.state());
    Ok(response)
}

async fn list(
    gateway: &Endpoint,
    resource: Resource,
    query: &str,
    asking: &Asking,
) -> Result<Response, Refusal> {
    let query = ListQuery::parse(query).map_err(Refusal::bad_request)?;
    if query.namespace.is_some() && !resource.namespaced {
        let message = format!(
            "{} do not live in namespaces; leave out namespace=",
            resource.group_resource()
        );
        return Err(Refusal::bad_request(message));
    }
    if resource.namespaced {
        check_namespace(gateway, query.namespace.as_deref())?;
    }
    let current = Current::of(gateway, &resource).await?;
    let now = tokio::time::Instant::now().into_std();
    let asked = Asked {
        user: asking.asker.caller().user.clone(),
        request: format!("{resource} {}", query.identity()),
    };
    let (snapshot, token) = match &query.continues {
        None => (current.newest().await?, None),
        Some(text) => {
            let token: Token = text.parse().map_err(|()| {
                Refusal::bad_request(
                    "continue=: this is no token; pass on metadata.continue as it is",
                )
            })?;
            current.check_staleness()?;
            let snapshot = gateway.inner.pages.find(&token, &asked, now).map_err(no_page)?;
            (snapshot, Some(token))
        }
    };
    let selection = Selection::new(snapshot.clone(), query.namespace.clone(), &query.labels)
        .and_then(|selection| selection.with_fields(&resource, &query.fields))
        .map_err(|error| Refusal::bad_request(error.to_string()))?;
    let Page { items, last, more } =
        Page::of(&selection, token.as_ref().map(|it| &it.after), query.limit);
    let version = snapshot.version().to_string();
    let next = last.filter(|_| more).map(|after| {
        let id = match &token {
            Some(token) => token.id,
            None => gateway.inner.pages.keep(&asked, snapshot, now),
        };
        Token { id, version: version.clone(), after }.to_string()
    });
    let mut response =
        List { resource, version, items, next }.into_response(&gateway.inner.metrics)?;
    warn_if_behind(&mut response, &current.synced.lister.state());
    Ok(response)
}

/// A part of what is selected.
struct Page {
    items: Vec<Arc<Object>>,
    /// The key of the last item, if the page is full.
    last: Option<ObjectKey>,
    /// Whether something matches after the last item.
    more: bool,
}

impl Page {
    /// What is selected after `after`, up to the limit.
    fn of(selection: &Selection<Object>, after: Option<&ObjectKey>, limit: Option<usize>) -> Self {
        let mut page = Self { items: Vec::new(), last: None, more: false };
        let limit = limit.unwrap_or(usize::MAX);
        let entries = match after {
            Some(after) => selection.entries_after(after),
            None => selection.entries(),
        };
        for entry in entries {
            if page.items.len() == limit {
                page.more = true;
                break;
            }
            page.items.push(Arc::clone(entry.object()));
            // The key is only needed for a token.
            if page.items.len() == limit {
                page.last = Some(entry.key.clone());
            }
        }
        page
    }
}

/// A gateway of one namespace knows nothing of others, and must not answer as if they were empty.
fn check_namespace(gateway: &Endpoint, asked: Option<&str>) -> Result<(), Refusal> {
    match (gateway.inner.collections.namespace(), asked) {
        (Some(held), Some(asked)) if held != asked => Err(Refusal::forbidden(format!(
            "the gateway holds namespace {held} only and knows nothing of namespace {asked}"
        ))),
        _ => Ok(()),
    }
}

fn no_page(reason: NoPage) -> Refusal {
    match reason {
        NoPage::Gone => Refusal::new(
            StatusCode::GONE,
            "the snapshot that this continue token belongs to is gone; start the list again without continue=",
        ),
        NoPage::OtherRequest => Refusal::bad_request(
            "this continue token belongs to another request: resource, namespace and selectors must stay the same",
        ),
    }
}
