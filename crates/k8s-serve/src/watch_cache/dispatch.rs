//! Decides which watcher is given which change.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::index::Index;
use super::interest::{EventType, Interest};
use super::logged::{Encodings, Logged, Portion};
use super::{Capacity, Events};
use crate::backend::Change;
use crate::log::{Batch, ChangeLog, Cursor, Dropped, Expired, Room};
use crate::object::Object;

/// What a change weighs beside its objects, in bytes; and by itself if only changes are counted.
const CHANGE_WEIGHT: usize = 256;

/// What encoded events may weigh where only changes are counted, in bytes.
const ENCODED: usize = 8 * 1024 * 1024;

/// The log of a collection, and who reads what of it: all rules of a
/// [`WatchCache`](super::WatchCache), without lock, task and clock.
///
/// A caller keeps the [`Place`] of each watcher, and reads again for those whose selections a change
/// [wakes](Self::push).
pub struct Dispatch<O> {
    log: ChangeLog<Arc<Logged<O>>>,
    capacity: Capacity,
    selections: HashMap<SelectionId, Selection>,
    ids: HashMap<Arc<Interest>, SelectionId>,
    index: Index,
    last_id: u64,
    watchers: usize,
    encoded: Arc<Encodings>,
    /// Those of the entries before this number were let go of.
    encoded_from: u64,
}

/// A selection: all watchers with one interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectionId(u64);

/// Where a watcher stands.
#[derive(Debug, Clone)]
pub struct Place {
    selection: SelectionId,
    cursor: Cursor,
}

struct Selection {
    interest: Arc<Interest>,
    watchers: usize,
    /// From this number on `hits` has all that is of interest.
    from: u64,
    hits: VecDeque<Hit>,
    /// The last hit that the log has dropped.
    dropped: Dropped,
}

/// An entry of the log that is of interest.
#[derive(Debug, Clone, Copy)]
struct Hit {
    number: u64,
    /// A watch that starts at a lower version is given it.
    until: u64,
    /// A mark is of interest to all, and no event; whatever is said here of it.
    event: EventType,
}

impl<O: Object> Dispatch<O> {
    /// Of a collection at `version`.
    #[must_use]
    pub fn new(version: u64, capacity: Capacity) -> Self {
        let (limit, encoded) = match capacity {
            Capacity::Bytes(bytes) => (bytes, bytes / 2),
            Capacity::Changes(changes) => (changes.saturating_mul(CHANGE_WEIGHT), ENCODED),
        };
        Self {
            log: ChangeLog::new(version, limit),
            capacity,
            selections: HashMap::new(),
            ids: HashMap::new(),
            index: Index::default(),
            last_id: 0,
            watchers: 0,
            encoded: Arc::new(Encodings::new(encoded)),
            encoded_from: 0,
        }
    }

