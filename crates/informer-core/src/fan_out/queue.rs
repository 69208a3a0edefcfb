//! The queue of one registration: bounded, merging by key, with a cursor for initial sets and
//! resyncs.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;

use super::batches::{Batches, Taken};
use super::cursor::Cursor;
use crate::store::Snapshot;
use crate::{Deleted, Event, ObjectKey, UpdateReason};

/// The events queued for one registration.
///
/// Up to `capacity` events are queued separately. Beyond that, an event is merged with the queued
/// one of the same key where that is legal (G3, G5, G16).
///
/// The initial set and resyncs are a cursor over a snapshot rather than queued events. A change of
/// a key that the cursor has not reached replaces the cursor's event for that key, whatever the
/// capacity. Queued events are delivered after the end of the cursor, so that no other event comes
/// before the end of the initial set (G17).
///
/// A batch for all registrations stays shared until the queue needs separate events: to merge at
/// the capacity, or when a cursor starts.
pub struct EventQueue<T> {
    capacity: usize,
    /// Shared events. While there are any, there are no slots and no cursor.
    batches: Batches<T>,
    /// `None` where merging removed an event.
    slots: VecDeque<Option<Event<T>>>,
    /// The number of the first slot: how many slots were ever taken from the front.
    base: u64,
    live: usize,
    /// The number of each key's last slot, while merging.
    last_of: Option<HashMap<ObjectKey, u64>>,
    cursor: Option<Cursor<T>>,
    merged: u64,
    /// Whether the initial set has started.
    begun: bool,
    /// The number of events in the batch being handled; zero once it is handled.
    in_hand: usize,
    /// Whether that batch belongs to a resync.
    resync_in_hand: bool,
    synced: bool,
    closed: bool,
    finished: bool,
}

