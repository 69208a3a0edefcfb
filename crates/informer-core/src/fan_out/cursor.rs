//! Initial sets and resyncs: a walk over a snapshot rather than a queue of events.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::store::Snapshot;
use crate::{Event, ObjectKey, UpdateReason};

/// A walk over a snapshot, key by key, at the reader's pace.
pub(super) struct Cursor<T> {
    snapshot: Snapshot<T>,
    /// The last key visited.
    at: Option<ObjectKey>,
    /// Keys ahead of `at` that a change has overtaken: what is given instead, if anything is.
    changed: HashMap<ObjectKey, Option<Arc<T>>>,
    /// How many events are still to be given.
    left: usize,
    is_resync: bool,
}

impl<T> Cursor<T> {
    /// A walk that gives every object as one of the initial set.
    pub(super) fn initial(snapshot: Snapshot<T>) -> Self {
        let left = snapshot.len();
        Self { snapshot, at: None, changed: HashMap::new(), left, is_resync: false }
    }

    /// A walk that shows every object again, but for those with a change `pending`.
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

    /// How many events are still to be given.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn is_initial(&self) -> bool {
        !self.is_resync
    }

    /// Merges a change into the walk if it concerns a key not given yet, and returns what has to be queued. In an initial
    /// set the changed state is given as the key's first one; in a resync the change is queued, and the key is skipped.
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

    /// Moves on by up to `max` events.
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

    /// Whether the reader has still to be given the key.
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
