//! One collection: an informer, the log of its changes, and snapshots for pages.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use informer::{
    Error, Event, Lister, Observation, Publication, PublicationKind, Resource, SharedInformer,
    Snapshot,
};
use k8s_serve::log::{ChangeLog, Cursor, Expired};
use k8s_serve::{Change, ReadError, Status};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::definition::Definition;
use crate::object::{Cached, Object, weight};

/// How often a collection is listed because a reader was told of a later version.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(15);

/// The changes of a collection.
pub(crate) type Log = ChangeLog<Change<Cached>>;

/// What is held of one resource. Whoever answers from it has a reference, and it is let go only
/// when nobody has.
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
    is_refreshing: AtomicBool,
    /// When it was listed last because a reader was told of a later version.
    caught_up: Mutex<Option<Instant>>,
}

/// A snapshot that is kept for the next pages of a list.
struct Page {
    version: u64,
    snapshot: Snapshot<Object>,
    used: Instant,
}

/// What the informer's publications come to.
pub(crate) struct History {
    log: Mutex<Recorded>,
    log_bytes: usize,
    /// Changes with everything that is published, and at the end.
    published: watch::Sender<()>,
    last_frame: Mutex<Option<Instant>>,
    /// The highest version that an answer of the API server has named: reads of the newest state
    /// are not answered with less.
    floor: AtomicU64,
    /// Bytes of the objects in the store.
    bytes: AtomicUsize,
    has_ended: AtomicBool,
    /// A version came that is no number: nothing can be ordered by such versions.
    is_unordered: AtomicBool,
}

/// The log, and what came before it begins.
#[derive(Default)]
struct Recorded {
    /// `None` before the first list.
    log: Option<Log>,
    /// What was published between the begin of the observation and that of the log.
    early: Vec<Published>,
}

/// A publication as the log takes it.
struct Published {
    kind: PublicationKind,
    version: u64,
    changes: Vec<(u64, Change<Cached>, usize)>,
}

impl Collection {
    pub(crate) fn new(
        own: Resource,
        definition: Definition,
        informer: SharedInformer<Object>,
        log_bytes: usize,
        is_eager: bool,
        owns_informer: bool,
    ) -> Result<Self, Error> {
        let history = Arc::new(History {
            log: Mutex::default(),
            log_bytes,
            published: watch::Sender::new(()),
            last_frame: Mutex::new(None),
            floor: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
            is_unordered: AtomicBool::new(false),
        });
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
        let log = self.history.with_log(|log| log.map_or(0, |log| log.weight()));
        self.history.bytes.load(Ordering::Relaxed) + log
    }

    pub(crate) fn touch(&self) {
        *lock(&self.used) = Instant::now();
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
        self.history.floor.fetch_max(version, Ordering::AcqRel);
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
        tokio::spawn(async move {
            // What fails is in the informer's status.
            drop(informer.refresh_within(deadline).await);
            if let Some(collection) = weak.upgrade() {
                collection.is_refreshing.store(false, Ordering::Release);
            }
        });
    }
}

impl History {
    /// Reads the log; there is none before the first list.
    pub(crate) fn with_log<R>(&self, read: impl FnOnce(Option<&Log>) -> R) -> R {
        read(lock(&self.log).log.as_ref())
    }

    /// The version up to which changes are known.
    pub(crate) fn version(&self) -> u64 {
        self.with_log(|log| log.map_or(0, Log::version))
    }

    /// Wakes with everything that is published from now on.
    pub(crate) fn published(&self) -> watch::Receiver<()> {
        self.published.subscribe()
    }

    /// Waits until changes up to a version are known.
    pub(crate) async fn reached(&self, version: u64) -> Result<(), ReadError> {
        let mut published = self.published();
        loop {
            published.borrow_and_update();
            if self.version() >= version {
                return Ok(());
            }
            if self.has_ended() || published.changed().await.is_err() {
                // The next request starts another informer.
                let mut status = Status::new(503, "ServiceUnavailable", "the informer has stopped");
                status.details.retry_after_seconds = 1;
                return Err(ReadError::Refused(Box::new(status)));
            }
        }
    }

    /// How long ago anything came from the server; `None` before the first list.
    pub(crate) fn staleness(&self) -> Option<Duration> {
        lock(&self.last_frame).map(|at| at.elapsed())
    }