impl<T> EventQueue<T> {
    /// An empty queue that merges events once it holds `capacity` (at least 1) of them.
    #[must_use]
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            batches: Batches::new(),
            slots: VecDeque::new(),
            base: 0,
            live: 0,
            last_of: None,
            cursor: None,
            merged: 0,
            begun: false,
            in_hand: 0,
            resync_in_hand: false,
            synced: false,
            closed: false,
            finished: false,
        }
    }

    /// Adds an event.
    pub fn push(&mut self, event: Event<T>) {
        if self.closed || self.finished {
            return;
        }
        self.unpack();
        if let Some(event) = self.pass_cursor(event) {
            self.enqueue(event);
        }
        self.update_synced();
    }

    /// Adds a batch shared with other registrations; none of its events is initial.
    pub fn push_all(&mut self, events: Arc<Vec<Event<T>>>) {
        debug_assert!(!events.iter().any(Event::is_initial));
        let takes_all = self.cursor.is_none() && self.slots.is_empty() && self.last_of.is_none();
        if !takes_all || self.closed || self.finished || self.live + events.len() > self.capacity {
            return events.iter().for_each(|event| self.push(event.clone()));
        }
        if !events.is_empty() {
            self.live += events.len();
            self.batches.push(events);
        }
        self.update_synced();
    }

    /// Starts the initial set: every object in `snapshot`, as `Added { initial: true }`.
    pub(crate) fn start_initial(&mut self, snapshot: Snapshot<T>) {
        self.begun = true;
        self.unpack();
        self.walk(Cursor::initial(snapshot));
        self.update_synced();
    }

    /// Starts a resync: every object in `snapshot` again, except those with a pending change.
    /// Returns whether it started: not while the initial set or an earlier resync is being
    /// delivered (G8), and not if there is nothing to deliver.
    pub(crate) fn start_resync(&mut self, snapshot: Snapshot<T>) -> bool {
        if !self.begun || self.closed || self.cursor.is_some() || self.resync_in_hand {
            return false;
        }
        self.unpack();
        let pending = self.slots.iter().flatten().map(Event::key);
        self.walk(Cursor::resync(snapshot, pending));
        self.cursor.is_some()
    }

    /// Takes up to `max` (at least 1) events, and marks those taken before as handled. May take
    /// fewer, since it does not go beyond a shared batch. Events of the initial set are never mixed
    /// with others.
    pub fn take(&mut self, max: usize) -> Taken<T> {
        self.handled();
        if let Some(taken) = self.batches.take(max) {
            self.live -= taken.len();
            self.in_hand = taken.len();
            self.update_synced();
            return taken;
        }
        let mut batch = Vec::new();
        let ended = self.pop_from_cursor(max, &mut batch);
        if batch.is_empty() {
            self.pop_from_slots(max, &mut batch);
        }
        self.in_hand = batch.len();
        self.resync_in_hand =
            matches!(batch.first(), Some(Event::Updated { reason: UpdateReason::Resync, .. }));
        self.update_synced();
        // With the cursor if it ended: its snapshot may hold the last references to objects, which
        // must not be dropped under the queue's lock.
        Taken::own(batch, ended)
    }

    /// Marks the batch that was taken last as handled.
    pub(crate) fn handled(&mut self) {
        self.in_hand = 0;
        self.resync_in_hand = false;
        self.update_synced();
    }

    /// Whether the handler has returned from every object of its initial set (G19).
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.synced
    }

    /// Whether there is nothing to deliver at the moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.closed || self.live == 0 && self.cursor.is_none()
    }

    /// Whether no event will come any more: the registration was removed, or the informer stopped
    /// and every event was taken.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.closed || self.finished && self.is_empty()
    }

    /// Ends the queue at once: no event is delivered any more (G18). Returns the content, to be
    /// dropped outside of locks.
    #[must_use]
    pub(crate) fn close(&mut self) -> impl Sized + use<T> {
        self.closed = true;
        self.last_of = None;
        (self.live, self.in_hand) = (0, 0);
        let batches = std::mem::replace(&mut self.batches, Batches::new());
        (batches, std::mem::take(&mut self.slots), self.cursor.take())
    }

    /// Ends the queue: no event is added any more; queued ones are still delivered.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// The number of events to be taken, including the rest of an initial set or resync.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.live + self.cursor.as_ref().map_or(0, Cursor::left)
    }

    /// The number of events in the batch that was taken and is not handled yet.
    #[must_use]
    pub fn in_hand(&self) -> usize {
        self.in_hand
    }

    /// How many events were merged into others so far.
    #[must_use]
    pub fn merged(&self) -> u64 {
        self.merged
    }

    #[cfg(test)]
    pub(super) fn slots_in_memory(&self) -> usize {
        self.slots.capacity()
    }

    /// Moves shared events into slots of their own.
    fn unpack(&mut self) {
        while let Some(events) = self.batches.take(usize::MAX) {
            self.slots.extend(events.iter().cloned().map(Some));
        }
    }

    /// Sets the cursor, unless it has nothing to deliver.
    fn walk(&mut self, cursor: Cursor<T>) {
        self.cursor = Some(cursor).filter(|cursor| cursor.left() > 0);
    }

    /// Passes `event` to the cursor, if there is one; returns it if it must be queued.
    fn pass_cursor(&mut self, event: Event<T>) -> Option<Event<T>> {
        let Some(cursor) = &mut self.cursor else { return Some(event) };
        let rest = cursor.pass(event);
        self.merged += u64::from(rest.is_none());
        self.cursor.take_if(|cursor| cursor.left() == 0);
        rest
    }

    fn enqueue(&mut self, event: Event<T>) {
        if self.live >= self.capacity && self.last_of.is_none() {
            self.last_of = Some(last_of(&self.slots, self.base));
        }
        let Some(last_of) = &mut self.last_of else {
            self.append(event);
            return;
        };
        let Some(&number) = last_of.get(event.key()) else {
            self.append(event);
            return;
        };
        let slot = &mut self.slots[slot_index(number, self.base)];
        let pending = slot.take().expect("last_of names live slots only");
        match merge(pending, event) {
            Merged::One(event) => *slot = Some(event),
            Merged::Nothing(key) => {
                last_of.remove(&key);
                self.live -= 1;
                self.compact();
            }
            Merged::Two(pending, event) => {
                *slot = Some(pending);
                self.append(event);
                return;
            }
        }
        self.merged += 1;
    }

    fn append(&mut self, event: Event<T>) {
        if let Some(last_of) = &mut self.last_of {
            last_of.insert(event.key().clone(), self.base + self.slots.len() as u64);
        }
        self.live += 1;
        self.slots.push_back(Some(event));
    }

    /// Removes empty slots once they outnumber the events.
    fn compact(&mut self) {
        if self.slots.len() < 64 + 2 * self.live {
            return;
        }
        self.slots.retain(Option::is_some);
        self.last_of = Some(last_of(&self.slots, self.base));
    }

    fn pop_from_cursor(&mut self, max: usize, batch: &mut Vec<Event<T>>) -> Option<Cursor<T>> {
        self.cursor.as_mut()?.visit(max, batch);
        self.cursor.take_if(|cursor| cursor.left() == 0)
    }

    fn pop_from_slots(&mut self, max: usize, batch: &mut Vec<Event<T>>) {
        // The usual case, while the handler keeps up: no event was merged.
        if self.last_of.is_none() && self.live == self.slots.len() {
            let taken = self.live.min(max);
            batch.extend(self.slots.drain(..taken).flatten());
            self.live -= taken;
            self.base += taken as u64;
        } else {
            self.pop_one_by_one(max, batch);
        }
        if self.slots.is_empty() && self.slots.capacity() / 4 > self.capacity.max(64) {
            // Frees the memory of a long backlog (G35).
            self.slots = VecDeque::new();
        }
        // Not before half the capacity, so that a queue near it does not rebuild `last_of`
        // repeatedly.
        if self.live <= self.capacity / 2 {
            self.last_of = None;
        }
    }

    fn pop_one_by_one(&mut self, max: usize, batch: &mut Vec<Event<T>>) {
        while batch.len() < max {
            let Some(slot) = self.slots.pop_front() else { break };
            let Some(event) = slot else {
                self.base += 1;
                continue;
            };
            if let Some(last_of) = &mut self.last_of
                && last_of.get(event.key()) == Some(&self.base)
            {
                last_of.remove(event.key());
            }
            self.base += 1;
            self.live -= 1;
            batch.push(event);
        }
    }

    fn update_synced(&mut self) {
        if self.closed {
            // Events discarded by `close` were not handled.
            return;
        }
        let initial_ahead = self.cursor.as_ref().is_some_and(Cursor::is_initial);
        self.synced = self.synced || self.begun && !initial_ahead && self.in_hand == 0;
    }
}

