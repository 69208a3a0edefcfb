//! The core of the controller: applies deltas to the store, then notifies the registrations.
//!
//! A batch of deltas is applied and published before its events are queued (G2). The kind of an
//! event depends on what the store holds under the key, and with which UID, not on the watch
//! event's type. client-go's `processDeltas` does the same, but ignores the UID.

mod publication;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::fan_out::{FanOut, RegistrationId, RegistrationQueue};
use crate::ingest::Held;
use crate::store::{
    Change, Index, IndexError, IndexFault, Reader, ReplaceChange, Replacement, Snapshot, Store,
};
use crate::{
    Deleted, Delta, Event, FinalState, Item, ObjectKey, Record, ResourceVersion, Tombstone, Uid,
    UpdateReason,
};

use publication::{Batch, Observers};
pub use publication::{ObserverFault, ObserverId, Publication, PublicationKind};

/// A store with its registrations, fed with deltas.
pub struct Pipeline<T> {
    store: Store<T>,
    fan_out: FanOut<T>,
    observers: Observers<T>,
    replacement: Option<Staged<T>>,
    has_synced: bool,
    refreshes: u64,
    needs_refresh: bool,
    /// The version that was published last.
    published: ResourceVersion,
    /// Event buffer, reused between batches.
    spare: Batch<T>,
}

