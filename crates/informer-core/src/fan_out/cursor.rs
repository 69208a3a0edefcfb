//! Initial sets and resyncs: a cursor over a snapshot instead of queued events.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::store::Snapshot;
use crate::{Event, ObjectKey, UpdateReason};

/// A cursor over a snapshot in key order, advanced by the reader.
pub(super) struct Cursor<T> {
    snapshot: Snapshot<T>,
    /// The last key visited.
    at: Option<ObjectKey>,
    /// Keys after `at` that changed since the snapshot, with the object to deliver instead. `None`
    /// skips the key.
    changed: HashMap<ObjectKey, Option<Arc<T>>>,
    /// The number of events still to be delivered.
    left: usize,
    is_resync: bool,
}

impl<T> Cursor<T> {
    /// A cursor that delivers every object as part of the initial set.
    pub(super) fn initial(snapshot: Snapshot<T>) -> Self {
        let left = snapshot.len();
        Self { snapshot, at: None, changed: HashMap::new(), left, is_resync: false }
    }

    /// A cursor that delivers every object again, except those with a `pending` change.
    pub(super) fn resync<'a>(
        snapshot: Snapshot<T>,
        pending: impl IntoIterator<Item = &'a ObjectKey>,
    ) -> Self {
        let mut changed = HashMap::new();
        for key in pending {
            if snapshot.get(key).is_some() {
                changed.insert(key.clone(), None);
            }
        }
        let left = snapshot.len() - changed.len();
        Self { snapshot, at: None, changed, left, is_resync: true }
    }

    /// The number of events still to be delivered.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn is_initial(&self) -> bool {
        !self.is_resync
    }

    /// The snapshot of a finished cursor, whose `changed` holds no objects any more.
    pub(super) fn into_snapshot(self) -> Snapshot<T> {
        self.snapshot
    }

    /// Merges a change of a key that is still to be delivered into the cursor; returns the event if
    /// it must be queued. An initial set delivers the changed state as the key's first one. A
    /// resync skips the key, and the change is queued.
    pub(super) fn pass(&mut self, event: Event<T>) -> Option<Event<T>> {
        if !self.is_ahead(event.key()) {
            return Some(event);
        }
        let key = event.key().clone();
        let (instead, rest) = match event {
            event if self.is_resync => (None, Some(event)),
            Event::Added { object, .. } => (Some(object), None),
            Event::Updated { new, .. } => (Some(new), None),
            Event::Deleted(_) => (None, None),
        };
        self.left -= usize::from(instead.is_none());
        self.changed.insert(key, instead);
        rest
    }

    /// Adds events until `batch` has `max`, and advances.
    pub(super) fn visit(&mut self, max: usize, batch: &mut Vec<Event<T>>) {
        let mut entries = match &self.at {
            Some(at) => self.snapshot.after(at),
            None => self.snapshot.iter(),
        };
        let mut at = None;
        while batch.len() < max && self.left > 0 {
            let Some(entry) = entries.next() else { break };
            at = Some(entry.key);
            let object = match self.changed.remove(entry.key) {
                Some(None) => continue,
                Some(Some(instead)) => instead,
                None => Arc::clone(entry.object()),
            };
            batch.push(self.event(entry.key.clone(), object));
            self.left -= 1;
        }
        if let Some(at) = at.cloned() {
            self.at = Some(at);
        }
    }

    /// Whether the key is still to be delivered.
    fn is_ahead(&self, key: &ObjectKey) -> bool {
        self.at.as_ref().is_none_or(|at| key > at)
            && self.snapshot.get(key).is_some()
            && !matches!(self.changed.get(key), Some(None))
    }

    fn event(&self, key: ObjectKey, object: Arc<T>) -> Event<T> {
        if self.is_resync {
            let old = Arc::clone(&object);
            return Event::Updated { key, old, new: object, reason: UpdateReason::Resync };
        }
        Event::Added { key, object, initial: true }
    }
}
