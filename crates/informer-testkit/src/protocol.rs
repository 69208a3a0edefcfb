//! The read side of the Kubernetes API — discovery, get, list, watch — over anything that has
//! snapshots and a feed of changes.
//!
//! [`ReadSide`] turns requests into responses as a kube-apiserver would. It knows nothing of
//! writes, of sockets or of how objects are kept: a [`Backend`] gives it the resources, ordered
//! [`Snapshot`]s of a collection at a version, and [`Feed`]s of what changed after one. The test
//! kit's [`Cluster`](crate::Cluster) is one backend; a cache that wants to be read like an API
//! server is another.
//!
//! Objects are given as JSON; who asks for protobuf gets them in protobuf, written once for each
//! version of an object.
//!
//! Versions are numbers here, as those of a kube-apiserver are.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Response};
use informer_core::ObjectKey;

mod accept;
mod body;
mod discovery;
mod list;
mod object;
mod params;
mod protobuf;
pub(crate) mod render;
mod route;
mod token;
mod watch;

pub use body::{Body, BodyError};
pub use object::Object;
pub use route::{DiscoveryPath, ResourcePath, Route, Verb};

use crate::resource::Resource;
use crate::status::Status;

pub(crate) use accept::{Form, Media, forget_protobuf, names_protobuf};
pub(crate) use body::{
    document_response, json_response, object_response, plain_response, status_response,
};
pub(crate) use list::{collection_response, expired_page};
pub(crate) use params::Parameters;
pub(crate) use render::error_event;
pub(crate) use token::{at_newest, page_of};
pub(crate) use watch::failed_watch;

/// Where the read side reads.
pub trait Backend: Clone + Send + Sync + 'static {
    /// Its snapshots.
    type Snapshot: Snapshot;
    /// Its feeds.
    type Feed: Feed;

    /// Everything that is served now, in the order of discovery.
    fn resources(&self) -> Arc<[Arc<Resource>]>;

    /// The collection of all objects of a resource.
    ///
    /// # Errors
    /// [`ReadError::Expired`] if [`At::Exact`] asks for a version that is no longer known, the
    /// others at any time.
    fn snapshot(
        &self,
        resource: &Resource,
        at: At,
    ) -> impl Future<Output = Result<Self::Snapshot, ReadError>> + Send;

    /// Waits until the collection has reached a version.
    fn reached(&self, resource: &Resource, version: u64) -> impl Future<Output = ()> + Send;

    /// The newest version of the collection.
    fn version(&self, resource: &Resource) -> u64;

    /// The changes of the collection after a version, which may lie in the future.
    ///
    /// # Errors
    /// [`ReadError::Expired`] if the version is no longer known.
    fn feed(&self, resource: &Resource, after: u64) -> Result<Self::Feed, ReadError>;
}

/// Which state of a collection is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The newest.
    Newest,
    /// That of this version.
    Exact(u64),
}

/// Why a collection cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The version is no longer known.
    #[error("the version is no longer known, the newest is {current}")]
    Expired {
        /// The newest version.
        current: u64,
    },
    /// The resource is not served any more.
    #[error("the resource is not served")]
    NotServed,
    /// There is nothing to read yet.
    #[error("not ready; try again in {retry_after:?}")]
    NotReady {
        /// When to try again.
        retry_after: Duration,
    },
}

/// One consistent state of a collection, ordered by namespace, then name.
pub trait Snapshot: Clone + Send + Sync + 'static {
    /// The version it stands for.
    fn version(&self) -> u64;

    /// One object; the namespace of cluster-scoped ones is empty.
    fn get(&self, namespace: &str, name: &str) -> Option<Object>;

    /// Up to `limit` objects, of one namespace or of all, that come after a key.
    fn page(&self, namespace: Option<&str>, after: Option<&ObjectKey>, limit: usize)
    -> Vec<Object>;

    /// How many objects, of one namespace or of all, come after a key.
    fn remaining(&self, namespace: Option<&str>, after: &ObjectKey) -> usize;
}

/// The changes of a collection, from a version on.
pub trait Feed: Send + 'static {
    /// Waits for changes and returns them in order.
    ///
    /// # Errors
    /// If there will be none any more.
    ///
    /// # Cancel safety
    /// Must be cancel safe: dropping the future loses no change.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Change>, FeedEnd>> + Send;

    /// The version up to which all changes have been returned; `None` while that lies in the
    /// future.
    fn progress(&self) -> Option<u64>;
}

/// Why a feed ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FeedEnd {
    /// It was read too slowly: changes that it has not returned are no longer known.
    #[error("changes that were not read are no longer known, the newest version is {current}")]
    Expired {
        /// The newest version.
        current: u64,
    },
    /// The resource is gone, or the server is.
    #[error("the feed is closed")]
    Closed,
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The version of the change.
    pub version: u64,
    /// The state before; `None` if it was created.
    pub before: Option<Object>,
    /// The state after; `None` if it was deleted.
    pub after: Option<Object>,
}

