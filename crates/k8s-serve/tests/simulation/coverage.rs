//! What happened in all histories together, so that nothing is tested in name only.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(pub(crate) BTreeMap<&'static str, u64>);

impl Coverage {
    pub(crate) fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (what, count) in other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    pub(crate) fn print(&self) {
        for (what, count) in &self.0 {
            println!("{count:>10}  {what}");
        }
    }
}

/// What a run has to have shown.
pub(crate) const EXPECTED: &[&str] = &[
    "410 for a watch that is opened",
    "410 within a watch",
    "410: another history",
    "410: from before the log",
    "410: no longer in the log",
    "410: within a gap",
    "a bookmark",
    "a bookmark after a gap",
    "a client at a replica that has not noticed a new history",
    "a client of a replaced history starts over",
    "a connection broken within a gap",
    "a gap replayed by a watch that is opened",
    "a list forwarded",
    "a list from the future",
    "a list waits for its version",
    "a replica killed",
    "a watch at its timeout",
    "a watch from the future",
    "a watch opened",
    "an object recreated",
    "events lost on their way",
    "the history replaced",
];
