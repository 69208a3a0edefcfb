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
    /// Its feeds.
    type Feed: Feed<Object = Self::Object>;

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

    /// The changes of the collection after a version, which may lie in the future.
    ///
    /// # Errors
    /// [`ReadError::Expired`] if the version is no longer known, the others at any time.
    fn feed(
        &self,
        resource: &Resource,
        after: u64,
    ) -> impl Future<Output = Result<Self::Feed, ReadError>> + Send;
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

/// The changes of a collection, from a version on.
pub trait Feed: Send + 'static {
    /// The objects that change.
    type Object: Object;

    /// Waits for changes and returns them in order.
    ///
    /// # Errors
    /// If there will be none any more.
    ///
    /// # Cancel safety
    /// Must be cancel safe: dropping the future loses no change.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Change<Self::Object>>, FeedEnd>> + Send;

    /// The version up to which all changes have been returned; `None` while that lies in the
    /// future.
    fn progress(&self) -> Option<u64>;

    /// A version at which a watch that takes bookmarks wants one at once, behind the changes that
    /// were returned last, which may then be none: the versions of these are no place to start
    /// from. See [`log`](crate::log#relists). Taken by the call. Default: there is none.
    fn take_mark(&mut self) -> Option<u64> {
        None
    }
}

/// Why a feed ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedEnd {
    /// Changes that it has not returned are no longer known: it was read too slowly, or the
    /// history has changed.
    #[error("changes that were not read are no longer known, the newest version is {current}")]
    Expired {
        /// The newest version.
        current: u64,
    },
    /// The resource is gone, or the server is.
    #[error("the feed is closed")]
    Closed,
    /// A failure that is sent as the last event.
    #[error(transparent)]
    Refused(#[from] Box<Status>),
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