/// How a server treats `sendInitialEvents` in a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchListSupport {
    /// Serves it: Kubernetes 1.34 and later.
    #[default]
    Served,
    /// Refuses it with 422: Kubernetes 1.27 to 1.33 with the feature gate off.
    Refused,
    /// Ignores it, as servers and proxies do that have never heard of it.
    Ignored,
}

/// How a server treats who asks for Kubernetes' protobuf.
///
/// Whatever is said here, a server never writes in protobuf what is of no built-in kind, but for
/// metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtobufSupport {
    /// Writes it where it is the first of the accepted: all API servers of Kubernetes.
    #[default]
    Served,
    /// Does not know it: takes another one of the accepted, and answers 406 where there is none.
    /// Extension servers behind the aggregation layer may be so.
    Unknown,
    /// Answers in JSON what was to be in protobuf, accepted or not: servers and proxies that do not
    /// read `Accept`.
    Ignored,
}

/// What differs between servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// How often a watch that asked for bookmarks gets one. Default: 60 s.
    pub bookmark_interval: Duration,
    /// When a watch without `timeoutSeconds` ends. Default: 30 min.
    pub default_watch_timeout: Duration,
    /// How long a request waits for a version in the future. Default: 3 s.
    pub freshness_wait: Duration,
    /// Whether watches can start with the whole collection. Default: they can.
    pub watch_list: WatchListSupport,
    /// Whether there is protobuf. Default: there is.
    pub protobuf: ProtobufSupport,
    /// What `/version` says. Default: `v1.36.3`.
    pub git_version: String,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            bookmark_interval: Duration::from_secs(60),
            default_watch_timeout: Duration::from_secs(1800),
            freshness_wait: Duration::from_secs(3),
            watch_list: WatchListSupport::Served,
            protobuf: ProtobufSupport::Served,
            git_version: "v1.36.3".to_owned(),
        }
    }
}

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
    #[must_use]
    pub fn resolve(&self, path: &ResourcePath) -> Option<Arc<Resource>> {
        let resources = self.backend.resources();
        resources
            .iter()
            .find(|r| {
                r.plural == path.resource && r.version == path.version && r.group == path.group
            })
            .filter(|r| r.namespaced || path.namespace.is_none())
            .cloned()
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
            Route::Discovery(path) => {
                let (media, aggregated) = accept::discovery(headers, self.options.protobuf);
                Ok(discovery::respond(&self.backend.resources(), path, media, aggregated))
            }
            Route::Resource(path) => match self.resolve(path) {
                Some(resource) => self.read(&resource, path, query, headers).await,
                None => Ok(not_found()),
            },
            Route::Unknown => Ok(not_found()),
        };
        answer.unwrap_or_else(|status| status_response(&status, self.status_media(headers)))
    }

    /// How failures are told to a client.
    pub(crate) fn status_media(&self, headers: &HeaderMap) -> Media {
        accept::status_media(headers, self.options.protobuf)
    }

    /// The form of what a client gets of a resource.
    pub(crate) fn negotiate(
        &self,
        headers: &HeaderMap,
        resource: &Resource,
    ) -> Result<accept::Negotiated, Status> {
        accept::negotiate(headers, resource, self.options.protobuf)
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
        if let Some(version) = Parameters::parse(query)?.version()? {
            self.wait_for(resource, version).await?;
        }
        let snapshot = self.snapshot(resource, At::Newest).await?;
        let namespace =
            path.namespace.as_deref().filter(|_| resource.namespaced).unwrap_or_default();
        let object =
            snapshot.get(namespace, name).ok_or_else(|| Status::not_found(resource, name))?;
        Ok(object_response(200, resource, &object, form))
    }

    async fn snapshot(&self, resource: &Resource, at: At) -> Result<B::Snapshot, Status> {
        self.backend.snapshot(resource, at).await.map_err(|error| match error {
            ReadError::Expired { .. } => {
                Status::expired("The resourceVersion for the provided list is too old.")
            }
            other => unreadable(other),
        })
    }

    /// Waits until the collection has reached a version, but not for long.
    async fn wait_for(&self, resource: &Resource, version: u64) -> Result<(), Status> {
        tokio::time::timeout(self.options.freshness_wait, self.backend.reached(resource, version))
            .await
            .map_err(|_| Status::too_large_version(version, self.backend.version(resource)))
    }
}

/// What a path that nothing serves is answered with: no `Status`, also on a real server.
pub(crate) fn not_found() -> Response<Body> {
    plain_response(404, "404 page not found\n")
}

fn unreadable(error: ReadError) -> Status {
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
    }
}
