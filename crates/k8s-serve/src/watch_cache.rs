//! The changes of a collection, and its watchers.
//!
//! A [`WatchCache`] takes the changes of a collection, and gives them to any number of
//! [`Watcher`]s, to each from the version that it names. It is what the cache of the same name is to
//! kube-apiserver, with other costs:
//!
//! - A watcher is a place in one bounded [log](crate::log). The log does not wait for it: when a
//!   change that it has not read is dropped, the watcher has [`Expired`], and its client lists
//!   again.
//! - Watchers with equal selectors share one *selection*: a change is compared with it once,
//!   whatever their number. Selections that require a name, another field, a label or a namespace
//!   are found by that value, so that a change costs those that want it and not all.
//! - An event is encoded once for each form in which it is sent.
//!
//! [`Dispatch`] decides all of that, without tasks and clocks; the `WatchCache` adds a lock, and
//! wakes the watchers.
//!
//! # Examples
//! ```
//! # use std::borrow::Cow;
//! # use informer_core::{ObjectKey, wire::{Encoding, Wire}};
//! # #[derive(Clone)]
//! # struct Pod(ObjectKey, u64);
//! # impl k8s_serve::Object for Pod {
//! #     fn key(&self) -> &ObjectKey { &self.0 }
//! #     fn version(&self) -> u64 { self.1 }
//! #     fn label(&self, _: &str) -> Option<&str> { None }
//! #     fn field(&self, _: &str) -> Cow<'_, str> { Cow::Borrowed("") }
//! #     fn wire(&self) -> Wire<'_> { Wire { encoding: Encoding::Json, bytes: b"{}" } }
//! # }
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! use k8s_serve::watch_cache::{Capacity, Interest, WatchCache};
//! use k8s_serve::{Change, Resource};
//!
//! let cache = WatchCache::new(10, Capacity::Bytes(1 << 20));
//! let pods = Resource::new("", "v1", "pods", "Pod");
//! let mut watcher = cache.watch(10, &Interest::everything(&pods))?;
//! let pod = Pod(ObjectKey::namespaced("default", "a"), 12);
//! cache.push(12, [Change { version: 12, before: None, after: Some(pod) }]);
//! assert_eq!(watcher.next().await?.changes.len(), 1);
//! assert_eq!(watcher.progress(), Some(12));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dispatch;
mod index;
mod interest;
mod logged;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::backend::Change;
use crate::log::{Batch, Expired, Room};
use crate::object::Object;

pub use dispatch::{Dispatch, Place, SelectionId};
pub use interest::{EventType, Interest};
pub use logged::Logged;

/// What is handed to a watcher at once, which is what it holds of the log while it is being
/// written: 64 changes, or 16 KiB of objects and the change that goes beyond that. Thousands may
/// hold that, and stop reading.
const ROOM: Room = Room { changes: 64, weight: 16 * 1024 };

/// What a log may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// Bytes: of the objects, and of the events that were made of them.
    Bytes(usize),
    /// So many changes, whatever their size.
    Changes(usize),
}

/// A change, and what it is to a selection.
pub type Selected<O> = (EventType, Arc<Logged<O>>);

/// Changes for a watcher.
pub type Events<O> = Batch<Selected<O>>;

/// A watcher gets nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// Changes that it has not been given are no longer known: it was too slow, or the history has
    /// changed.
    #[error(transparent)]
    Expired(#[from] Expired),
    /// The collection is gone.
    #[error("the collection is gone")]
    Closed,
}

/// The changes of one collection, and its watchers. Clones share them.
pub struct WatchCache<O>(Arc<Mutex<State<O>>>);

struct State<O> {
    dispatch: Dispatch<O>,
    /// Wakes those who wait for a selection.
    bells: HashMap<SelectionId, watch::Sender<()>>,
    /// Watchers of an earlier generation end.
    generation: u64,
    is_closed: bool,
    /// How many watchers have expired.
    expired: u64,
}

/// Reads the changes of a collection that are of interest, from a version on.
pub struct Watcher<O: Object> {
    cache: WatchCache<O>,
    place: Place,
    generation: u64,
    bell: watch::Receiver<()>,
    /// Whether there may be something that it was not woken for.
    has_more: bool,
}

impl<O: Object> WatchCache<O> {
    /// Of a collection at `version`. The oldest changes are dropped when there are more than
    /// `capacity` allows.
    #[must_use]
    pub fn new(version: u64, capacity: Capacity) -> Self {
        let dispatch = Dispatch::new(version, capacity);
        let state =
            State { dispatch, bells: HashMap::new(), generation: 0, is_closed: false, expired: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    /// The version up to which changes are known.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.lock().dispatch.version()
    }

    /// Whether a version is one that an earlier history has reached, and this one has not.
    #[must_use]
    pub fn is_replaced(&self, version: u64) -> bool {
        self.lock().dispatch.is_replaced(version)
    }

    /// What the log weighs, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.lock().dispatch.weight()
    }

    /// How many watchers there are.
    #[must_use]
    pub fn watchers(&self) -> usize {
        self.lock().dispatch.watchers()
    }

    /// How many watchers have [`Expired`] so far: they were too slow, or the history has changed.
    #[must_use]
    pub fn expired(&self) -> u64 {
        self.lock().expired
    }