    /// The version up to which changes are known.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.log.version()
    }

    /// Whether a version is one that an earlier history has reached, and this one has not.
    #[must_use]
    pub fn is_replaced(&self, version: u64) -> bool {
        self.log.is_replaced(version)
    }

    /// What the log weighs, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.log.weight() + self.encoded.weight()
    }

    /// How many watchers there are.
    #[must_use]
    pub fn watchers(&self) -> usize {
        self.watchers
    }

    /// How many different interests the watchers have.
    #[must_use]
    pub fn selections(&self) -> usize {
        self.selections.len()
    }

    /// The changes after a version; `None` if some are no longer known.
    #[must_use]
    pub fn changes_after(&self, version: u64) -> Option<Vec<Arc<Logged<O>>>> {
        let mut cursor = self.log.cursor(version).ok()?;
        let mut changes = Vec::new();
        loop {
            let batch = self.log.read(&mut cursor, Room::ALL).ok()?;
            if batch.changes.is_empty() && batch.mark.is_none() {
                return Some(changes);
            }
            let changed = batch.changes.into_iter().filter(|it| !it.is_told_again());
            changes.extend(changed.cloned());
        }
    }

    /// All changes that are still known, oldest first.
    pub(super) fn known_changes(&self) -> Vec<Arc<Logged<O>>> {
        let entries = self.log.entries_from(self.log.first());
        entries.filter_map(|(_, _, logged)| logged.cloned()).collect()
    }

    /// Takes changes as [`WatchCache::push`](super::WatchCache::push) does. Returns the selections
    /// that there is something for.
    pub fn push(
        &mut self,
        version: u64,
        changes: impl IntoIterator<Item = Change<O>>,
    ) -> Vec<SelectionId> {
        let changes =
            changes.into_iter().map(|it| self.weighed(it, Portion::Whole)).collect::<Vec<_>>();
        self.append(|log| log.append_changes(version, changes))
    }

    /// Takes what a new list shows, as [`WatchCache::relist`](super::WatchCache::relist) does.
    /// Returns the selections that there is something for.
    ///
    /// That an object leaves a selection comes with the deletions, before all other changes. It may
    /// have left long before the version of its last change: a watcher that is given a part of the
    /// gap and goes on at another replica, from a version in between, would not hear of it there.
    pub fn relist(
        &mut self,
        version: u64,
        changes: impl IntoIterator<Item = Change<O>>,
    ) -> Vec<SelectionId> {
        let before = self.version();
        let mut all = Vec::new();
        for change in changes {
            let is_split = change.before.is_some() && change.after.is_some() && version > before;
            if is_split {
                let leaving = Change { version: before, ..change.clone() };
                all.push(self.weighed(leaving, Portion::Leaving));
            }
            all.push(
                self.weighed(change, if is_split { Portion::Staying } else { Portion::Whole }),
            );
        }
        self.append(|log| log.append_gap(version, all))
    }

    /// Begins another history at `version`: all watchers expire.
    pub fn restart(&mut self, version: u64) {
        self.log.restart(version);
        let from = self.log.end();
        for selection in self.selections.values_mut() {
            selection.hits.clear();
            selection.from = from;
            selection.dropped = Dropped::default();
        }
    }

    /// The place of a watcher that wants the changes after a version.
    ///
    /// # Errors
    /// If the version is no longer known.
    pub fn enter(&mut self, after: u64, interest: &Arc<Interest>) -> Result<Place, Expired> {
        let cursor = self.log.cursor(after)?;
        let id = match self.ids.get(interest) {
            Some(id) => *id,
            None => self.add(interest),
        };
        if let Some(selection) = self.selections.get_mut(&id) {
            selection.watchers += 1;
            selection.reach_back(&self.log, cursor.next());
        }
        self.watchers += 1;
        Ok(Place { selection: id, cursor })
    }

    /// Takes what there is for a watcher, and moves its place behind it. An empty batch without a
    /// mark means that there is nothing new.
    ///
    /// # Errors
    /// If it was too slow, waits for a version that lies within a gap, or belongs to another
    /// history.
    pub fn read(&mut self, place: &mut Place, room: Room) -> Result<Events<O>, Expired> {
        let Some(selection) = self.selections.get_mut(&place.selection) else {
            return Ok(Batch { changes: Vec::new(), mark: None, has_more: false });
        };
        selection.forget_before(self.log.first());
        let hits = selection.hits_from(place.cursor.next()).map(|hit| (hit.number, hit.event));
        let batch = self.log.read_of(&mut place.cursor, selection.dropped, hits, room)?;
        let changes = batch.changes.into_iter().map(|(event, it)| (event, Arc::clone(it)));
        let events =
            Batch { changes: changes.collect(), mark: batch.mark, has_more: batch.has_more };
        if selection.watchers == 1 {
            // Who comes later reaches back again.
            selection.from = place.cursor.next().max(selection.from);
            selection.drop_before(place.cursor.next());
        }
        Ok(events)
    }

    /// The version up to which a watcher has been given everything.
    pub fn progress(&mut self, place: &mut Place) -> Option<u64> {
        // What was of no interest to it has woken nobody.
        let none = Room { changes: 0, weight: 0 };
        let is_current = self
            .selections
            .get(&place.selection)
            .is_some_and(|selection| selection.hits_from(place.cursor.next()).next().is_none());
        if is_current {
            // It expires with the next read, if it does.
            drop(self.read(place, none));
        }
        place.cursor.progress()
    }

    /// Forgets a watcher. Returns whether it was the last of its selection.
    pub fn leave(&mut self, place: &Place) -> bool {
        let Some(selection) = self.selections.get_mut(&place.selection) else { return false };
        self.watchers -= 1;
        selection.watchers -= 1;
        if selection.watchers > 0 {
            return false;
        }
        let interest = Arc::clone(&selection.interest);
        self.selections.remove(&place.selection);
        self.ids.remove(&interest);
        self.index.remove(place.selection, &interest);
        true
    }

    fn add(&mut self, interest: &Arc<Interest>) -> SelectionId {
        self.last_id += 1;
        let id = SelectionId(self.last_id);
        let selection = Selection {
            interest: Arc::clone(interest),
            watchers: 0,
            from: self.log.end(),
            hits: VecDeque::new(),
            dropped: Dropped::default(),
        };
        self.selections.insert(id, selection);
        self.ids.insert(Arc::clone(interest), id);
        self.index.insert(id, interest);
        id
    }

    fn weighed(&self, change: Change<O>, portion: Portion) -> (u64, Arc<Logged<O>>, usize) {
        let weight = match (self.capacity, portion) {
            // One of two states is in the store, or belongs to another change.
            (Capacity::Bytes(_), Portion::Whole | Portion::Staying) => {
                let states = change.before.iter().chain(&change.after);
                CHANGE_WEIGHT + states.map(|it| it.wire().bytes.len()).max().unwrap_or(0)
            }
            (Capacity::Bytes(_), Portion::Leaving) | (Capacity::Changes(_), _) => CHANGE_WEIGHT,
        };
        (change.version, Arc::new(Logged::new(change, portion, Arc::clone(&self.encoded))), weight)
    }

    /// Drops what is beyond the capacity: encoded events first, from which few go on.
    fn trim(&mut self) {
        for (number, _, logged) in self.log.entries_from(self.encoded_from) {
            if !self.encoded.is_full() {
                break;
            }
            logged.inspect(|it| it.forget_encoded());
            self.encoded_from = number + 1;
        }
        match self.capacity {
            Capacity::Bytes(_) => self.log.trim(|| self.encoded.weight()),
            Capacity::Changes(_) => self.log.trim(|| 0),
        }
    }

    /// Appends to the log, and tells the selections.
    fn append(&mut self, append: impl FnOnce(&mut ChangeLog<Arc<Logged<O>>>)) -> Vec<SelectionId> {
        let from = self.log.end();
        append(&mut self.log);
        let mut woken = Vec::new();
        let mut candidates = Vec::new();
        for (number, until, logged) in self.log.entries_from(from) {
            candidates.clear();
            match logged {
                Some(logged) => {
                    let Change { before, after, .. } = logged.change();
                    let objects = before.iter().chain(after);
                    objects.for_each(|object| self.index.find(object, &mut candidates));
                    candidates.sort_unstable();
                    candidates.dedup();
                }
                None => candidates.extend(self.selections.keys()),
            }
            for id in &candidates {
                let Some(selection) = self.selections.get_mut(id) else { continue };
                if let Some(hit) = selection.hit(number, until, logged) {
                    // A selection that nobody reads must not grow.
                    selection.forget_before(self.log.first());
                    selection.hits.push_back(hit);
                    woken.push(*id);
                }
            }
        }
        // Not before: what goes is a loss to those who have noted it, and to nobody else.
        self.trim();
        woken.sort_unstable();
        woken.dedup();
        woken
    }
}

