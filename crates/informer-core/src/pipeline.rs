//! The controller's core: applies deltas to the store, then tells the registrations.
//!
//! Store first, then notify (G2): a batch of deltas is applied and published, and only then are its events put
//! into the queues. Membership and UID decide what an event is, not the name the watch gave it (client-go's
//! `processDeltas`, but for the UID).

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::fan_out::{FanOut, RegistrationId, SharedQueue};
use crate::store::{Change, Index, IndexError, IndexFault, ReplaceChange, Replacement, Store};
use crate::{
    Deleted, Delta, Event, FinalState, Item, ObjectKey, Record, ResourceVersion, Tombstone, UpdateReason,
};

/// A store with its registrations, fed with deltas.
pub struct Pipeline<T> {
    store: Store<T>,
    fan_out: FanOut<T>,
    replacement: Option<Staged<T>>,
    has_synced: bool,
    /// Room for events, to be used again.
    spare: Vec<Event<T>>,
}

/// Room for so many events is kept.
const SPARE: usize = 1024;

struct Staged<T> {
    list: Replacement<T>,
    distrust: bool,
}

impl<T> Pipeline<T> {
    /// An empty store without registrations.
    #[must_use]
    pub fn new() -> Self {
        Self {
            store: Store::new(),
            fan_out: FanOut::new(),
            replacement: None,
            has_synced: false,
            spare: Vec::new(),
        }
    }

    /// The store, to read from as the writer sees it.
    #[must_use]
    pub fn store(&self) -> &Store<T> {
        &self.store
    }

    /// The registrations.
    #[must_use]
    pub fn fan_out(&self) -> &FanOut<T> {
        &self.fan_out
    }

