//! Resource versions that forwarded responses name. The cache answers no read of the newest state
//! before it has reached them, so that a caller's next read shows its last write.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use informer::Resource;
use kube::Client;

use super::version::VersionScan;
use crate::collection::Collection;
use crate::collections::{Collections, Stored};

/// The forwarded writes that reads must wait for. The key is the stored resource, because a write
/// in one API version of a group is visible in all others.
pub(crate) struct Writes {
    collections: Arc<Collections>,
    pending: Mutex<HashMap<Stored, Pending>>,
}

/// Writes of a resource that its collections may not show yet, and that the floors of their
/// histories do not cover.
#[derive(Debug, Default)]
struct Pending {
    /// Highest resource version that a response named while no collection held the resource.
    floor: u64,
    unnamed: Option<Unnamed>,
    /// Number of writes so far whose response named no version.
    count: u64,
    /// Whether [`Writes::find_version`] has a list in flight.
    is_searched: bool,
}

/// The last write whose response named no version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unnamed {
    /// No upper bound of its version is known.
    Open,
    /// Its version is at most this one, which a list named that was requested after the write.
    Before(u64),
}

/// Observes one forwarded request and records the resource version that its response names. If the
/// observer of a write is dropped before that, it records a write without a version, because the
/// write may have happened.
pub(crate) struct Telling {
    writes: Arc<Writes>,
    stored: Stored,
    kind: Kind,
    /// The epochs of the collections that held the resource when the request was sent.
    epochs: Vec<(Resource, u64)>,
    /// [`Pending::count`] when the request was sent.
    count: u64,
    is_settled: bool,
}

/// The kind of a forwarded request, which decides what the version in its response means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A write. The response names the version of the object after the write.
    Write,
    /// A deletion of a collection. The response names the version of the list before the deletion,
    /// and some objects may be deleted even if the request fails.
    DeleteCollection,
    /// A list of the newest state. The response names a version no lower than that of any earlier
    /// write.
    NewestList,
    /// Any other read. The response names a version that the API server has reached.
    Read,
}

impl Writes {
    pub(crate) fn new(collections: Arc<Collections>) -> Arc<Self> {
        Arc::new(Self { collections, pending: Mutex::default() })
    }

    /// Begins to observe a request for a resource.
    pub(crate) fn telling(self: &Arc<Self>, resource: &Resource, kind: Kind) -> Telling {
        let stored = Stored::of(resource);
        let count = lock(&self.pending).get(&stored).map_or(0, |it| it.count);
        let held = self.held(&stored);
        Telling {
            writes: Arc::clone(self),
            stored,
            kind,
            epochs: held.iter().map(|it| (it.own.clone(), it.epoch())).collect(),
            count,
            is_settled: false,
        }
    }

    /// Whether a read of the newest state must be forwarded, because the collection may not show a
    /// write without a version. Also raises the floor of the collection to versions that were named
    /// before it existed.
    pub(crate) fn must_forward(&self, collection: &Arc<Collection>, refresh: Duration) -> bool {
        let stored = Stored::of(&collection.own);
        let mut all = lock(&self.pending);
        let Some(pending) = all.get_mut(&stored) else { return false };
        let floor = std::mem::take(&mut pending.floor);
        if floor > 0 {
            collection.history.raise_floor(floor);
            self.held(&stored).iter().for_each(|it| it.history.raise_floor(floor));
        }
        match pending.unnamed {
            None => false,
            Some(Unnamed::Open) => true,
            Some(Unnamed::Before(version)) => {
                let history = &collection.history;
                // `unnamed` stays set, because collections of other API versions may need it too.
                // A floor below `version` was reset: `version` belongs to another history.
                if history.version() >= version || history.floor() < version {
                    return false;
                }
                drop(all);
                collection.catch_up(refresh);
                true
            }
        }
    }

