//! Events that registrations share: what one step of the writer told all of them, held once.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::Event;

/// Batches that wait for one registration, in order.
pub(super) struct Batches<T>(VecDeque<Part<T>>);

/// What is left of a batch. Never empty.
struct Part<T> {
    events: Arc<[Event<T>]>,
    left: Range<usize>,
}

/// Events taken from a queue, to be given to a handler in order; a slice to read.
///
/// Those of a batch that was distributed are shared with the other registrations: none of them copies what the writer told
/// all, so that a hundred handlers cost little more than one. Whoever keeps some of a batch keeps all of it, up to 64
/// events.
pub struct Taken<T>(Source<T>);

enum Source<T> {
    Shared(Part<T>),
    Own(Vec<Event<T>>),
}

impl<T> Batches<T> {
    pub(super) fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Adds a batch, which must have events.
    pub(super) fn push(&mut self, events: &Arc<[Event<T>]>) {
        debug_assert!(!events.is_empty());
        self.0.push_back(Part { events: Arc::clone(events), left: 0..events.len() });
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
    pub(super) fn own(events: Vec<Event<T>>) -> Self {
        Self(Source::Own(events))
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
            Source::Own(events) => events,
        }
    }
}

impl<T> fmt::Debug for Taken<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