    /// The version that a read of the newest state must have reached.
    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    /// Whether nothing more will come.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Whether there are versions that are no numbers.
    pub(crate) fn is_unordered(&self) -> bool {
        self.is_unordered.load(Ordering::Acquire)
    }

    /// A cursor after a version.
    pub(crate) fn cursor(&self, version: u64) -> Result<Cursor, Expired> {
        self.with_log(|log| log.map_or(Err(Expired { current: 0 }), |log| log.cursor(version)))
    }

    fn begin(&self, snapshot: &Snapshot<Object>) {
        let bytes: usize = snapshot.iter().map(|entry| weight(entry.object())).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut log = ChangeLog::new(self.number(snapshot.version()), self.log_bytes);
        let mut recorded = lock(&self.log);
        for published in std::mem::take(&mut recorded.early) {
            published.append_to(&mut log);
        }
        recorded.log = Some(log);
        drop(recorded);
        *lock(&self.last_frame) = Some(Instant::now());
    }

    /// Takes a publication in, in the informer's task.
    fn record(&self, publication: &Publication<'_, Object>) {
        if publication.kind() == PublicationKind::FirstList {
            self.begin(publication.snapshot());
        } else {
            self.count(publication);
            let changes = publication.changes().map(|(version, event)| {
                let version = self.number(version);
                // The log keeps what was there before, too, which is in no store any more.
                let before = match event {
                    Event::Updated { old, .. } => weight(old),
                    Event::Added { .. } | Event::Deleted(_) => 0,
                };
                (version, change(version, event), before + weight(event.object()))
            });
            let published = Published {
                kind: publication.kind(),
                version: self.number(publication.version()),
                changes: changes.collect(),
            };
            if published.is_restart() {
                self.floor.store(0, Ordering::Release);
            }
            let mut recorded = lock(&self.log);
            match &mut recorded.log {
                Some(log) => published.append_to(log),
                None => recorded.early.push(published),
            }
            drop(recorded);
            *lock(&self.last_frame) = Some(Instant::now());
        }
        self.published.send_replace(());
    }

    fn count(&self, publication: &Publication<'_, Object>) {
        for (_, event) in publication.changes() {
            let (gone, come) = match event {
                Event::Added { object, .. } => (0, weight(object)),
                Event::Updated { old, new, .. } => (weight(old), weight(new)),
                Event::Deleted(deleted) => (weight(&deleted.old), 0),
            };
            self.bytes.fetch_add(come, Ordering::Relaxed);
            self.bytes.fetch_sub(gone, Ordering::Relaxed);
        }
    }

    fn number(&self, version: &informer::ResourceVersion) -> u64 {
        version.number().unwrap_or_else(|| {
            self.is_unordered.store(true, Ordering::Release);
            0
        })
    }
}

impl Published {
    /// Whether versions before and after do not compare.
    fn is_restart(&self) -> bool {
        match self.kind {
            PublicationKind::Relist { history_changed } => history_changed,
            PublicationKind::Cleared => true,
            PublicationKind::Changes | PublicationKind::FirstList => false,
        }
    }

    fn append_to(self, log: &mut Log) {
        let Self { kind, version, changes } = self;
        match kind {
            PublicationKind::Relist { history_changed: false } => log.relist(version, changes),
            PublicationKind::Relist { history_changed: true } | PublicationKind::Cleared => {
                log.restart(version);
            }
            PublicationKind::Changes | PublicationKind::FirstList => log.push(version, changes),
        }
    }
}

/// An event as the read side has it. A deleted object is told as it last was.
fn change(version: u64, event: &Event<Object>) -> Change<Cached> {
    let cached = |object| Some(Cached::new(event.key(), object));
    let (before, after) = match event {
        Event::Added { object, .. } => (None, cached(object)),
        Event::Updated { old, new, .. } => (cached(old), cached(new)),
        Event::Deleted(deleted) => (cached(&deleted.old), None),
    };
    Change { version, before, after }
}

/// Held by the observer, which is dropped when the informer ends.
struct Recorder(Arc<History>);

impl Drop for Recorder {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Release);
        self.0.published.send_replace(());
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
