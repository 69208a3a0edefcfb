//! A collection as the read side reads it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderMap, Response};
use informer::{ObjectKey, Snapshot};
use k8s_serve::page::NextPage;
use k8s_serve::table::Columns;
use k8s_serve::watch_cache::{Interest, Watcher};
use k8s_serve::{At, Backend, Discovery, DiscoveryPath, ReadError, ResourcePath, Status, WatchEnd};
use tokio_util::sync::CancellationToken;

use crate::access::Permission;
use crate::collection::Collection;
use crate::object::{Cached, Object};

/// How long a read waits for what the API server has told others.
const FRESHNESS_WAIT: Duration = Duration::from_secs(3);

/// One request's view of a collection, which is held as long as this lives.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) in_use: Arc<Use>,
    /// How stale it may be; `None` for as stale as it is.
    pub(crate) max_staleness: Option<Duration>,
    /// Where to leave the snapshot that is answered from, if this is a request for a first page.
    pub(crate) first_page: Option<FirstPage>,
    pub(crate) stopping: Stopping,
    /// What the caller was allowed, where that is controlled: its watches end with it.
    pub(crate) permission: Option<Permission>,
}

/// A collection that is in use.
pub(crate) struct Use {
    collection: Arc<Collection>,
}

/// The snapshot of a first page: kept only if there is a next one.
#[derive(Clone, Default)]
pub(crate) struct FirstPage(Arc<OnceLock<CachedSnapshot>>);

/// The end of an endpoint: open watches end one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Stopping {
    pub(crate) token: CancellationToken,
    pub(crate) spread: Duration,
}

/// One state of a collection.
#[derive(Clone)]
pub(crate) struct CachedSnapshot {
    snapshot: Snapshot<Object>,
    version: u64,
}

impl Source {
    /// The newest state, which is not older than what the API server has told others.
    ///
    /// # Errors
    /// If it is not here in time, or may be too old.
    pub(crate) async fn newest(&self) -> Result<Snapshot<Object>, ReadError> {
        self.reach_floor().await?;
        self.check_staleness()?;
        Ok(self.in_use.collection.lister().snapshot())
    }

    /// Refuses to answer from a cache that may be too old.
    ///
    /// # Errors
    /// If it is.
    pub(crate) fn check_staleness(&self) -> Result<(), ReadError> {
        let (Some(max), Some(staleness)) =
            (self.max_staleness, self.in_use.collection.history.staleness())
        else {
            return Ok(());
        };
        if staleness <= max {
            return Ok(());
        }
        let state = self.in_use.collection.lister().state();
        let message = format!(
            "the cache of {} is {} s old, which is more than --max-staleness allows: {state}",
            self.in_use.collection.own.group_resource(),
            staleness.as_secs(),
        );
        let mut status = Status::new(503, "ServiceUnavailable", message);
        status.details.retry_after_seconds = 1;
        Err(ReadError::Refused(Box::new(status)))
    }

    /// Waits until the cache has what the API server has told others, but not for long.
    async fn reach_floor(&self) -> Result<(), ReadError> {
        let history = &self.in_use.collection.history;
        match tokio::time::timeout(FRESHNESS_WAIT, history.reached_floor()).await {
            Ok(reached) => reached,
            Err(_) => Err(ReadError::NotReady { retry_after: Duration::from_secs(1) }),
        }
    }

    fn expired(&self) -> ReadError {
        ReadError::Expired { current: self.in_use.collection.history.version() }
    }
}

impl Backend for Source {
    type Object = Cached;
    type Snapshot = CachedSnapshot;

    async fn discovery(&self, _: &DiscoveryPath, _: &HeaderMap) -> Result<Discovery, ReadError> {
        // Documents are the API server's own, and do not come here.
        Err(ReadError::NotServed)
    }

    async fn resolve(&self, _: &ResourcePath) -> Result<Arc<k8s_serve::Resource>, ReadError> {
        Ok(self.in_use.collection.definition.resource().await)
    }

