//! A bounded log of what changed in a collection, from which watches are served.
//!
//! The log knows no clock, no task and no object: it is fed with changes in the order of their
//! versions, and read by any number of [`Cursor`]s. What it no longer has is [`Expired`], which
//! becomes `410 Gone`.
//!
//! # Relists
//! A cache that lost its watch at version V0 lists again at V1. It then knows what changed in
//! between, but neither when objects were deleted nor which states it never saw. The log takes
//! such a gap as one unit: deletions at V0, the other changes in the order of their versions, then
//! a mark at V1.
//!
//! | a watch that starts | |
//! |---|---|
//! | at V0 or earlier | replays the whole gap: a deletion may come twice, none is lost |
//! | strictly between V0 and V1, or waits for a version there | is expired: it may have seen objects that were deleted meanwhile, of which the cache never knew |
//! | at V1 or later | is not concerned |
//!
//! Within a gap there is no [`progress`](Cursor::progress) to report.
//!
//! # Examples
//! ```
//! use k8s_serve::log::{ChangeLog, Room};
//!
//! let mut log = ChangeLog::new(10, 1 << 20);
//! log.push(13, [(11, "a created", 100), (13, "a changed", 100)]);
//! let mut cursor = log.cursor(11)?;
//! assert_eq!(log.read(&mut cursor, Room::ALL)?.changes, [&"a changed"]);
//! assert_eq!(cursor.progress(), Some(13));
//!
//! log.relist(20, [(17, "b created", 100), (13, "a deleted", 100)]);
//! let batch = log.read(&mut cursor, Room::ALL)?;
//! assert_eq!(batch.changes, [&"a deleted", &"b created"]);
//! assert_eq!(batch.mark, Some(20));
//! assert!(log.cursor(15).is_err());
//! # Ok::<(), k8s_serve::log::Expired>(())
//! ```

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

/// What the mark of a gap weighs.
const MARK_WEIGHT: usize = 64;

/// The changes of one collection, the oldest of which are dropped when they weigh too much.
#[derive(Debug)]
pub struct ChangeLog<T> {
    entries: VecDeque<Entry<T>>,
    /// The number of the first entry; they are numbered in a row.
    first: u64,
    /// A watch that starts at a lower version has missed something.
    floor: u64,
    /// The log is complete up to here.
    version: u64,
    /// How many histories came before.
    history: u64,
    /// The highest version of those.
    replaced: u64,
    weight: usize,
    limit: usize,
}

#[derive(Debug)]
struct Entry<T> {
    /// A watch that starts at a lower version is given this.
    until: u64,
    /// The version at which its gap begins, if it belongs to one; `until` is then the end.
    gap: Option<u64>,
    /// The change; none for the mark at the end of a gap.
    change: Option<T>,
    weight: usize,
}

/// Where a watch stands in a [`ChangeLog`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    history: u64,
    /// The version at which it started.
    start: u64,
    /// The number of the next entry.
    next: u64,
    progress: Option<u64>,
}

/// What a cursor is given at once.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch<C> {
    /// Changes, in order.
    pub changes: Vec<C>,
    /// They end with a gap that leads to this version. A watch that takes bookmarks wants one now:
    /// the versions of the last changes are no place to start from.
    pub mark: Option<u64>,
    /// Whether there may be more at once.
    pub has_more: bool,
}

/// How much is taken at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Changes.
    pub changes: usize,
    /// What they may weigh together; one is taken whatever it weighs.
    pub weight: usize,
}

/// The log does not have what a watch asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the changes are no longer known, the log is at version {current}")]
pub struct Expired {
    /// The version of the log.
    pub current: u64,
}

/// An entry that was of interest to a watch, and is no longer there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Dropped {
    /// The number behind it.
    pub(crate) next: u64,
    /// A watch that started at a lower version was to be given it.
    pub(crate) until: u64,
}