    /// Finds a version that is no lower than that of any write so far. To do so it lists one object
    /// with the endpoint's own account, because callers may never list the resource, or only in
    /// encodings that [`VersionScan`] cannot read.
    pub(crate) fn find_version(self: &Arc<Self>, collection: &Arc<Collection>, client: &Client) {
        match lock(&self.pending).get_mut(&Stored::of(&collection.own)) {
            Some(pending) if pending.unnamed == Some(Unnamed::Open) && !pending.is_searched => {
                pending.is_searched = true;
            }
            _ => return,
        }
        let own = &collection.own;
        let mut telling = self.telling(own, Kind::NewestList);
        let namespace = self.collections.namespace().filter(|_| own.namespaced);
        let path = format!("{}?limit=1", own.path(namespace));
        let client = client.clone();
        tokio::spawn(async move {
            if let Some(version) = first_version(&client, &path).await {
                telling.named(version);
            }
            let mut all = lock(&telling.writes.pending);
            if let Some(pending) = all.get_mut(&telling.stored) {
                pending.is_searched = false;
            }
        });
    }

    /// The collections of a resource, one for each API version in which it is held.
    fn held(&self, stored: &Stored) -> Vec<Arc<Collection>> {
        let mut held = self.collections.now();
        held.retain(|it| !it.has_ended() && Stored::of(&it.own) == *stored);
        held
    }

    fn named(&self, telling: &Telling, version: u64) {
        let held = self.held(&telling.stored);
        // Versions of different histories are not comparable.
        let is_another = |it: &Arc<Collection>| {
            let then = telling.epochs.iter().find(|(resource, _)| *resource == it.own);
            then.is_some_and(|(_, epoch)| *epoch != it.epoch())
        };
        let (others, same): (Vec<_>, Vec<_>) = held.iter().partition(|it| is_another(it));
        same.iter().for_each(|it| it.history.raise_floor(version));
        if !others.is_empty() {
            return;
        }
        let mut all = lock(&self.pending);
        if held.is_empty() {
            let pending = all.entry(telling.stored.clone()).or_default();
            pending.floor = pending.floor.max(version);
        }
        if telling.kind == Kind::NewestList
            && let Some(pending) = all.get_mut(&telling.stored)
            && pending.unnamed == Some(Unnamed::Open)
            && pending.count == telling.count
        {
            pending.unnamed = Some(Unnamed::Before(version));
        }
    }

    fn unnamed(&self, stored: &Stored) {
        let mut all = lock(&self.pending);
        let pending = all.entry(stored.clone()).or_default();
        pending.count += 1;
        pending.unnamed = Some(Unnamed::Open);
    }
}

impl Telling {
    pub(super) fn is_write(&self) -> bool {
        match self.kind {
            Kind::Write | Kind::DeleteCollection => true,
            Kind::NewestList | Kind::Read => false,
        }
    }

    /// Whether a response with this status means that the request changed nothing.
    pub(super) fn is_refused_by(&self, status: StatusCode, is_impersonated: bool) -> bool {
        match self.kind {
            // Some objects may be deleted before an admission webhook refuses another one. Only
            // authentication comes before all deletions, and authorization: the endpoint has
            // reviewed it for all requests but impersonated ones, whose 403 must not keep other
            // readers from the cache.
            Kind::DeleteCollection => {
                status == StatusCode::UNAUTHORIZED
                    || status == StatusCode::FORBIDDEN && is_impersonated
            }
            Kind::Write | Kind::NewestList | Kind::Read => status.is_client_error(),
        }
    }

    /// Whether the version in the response body is of use.
    pub(super) fn needs_version(&self) -> bool {
        self.kind != Kind::DeleteCollection
    }

    /// Records the version that the response body names.
    pub(super) fn named(&mut self, version: u64) {
        self.is_settled = true;
        self.writes.named(self, version);
    }

    /// Records that the request changed nothing, because it was refused or not sent.
    pub(super) fn changed_nothing(&mut self) {
        self.is_settled = true;
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        if !self.is_settled && self.is_write() {
            self.writes.unnamed(&self.stored);
        }
    }
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telling")
            .field("stored", &self.stored)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The version that the response to a GET of this path names.
async fn first_version(client: &Client, path: &str) -> Option<u64> {
    let mut accepted = HeaderMap::new();
    accepted.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let answer = super::send(client, Method::GET, path, &accepted, Bytes::new()).await.ok()?;
    let mut scan = VersionScan::of(answer.headers());
    let mut body = answer.into_body();
    while let Some(Ok(frame)) = body.frame().await {
        if let Some(version) = frame.data_ref().and_then(|it| scan.push(it)) {
            return Some(version);
        }
    }
    None
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
