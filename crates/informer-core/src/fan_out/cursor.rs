//! Initial sets and resyncs: a walk over a snapshot rather than a queue of events.

use std::sync::Arc;

use hashbrown::HashSet;

use crate::store::Snapshot;
use crate::{Event, ObjectKey, UpdateReason};

/// A walk over a snapshot, key by key, at the reader's pace.
pub(super) struct Cursor<T> {
    snapshot: Snapshot<T>,
    /// The last key visited.
    at: Option<ObjectKey>,
    /// Keys ahead of `at` that a change has overtaken.
    overtaken: HashSet<ObjectKey>,
    pub(super) resync: bool,
}

impl<T> Cursor<T> {
    /// Before the first key.
    pub(super) fn new(snapshot: Snapshot<T>, overtaken: HashSet<ObjectKey>, resync: bool) -> Self {
        Self { snapshot, at: None, overtaken, resync }
    }

    /// Notes a change of `key`; whether the cursor would have visited it.
    pub(super) fn overtake(&mut self, key: &ObjectKey) -> bool {
        let ahead = self.at.as_ref().is_none_or(|at| key > at);
        ahead && self.snapshot.get(key).is_some() && self.overtaken.insert(key.clone())
    }

    /// Moves on by up to `max` events; whether the end was reached.
    pub(super) fn visit(&mut self, max: usize, batch: &mut Vec<Event<T>>) -> bool {
        let mut entries = match &self.at {
            Some(at) => self.snapshot.after(at),
            None => self.snapshot.iter(),
        };
        let mut at = None;
        let mut done = false;
        while batch.len() < max {
            let Some(entry) = entries.next() else {
                done = true;
                break;
            };
            at = Some(entry.key);
            if !self.overtaken.remove(entry.key) {
                batch.push(self.event(entry.key, entry.object()));
            }
        }
        let done = done || entries.next().is_none();
        let at = at.cloned();
        if at.is_some() {
            self.at = at;
        }
        done
    }

    fn event(&self, key: &ObjectKey, object: &Arc<T>) -> Event<T> {
        let (key, object) = (key.clone(), Arc::clone(object));
        if self.resync {
            return Event::Updated {
                key,
                old: Arc::clone(&object),
                new: object,
                reason: UpdateReason::Resync,
            };
        }
        Event::Added { key, object, initial: true }
    }
}