/// The largest capacity at which the event buffer is kept for reuse.
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
            observers: Observers::new(),
            replacement: None,
            has_synced: false,
            refreshes: 0,
            needs_refresh: true,
            published: ResourceVersion::unset(),
            spare: Batch::new(),
        }
    }

    /// A handle that takes snapshots of the store.
    #[must_use]
    pub fn reader(&self) -> Reader<T> {
        self.store.reader()
    }

    /// What the store holds under this name, published or not.
    #[must_use]
    pub fn held(&self, namespace: &str, name: &str, uid: &Uid, version: &ResourceVersion) -> Held {
        self.store.held(namespace, name, uid, version)
    }

    /// Whether the first complete list is in the store (G19).
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.has_synced
    }

    /// How many [refreshes](crate::ingest::Sink::refreshes) are complete and in the store.
    #[must_use]
    pub fn refreshes(&self) -> u64 {
        self.refreshes
    }

    /// Whether the store comes from lists that may have been older than the last write before they
    /// were requested: those at version `0`.
    #[must_use]
    pub fn needs_refresh(&self) -> bool {
        self.needs_refresh
    }

    /// Adds a registration. It gets the content of the store, then all later changes, without gap
    /// or duplicate (G17). Its queue merges events once it holds `capacity` of them. `wake` is
    /// called after each batch of events was queued, and when the queue ends; it must not block.
    /// `resync`: the [period](crate::fan_out::resync_period) at which the whole store is delivered
    /// again.
    pub fn register(
        &mut self,
        now: Duration,
        capacity: usize,
        resync: Option<Duration>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> (RegistrationId, RegistrationQueue<T>) {
        let (id, queue) = self.fan_out.add(capacity, resync, wake);
        if self.has_synced {
            self.fan_out.start_initial(now, &self.store.reader().snapshot(), Some(id));
        }
        (id, queue)
    }

    /// Removes a registration; returns whether it existed.
    pub fn unregister(&mut self, id: RegistrationId) -> bool {
        self.fan_out.remove(id)
    }

    /// Adds an observer, which is called for each publication from now on, inside of
    /// [`apply`](Self::apply) and before registrations are woken. Returns the state from which the
    /// first of them leads on; `None` before the first list, which is then the first of them.
    ///
    /// The observer must be cheap, since everything waits for it. One that panics is removed, and
    /// [reported](Self::take_observer_faults).
    ///
    /// # Examples
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use informer_core::{Delta, Item, ObjectKey, Pipeline};
    ///
    /// let mut pipeline = Pipeline::new();
    /// let (history, seen) = mpsc::channel();
    /// let (_, start) = pipeline.observe(move |publication| {
    ///     let names: Vec<_> = publication
    ///         .changes()
    ///         .map(|(version, event)| format!("{}@{version}", event.key()))
    ///         .collect();
    ///     drop(history.send((names, publication.version().to_string())));
    /// });
    /// assert!(start.is_none());
    ///
    /// let (version, history_changed, refreshes) = ("5".into(), false, None);
    /// pipeline.apply(Duration::ZERO, [
    ///     Delta::ReplaceStarted { distrust: false },
    ///     Delta::ReplaceFinished { version, history_changed, refreshes },
    ///     Delta::Added(Item::new(ObjectKey::cluster("a"), "u".into(), "7".into(), ())),
    ///     Delta::Bookmark("9".into()),
    /// ]);
    /// assert_eq!(seen.recv(), Ok((vec![], "5".to_owned())));
    /// assert_eq!(seen.recv(), Ok((vec!["a@7".to_owned()], "9".to_owned())));
    /// ```
    #[track_caller]
    pub fn observe(
        &mut self,
        observer: impl FnMut(&Publication<'_, T>) + Send + 'static,
    ) -> (ObserverId, Option<Snapshot<T>>) {
        let id = self.observers.add(observer);
        (id, self.has_synced.then(|| self.store.reader().snapshot()))
    }

    /// Removes an observer; returns whether it existed.
    pub fn unobserve(&mut self, id: ObserverId) -> bool {
        self.observers.remove(id)
    }

    /// Takes the observers that panicked since the last call.
    pub fn take_observer_faults(&mut self) -> Vec<ObserverFault> {
        self.observers.take_faults()
    }

    /// Adds up to `objects` more objects to a new index; `usize::MAX` adds all. Returns whether the
    /// index is complete (G11); a complete index is published. Deltas may be applied between two
    /// calls.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if another index has its name.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use informer_core::store::Index;
    /// use informer_core::{Delta, Item, ObjectKey, Pipeline};
    ///
    /// let added = |name: &str| {
    ///     let key = ObjectKey::cluster(name);
    ///     [Delta::Added(Item::new(key, name.into(), 1.into(), name.to_owned()))]
    /// };
    /// let mut pipeline = Pipeline::new();
    /// pipeline.apply(Duration::ZERO, added("a"));
    /// pipeline.apply(Duration::ZERO, added("c"));
    ///
    /// let by_name = Index::new("name", |name: &String, values| values.push(name.as_str()));
    /// while !pipeline.build_index(&by_name, 1)? {
    ///     pipeline.apply(Duration::ZERO, added("b"));
    /// }
    /// assert_eq!(pipeline.reader().snapshot().by_index(&by_name, "b")?.count(), 1);
    /// # Ok::<(), informer_core::store::IndexError>(())
    /// ```
    pub fn build_index(&mut self, index: &Index<T>, objects: usize) -> Result<bool, IndexError> {
        self.store.build_index(index, objects)
    }

    /// Discards an index that is not complete.
    pub fn abandon_index(&mut self, index: &Index<T>) {
        self.store.abandon_index(index);
    }

    /// Takes the faults of index functions from outside [`apply`](Self::apply), which returns its
    /// own.
    pub fn take_faults(&mut self) -> Vec<IndexFault> {
        self.store.take_faults()
    }

    /// When [`Delta::Sync`] is due next.
    #[must_use]
    pub fn next_resync(&self) -> Option<Duration> {
        self.fan_out.next_resync()
    }

    /// Applies deltas in order, publishes the store, then queues the events for the registrations.
    /// Returns the faults of index functions.
    pub fn apply(
        &mut self,
        now: Duration,
        deltas: impl IntoIterator<Item = Delta<T>>,
    ) -> Vec<IndexFault> {
        let mut batch = std::mem::replace(&mut self.spare, Batch::new());
        batch.observed(!self.observers.is_empty());
        for delta in deltas {
            self.apply_one(now, delta, &mut batch);
        }
        self.publish_changes(&mut batch);
        batch.shrink(SPARE);
        self.spare = batch;
        self.store.take_faults()
    }

    /// Ends all registrations' queues and drops the observers: the informer stops. Queued events
    /// are still delivered.
    pub fn finish(&mut self) {
        self.replacement = None;
        self.observers.clear();
        self.fan_out.finish();
    }

    fn apply_one(&mut self, now: Duration, delta: Delta<T>, batch: &mut Batch<T>) {
        match delta {
            Delta::Added(item) | Delta::Updated(item) => self.upsert(item, batch),
            Delta::Deleted(tombstone) => self.delete(tombstone, batch),
            Delta::Undecodable { key, uid, version } => self.undecodable(key, &uid, version, batch),
            Delta::Bookmark(version) => drop(self.reached(version)),
            Delta::ReplaceStarted { distrust } => {
                self.replacement = Some(Staged { list: Replacement::new(), distrust });
            }
            Delta::Listed(item) => self.stage(|list| list.insert(item)),
            Delta::Kept(key) => self.stage(|list| list.keep(key)),
            Delta::Unlisted(key) => self.stage(|list| list.remove(&key)),
            Delta::ReplaceFinished { version, history_changed, refreshes } => {
                let Some(staged) = self.replacement.take() else { return };
                if let Some(refreshes) = refreshes {
                    self.refreshes = self.refreshes.max(refreshes);
                    self.needs_refresh = false;
                }
                self.publish_alone(batch);
                if history_changed {
                    self.store.history_changed();
                }
                let distrust = staged.distrust && history_changed;
                let first = !self.has_synced;
                let before = self.store.version().clone();
                self.store.replace(staged.list, version, distrust, |key, change| {
                    // The initial set has it all.
                    if !first {
                        replaced(key, change, &before, batch);
                    }
                });
                self.has_synced = true;
                let kind = match first {
                    true => PublicationKind::FirstList,
                    false => PublicationKind::Relist { history_changed },
                };
                self.published(kind, batch);
                if first {
                    self.fan_out.start_initial(now, &self.store.reader().snapshot(), None);
                }
            }
            Delta::ReplaceAbandoned => self.replacement = None,
            Delta::Sync => {
                self.publish_changes(batch);
                self.fan_out.resync(now, &self.store.reader().snapshot());
            }
            Delta::Cleared { refreshes } => {
                self.refreshes = self.refreshes.max(refreshes);
                self.needs_refresh = true;
                self.publish_alone(batch);
                self.clear(batch);
            }
        }
    }

    fn upsert(&mut self, item: Item<T>, batch: &mut Batch<T>) {
        let Item { key, record } = item;
        let object = Arc::clone(&record.object);
        let version = self.reached(record.version.clone());
        let change = self.store.upsert(Item { key: key.clone(), record });
        changed(key, change, object, &version, &version, batch);
    }

    fn delete(&mut self, tombstone: Tombstone<T>, batch: &mut Batch<T>) {
        let Tombstone { key, uid, version, last } = tombstone;
        let version = self.reached(version);
        let Some(held) = self.store.get(&key) else { return };
        if !uid.is_unset() && !held.uid.is_unset() && held.uid != uid {
            // A late event of an object that another one has replaced already.
            return;
        }
        let Some(held) = self.store.remove(&key) else { return };
        let event = match last {
            Some(last) => Event::Deleted(Deleted {
                key,
                old: held.object,
                last,
                final_state: FinalState::Known,
            }),
            None => gone_unseen(key, held),
        };
        batch.push(event, &version);
    }

    /// Keeps what the store holds of the same object; deletes another object under the key.
    fn undecodable(
        &mut self,
        key: ObjectKey,
        uid: &Uid,
        version: ResourceVersion,
        batch: &mut Batch<T>,
    ) {
        if self.store.get(&key).is_some_and(|held| held.uid != *uid) {
            return self.delete(Tombstone { key, uid: Uid::default(), version, last: None }, batch);
        }
        self.reached(version);
    }

    /// Sets the version of the store, unless `version` is unset; returns that of the store.
    fn reached(&mut self, version: ResourceVersion) -> ResourceVersion {
        if !version.is_unset() {
            self.store.set_version(version);
        }
        self.store.version().clone()
    }

    fn clear(&mut self, batch: &mut Batch<T>) {
        self.replacement = None;
        let version = self.store.version().clone();
        self.store.replace(Replacement::new(), version.clone(), false, |key, change| {
            replaced(key, change, &version, batch)
        });
        self.published(PublicationKind::Cleared, batch);
    }

    fn stage(&mut self, change: impl FnOnce(&mut Replacement<T>)) {
        if let Some(staged) = &mut self.replacement {
            change(&mut staged.list);
        }
    }

    /// Publishes what came before a relist, if there are observers: they are told of a relist
    /// alone. Registrations are told of both at once.
    fn publish_alone(&mut self, batch: &mut Batch<T>) {
        if !self.observers.is_empty() {
            self.publish_changes(batch);
        }
    }

    /// Publishes what deltas of a watch changed, if anything.
    fn publish_changes(&mut self, batch: &mut Batch<T>) {
        if self.store.publish() {
            self.published(PublicationKind::Changes, batch);
        }
    }

    /// Tells the observers, then the registrations, what the last publication consists of.
    fn published(&mut self, kind: PublicationKind, batch: &mut Batch<T>) {
        // Nothing before the end of the first list: the initial set then has all objects (G9).
        if self.has_synced {
            if !self.observers.is_empty() {
                let snapshot = self.store.reader().snapshot();
                self.observers.published(kind, &self.published, &snapshot, batch);
            }
            self.fan_out.distribute(&mut batch.events);
        }
        self.published.clone_from(self.store.version());
        batch.clear();
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

/// The events of a relist. The final state of an object that it lacks is unknown (G6).
fn replaced<T>(
    key: &ObjectKey,
    change: ReplaceChange<T>,
    before: &ResourceVersion,
    batch: &mut Batch<T>,
) {
    match change {
        ReplaceChange::Removed(old) => batch.push(gone_unseen(key.clone(), old), before),
        ReplaceChange::Written(change, Record { object, version, .. }) => {
            changed(key.clone(), change, object, &version, before, batch)
        }
    }
}

/// `gone`: the version for the deletion of a predecessor.
fn changed<T>(
    key: ObjectKey,
    change: Change<T>,
    object: Arc<T>,
    version: &ResourceVersion,
    gone: &ResourceVersion,
    batch: &mut Batch<T>,
) {
    match change {
        Change::Unchanged => {}
        Change::Added => batch.push(Event::Added { key, object, initial: false }, version),
        Change::Updated { old } => {
            let reason = UpdateReason::Change;
            batch.push(Event::Updated { key, old: old.object, new: object, reason }, version);
        }
        Change::Recreated { old } => {
            // The deletion of the predecessor was missed.
            batch.push(gone_unseen(key.clone(), old), gone);
            batch.push(Event::Added { key, object, initial: false }, version);
        }
    }
}

/// The deletion of an object whose final state is unknown.
fn gone_unseen<T>(key: ObjectKey, held: Record<T>) -> Event<T> {
    let last = Arc::clone(&held.object);
    Event::Deleted(Deleted { key, old: held.object, last, final_state: FinalState::Unknown })
}
