//! Fan-out: every change to every registration, each at its own pace (client-go's `sharedProcessor`).
//!
//! Each registration has a queue of its own behind a lock of its own, held only to move events in or out. A
//! slow reader costs memory in its own queue, bounded by the number of keys (G16), and nobody else's time
//! (G15).

mod batches;
mod cursor;
mod queue;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use batches::Taken;
pub use queue::EventQueue;

use crate::Event;
use crate::store::Snapshot;

/// Events that registrations share at a time: whoever has the last of them in hand keeps them all.
const BATCH: usize = 64;

/// The shortest period of resyncs (G8): a shorter one is mostly a mistake of units, and would keep handlers busy with
/// nothing else.
pub const MIN_RESYNC: Duration = Duration::from_secs(1);

/// All registrations of an informer.
pub struct FanOut<T> {
    registrations: Vec<Registration<T>>,
    next_id: u64,
    finished: bool,
}

/// Names a registration within its informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegistrationId(u64);

/// The queue of one registration, shared by the writer and the reader.
pub struct SharedQueue<T>(Arc<Mutex<EventQueue<T>>>);

struct Registration<T> {
    id: RegistrationId,
    queue: SharedQueue<T>,
    wake: Box<dyn Fn() + Send + Sync>,
    resync: Option<Resync>,
}

/// The period that resyncs come at when `asked` for: none if that is zero, else at least [`MIN_RESYNC`].
#[must_use]
pub fn resync_period(asked: Duration) -> Option<Duration> {
    (!asked.is_zero()).then(|| asked.max(MIN_RESYNC))
}

struct Resync {
    period: Duration,
    /// `None` until the initial set is there.
    due: Option<Duration>,
}

impl<T> FanOut<T> {
    /// No registrations.
    #[must_use]
    pub fn new() -> Self {
        Self { registrations: Vec::new(), next_id: 0, finished: false }
    }

    /// Adds a registration whose queue merges from `capacity` events on. `wake` is called after events
    /// were put into the queue, once for each batch, and when the queue ends; it must not block. `resync`: show the store again at
    /// that [period](resync_period).
    pub fn add(
        &mut self,
        capacity: usize,
        resync: Option<Duration>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> (RegistrationId, SharedQueue<T>) {
        let id = RegistrationId(self.next_id);
        self.next_id += 1;
        let queue = SharedQueue(Arc::new(Mutex::new(EventQueue::new(capacity))));
        if self.finished {
            queue.lock().finish();
        }
        let resync = resync.and_then(resync_period).map(|period| Resync { period, due: None });
        self.registrations.push(Registration { id, queue: queue.clone(), wake: Box::new(wake), resync });
        (id, queue)
    }

    /// Removes a registration; its queue ends. Says whether it was there.
    pub fn remove(&mut self, id: RegistrationId) -> bool {
        let Some(at) = self.registrations.iter().position(|registration| registration.id == id) else {
            return false;
        };
        let gone = self.registrations.remove(at);
        gone.queue.lock().close();
        (gone.wake)();
        true
    }

    /// The number of registrations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.registrations.len()
    }

    /// Whether there are no registrations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registrations.is_empty()
    }

    /// Gives the content of the store to the registration `id` as its initial set, or to all.
    pub fn start_initial(&mut self, now: Duration, snapshot: &Snapshot<T>, id: Option<RegistrationId>) {
        let wanted = |registration: &&mut Registration<T>| id.is_none_or(|id| registration.id == id);
        for registration in self.registrations.iter_mut().filter(wanted) {
            registration.queue.lock().start_initial(snapshot.clone());
            if let Some(resync) = &mut registration.resync {
                resync.due = Some(now.saturating_add(resync.period));
            }
            (registration.wake)();
        }
    }

    /// Moves `events` into every queue, waking each registration once. The queues share them.
    pub fn distribute(&self, events: &mut Vec<Event<T>>) {
        if events.is_empty() || self.is_empty() {
            events.clear();
            return;
        }
        let mut events = events.drain(..);
        while !events.as_slice().is_empty() {
            let events: Arc<[Event<T>]> = events.by_ref().take(BATCH).collect();
            for registration in &self.registrations {
                registration.queue.lock().push_all(&events);
            }
        }
        for registration in &self.registrations {
            (registration.wake)();
        }
    }

    /// Begins the resyncs that are due at `now` over `snapshot`; says how many began.
    pub fn resync(&mut self, now: Duration, snapshot: &Snapshot<T>) -> usize {
        let mut begun = 0;
        for registration in &mut self.registrations {
            let Some(Resync { period, due: Some(due) }) = &mut registration.resync else { continue };
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
    pub fn next_resync(&self) -> Option<Duration> {
        self.registrations.iter().filter_map(|registration| registration.resync.as_ref()?.due).min()
    }

    /// Ends all queues, those added later included: what is in them is still delivered, nothing comes after it.
    pub fn finish(&mut self) {
        self.finished = true;
        for registration in &self.registrations {
            registration.queue.lock().finish();
            (registration.wake)();
        }
    }

    /// The queues of all registrations.
    pub fn queues(&self) -> impl Iterator<Item = (RegistrationId, &SharedQueue<T>)> {
        self.registrations.iter().map(|registration| (registration.id, &registration.queue))
    }
}

impl<T> SharedQueue<T> {
    /// The queue, for a moment: to move events in or out, never across a wait.
    pub fn lock(&self) -> MutexGuard<'_, EventQueue<T>> {
        // No user code runs under the lock, so a poisoned queue is still a whole one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for SharedQueue<T> {
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

impl<T> fmt::Debug for SharedQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}