    async fn snapshot(&self, _: &k8s_serve::Resource, at: At) -> Result<CachedSnapshot, ReadError> {
        let snapshot = match at {
            At::Newest => self.newest().await?,
            At::Any | At::Exact(_) => {
                self.check_staleness()?;
                self.in_use.collection.lister().snapshot()
            }
        };
        let snapshot = CachedSnapshot::new(snapshot);
        match at {
            At::Exact(version) if version != snapshot.version => {
                let page = self.in_use.collection.page(version).ok_or_else(|| self.expired())?;
                Ok(CachedSnapshot::new(page))
            }
            At::Any | At::Newest | At::Exact(_) => {
                if let Some(first_page) = &self.first_page {
                    first_page.0.get_or_init(|| snapshot.clone());
                }
                Ok(snapshot)
            }
        }
    }

    async fn reached(&self, _: &k8s_serve::Resource, version: u64) -> Result<(), ReadError> {
        self.in_use.collection.history.reached(version).await
    }

    async fn version(&self, _: &k8s_serve::Resource) -> Result<u64, ReadError> {
        Ok(self.in_use.collection.history.version())
    }

    async fn columns(&self, _: &k8s_serve::Resource) -> Result<Columns, ReadError> {
        Ok(self.in_use.collection.definition.columns().await)
    }

    async fn watch(
        &self,
        _: &k8s_serve::Resource,
        after: u64,
        interest: &Arc<Interest>,
    ) -> Result<Watcher<Cached>, ReadError> {
        let watch_cache = &self.in_use.collection.history.watch_cache;
        watch_cache.watch(after, interest).map_err(|_| self.expired())
    }

    async fn watch_end(self) -> WatchEnd {
        let Stopping { token, spread } = &self.stopping;
        let stopped = async {
            token.cancelled().await;
            tokio::time::sleep(spread.mul_f64(fastrand::f64())).await;
        };
        let lost = async {
            match self.permission {
                Some(permission) => permission.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stopped => WatchEnd::Closed,
            status = lost => WatchEnd::Refused(status),
        }
    }
}

impl FirstPage {
    /// Keeps the snapshot if the response has a token for the next page.
    pub(crate) fn keep_if_more<B>(
        &self,
        response: &Response<B>,
        collection: &Collection,
        capacity: usize,
    ) {
        let has_more = response.extensions().get::<NextPage>().is_some();
        if let Some(CachedSnapshot { snapshot, version }) = self.0.get().filter(|_| has_more) {
            collection.keep_page(*version, snapshot, capacity);
        }
    }
}

impl CachedSnapshot {
    fn new(snapshot: Snapshot<Object>) -> Self {
        Self { version: snapshot.version().number().unwrap_or_default(), snapshot }
    }
}

impl k8s_serve::Snapshot for CachedSnapshot {
    type Object = Cached;

    fn version(&self) -> u64 {
        self.version
    }

    fn object(&self, namespace: &str, name: &str) -> Option<Cached> {
        self.snapshot.find(namespace, name).map(|entry| Cached::new(entry.key, entry.object()))
    }

    fn page(
        &self,
        namespace: Option<&str>,
        after: Option<&ObjectKey>,
        limit: usize,
    ) -> Vec<Cached> {
        let entries = match (namespace, after) {
            (_, Some(after)) => self.snapshot.after(after),
            (Some(namespace), None) => self.snapshot.namespace(namespace),
            (None, None) => self.snapshot.iter(),
        };
        entries
            .take_while(|entry| namespace.is_none_or(|it| entry.key.namespace() == it))
            .take(limit)
            .map(|entry| Cached::new(entry.key, entry.object()))
            .collect()
    }

    fn remaining(&self, namespace: Option<&str>, after: &ObjectKey) -> usize {
        let entries = self.snapshot.after(after);
        entries.take_while(|entry| namespace.is_none_or(|it| entry.key.namespace() == it)).count()
    }
}

impl Use {
    pub(crate) fn of(collection: Arc<Collection>) -> Arc<Self> {
        Arc::new(Self { collection })
    }
}

/// A watch was in use up to its end.
impl Drop for Use {
    fn drop(&mut self) {
        self.collection.touch();
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("collection", &self.in_use.collection)
            .finish_non_exhaustive()
    }
}
