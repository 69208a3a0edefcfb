//! What has come over all watches of the process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::frames::Kind;

/// What has come since the last time, and how many watches there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Events with an object, of all watches.
    pub changes: u64,
    /// Bookmarks, of all watches.
    pub bookmarks: u64,
    /// Bytes behind TLS, with the framing of HTTP.
    pub bytes: u64,
    /// Watches that are open now.
    pub open: usize,
    /// Watches that the server has ended since the process began.
    pub ended: usize,
    /// Those of them whose last event was an error.
    pub refused: usize,
    /// How late changes were, in microseconds: the median, and of the latest hundredth the first.
    pub late_us: Option<[u64; 2]>,
}

/// Counts. One thread uses it, so that its lock is always free.
#[derive(Debug)]
pub(super) struct Tally {
    with_latencies: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    latencies: Vec<u32>,
    /// Since the last order to open.
    opened: usize,
    failure: Option<String>,
}

impl Tally {
    pub(super) fn new(with_latencies: bool) -> Self {
        Self { with_latencies, state: Mutex::default() }
    }

    pub(super) fn wants_latencies(&self) -> bool {
        self.with_latencies
    }

    pub(super) fn opened(&self) {
        let mut state = self.state();
        state.counts.open += 1;
        state.opened += 1;
    }

    pub(super) fn failed(&self, failure: String) {
        self.state().failure.get_or_insert(failure);
    }

    pub(super) fn ended(&self, refused: bool) {
        let counts = &mut self.state().counts;
        counts.open -= 1;
        counts.ended += 1;
        counts.refused += usize::from(refused);
    }

    /// One whose connection this process has closed.
    pub(super) fn closed(&self) {
        self.state().counts.open -= 1;
    }

    pub(super) fn received(&self, bytes: usize) {
        self.state().counts.bytes += bytes as u64;
    }

    pub(super) fn event(&self, kind: Kind, late_us: Option<u64>) {
        let mut state = self.state();
        match kind {
            Kind::Change => state.counts.changes += 1,
            Kind::Bookmark => state.counts.bookmarks += 1,
            Kind::Error => {}
        }
        state.latencies.extend(late_us.map(|late| u32::try_from(late).unwrap_or(u32::MAX)));
    }

    pub(super) fn changes(&self) -> u64 {
        self.state().counts.changes
    }

    /// The counts; those of events begin anew.
    pub(super) fn take(&self) -> Counts {
        let mut state = self.state();
        let latencies = std::mem::take(&mut state.latencies);
        let Counts { open, ended, refused, .. } = state.counts;
        let rest = Counts { open, ended, refused, ..Counts::default() };
        let counts = std::mem::replace(&mut state.counts, rest);
        Counts { late_us: percentiles(latencies), ..counts }
    }

    /// The number of watches opened since the last call, and the answer to one that was refused, if
    /// any was.
    pub(super) fn take_opened(&self) -> (usize, Option<String>) {
        let mut state = self.state();
        (std::mem::take(&mut state.opened), state.failure.take())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn percentiles(mut latencies: Vec<u32>) -> Option<[u64; 2]> {
    latencies.sort_unstable();
    let at = |percent: usize| latencies.get(latencies.len() * percent / 100).copied();
    Some([u64::from(at(50)?), u64::from(at(99)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_anew_and_watches_are_not() {
        let tally = Tally::new(true);
        tally.opened();
        tally.opened();
        tally.event(Kind::Change, Some(7));
        tally.event(Kind::Bookmark, None);
        tally.ended(true);
        let first = tally.take();
        assert_eq!((first.changes, first.bookmarks, first.late_us), (1, 1, Some([7, 7])));
        let again = tally.take();
        assert_eq!((again.changes, again.bookmarks, again.late_us), (0, 0, None));
        assert_eq!((again.open, again.ended, again.refused), (1, 1, 1));
    }

    #[test]
    fn percentiles_are_of_sorted_latencies() {
        assert_eq!(percentiles((0..200).rev().collect()), Some([100, 198]));
        assert_eq!(percentiles(Vec::new()), None);
    }
}
