//! What forwarded requests tell about the versions that the API server has reached, so that the
//! next read of a caller shows its last write.

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

/// The forwarded writes that reads must wait for, by resource: a write in one version of a group is
/// seen in all others.
pub(crate) struct Writes {
    collections: Arc<Collections>,
    pending: Mutex<HashMap<Stored, Pending>>,
}

/// What the collections of a resource do not show yet, as far as their own floors do not say it.
#[derive(Debug, Default)]
struct Pending {
    /// The highest version that was named while the resource was held in no version.
    floor: u64,
    unnamed: Option<Unnamed>,
    /// Counts the writes without a version.
    count: u64,
    /// Whether a version is being looked for.
    is_searched: bool,
}

/// A write whose answer named no version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unnamed {
    /// No later version is known.
    Open,
    /// A list that was asked for later had this version.
    Before(u64),
}

/// Watches over one forwarded request, and takes note of what it told. A write that is dropped
/// without an answer may have happened.
pub(crate) struct Telling {
    writes: Arc<Writes>,
    stored: Stored,
    kind: Kind,
    /// Of the histories of the stores that held the resource when the request was sent.
    epochs: Vec<(Resource, u64)>,
    /// How many writes without a version there were then.
    count: u64,
    is_settled: bool,
}

/// What a forwarded request can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A write: its version is that of an object after it.
    Write,
    /// A deletion of a collection: its version is that of the list before it, and a refusal may
    /// have deleted some of it.
    DeleteCollection,
    /// A list of the newest state: its version is no lower than that of any earlier write.
    NewestList,
    /// Another read.
    Read,
}

impl Writes {
    pub(crate) fn new(collections: Arc<Collections>) -> Arc<Self> {
        Arc::new(Self { collections, pending: Mutex::default() })
    }

    /// Begins to watch over a request about a resource.
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

    /// Whether a read of the newest state must be forwarded, because a write without a version may
    /// be missing in the collection. Also hands over to the collection what was told before it was
    /// held.
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
                // Kept for the collections of other versions. A floor that was forgotten was of
                // another history.
                if history.version() >= version || history.floor() < version {
                    return false;
                }
                drop(all);
                collection.catch_up(refresh);
                true
            }
        }
    }

    /// Finds a version that is no lower than that of any write until now, by a list of one object
    /// with the endpoint's own account. Readers may list nothing, or in a form that is not searched.
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

    /// The collections of a resource, one for each version in which it is held.
    fn held(&self, stored: &Stored) -> Vec<Arc<Collection>> {
        let mut held = self.collections.now();
        held.retain(|it| !it.has_ended() && Stored::of(&it.own) == *stored);
        held
    }

    fn named(&self, telling: &Telling, version: u64) {
        let held = self.held(&telling.stored);
        // Versions of another history do not compare.
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

    /// Whether an answer says that nothing was changed.
    pub(super) fn is_refused_by(&self, status: StatusCode) -> bool {
        match self.kind {
            // Some objects may be gone before another is refused; credentials are looked at first.
            Kind::DeleteCollection => status == StatusCode::UNAUTHORIZED,
            Kind::Write | Kind::NewestList | Kind::Read => status.is_client_error(),
        }
    }

    /// Whether a version in the body of the answer is worth looking for.
    pub(super) fn needs_version(&self) -> bool {
        self.kind != Kind::DeleteCollection
    }

    /// The body names this version.
    pub(super) fn named(&mut self, version: u64) {
        self.is_settled = true;
        self.writes.named(self, version);
    }

    /// The request changed nothing: it was refused, or not sent.
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

/// The version that the answer to a request names.
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
