//! One collection: an informer, the log of its changes, and snapshots for pages.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use informer::{Error, Lister, Observation, Resource, SharedInformer, Snapshot};
use tokio::time::Instant;

use crate::definition::Definition;
use crate::history::{History, Recorder};
use crate::object::Object;

/// The least time between two lists that are made because the API server has answered a reader
/// with a later version than the cache has.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(15);

/// The cache of one resource. Each request that is answered from it holds a reference; it is
/// dropped only when there is none.
pub(crate) struct Collection {
    /// As the informer names it.
    pub(crate) own: Resource,
    pub(crate) definition: Definition,
    pub(crate) informer: SharedInformer<Object>,
    pub(crate) history: Arc<History>,
    _observation: Observation<Object>,
    pages: Mutex<VecDeque<Page>>,
    /// When it was asked for last.
    used: Mutex<Instant>,
    /// Whether it is held from the start to the end.
    pub(crate) is_eager: bool,
    /// Whether the informer was made for this collection, and stops with it.
    pub(crate) owns_informer: bool,
    /// Reads that were answered from it.
    hits: AtomicU64,
    is_refreshing: AtomicBool,
    /// When it was last listed for that reason.
    caught_up: Mutex<Option<Instant>>,
}

/// A snapshot that is kept for the next pages of a list.
struct Page {
    version: u64,
    snapshot: Snapshot<Object>,
    used: Instant,
}

impl Collection {
    pub(crate) fn new(
        own: Resource,
        definition: Definition,
        informer: SharedInformer<Object>,
        history: History,
        is_eager: bool,
        owns_informer: bool,
    ) -> Result<Self, Error> {
        let history = Arc::new(history);
        let recorder = Recorder(Arc::clone(&history));
        let mut observation =
            informer.observe_publications(move |publication| recorder.0.record(publication))?;
        if let Some(start) = observation.take_start() {
            // An informer that was there before.
            history.begin(&start);
        }
        Ok(Self {
            own,
            definition,
            informer,
            history,
            _observation: observation,
            pages: Mutex::default(),
            used: Mutex::new(Instant::now()),
            is_eager,
            owns_informer,
            hits: AtomicU64::new(0),
            is_refreshing: AtomicBool::new(false),
            caught_up: Mutex::default(),
        })
    }

    pub(crate) fn lister(&self) -> Lister<Object> {
        self.informer.unsynced_store()
    }

    /// How often the server's history was replaced.
    pub(crate) fn epoch(&self) -> u64 {
        self.lister().snapshot().epoch()
    }

    /// Whether nothing more will come, whoever stopped the informer.
    pub(crate) fn has_ended(&self) -> bool {
        self.history.has_ended() || self.informer.is_stopped()
    }

    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        self.history.bytes() + self.history.watch_cache.weight()
    }

    pub(crate) fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    /// Counts a read that is answered from it.
    pub(crate) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub(crate) fn idle_since(&self) -> Instant {
        *lock(&self.used)
    }

    /// Keeps a snapshot for further pages, no more than `capacity` of them.
    pub(crate) fn keep_page(&self, version: u64, snapshot: &Snapshot<Object>, capacity: usize) {
        let mut pages = lock(&self.pages);
        pages.retain(|page| page.version != version);
        pages.push_back(Page { version, snapshot: snapshot.clone(), used: Instant::now() });
        while pages.len() > capacity {
            pages.pop_front();
        }
    }

    #[cfg(test)]
    pub(crate) fn kept_pages(&self) -> usize {
        lock(&self.pages).len()
    }

    /// The snapshot of a version, if it is kept.
    pub(crate) fn page(&self, version: u64) -> Option<Snapshot<Object>> {
        // A version of another history is another state.
        let epoch = self.epoch();
        let mut pages = lock(&self.pages);
        pages.retain(|page| page.snapshot.epoch() == epoch);
        let at = pages.iter().position(|page| page.version == version)?;
        let mut page = pages.remove(at)?;
        page.used = Instant::now();
        let snapshot = page.snapshot.clone();
        pages.push_back(page);
        Some(snapshot)
    }

    /// Lets go of snapshots that nobody asked for so long.
    pub(crate) fn sweep_pages(&self, lifetime: Duration) {
        lock(&self.pages).retain(|page| page.used.elapsed() <= lifetime);
    }

    /// Takes note that the API server has reached a version, which it told a reader; and has the
    /// collection listed, or all readers would wait for a bookmark. Not too often: a list costs
    /// more than some reads that are passed on. What was told in an earlier `epoch` counts for
    /// nothing.
    pub(crate) fn told(self: &Arc<Self>, version: u64, epoch: u64, deadline: Duration) {
        if self.epoch() != epoch {
            return;
        }
        self.history.raise_floor(version);
        if self.epoch() != epoch {
            self.history.forget_floor(version);
        }
        self.catch_up(deadline);
    }

    /// Has the collection listed if the API server is known to be ahead, but not too often.
    pub(crate) fn catch_up(self: &Arc<Self>, deadline: Duration) {
        if self.history.version() >= self.history.floor() {
            return;
        }
        let mut caught_up = lock(&self.caught_up);
        if caught_up.is_none_or(|at| at.elapsed() >= CATCH_UP_INTERVAL) {
            *caught_up = Some(Instant::now());
            self.refresh(deadline);
        }
    }

    /// Has the collection listed.
    pub(crate) fn refresh(self: &Arc<Self>, deadline: Duration) {
        if self.is_refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (informer, weak) = (self.informer.clone(), Arc::downgrade(self));
        let floor = self.history.floor();
        tokio::spawn(async move {
            // What fails is in the informer's status.
            let refreshed = informer.refresh_within(deadline).await;
            if let Some(collection) = weak.upgrade() {
                // The newest state is older than what was: the server's history was replaced. The
                // store has it before the history does.
                let version = collection.lister().snapshot().version().number();
                if refreshed.is_ok() && version.is_some_and(|it| it < floor) {
                    collection.history.forget_floor(floor);
                }
                collection.is_refreshing.store(false, Ordering::Release);
            }
        });
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collection").field("of", &self.own).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