impl Selection {
    /// An entry, if it is of interest.
    fn hit<O: Object>(
        &self,
        number: u64,
        until: u64,
        logged: Option<&Arc<Logged<O>>>,
    ) -> Option<Hit> {
        let event = match logged {
            Some(logged) => logged.event(&self.interest)?,
            None => EventType::Modified,
        };
        Some(Hit { number, until, event })
    }

    /// Finds what is of interest from an earlier number on.
    fn reach_back<O: Object>(&mut self, log: &ChangeLog<Arc<Logged<O>>>, number: u64) {
        let earlier = log.entries_from(number).take_while(|(number, ..)| *number < self.from);
        let hits: Vec<Hit> =
            earlier.filter_map(|(number, until, it)| self.hit(number, until, it)).collect();
        for hit in hits.into_iter().rev() {
            self.hits.push_front(hit);
        }
        self.from = self.from.min(number);
    }

    /// Takes note of what the log has dropped.
    fn forget_before(&mut self, first: u64) {
        while let Some(hit) = self.hits.front().filter(|hit| hit.number < first) {
            let until = self.dropped.until.max(hit.until);
            self.dropped = Dropped { next: hit.number + 1, until };
            self.hits.pop_front();
        }
    }

    /// Forgets what all have read.
    fn drop_before(&mut self, number: u64) {
        while self.hits.front().is_some_and(|hit| hit.number < number) {
            self.hits.pop_front();
        }
    }

    fn hits_from(&self, number: u64) -> impl Iterator<Item = Hit> {
        let at = self.hits.partition_point(|hit| hit.number < number);
        self.hits.range(at..).copied()
    }
}

impl Place {
    /// The selection to which its watcher belongs.
    #[must_use]
    pub fn selection(&self) -> SelectionId {
        self.selection
    }
}

impl<O> fmt::Debug for Dispatch<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch")
            .field("watchers", &self.watchers)
            .field("selections", &self.selections.len())
            .finish_non_exhaustive()
    }
}
