//! Batches of events that registrations share: each is stored once, however many queues hold it.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::cursor::Cursor;
use crate::Event;
use crate::store::Snapshot;

/// Shared batches queued for one registration, in order.
pub(super) struct Batches<T>(VecDeque<Part<T>>);

/// A range of a shared batch. Never empty.
struct Part<T> {
    events: Arc<Vec<Event<T>>>,
    left: Range<usize>,
}

/// Events taken from a queue, in order; dereferences to a slice.
///
/// Events of a distributed batch are shared with other registrations rather than copied. Keeping
/// one of them keeps the whole batch in memory, up to 64 events.
pub struct Taken<T>(Source<T>);

enum Source<T> {
    Shared(Part<T>),
    Own {
        events: Vec<Event<T>>,
        /// The cursor that ended with these events.
        ended: Option<Cursor<T>>,
    },
}

/// The part of a [`Taken`] that has no other owner.
///
/// Dropping it may run the `Drop` of objects, which may panic. The fields can be dropped one at a
/// time.
pub struct Unshared<T> {
    /// The events; empty if another registration still refers to them.
    pub events: Vec<Event<T>>,
    /// The snapshot of an initial set or resync that ended with these events.
    pub snapshot: Option<Snapshot<T>>,
}

impl<T> Batches<T> {
    pub(super) fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Adds a batch, which must have events.
    pub(super) fn push(&mut self, events: Arc<Vec<Event<T>>>) {
        debug_assert!(!events.is_empty());
        let left = 0..events.len();
        self.0.push_back(Part { events, left });
    }

    /// The next events, up to `max` (at least 1) and not beyond their batch.
    pub(super) fn take(&mut self, max: usize) -> Option<Taken<T>> {
        let first = self.0.front_mut()?;
        if first.left.len() <= max {
            return self.0.pop_front().map(Taken::shared);
        }
        let end = first.left.start + max;
        let taken = Part { events: Arc::clone(&first.events), left: first.left.start..end };
        first.left.start = end;
        Some(Taken::shared(taken))
    }
}

impl<T> Taken<T> {
    pub(super) fn own(events: Vec<Event<T>>, ended: Option<Cursor<T>>) -> Self {
        Self(Source::Own { events, ended })
    }

    /// Drops the reference to shared events, and returns what has no other owner.
    #[must_use]
    pub fn into_unshared(self) -> Unshared<T> {
        match self.0 {
            Source::Shared(part) => Unshared {
                events: Arc::into_inner(part.events).unwrap_or_default(),
                snapshot: None,
            },
            Source::Own { events, ended } => {
                Unshared { events, snapshot: ended.map(Cursor::into_snapshot) }
            }
        }
    }

    fn shared(part: Part<T>) -> Self {
        Self(Source::Shared(part))
    }
}

impl<T> Deref for Taken<T> {
    type Target = [Event<T>];

    fn deref(&self) -> &[Event<T>] {
        match &self.0 {
            Source::Shared(part) => &part.events[part.left.clone()],
            Source::Own { events, .. } => events,
        }
    }
}

impl<T> fmt::Debug for Taken<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T> fmt::Debug for Unshared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unshared").field("events", &self.events).finish_non_exhaustive()
    }
}
