//! What an index finds.

use std::fmt;
use std::hint::black_box;
use std::iter::FusedIterator;
use std::sync::Arc;

use super::index::{Posting, Postings};
use super::slots::Slot;
use super::snapshot::{Entry, Root};
use crate::sorted_map::Iter;

/// Objects that are looked up together. Those of an index lie far from each other: asked for one by one, each costs
/// several waits for memory, which are one wait for all that are asked for together.
const TOGETHER: usize = 8;

/// Iterates over the objects filed under one value of an index, or those of them in one namespace, in key order.
pub struct IndexHits<'a, T> {
    root: &'a Root<T>,
    postings: Iter<'a, Posting, Slot>,
    value: &'a str,
    namespace: Option<&'a str>,
    /// Looked up already; given from `given` on. One at first, for who wants no more.
    ahead: [Option<Entry<'a, T>>; TOGETHER],
    given: usize,
    /// How many are looked up next.
    together: usize,
    /// The postings of this value, and namespace, are at their end.
    at_end: bool,
}

impl<'a, T> IndexHits<'a, T> {
    pub(super) fn new(
        root: &'a Root<T>,
        postings: &'a Postings<T>,
        value: &'a str,
        namespace: Option<&'a str>,
    ) -> Self {
        Self {
            root,
            postings: match namespace {
                Some(namespace) => postings.starting_in(value, namespace),
                None => postings.starting_at(value),
            },
            value,
            namespace,
            ahead: [None; TOGETHER],
            given: TOGETHER,
            together: 1,
            at_end: false,
        }
    }

    fn look_up(&mut self) {
        let mut found = [None; TOGETHER];
        for place in &mut found[..self.together] {
            *place = self.postings.next().filter(|(posting, _)| {
                let is_in = |namespace| posting.key.namespace() == namespace;
                *posting.value == *self.value && self.namespace.is_none_or(is_in)
            });
            if place.is_none() {
                self.at_end = true;
                break;
            }
        }
        let records = self.root.objects.records(found.map(|found| found.map(|(_, slot)| *slot)));
        // Cloning an `Arc` is a locked operation, behind which no read begins before it is done. Plain reads of the
        // counts overlap, and fetch them.
        for record in records.iter().flatten() {
            black_box(Arc::strong_count(&record.object));
        }
        for ((entry, found), record) in self.ahead.iter_mut().zip(found).zip(records) {
            // An index function that breaks its promise may leave a posting of a place that is empty.
            *entry = found.zip(record).map(|((posting, _), record)| Entry { key: &posting.key, record });
        }
        (self.given, self.together) = (0, TOGETHER);
    }
}

impl<'a, T> Iterator for IndexHits<'a, T> {
    type Item = Entry<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            while let Some(entry) = self.ahead.get_mut(self.given) {
                self.given += 1;
                if let Some(entry) = entry.take() {
                    return Some(entry);
                }
            }
            if self.at_end {
                return None;
            }
            self.look_up();
        }
    }
}

impl<T> FusedIterator for IndexHits<'_, T> {}

impl<T> fmt::Debug for IndexHits<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexHits").field("value", &self.value).finish_non_exhaustive()
    }
}
