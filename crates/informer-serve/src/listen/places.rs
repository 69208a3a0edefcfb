//! Limits the number of connections. At the limit, a new connection replaces an idle one without
//! accepted credentials (a stranger).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a new connection keeps its slot without accepted credentials.
const GRACE: Duration = Duration::from_secs(1);
/// Interval of the search for an idle stranger while no slot is free.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The slots of all open connections.
#[derive(Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    strangers: Arc<Strangers>,
}

/// The slot of a connection, free once all clones are dropped. Each request in progress has a
/// clone, and so does a WebSocket that takes the connection over.
#[derive(Debug, Clone)]
pub(crate) struct Slot(Arc<Place>);

#[derive(Debug)]
struct Place {
    number: u64,
    strangers: Arc<Strangers>,
    _permit: OwnedSemaphorePermit,
}

/// The connections on which no credentials were accepted yet, oldest first.
#[derive(Debug, Default)]
struct Strangers(Mutex<ByNumber>);

#[derive(Debug, Default)]
struct ByNumber {
    last: u64,
    connections: BTreeMap<u64, Stranger>,
}

#[derive(Debug)]
struct Stranger {
    since: Instant,
    place: Weak<Place>,
    /// Aborts the connection.
    close: CancellationToken,
}

impl Places {
    pub(crate) fn new(count: usize) -> Self {
        let free = Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self { free, strangers: Arc::default() }
    }

    /// Waits for a slot for a new connection, which `close` aborts. While no slot is free, this
    /// closes strangers without a request in progress, the oldest first.
    pub(crate) async fn take(&self, close: CancellationToken) -> Slot {
        loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                return self.slot(permit, close);
            }
            self.strangers.close_oldest();
            let free = Arc::clone(&self.free).acquire_owned();
            if let Ok(Ok(permit)) = tokio::time::timeout(LOOK_AGAIN, free).await {
                return self.slot(permit, close);
            }
        }
    }

    fn slot(&self, permit: OwnedSemaphorePermit, close: CancellationToken) -> Slot {
        let mut strangers = self.strangers.lock();
        strangers.last += 1;
        let (number, of) = (strangers.last, Arc::clone(&self.strangers));
        let place = Arc::new(Place { number, strangers: of, _permit: permit });
        let stranger = Stranger { since: Instant::now(), place: Arc::downgrade(&place), close };
        strangers.connections.insert(number, stranger);
        Slot(place)
    }
}

impl Slot {
    /// Keeps the slot until the connection ends, because its credentials were accepted.
    pub(crate) fn keep(&self) {
        self.0.strangers.remove(self.0.number);
    }
}

impl Strangers {
    fn close_oldest(&self) {
        let mut strangers = self.lock();
        // An idle connection holds the only reference to its slot, since each request in progress
        // holds another one.
        let is_idle = |it: &Stranger| it.place.strong_count() <= 1 && it.since.elapsed() >= GRACE;
        let oldest = strangers.connections.iter().find(|(_, it)| is_idle(it));
        let oldest = oldest.map(|(number, _)| *number);
        if let Some(stranger) = oldest.and_then(|it| strangers.connections.remove(&it)) {
            stranger.close.cancel();
        }
    }

    fn remove(&self, number: u64) {
        self.lock().connections.remove(&number);
    }

    fn lock(&self) -> MutexGuard<'_, ByNumber> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strangers.remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a connection. Returns its slot and the token that aborts it.
    async fn connect(places: &Places) -> (Slot, CancellationToken) {
        let close = CancellationToken::new();
        (places.take(close.clone()).await, close)
    }

    /// Checks that a new connection gets no slot, within a time that is longer than any delay in
    /// the code.
    async fn waits(places: &Places) {
        let taken = tokio::time::timeout(10 * GRACE, connect(places)).await;
        assert!(taken.is_err(), "nobody has left");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_idle_stranger_leaves_when_all_places_are_taken() {
        let places = Places::new(4);
        let (known, close_known) = connect(&places).await;
        known.keep();
        let (busy, close_busy) = connect(&places).await;
        let request = busy.clone();
        let (idle, close_idle) = connect(&places).await;
        tokio::time::sleep(GRACE / 2).await;
        let (young, close_young) = connect(&places).await;
        assert!(!close_idle.is_cancelled(), "there was a place");
        let began = Instant::now();
        let leaving = async {
            close_idle.cancelled().await;
            assert_eq!(began.elapsed(), GRACE / 2);
            drop(idle);
        };
        let closed = [&close_known, &close_busy, &close_young];
        let served = async { tokio::join!(connect(&places), leaving) };
        let ((new, _), ()) = tokio::time::timeout(10 * GRACE, served).await.expect("no place");
        assert!(closed.iter().all(|it| !it.is_cancelled()));
        new.keep();
        young.keep();
        waits(&places).await;
        assert!(closed.iter().all(|it| !it.is_cancelled()));
        drop(request);
        waits(&places).await;
        assert!(close_busy.is_cancelled() && !close_known.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_of_connections_that_are_gone() {
        let places = Places::new(2);
        let (first, _) = connect(&places).await;
        let (second, _) = connect(&places).await;
        second.keep();
        drop((first, second));
        assert!(places.strangers.lock().connections.is_empty());
        assert_eq!(places.free.available_permits(), 2);
    }
}
