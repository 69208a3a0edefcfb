//! Fan-out: delivers every change to every registration, each at its own pace (client-go's
//! `sharedProcessor`).
//!
//! Each registration has its own queue and lock, which is held only to move events in or out. A
//! slow reader costs memory in its own queue, bounded by the number of keys (G16). It does not
//! delay other registrations (G15).

mod batches;
mod cursor;
mod queue;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use batches::{Taken, Unshared};
pub use queue::EventQueue;

use crate::Event;
use crate::store::Snapshot;

/// Events per shared batch. A reader that keeps one event of a batch keeps the whole batch in
/// memory.
const BATCH: usize = 64;

/// The shortest resync period (G8). A shorter one is usually a mistaken unit, and would keep
/// handlers busy with resyncs alone.
const MIN_RESYNC: Duration = Duration::from_secs(1);

/// All registrations of an informer.
pub(crate) struct FanOut<T> {
    registrations: Vec<Registration<T>>,
    next_id: u64,
    finished: bool,
}

/// Identifies a registration within its informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegistrationId(u64);

/// The queue of one registration, shared by the writer and the reader.
pub struct RegistrationQueue<T>(Arc<Mutex<EventQueue<T>>>);

struct Registration<T> {
    id: RegistrationId,
    queue: RegistrationQueue<T>,
    wake: Box<dyn Fn() + Send + Sync>,
    resync: Option<Resync>,
}

/// The effective resync period: none if the one `asked` for is zero, else at least a second.
#[must_use]
pub fn resync_period(asked: Duration) -> Option<Duration> {
    (!asked.is_zero()).then(|| asked.max(MIN_RESYNC))
}

struct Resync {
    period: Duration,
    /// `None` until the initial set has started.
    due: Option<Duration>,
}

impl<T> FanOut<T> {
    /// No registrations.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self { registrations: Vec::new(), next_id: 0, finished: false }
    }

    /// Adds a registration. Its queue merges events once it holds `capacity` of them. `wake` is
    /// called after each batch of events was queued, and when the queue ends; it must not block.
    /// `resync`: the [period](resync_period) at which the whole store is delivered again.
    pub(crate) fn add(
        &mut self,
        capacity: usize,
        resync: Option<Duration>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> (RegistrationId, RegistrationQueue<T>) {
        let id = RegistrationId(self.next_id);
        self.next_id += 1;
        let queue = RegistrationQueue(Arc::new(Mutex::new(EventQueue::new(capacity))));
        if self.finished {
            queue.lock().finish();
        }
        let resync = resync.and_then(resync_period).map(|period| Resync { period, due: None });
        self.registrations.push(Registration {
            id,
            queue: queue.clone(),
            wake: Box::new(wake),
            resync,
        });
        (id, queue)
    }

    /// Removes a registration; its queue ends. Returns whether it existed.
    pub(crate) fn remove(&mut self, id: RegistrationId) -> bool {
        let Some(at) = self.registrations.iter().position(|registration| registration.id == id)
        else {
            return false;
        };
        let gone = self.registrations.remove(at);
        // Dropping the content may run user code that panics, so the reader is woken first.
        let content = gone.queue.lock().close();
        (gone.wake)();
        drop(content);
        true
    }

    /// The number of registrations.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.registrations.len()
    }

    /// Starts the initial set, the content of the store, for the registration `id` or for all.
    pub(crate) fn start_initial(
        &mut self,
        now: Duration,
        snapshot: &Snapshot<T>,
        id: Option<RegistrationId>,
    ) {
        let wanted =
            |registration: &&mut Registration<T>| id.is_none_or(|id| registration.id == id);
        for registration in self.registrations.iter_mut().filter(wanted) {
            registration.queue.lock().start_initial(snapshot.clone());
            if let Some(resync) = &mut registration.resync {
                resync.due = Some(now.saturating_add(resync.period));
            }
            (registration.wake)();
        }
    }

    /// Queues `events`, shared, for every registration, and wakes each one once.
    pub(crate) fn distribute(&self, events: &mut Vec<Event<T>>) {
        let mut events = events.drain(..);
        let Some((last, others)) = self.registrations.split_last() else { return };
        if events.as_slice().is_empty() {
            return;
        }
        while !events.as_slice().is_empty() {
            let events: Arc<Vec<Event<T>>> = Arc::new(events.by_ref().take(BATCH).collect());
            for registration in others {
                registration.queue.lock().push_all(Arc::clone(&events));
            }
            // The writer keeps no reference, so a reader drops the last reference to the batch and
            // to its objects.
            last.queue.lock().push_all(events);
        }
        for registration in &self.registrations {
            (registration.wake)();
        }
    }

    /// Starts the resyncs that are due at `now` over `snapshot`; returns how many started.
    pub(crate) fn resync(&mut self, now: Duration, snapshot: &Snapshot<T>) -> usize {
        let mut begun = 0;
        for registration in &mut self.registrations {
            let Some(Resync { period, due: Some(due) }) = &mut registration.resync else {
                continue;
            };
            if *due > now {
                continue;
            }
            *due = now.saturating_add(*period);
            if registration.queue.lock().start_resync(snapshot.clone()) {
                begun += 1;
                (registration.wake)();
            }
        }
        begun
    }

    /// When the next resync is due.
    #[must_use]
    pub(crate) fn next_resync(&self) -> Option<Duration> {
        self.registrations.iter().filter_map(|registration| registration.resync.as_ref()?.due).min()
    }

    /// Ends all queues, including those added later. Queued events are still delivered; none is
    /// added.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
        for registration in &self.registrations {
            registration.queue.lock().finish();
            (registration.wake)();
        }
    }
}

impl<T> RegistrationQueue<T> {
    /// Locks the queue, to move events in or out. The lock must not be held while waiting.
    pub fn lock(&self) -> MutexGuard<'_, EventQueue<T>> {
        // Of user code, only `Drop` runs under the lock, where a push merges events and drops the
        // last reference to an object. Its panic ends the informer, whose task is the only one that
        // pushes, so a poisoned queue gets no more events.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for RegistrationQueue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for FanOut<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for FanOut<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FanOut").field("registrations", &self.len()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for RegistrationQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}