    /// Whether the first complete list is in the store (G19).
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.has_synced
    }

    /// The number of objects of the list that is being staged.
    #[must_use]
    pub fn staged(&self) -> Option<usize> {
        self.replacement.as_ref().map(|staged| staged.list.len())
    }

    /// Adds a registration; it gets the content of the store, then what follows, without gap or duplicate
    /// (G17). See [`FanOut::add`] for the parameters.
    pub fn register(
        &mut self,
        now: Duration,
        capacity: usize,
        resync: Option<Duration>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> (RegistrationId, SharedQueue<T>) {
        let (id, queue) = self.fan_out.add(capacity, resync, wake);
        if self.has_synced {
            self.fan_out.start_initial(now, &self.store.reader().snapshot(), Some(id));
        }
        (id, queue)
    }

    /// Removes a registration; says whether it was there.
    pub fn unregister(&mut self, id: RegistrationId) -> bool {
        self.fan_out.remove(id)
    }

    /// Adds an index, complete when this returns (G11).
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if another index has its name.
    pub fn add_index(&mut self, index: &Index<T>) -> Result<(), IndexError> {
        self.store.add_index(index)
    }

    /// Files up to `objects` objects more in a new index; see [`Store::build_index`].
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if another index has its name.
    pub fn build_index(&mut self, index: &Index<T>, objects: usize) -> Result<bool, IndexError> {
        self.store.build_index(index, objects)
    }

    /// Gives up an index whose building was not completed.
    pub fn abandon_index(&mut self, index: &Index<T>) {
        self.store.abandon_index(index);
    }

    /// Takes what index functions did wrong outside of [`apply`](Self::apply), which returns its own.
    pub fn take_faults(&mut self) -> Vec<IndexFault> {
        self.store.take_faults()
    }

    /// When [`Delta::Sync`] is due next.
    #[must_use]
    pub fn next_resync(&self) -> Option<Duration> {
        self.fan_out.next_resync()
    }

    /// Applies deltas in order, publishes the store, then hands the events to the registrations. Returns what
    /// index functions did wrong.
    pub fn apply(&mut self, now: Duration, deltas: impl IntoIterator<Item = Delta<T>>) -> Vec<IndexFault> {
        let mut events = std::mem::take(&mut self.spare);
        for delta in deltas {
            self.apply_one(now, delta, &mut events);
        }
        self.flush(&mut events);
        if events.capacity() <= SPARE {
            self.spare = events;
        }
        self.store.take_faults()
    }

    /// Ends all registrations' queues after what they hold (the informer stops).
    pub fn finish(&mut self) {
        self.replacement = None;
        self.fan_out.finish();
    }

    fn apply_one(&mut self, now: Duration, delta: Delta<T>, events: &mut Vec<Event<T>>) {
        match delta {
            Delta::Added(item) | Delta::Updated(item) => self.upsert(item, events),
            Delta::Deleted(tombstone) => self.delete(tombstone, events),
            Delta::Bookmark(version) => self.reached(version),
            Delta::ReplaceStarted { distrust } => {
                self.replacement = Some(Staged { list: Replacement::new(), distrust });
            }
            Delta::Listed(item) => self.stage(|list| list.insert(item)),
            Delta::Kept(key) => self.stage(|list| list.keep(key)),
            Delta::Unlisted(key) => self.stage(|list| list.remove(&key)),
            Delta::ReplaceFinished { version, history_changed } => {
                let Some(staged) = self.replacement.take() else { return };
                if history_changed {
                    self.store.history_changed();
                }
                // Published by `replace` in one step; what came before it in this batch comes with it.
                let distrust = staged.distrust && history_changed;
                let first = !self.has_synced;
                self.store.replace(staged.list, version, distrust, |key, change| {
                    if !first {
                        replaced(key, change, events);
                    }
                });
                if first {
                    self.flush(events);
                    self.has_synced = true;
                    self.fan_out.start_initial(now, &self.store.reader().snapshot(), None);
                }
            }
            Delta::ReplaceAbandoned => self.replacement = None,
            Delta::Sync => {
                self.flush(events);
                self.fan_out.resync(now, &self.store.reader().snapshot());
            }
            Delta::Cleared => self.clear(events),
        }
    }

    fn upsert(&mut self, item: Item<T>, events: &mut Vec<Event<T>>) {
        let Item { key, record } = item;
        let object = Arc::clone(&record.object);
        self.reached(record.version.clone());
        let change = self.store.upsert(Item { key: key.clone(), record });
        changed(key, change, object, events);
    }

    fn delete(&mut self, tombstone: Tombstone<T>, events: &mut Vec<Event<T>>) {
        let Tombstone { key, uid, version, last } = tombstone;
        self.reached(version);
        let Some(held) = self.store.get(&key) else { return };
        if !uid.is_unset() && !held.uid.is_unset() && held.uid != uid {
            // Old news of an object whose successor is here already.
            return;
        }
        let Some(held) = self.store.remove(&key) else { return };
        events.push(match last {
            Some(last) => {
                Event::Deleted(Deleted { key, old: held.object, last, final_state: FinalState::Known })
            }
            None => gone_unseen(key, held),
        });
    }

    /// A watch is at `version`; where it does not say, the store stands where it stood.
    fn reached(&mut self, version: ResourceVersion) {
        if !version.is_unset() {
            self.store.set_version(version);
        }
    }

    fn clear(&mut self, events: &mut Vec<Event<T>>) {
        self.replacement = None;
        let version = self.store.version().clone();
        self.store.replace(Replacement::new(), version, false, |key, change| replaced(key, change, events));
    }

    fn stage(&mut self, change: impl FnOnce(&mut Replacement<T>)) {
        if let Some(staged) = &mut self.replacement {
            change(&mut staged.list);
        }
    }

    fn flush(&mut self, events: &mut Vec<Event<T>>) {
        self.store.publish();
        // Before the first list nobody has been given anything; its end gives them all there is (G9).
        if self.has_synced {
            self.fan_out.distribute(events);
        }
        events.clear();
    }
}

impl<T> Default for Pipeline<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Pipeline<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("store", &self.store)
            .field("fan_out", &self.fan_out)
            .field("has_synced", &self.has_synced)
            .finish_non_exhaustive()
    }
}

/// The events of a relist; an object that it leaves out went unseen (G6).
fn replaced<T>(key: &ObjectKey, change: ReplaceChange<T>, events: &mut Vec<Event<T>>) {
    match change {
        ReplaceChange::Removed(old) => events.push(gone_unseen(key.clone(), old)),
        ReplaceChange::Written(change, record) => changed(key.clone(), change, record.object, events),
    }
}

fn changed<T>(key: ObjectKey, change: Change<T>, object: Arc<T>, events: &mut Vec<Event<T>>) {
    match change {
        Change::Unchanged => {}
        Change::Added => events.push(Event::Added { key, object, initial: false }),
        Change::Updated { old } => {
            events.push(Event::Updated { key, old: old.object, new: object, reason: UpdateReason::Change });
        }
        Change::Recreated { old } => {
            // The end of the predecessor went unseen.
            events.push(gone_unseen(key.clone(), old));
            events.push(Event::Added { key, object, initial: false });
        }
    }
}

/// The end of an object whose final state nobody has seen.
fn gone_unseen<T>(key: ObjectKey, held: Record<T>) -> Event<T> {
    let last = Arc::clone(&held.object);
    Event::Deleted(Deleted { key, old: held.object, last, final_state: FinalState::Unknown })
}