impl<T> ChangeLog<T> {
    /// An empty log that begins at `version`. It drops the oldest changes when all of them weigh
    /// more than `limit`.
    #[must_use]
    pub fn new(version: u64, limit: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            floor: version,
            version,
            history: 0,
            replaced: 0,
            weight: 0,
            limit,
        }
    }

    /// The version up to which the log is complete.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What the changes weigh.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Appends the changes of a watch, each with its version and its weight, in the order of their
    /// versions. The log is then complete up to `version`: that of a bookmark, or of the last
    /// change.
    pub fn push(&mut self, version: u64, changes: impl IntoIterator<Item = (u64, T, usize)>) {
        self.append_changes(version, changes);
        self.trim(|| 0);
    }

    /// Appends what a new list at `version` showed to have changed since the log's version, in any
    /// order; deletions have the log's version. See [the rules](self#relists).
    pub fn relist(&mut self, version: u64, changes: impl IntoIterator<Item = (u64, T, usize)>) {
        self.append_gap(version, changes);
        self.trim(|| 0);
    }

    /// Begins another history at `version`: versions before and after do not compare. All cursors
    /// expire; so does who starts at a version that the earlier history had reached, and this one
    /// has not: it would wait for other changes than it takes them for.
    pub fn restart(&mut self, version: u64) {
        self.first += self.entries.len() as u64;
        self.entries.clear();
        self.history += 1;
        self.replaced = self.replaced.max(self.version);
        self.weight = 0;
        (self.floor, self.version) = (version, version);
    }

    /// A cursor for a watch that starts after `version`. That may lie in the future: the cursor is
    /// given nothing before the log has passed it.
    ///
    /// # Errors
    /// If the log does not reach back so far, or the version lies within a gap, or is one of an
    /// earlier history.
    pub fn cursor(&self, version: u64) -> Result<Cursor, Expired> {
        let at = self.entries.partition_point(|entry| entry.until <= version);
        let is_hidden = self.entries.get(at).is_some_and(|it| it.hides(version));
        if version < self.floor || is_hidden || self.is_replaced(version) {
            return Err(self.expired());
        }
        let progress = (version <= self.version).then_some(version);
        Ok(Cursor { history: self.history, start: version, next: self.first + at as u64, progress })
    }

    /// Whether a version is one that an earlier history has reached, and this one has not.
    #[must_use]
    pub fn is_replaced(&self, version: u64) -> bool {
        self.version < version && version <= self.replaced
    }

    /// Takes what there is room for, and moves the cursor behind it. An empty batch without a mark
    /// means that there is nothing new.
    ///
    /// # Errors
    /// If the cursor was too slow, waited for a version that lies within a gap, or belongs to
    /// another history.
    pub fn read(&self, cursor: &mut Cursor, room: Room) -> Result<Batch<&T>, Expired> {
        let dropped = Dropped { next: self.first, until: self.floor };
        let from = cursor.next.max(self.first);
        let batch = self.read_of(cursor, dropped, (from..self.end()).map(|it| (it, ())), room)?;
        let changes = batch.changes.into_iter().map(|((), change)| change).collect();
        Ok(Batch { changes, mark: batch.mark, has_more: batch.has_more })
    }

    /// As [`read`](Self::read), for a watch that only some entries are of interest to: `numbers`
    /// has those that the cursor has not been given, and something of each; `dropped` is the last
    /// of interest that is no longer there.
    pub(crate) fn read_of<K>(
        &self,
        cursor: &mut Cursor,
        dropped: Dropped,
        numbers: impl Iterator<Item = (u64, K)>,
        room: Room,
    ) -> Result<Batch<(K, &T)>, Expired> {
        let is_lost = cursor.next < dropped.next && cursor.start < dropped.until;
        if is_lost || cursor.history != self.history {
            return Err(self.expired());
        }
        let mut batch = Batch { changes: Vec::new(), mark: None, has_more: false };
        let (mut next, mut weight) = (cursor.next, 0);
        for (number, of) in numbers {
            let Some(entry) = self.entry(number) else { continue };
            if entry.hides(cursor.start) {
                return Err(self.expired());
            }
            let is_full = batch.changes.len() >= room.changes || weight >= room.weight;
            if batch.mark.is_some() || is_full {
                batch.has_more = true;
                return Ok(self.moved(cursor, next, batch));
            }
            next = number + 1;
            if entry.until > cursor.start {
                weight += entry.weight;
                match &entry.change {
                    Some(change) => batch.changes.push((of, change)),
                    None => batch.mark = Some(entry.until),
                }
            }
        }
        // What lies behind the last is of no interest.
        let next = if batch.mark.is_some() { next } else { self.end() };
        Ok(self.moved(cursor, next, batch))
    }

    /// The number that the next entry gets.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The number of the first entry.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The entries from a number on: their numbers, the versions below which a watch that starts is
    /// given them, and the changes; none for the marks.
    pub(crate) fn entries_from(
        &self,
        number: u64,
    ) -> impl DoubleEndedIterator<Item = (u64, u64, Option<&T>)> {
        let numbers = number.max(self.first)..self.end();
        numbers.filter_map(|number| {
            let entry = self.entry(number)?;
            Some((number, entry.until, entry.change.as_ref()))
        })
    }

    /// As [`push`](Self::push), with nothing dropped before [`trim`](Self::trim).
    pub(crate) fn append_changes(
        &mut self,
        version: u64,
        changes: impl IntoIterator<Item = (u64, T, usize)>,
    ) {
        for (until, change, weight) in changes {
            self.append(Entry { until, gap: None, change: Some(change), weight });
        }
        self.version = self.version.max(version);
    }

    /// As [`relist`](Self::relist), with nothing dropped before [`trim`](Self::trim).
    pub(crate) fn append_gap(
        &mut self,
        version: u64,
        changes: impl IntoIterator<Item = (u64, T, usize)>,
    ) {
        let before = self.version;
        if version <= before {
            // Nothing lies between, so there is nothing to be uncertain of.
            return self.append_changes(before, changes);
        }
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_by_key(|(version, ..)| *version);
        let changes = changes.into_iter().map(|(_, change, weight)| (Some(change), weight));
        for (change, weight) in changes.chain([(None, MARK_WEIGHT)]) {
            self.append(Entry { until: version, gap: Some(before), change, weight });
        }
        self.version = version;
    }

    /// Drops the oldest changes until there is room for so much beside them, which is asked for
    /// each time: it may become less with a change.
    pub(crate) fn trim(&mut self, beside: impl Fn() -> usize) {
        while self.weight + beside() > self.limit {
            let Some(entry) = self.entries.pop_front() else { break };
            self.weight -= entry.weight;
            self.first += 1;
            self.floor = self.floor.max(entry.until);
        }
    }

    fn moved<C>(&self, cursor: &mut Cursor, next: u64, batch: Batch<C>) -> Batch<C> {
        cursor.next = next;
        let at = usize::try_from(next.saturating_sub(self.first)).unwrap_or(usize::MAX);
        cursor.progress = self.progress(at).filter(|version| *version >= cursor.start);
        batch
    }

    fn entry(&self, number: u64) -> Option<&Entry<T>> {
        self.entries.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// What a cursor at this place has been given completely. Entries that end at one version
    /// belong together: a gap, or an object that takes the place of another.
    fn progress(&self, at: usize) -> Option<u64> {
        let until = |at: usize| self.entries.get(at).map(|entry| entry.until);
        match (at.checked_sub(1).and_then(until), until(at)) {
            (_, None) => Some(self.version),
            (None, Some(_)) => None,
            (Some(last), Some(next)) => (last < next).then_some(last),
        }
    }

    fn append(&mut self, entry: Entry<T>) {
        self.weight += entry.weight;
        self.entries.push_back(entry);
    }

    fn expired(&self) -> Expired {
        Expired { current: self.version }
    }
}

impl Room {
    /// For everything.
    pub const ALL: Self = Self { changes: usize::MAX, weight: usize::MAX };
}

impl<T> Entry<T> {
    /// Whether `version` lies within the gap to which this belongs.
    fn hides(&self, version: u64) -> bool {
        self.gap.is_some_and(|before| before < version && version < self.until)
    }
}

impl Cursor {
    /// The version up to which everything was given to it; `None` while that lies in the future,
    /// or within a gap.
    #[must_use]
    pub fn progress(&self) -> Option<u64> {
        self.progress
    }

    /// The number of the next entry that it has not been given.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
}
