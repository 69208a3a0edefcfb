//! The changes of a collection, and the versions that it has reached.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use informer::{Event, Publication, PublicationKind, Snapshot};
use jiff::Timestamp;
use k8s_serve::watch_cache::{Capacity, WatchCache};
use k8s_serve::{Change, ReadError, Status};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::object::{Cached, Object, weight};

/// What the informer's publications come to.
pub(crate) struct History {
    /// The changes since the first list, and who watches them.
    pub(crate) watch_cache: WatchCache<Cached>,
    /// What was published between the begin of the observation and that of the history; `None`
    /// after it.
    early: Mutex<Option<Vec<Published>>>,
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

/// A publication as the watch cache takes it.
struct Published {
    kind: PublicationKind,
    version: u64,
    changes: Vec<Change<Cached>>,
}

impl History {
    /// An empty history; `floor` is a version that the API server has reached.
    pub(crate) fn new(log_bytes: usize, floor: u64) -> Self {
        Self {
            watch_cache: WatchCache::new(0, Capacity::Bytes(log_bytes)),
            early: Mutex::new(Some(Vec::new())),
            published: watch::Sender::new(()),
            last_frame: Mutex::new(None),
            floor: AtomicU64::new(floor),
            bytes: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
            is_unordered: AtomicBool::new(false),
        }
    }

    /// Takes note of a version that the API server has reached.
    pub(crate) fn raise_floor(&self, version: u64) {
        self.floor.fetch_max(version, Ordering::AcqRel);
    }

    /// Forgets a floor that turned out to be of another history.
    pub(crate) fn forget_floor(&self, floor: u64) {
        let forgotten = self.floor.compare_exchange(floor, 0, Ordering::AcqRel, Ordering::Acquire);
        if forgotten.is_ok() {
            self.published.send_replace(());
        }
    }

    /// The highest version that is known of the API server.
    pub(crate) fn highest(&self) -> u64 {
        self.version().max(self.floor())
    }

    /// Bytes of the objects in the store.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The version up to which changes are known; 0 before the first list.
    pub(crate) fn version(&self) -> u64 {
        self.watch_cache.version()
    }

    /// Wakes with everything that is published from now on.
    pub(crate) fn published(&self) -> watch::Receiver<()> {
        self.published.subscribe()
    }

    /// Waits until changes up to a version are known.
    pub(crate) async fn reached(&self, version: u64) -> Result<(), ReadError> {
        self.reached_all(|| version).await
    }

    /// Waits until changes up to the floor are known.
    pub(crate) async fn reached_floor(&self) -> Result<(), ReadError> {
        self.reached_all(|| self.floor()).await
    }

    async fn reached_all(&self, version: impl Fn() -> u64) -> Result<(), ReadError> {
        let mut published = self.published();
        loop {
            published.borrow_and_update();
            let version = version();
            if self.version() >= version {
                return Ok(());
            }
            if self.watch_cache.is_replaced(version) {
                // The API server would wait for it, too, and in vain: the client has to list.
                let message = format!("too old resource version: {version} ({})", self.version());
                return Err(ReadError::Refused(Box::new(Status::expired(message))));
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

    /// Ends everything that follows it.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.watch_cache.close();
        self.published.send_replace(());
    }

    /// Whether there are versions that are no numbers.
    pub(crate) fn is_unordered(&self) -> bool {
        self.is_unordered.load(Ordering::Acquire)
    }

    pub(crate) fn begin(&self, snapshot: &Snapshot<Object>) {
        let bytes: usize = snapshot.iter().map(|entry| weight(entry.object())).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut early = lock(&self.early);
        self.watch_cache.restart(self.number(snapshot.version()));
        for published in early.take().into_iter().flatten() {
            published.append_to(&self.watch_cache);
        }
        drop(early);
        *lock(&self.last_frame) = Some(Instant::now());
    }

    /// Takes a publication in, in the informer's task.
    pub(crate) fn record(&self, publication: &Publication<'_, Object>) {
        if publication.kind() == PublicationKind::FirstList {
            self.begin(publication.snapshot());
        } else {
            self.count(publication);
            let changes = publication.changes();
            let now = Timestamp::now();
            let changes = changes.map(|(version, event)| change(self.number(version), event, now));
            let published = Published {
                kind: publication.kind(),
                version: self.number(publication.version()),
                changes: changes.collect(),
            };
            if published.is_restart() {
                self.floor.store(0, Ordering::Release);
            }
            let mut early = lock(&self.early);
            match &mut *early {
                None => published.append_to(&self.watch_cache),
                Some(early) => early.push(published),
            }
            drop(early);
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

    fn append_to(self, cache: &WatchCache<Cached>) {
        let Self { kind, version, changes } = self;
        match kind {
            PublicationKind::Relist { history_changed: false } => cache.relist(version, changes),
            PublicationKind::Relist { history_changed: true } => cache.restart(version),
            // Nobody who stands at this version may go on: the objects went after it.
            PublicationKind::Cleared => cache.restart(version + 1),
            PublicationKind::Changes | PublicationKind::FirstList => cache.push(version, changes),
        }
    }
}

/// An event as the read side has it. A deleted object is told as it last was.
fn change(version: u64, event: &Event<Object>, now: Timestamp) -> Change<Cached> {
    let cached = |object| Some(Cached::new(event.key(), object).received(now));
    let (before, after) = match event {
        Event::Added { object, .. } => (None, cached(object)),
        Event::Updated { old, new, .. } => (cached(old), cached(new)),
        Event::Deleted(deleted) => (cached(&deleted.old), None),
    };
    Change { version, before, after }
}

/// Held by the observer, which is dropped when the informer ends.
pub(crate) struct Recorder(pub(crate) Arc<History>);

impl Drop for Recorder {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
