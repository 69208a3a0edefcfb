//! Requests to responses.

use std::sync::Arc;

use http::{HeaderMap, Response};

use crate::accept::{self, Negotiated};
use crate::answer::{self, Body, json_response, not_found, plain_response};
use crate::backend::{At, Backend, Discovery, ReadError, Snapshot};
use crate::discovery;
use crate::options::ReadOptions;
use crate::params::Parameters;
use crate::resource::Resource;
use crate::route::{DiscoveryPath, ResourcePath, Route, Verb};
use crate::status::Status;

/// Answers reads from a backend.
#[derive(Debug, Clone)]
pub struct ReadSide<B> {
    backend: B,
    options: ReadOptions,
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

    /// Answers a GET request.
    ///
    /// # Cancel safety
    /// Nothing is changed by it; dropping the future is safe.
    pub async fn respond(&self, route: &Route, query: &str, headers: &HeaderMap) -> Response<Body> {
        let answer = match route {
            Route::Health => Ok(plain_response(200, "ok")),
            Route::Version => accept::require_json(headers)
                .map(|()| json_response(200, discovery::version(&self.options.git_version))),
            Route::OpenApi => Ok(discovery::no_schemas(headers)),
            Route::Discovery(path) => self.discover(path, headers).await,
            Route::Resource(path) => match self.resolve(path).await {
                Ok(resource) => self.read(&resource, path, query, headers).await,
                Err(ReadError::NotServed) => Ok(not_found()),
                Err(other) => Err(unreadable(other)),
            },
            Route::Unknown => Ok(not_found()),
        };
        answer.unwrap_or_else(|status| self.refuse(&status, headers))
    }

    /// A failure, in a form that the client accepts.
    #[must_use]
    pub fn refuse(&self, status: &Status, headers: &HeaderMap) -> Response<Body> {
        answer::status_response(status, accept::status_media(headers, self.options.protobuf))
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
        let media = accept::status_media(headers, self.options.protobuf);
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
        accept::negotiate(headers, resource, self.options.protobuf)
    }

    pub(crate) fn options(&self) -> &ReadOptions {
        &self.options
    }

    async fn discover(
        &self,
        path: &DiscoveryPath,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Status> {
        match self.backend.discovery(path, headers).await {
            Ok(Discovery::Answer(response)) => Ok(response),
            Ok(Discovery::Resources(resources)) => {
                let (media, aggregated) = accept::discovery(headers, self.options.protobuf);
                Ok(discovery::respond(&resources, path, media, aggregated))
            }
            Err(ReadError::NotServed) => Ok(not_found()),
            Err(other) => Err(unreadable(other)),
        }
    }

    async fn read(
        &self,
        resource: &Arc<Resource>,
        path: &ResourcePath,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Status> {
        match (path.verb(&http::Method::GET, query), &path.name) {
            (Verb::Get, Some(name)) => self.get(resource, path, name, query, headers).await,
            (Verb::Watch, None) => {
                self.watch(resource, path.namespace.as_deref(), query, headers).await
            }
            (Verb::List, None) => {
                self.list(resource, path.namespace.as_deref(), query, headers).await
            }
            _ => Ok(not_found()),
        }
    }

    async fn get(
        &self,
        resource: &Resource,
        path: &ResourcePath,
        name: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Status> {
        match path.subresource.as_deref() {
            None => {}
            Some("status") if resource.has_status => {}
            Some(_) => return Ok(not_found()),
        }
        if resource.namespaced && path.namespace.is_none() {
            return Ok(not_found());
        }
        let form = self.negotiate(headers, resource)?.object()?;
        let parameters = Parameters::parse(query)?;
        if let Some(version) = parameters.version()? {
            self.wait_for(resource, version).await?;
        }
        let snapshot = self.snapshot(resource, parameters.at()).await?;
        let namespace =
            path.namespace.as_deref().filter(|_| resource.namespaced).unwrap_or_default();
        let object =
            snapshot.object(namespace, name).ok_or_else(|| Status::not_found(resource, name))?;
        answer::object(200, resource, &object, form)
    }

    pub(crate) async fn snapshot(
        &self,
        resource: &Resource,
        at: At,
    ) -> Result<B::Snapshot, Status> {
        self.backend.snapshot(resource, at).await.map_err(|error| match error {
            ReadError::Expired { .. } => {
                Status::expired("The resourceVersion for the provided list is too old.")
            }
            other => unreadable(other),
        })
    }

    /// Waits until the collection has reached a version, but not for long.
    pub(crate) async fn wait_for(&self, resource: &Resource, version: u64) -> Result<(), Status> {
        let reached = self.backend.reached(resource, version);
        match tokio::time::timeout(self.options.freshness_wait, reached).await {
            Ok(reached) => reached.map_err(unreadable),
            Err(_) => {
                let current = self.backend.version(resource).await.map_err(unreadable)?;
                Err(Status::too_large_version(version, current))
            }
        }
    }
}

/// The failure to read as it is told.
pub(crate) fn unreadable(error: ReadError) -> Status {
    match error {
        ReadError::Expired { current } => {
            Status::expired(format!("too old resource version ({current})"))
        }
        ReadError::NotServed => {
            Status::new(404, "NotFound", "the server could not find the requested resource")
        }
        ReadError::NotReady { retry_after } => {
            let mut status = Status::new(429, "TooManyRequests", "storage is (re)initializing");
            status.details.retry_after_seconds =
                u32::try_from(retry_after.as_secs().max(1)).unwrap_or(1);
            status
        }
        ReadError::Refused(status) => *status,
    }
}
