//! Requests to responses.

use std::sync::Arc;

use http::{HeaderMap, Response};
use informer_core::wire::MediaType;

use crate::accept::{self, Negotiated, Served, StatusForm};
use crate::answer::{self, Body, not_found, plain_response};
use crate::backend::{At, Backend, Discovery, ReadError, Snapshot};
use crate::compress::compress;
use crate::discovery;
use crate::form::{Form, FormKind, Shape};
use crate::object::WriteError;
use crate::options::ReadOptions;
use crate::params::Parameters;
use crate::resource::Resource;
use crate::route::{DiscoveryPath, ResourcePath, Route, Verb};
use crate::status::Status;
use crate::writer::Writer;

/// Answers reads from a backend.
#[derive(Debug, Clone)]
pub struct ReadSide<B> {
    backend: B,
    options: ReadOptions,
}

/// Why a response has no answer though the request was in order: it is in the response's
/// extensions, so that an embedder can ask another server instead of sending it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// The collection has not reached the version that the request names.
    Ahead,
    /// The version that the request names is no longer known.
    Expired,
    /// There is nothing to read yet.
    NotReady,
    /// An object cannot be written in the form that was asked for.
    Unwritable,
}

/// A request that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) miss: Option<Miss>,
}

impl<B: Backend> ReadSide<B> {
    /// A read side over `backend`.
    pub fn new(backend: B, options: ReadOptions) -> Self {
        Self { backend, options }
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Finds the resource that a path names.
    ///
    /// # Errors
    /// [`ReadError::NotServed`] if there is none, or it is not in namespaces and the path is. The
    /// others as the backend has them.
    pub async fn resolve(&self, path: &ResourcePath) -> Result<Arc<Resource>, ReadError> {
        let resource = self.backend.resolve(path).await?;
        match resource.namespaced || path.namespace.is_none() {
            true => Ok(resource),
            false => Err(ReadError::NotServed),
        }
    }

    /// Answers a GET request. Large answers are compressed if the client accepts it.
    ///
    /// # Cancel safety
    /// Nothing is changed by it; dropping the future is safe.
    pub async fn respond(&self, route: &Route, query: &str, headers: &HeaderMap) -> Response<Body> {
        let answer = match route {
            Route::Health => Ok(plain_response(200, "ok")),
            Route::Version => accept::require_json(headers)
                .map(|()| discovery::version(&self.options.git_version))
                .map_err(Failure::from),
            Route::OpenApi => Ok(discovery::no_schemas(headers)),
            Route::Discovery(path) => self.discover(path, headers).await,
            Route::Resource(path) => self.read(path, query, headers).await,
            Route::Unknown => Ok(not_found()),
        };
        let response = answer.unwrap_or_else(|Failure { status, miss }| {
            let mut response = self.refuse(&status, headers);
            if let Some(miss) = miss {
                response.extensions_mut().insert(miss);
            }
            response
        });
        if matches!(route, Route::Resource(path) if path.verb(&http::Method::GET, query) == Verb::Watch)
        {
            return response;
        }
        let response = match accept::wants_indented(headers, query) {
            true => answer::indented(response),
            false => response,
        };
        compress(response, headers).await
    }

    /// A failure, in a form that the client accepts.
    #[must_use]
    pub fn refuse(&self, status: &Status, headers: &HeaderMap) -> Response<Body> {
        answer::status_response(status, accept::status_form(headers, self.options.protobuf))
    }

    /// A document that says what it is, such as the `Status` of a success, in a form that the
    /// client accepts.
    #[must_use]
    pub fn document(
        &self,
        code: u16,
        document: &serde_json::Value,
        headers: &HeaderMap,
    ) -> Response<Body> {
        let media = match accept::status_form(headers, self.options.protobuf) {
            StatusForm::Media(media) => media,
            StatusForm::Raw => MediaType::Json,
        };
        answer::document_response(code, document, media)
    }

    /// The form of what a client gets of a resource.
    ///
    /// # Errors
    /// 406 if nothing that it accepts is served.
    pub fn negotiate(
        &self,
        headers: &HeaderMap,
        resource: &Resource,
    ) -> Result<Negotiated, Status> {
        self.negotiate_for(headers, resource, Served::Documents)
    }

    pub(crate) fn negotiate_for(
        &self,
        headers: &HeaderMap,
        resource: &Resource,
        served: Served,
    ) -> Result<Negotiated, Status> {
        accept::negotiate(headers, resource, served, self.options.protobuf)
    }

    pub(crate) fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// A writer of objects in a form.
    pub(crate) async fn writer(
        &self,
        resource: &Arc<Resource>,
        form: Form,
    ) -> Result<Writer, Failure> {
        let columns = match form.0 {
            FormKind::Json(Shape::Table(..)) => Some(self.backend.columns(resource).await?),
            FormKind::Json(Shape::Full | Shape::Metadata(_)) | FormKind::Protobuf { .. } => None,
        };
        Ok(Writer::new(Arc::clone(resource), form, columns))
    }

    async fn discover(
        &self,
        path: &DiscoveryPath,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Failure> {
        let (media, version) = accept::discovery(
            headers,
            matches!(path, DiscoveryPath::Core | DiscoveryPath::Groups),
            self.options.protobuf,
        )?;
        match self.backend.discovery(path, headers).await {
            Ok(Discovery::Answer(response)) => Ok(response),
            Ok(Discovery::Resources(resources)) => {
                match discovery::respond(&resources, path, media, version, headers) {
                    Some(response) => Ok(response),
                    None => self.nothing_at(path).await,
                }
            }
            Err(ReadError::NotServed) => self.nothing_at(path).await,
            Err(other) => Err(other.into()),
        }
    }

    /// The answer to a path of a group that names nothing in it. A group that is served says so
    /// with a `Status`.
    async fn nothing_at(&self, path: &DiscoveryPath) -> Result<Response<Body>, Failure> {
        match path {
            DiscoveryPath::Version { group, .. } if self.serves_built_in(group).await => {
                Err(Status::unknown_resource().into())
            }
            _ => Ok(not_found()),
        }
    }

    async fn serves_built_in(&self, group: &str) -> bool {
        if group.is_empty() {
            return true;
        }
        let path = DiscoveryPath::Group(group.to_owned());
        match self.backend.discovery(&path, &HeaderMap::new()).await {
            Ok(Discovery::Answer(response)) => response.status().is_success(),
            Ok(Discovery::Resources(resources)) => {
                resources.iter().any(|resource| resource.group == group && !resource.custom)
            }
            Err(_) => false,
        }
    }

    async fn read(
        &self,
        path: &ResourcePath,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Failure> {
        let resource = match self.resolve(path).await {
            Ok(resource) => resource,
            Err(ReadError::NotServed) => {
                let (group, version) = (path.group.clone(), path.version.clone());
                return self.nothing_at(&DiscoveryPath::Version { group, version }).await;
            }
            Err(other) => return Err(other.into()),
        };
        let namespace = path.namespace.as_deref();
        match (path.verb(&http::Method::GET, query), &path.name) {
            (Verb::Get, Some(name)) if has_object(&resource, path) => {
                self.get(&resource, path, name, query, headers).await
            }
            (Verb::Watch, None) => self.watch(&resource, namespace, query, headers).await,
            (Verb::List, None) => self.list(&resource, namespace, query, headers).await,
            (_, Some(name)) if resource.custom && is_in_scope(&resource, path) => {
                Err(Status::not_found(&resource, name).into())
            }
            _ if resource.custom => Ok(not_found()),
            _ => Err(Status::unknown_resource().into()),
        }
    }

    async fn get(
        &self,
        resource: &Arc<Resource>,
        path: &ResourcePath,
        name: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Failure> {
        let negotiated = self.negotiate(headers, resource)?;
        let parameters = Parameters::of_get(query);
        let version = parameters.named_version()?;
        let form = negotiated.object(&parameters)?;
        if let Some(version) = version {
            self.wait_for(resource, version).await?;
        }
        let snapshot = self.snapshot(resource, parameters.at()).await?;
        let namespace =
            path.namespace.as_deref().filter(|_| resource.namespaced).unwrap_or_default();
        let object =
            snapshot.object(namespace, name).ok_or_else(|| Status::not_found(resource, name))?;
        let writer = self.writer(resource, form).await?;
        Ok(answer::object_response(200, &writer, &object, form, self.backend.now())?)
    }

    pub(crate) async fn snapshot(
        &self,
        resource: &Resource,
        at: At,
    ) -> Result<B::Snapshot, Failure> {
        self.backend.snapshot(resource, at).await.map_err(|error| match error {
            ReadError::Expired { .. } => Failure {
                status: Status::expired("The resourceVersion for the provided list is too old."),
                miss: Some(Miss::Expired),
            },
            other => other.into(),
        })
    }

    /// Waits until the collection has reached a version, but not for long.
    pub(crate) async fn wait_for(&self, resource: &Resource, version: u64) -> Result<(), Failure> {
        let reached = self.backend.reached(resource, version);
        match tokio::time::timeout(self.options.freshness_wait, reached).await {
            Ok(reached) => Ok(reached?),
            Err(_) => {
                let current = self.backend.version(resource).await?;
                let status = Status::too_large_version(version, current);
                Err(Failure { status, miss: Some(Miss::Ahead) })
            }
        }
    }
}

/// Whether the path of an object fits its resource.
fn has_object(resource: &Resource, path: &ResourcePath) -> bool {
    is_in_scope(resource, path)
        && match path.subresource.as_deref() {
            None => true,
            Some("status") => resource.has_status,
            Some(_) => false,
        }
}

fn is_in_scope(resource: &Resource, path: &ResourcePath) -> bool {
    !resource.namespaced || path.namespace.is_some()
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self { status, miss: None }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self { status: error.into(), miss: Some(Miss::Unwritable) }
    }
}

/// The failure to read as it is told.
impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Expired { current } => Self {
                status: Status::expired(format!("too old resource version ({current})")),
                miss: Some(Miss::Expired),
            },
            ReadError::NotServed => {
                let message = "the server could not find the requested resource";
                Status::new(404, "NotFound", message).into()
            }
            ReadError::NotReady { retry_after } => {
                let mut status = Status::new(429, "TooManyRequests", "storage is (re)initializing");
                status.details.retry_after_seconds =
                    u32::try_from(retry_after.as_secs().max(1)).unwrap_or(1);
                Self { status, miss: Some(Miss::NotReady) }
            }
            ReadError::Refused(status) => Self::from(*status),
        }
    }
}
