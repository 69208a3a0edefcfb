//! What the read side reads from.

use std::future::{self, Future};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Response};
use informer_core::ObjectKey;
use jiff::Timestamp;

use crate::answer::Body;
use crate::object::Object;
use crate::resource::Resource;
use crate::route::{DiscoveryPath, ResourcePath};
use crate::status::Status;
use crate::table::Columns;
use crate::watch_cache::{Interest, Watcher};

/// The source of everything that a [`ReadSide`](crate::ReadSide) answers.
///
/// Its methods may wait, for example while a collection that nobody has asked for before is being
/// filled. [`reached`](Self::reached) is given up after
/// [`ReadOptions::freshness_wait`](crate::ReadOptions::freshness_wait); a backend bounds the other
/// waits itself and answers [`ReadError::NotReady`] at their end.
///
/// # Cancel safety
/// The read side drops the futures of all methods at any time.
pub trait Backend: Clone + Send + Sync + 'static {
    /// Its objects.
    type Object: Object;
    /// Its snapshots.
    type Snapshot: Snapshot<Object = Self::Object>;

    /// The document of discovery at a path, or the resources from which it is written.
    ///
    /// # Errors
    /// If it cannot be read.
    fn discovery(
        &self,
        path: &DiscoveryPath,
        headers: &HeaderMap,
    ) -> impl Future<Output = Result<Discovery, ReadError>> + Send;

    /// The resource that a path names. Whether the path fits its scope is not checked here.
    ///
    /// # Errors
    /// [`ReadError::NotServed`] if there is none, the others at any time.
    fn resolve(
        &self,
        path: &ResourcePath,
    ) -> impl Future<Output = Result<Arc<Resource>, ReadError>> + Send;

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

    /// Waits until the collection has reached a version. It need not end by itself.
    ///
    /// # Errors
    /// If it will not.
    fn reached(
        &self,
        resource: &Resource,
        version: u64,
    ) -> impl Future<Output = Result<(), ReadError>> + Send;

    /// The newest version of the collection.
    ///
    /// # Errors
    /// If the collection cannot be read.
    fn version(&self, resource: &Resource) -> impl Future<Output = Result<u64, ReadError>> + Send;

    /// The columns of a resource in tables. Default: those of its built-in kind.
    ///
    /// # Errors
    /// If they cannot be found out.
    fn columns(
        &self,
        resource: &Resource,
    ) -> impl Future<Output = Result<Columns, ReadError>> + Send {
        future::ready(Ok(Columns::of_kind(&resource.group, &resource.kind)))
    }

    /// The time up to which ages in tables count. Default: that of the system.
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// A watcher of the changes of the collection after a version, which may lie in the future:
    /// that of the collection's [`WatchCache`](crate::watch_cache::WatchCache).
    ///
    /// # Errors
    /// [`ReadError::Expired`] if the version is no longer known, the others at any time.
    fn watch(
        &self,
        resource: &Resource,
        after: u64,
        interest: &Arc<Interest>,
    ) -> impl Future<Output = Result<Watcher<Self::Object>, ReadError>> + Send;

    /// Resolves when a watch that is open has to end, other than by what becomes of the collection.
    /// Default: never.
    fn watch_end(self) -> impl Future<Output = WatchEnd> + Send {
        future::pending()
    }
}

/// How a backend ends a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEnd {
    /// The stream ends: the client goes on elsewhere, from where it stands.
    Closed,
    /// A failure is sent as the last event.
    Refused(Box<Status>),
}

/// The answer to a request for a document of discovery.
#[derive(Debug)]
pub enum Discovery {
    /// Everything that is served, in the order of discovery; the read side writes the document.
    Resources(Arc<[Arc<Resource>]>),
    /// The answer itself, for example that of an API server behind this one.
    Answer(Response<Body>),
}

/// Which state of a collection is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// Any state, even one that is out of date: `resourceVersion=0`.
    Any,
    /// The newest.
    Newest,
    /// That of this version.
    Exact(u64),
}

/// Why a collection cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The version is no longer known.
    #[error("the version is no longer known, the newest is {current}")]
    Expired {
        /// The newest version.
        current: u64,
    },
    /// The resource is not served (any more).
    #[error("the resource is not served")]
    NotServed,
    /// There is nothing to read yet.
    #[error("not ready; try again in {retry_after:?}")]
    NotReady {
        /// When to try again.
        retry_after: Duration,
    },
    /// A failure that is sent as it is.
    #[error(transparent)]
    Refused(#[from] Box<Status>),
}

/// One consistent state of a collection, ordered as [`ObjectKey`]s are.
pub trait Snapshot: Clone + Send + Sync + 'static {
    /// Its objects.
    type Object: Object;

    /// The version it stands for.
    fn version(&self) -> u64;

    /// One object; the namespace of cluster-scoped ones is empty.
    fn object(&self, namespace: &str, name: &str) -> Option<Self::Object>;

    /// Up to `limit` objects, of one namespace or of all, that come after a key.
    fn page(
        &self,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
        limit: usize,
    ) -> Vec<Self::Object>;

    /// How many objects, of one namespace or of all, come after a key.
    fn remaining(&self, namespace: Option<&str>, after: &ObjectKey) -> usize;
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<O> {
    /// The version of the change.
    pub version: u64,
    /// The state before; `None` if it was created.
    pub before: Option<O>,
    /// The state after; `None` if it was deleted.
    pub after: Option<O>,
}