    /// The changes after a version, in order, as far as they are known by themselves: `None` if
    /// some are no longer.
    #[must_use]
    pub fn changes_after(&self, version: u64) -> Option<Vec<Arc<Logged<O>>>> {
        self.lock().dispatch.changes_after(version)
    }

    /// The last changes that are of interest and still known, oldest first, at most `limit`; and the
    /// version up to which changes were known then, from which a [`watch`](Self::watch) goes on.
    #[must_use]
    pub fn last_changes(&self, interest: &Interest, limit: usize) -> (u64, Vec<Selected<O>>) {
        let (version, known) = {
            let state = self.lock();
            (state.dispatch.version(), state.dispatch.known_changes())
        };
        // Without the lock: a selector may read every object of the log.
        let newest_first = known.into_iter().rev();
        let of_interest = newest_first.filter_map(|it| Some((it.event(interest)?, it)));
        let mut changes = Vec::from_iter(of_interest.take(limit));
        changes.reverse();
        (version, changes)
    }

    /// Takes changes, in the order of their versions. All up to `version` are known then: that of
    /// a bookmark, or of the last change.
    pub fn push(&self, version: u64, changes: impl IntoIterator<Item = Change<O>>) {
        self.append(|dispatch| dispatch.push(version, changes));
    }

    /// Takes what a new list at `version` showed to have changed, by the
    /// [rules of the log](crate::log#relists). Deletions have the version before.
    pub fn relist(&self, version: u64, changes: impl IntoIterator<Item = Change<O>>) {
        self.append(|dispatch| dispatch.relist(version, changes));
    }

    /// Begins another history at `version`: all watchers expire.
    pub fn restart(&self, version: u64) {
        let mut state = self.lock();
        state.dispatch.restart(version);
        state.wake_all();
    }

    /// Ends all watchers that there are, once they have been given what is there.
    pub fn end_watchers(&self) {
        let mut state = self.lock();
        state.generation += 1;
        state.wake_all();
    }

    /// Ends all watchers, those to come too, once they have been given what is there.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.wake_all();
    }

    /// A watcher of the changes after a version, which may lie in the future: it is given nothing
    /// before that is reached.
    ///
    /// # Errors
    /// If the version is no longer known.
    pub fn watch(&self, after: u64, interest: &Arc<Interest>) -> Result<Watcher<O>, Expired> {
        let mut state = self.lock();
        let place = state.dispatch.enter(after, interest)?;
        let bell = state.bells.entry(place.selection()).or_default().subscribe();
        let generation = state.generation;
        Ok(Watcher { cache: self.clone(), place, generation, bell, has_more: true })
    }

    fn append(&self, append: impl FnOnce(&mut Dispatch<O>) -> Vec<SelectionId>) {
        let mut state = self.lock();
        let woken = append(&mut state.dispatch);
        let bells: Vec<_> = woken.iter().filter_map(|it| state.bells.get(it)).cloned().collect();
        // Thousands are woken for one change, and want the lock.
        drop(state);
        bells.iter().for_each(|bell| bell.send_replace(()));
    }

    fn lock(&self) -> MutexGuard<'_, State<O>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O> State<O> {
    fn wake_all(&self) {
        for bell in self.bells.values() {
            bell.send_replace(());
        }
    }
}

impl<O: Object> Watcher<O> {
    /// Waits for changes, and returns them in order.
    ///
    /// # Errors
    /// If there will be none any more.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Result<Events<O>, Ended> {
        loop {
            self.ready().await;
            let events = self.take()?;
            if !events.changes.is_empty() || events.mark.is_some() {
                return Ok(events);
            }
        }
    }

    /// Waits until there may be something to [`take`](Self::take).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn ready(&mut self) {
        if !self.has_more {
            // Its sender is kept as long as this is there.
            drop(self.bell.changed().await);
            // The caller may do something else first, and wait again.
            self.has_more = true;
        }
    }

    /// The version up to which it has been given everything; `None` while that lies in the future,
    /// and within a gap.
    pub fn progress(&mut self) -> Option<u64> {
        self.cache.lock().dispatch.progress(&mut self.place)
    }

    /// Whether there may be something to [`take`](Self::take) at once, that was left for want of
    /// room or was there before.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// The changes that are there now, in order; they may be none.
    ///
    /// # Errors
    /// If there will be none any more.
    pub fn take(&mut self) -> Result<Events<O>, Ended> {
        // Marked as seen before looking: what comes in between wakes.
        self.bell.borrow_and_update();
        let mut state = self.cache.lock();
        let read = state.dispatch.read(&mut self.place, ROOM);
        let events = read.inspect_err(|_| state.expired += 1)?;
        let has_ended = state.is_closed || state.generation != self.generation;
        if has_ended && events.changes.is_empty() && events.mark.is_none() {
            return Err(Ended::Closed);
        }
        // What has ended says so after the last changes.
        self.has_more = events.has_more || has_ended;
        Ok(events)
    }
}

impl<O: Object> Drop for Watcher<O> {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        if state.dispatch.leave(&self.place) {
            state.bells.remove(&self.place.selection());
        }
    }
}

impl<O> Clone for WatchCache<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O> fmt::Debug for WatchCache<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchCache").finish_non_exhaustive()
    }
}

impl<O: Object> fmt::Debug for Watcher<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("place", &self.place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
