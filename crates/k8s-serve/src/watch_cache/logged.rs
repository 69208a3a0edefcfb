//! A change in the log, and the events that were made of it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::interest::{EventType, Interest};
use crate::backend::Change;
use crate::object::{Object, WriteError};
use crate::writer::Rendering;

/// A change in the log, with its encoded events. An event is encoded once for each form (JSON,
/// protobuf, metadata, table) that a client asks for, whatever the number of watchers.
pub struct Logged<O> {
    change: Change<O>,
    portion: Portion,
    /// `None` after they were dropped to save memory.
    encoded: Mutex<Option<Vec<Encoded>>>,
    weight: Arc<Encodings>,
}

/// What the encoded events of a whole log weigh together, and may weigh, in bytes.
#[derive(Debug)]
pub(super) struct Encodings {
    weight: AtomicUsize,
    limit: usize,
}

/// Which part of a change an entry of the log stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Portion {
    Whole,
    /// For selections that the object leaves.
    Leaving,
    /// For all others.
    Staying,
}

struct Encoded {
    event: EventType,
    rendering: Rendering,
    bytes: Bytes,
}

impl Encodings {
    pub(super) fn new(limit: usize) -> Self {
        Self { weight: AtomicUsize::new(0), limit }
    }

    pub(super) fn weight(&self) -> usize {
        self.weight.load(Ordering::Relaxed)
    }

    pub(super) fn is_full(&self) -> bool {
        self.weight() > self.limit
    }
}

impl<O> Logged<O> {
    pub(super) fn new(change: Change<O>, portion: Portion, weight: Arc<Encodings>) -> Self {
        Self { change, portion, encoded: Mutex::new(Some(Vec::new())), weight }
    }

    /// Whether the change stands in the log again, for those that the object does not leave.
    pub(super) fn is_told_again(&self) -> bool {
        self.portion == Portion::Leaving
    }

    /// The change.
    #[must_use]
    pub fn change(&self) -> &Change<O> {
        &self.change
    }

    /// The event as bytes; `encode` makes them if nobody has before.
    pub(crate) fn encoded(
        &self,
        event: EventType,
        rendering: &Rendering,
        encode: impl FnOnce() -> Result<Bytes, WriteError>,
    ) -> Result<Bytes, WriteError> {
        // Held meanwhile: the others want the same bytes.
        let mut all = self.encoded.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = &mut *all else { return encode() };
        let found = all.iter().find(|it| it.event == event && it.rendering == *rendering);
        if let Some(found) = found {
            return Ok(found.bytes.clone());
        }
        let bytes = encode()?;
        if self.weight.is_full() {
            // Until the next change makes room.
            return Ok(bytes);
        }
        self.weight.weight.fetch_add(bytes.len(), Ordering::Relaxed);
        all.push(Encoded { event, rendering: rendering.clone(), bytes: bytes.clone() });
        Ok(bytes)
    }
}

impl<O> Logged<O> {
    /// Lets go of the events: who still wants one makes it for itself.
    pub(super) fn forget_encoded(&self) {
        let all = self.encoded.lock().unwrap_or_else(PoisonError::into_inner).take();
        let weight = all.into_iter().flatten().map(|it| it.bytes.len()).sum();
        self.weight.weight.fetch_sub(weight, Ordering::Relaxed);
    }
}

impl<O: Object> Logged<O> {
    /// What this is to a watcher.
    pub(super) fn event(&self, interest: &Interest) -> Option<EventType> {
        let event = interest.event(&self.change)?;
        let is_told = match (self.portion, event) {
            (Portion::Whole, _)
            | (Portion::Leaving, EventType::Deleted)
            | (Portion::Staying, EventType::Added | EventType::Modified) => true,
            (Portion::Leaving, EventType::Added | EventType::Modified)
            | (Portion::Staying, EventType::Deleted) => false,
        };
        is_told.then_some(event)
    }
}

impl<O> Drop for Logged<O> {
    fn drop(&mut self) {
        self.forget_encoded();
    }
}

impl<O> fmt::Debug for Logged<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logged").field("version", &self.change.version).finish_non_exhaustive()
    }
}