enum Merged<T> {
    Nothing(ObjectKey),
    One(Event<T>),
    Two(Event<T>, Event<T>),
}

/// Merges a queued event with a later one of the same key; the reader has seen neither.
fn merge<T>(pending: Event<T>, event: Event<T>) -> Merged<T> {
    match (pending, event) {
        (Event::Added { key, initial, .. }, Event::Updated { new, .. }) => {
            Merged::One(Event::Added { key, object: new, initial })
        }
        (Event::Added { key, .. }, Event::Deleted(_)) => Merged::Nothing(key),
        (Event::Updated { old, .. }, Event::Updated { key, new, reason, .. }) => {
            Merged::One(Event::Updated { key, old, new, reason })
        }
        // `old` is the last state that the reader was given.
        (Event::Updated { old, .. }, Event::Deleted(gone)) => {
            Merged::One(Event::Deleted(Deleted { old, ..gone }))
        }
        // Another object under the same key (G5), or an order of events that does not occur.
        (pending @ Event::Deleted(_), event) | (pending, event @ Event::Added { .. }) => {
            Merged::Two(pending, event)
        }
    }
}

fn last_of<T>(slots: &VecDeque<Option<Event<T>>>, base: u64) -> HashMap<ObjectKey, u64> {
    slots
        .iter()
        .zip(base..)
        .filter_map(|(slot, number)| Some((slot.as_ref()?.key().clone(), number)))
        .collect()
}

fn slot_index(number: u64, base: u64) -> usize {
    usize::try_from(number - base).expect("the queue fits into memory")
}

impl<T> fmt::Debug for EventQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventQueue")
            .field("depth", &self.live)
            .field("merged", &self.merged)
            .field("synced", &self.synced)
            .finish_non_exhaustive()
    }
}
