//! Building an index beside the writer: over a snapshot, in steps, and then after what changed meanwhile.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashSet;

use super::Store;
use super::index::{Index, IndexError, IndexFault, Postings};
use super::slots::Slot;
use super::snapshot::{Root, Snapshot};
use crate::ObjectKey;

/// An index that is being built while the store goes on (G11). Most of the work is done over snapshots, in steps as
/// small as wanted; [`Store::finish_index`] does the rest, which is what changed since the last of them.
///
/// # Examples
/// ```
/// use informer_core::store::{Index, IndexBuild, Store};
/// use informer_core::{Item, ObjectKey};
///
/// let item = |name: &str| Item::new(ObjectKey::cluster(name), name.into(), 1.into(), name.to_owned());
/// let mut store = Store::new();
/// store.upsert(item("a"));
/// store.publish();
///
/// let by_name = Index::new("name", |name: &String, values| values.push(name.as_str()));
/// let mut build = IndexBuild::new(&by_name, store.reader().snapshot());
/// while !build.step(100) {
///     // Let others do something.
/// }
/// store.upsert(item("b"));
/// store.finish_index(build)?;
/// assert_eq!(store.reader().snapshot().by_index(&by_name, "b")?.count(), 1);
/// # Ok::<(), informer_core::store::IndexError>(())
/// ```
pub struct IndexBuild<T> {
    postings: Postings<T>,
    faults: Vec<IndexFault>,
    /// The postings are those of `from` behind `at`, and those of `to` up to it.
    from: Snapshot<T>,
    to: Snapshot<T>,
    at: Option<ObjectKey>,
    /// Places whose object may have changed from `from` to `to`.
    changed: HashSet<Slot>,
}

impl<T> IndexBuild<T> {
    /// Begins to build `index` over `snapshot`.
    #[must_use]
    pub fn new(index: &Index<T>, snapshot: Snapshot<T>) -> Self {
        let from = Snapshot::new(Arc::new(Root::new()));
        Self {
            postings: Postings::new(index.clone()),
            faults: Vec::new(),
            from,
            to: snapshot,
            at: None,
            changed: HashSet::new(),
        }
    }

    /// Files up to `objects` objects more. Says whether the index stands for the snapshot now.
    pub fn step(&mut self, objects: usize) -> bool {
        if self.from.is(&self.to) {
            return true;
        }
        let (from, to) = (self.from.objects(), self.to.objects());
        let mut differences = to.differences(from, &self.changed, self.at.as_ref());
        let mut last = None;
        let mut taken = 0;
        let done = loop {
            let Some((key, old, new)) = differences.next() else { break true };
            if taken == objects {
                break false;
            }
            taken += 1;
            last = Some(key);
            let (postings, faults) = (&mut self.postings, &mut self.faults);
            match (old, new) {
                (Some((before, old)), Some((after, new))) if before == after => {
                    if !Arc::ptr_eq(old, new) {
                        postings.update(key, after, Some(old), Some(new), faults);
                    }
                }
                // Gone, new, or both, and then in another place.
                _ => {
                    if let Some((slot, old)) = old {
                        postings.update(key, slot, Some(old), None, faults);
                    }
                    if let Some((slot, new)) = new {
                        postings.update(key, slot, None, Some(new), faults);
                    }
                }
            }
        };
        drop(differences);
        if done {
            (self.from, self.at) = (self.to.clone(), None);
        } else if let Some(last) = last.cloned() {
            self.at = Some(last);
        }
        done
    }

    /// Goes on to a later snapshot of the same store; the steps that follow cost a look at each key's number, and what
    /// changed.
    pub fn catch_up(&mut self, snapshot: Snapshot<T>) {
        while !self.step(usize::MAX) {}
        self.changed = snapshot.objects().changed_since(self.to.objects());
        self.to = snapshot;
    }
}

impl<T> Store<T> {
    /// Adds an index and fills it; readers have it, complete, with the next publication, which this does.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if there is an index of that name which is not this one.
    pub fn add_index(&mut self, index: &Index<T>) -> Result<(), IndexError> {
        if self.has_index(index)? {
            return Ok(());
        }
        let build = IndexBuild::new(index, self.unpublished());
        self.finish_index(build)
    }

    /// Adds an index that was built over snapshots of this store, after what changed since; readers have it, complete,
    /// with the next publication, which this does.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if there is an index of that name which is not this one.
    pub fn finish_index(&mut self, mut build: IndexBuild<T>) -> Result<(), IndexError> {
        if self.has_index(&build.postings.index)? {
            return Ok(());
        }
        build.catch_up(self.unpublished());
        while !build.step(usize::MAX) {}
        self.faults.append(&mut build.faults);
        self.root.indexes.push(build.postings);
        self.dirty = true;
        self.publish();
        Ok(())
    }

    fn has_index(&self, index: &Index<T>) -> Result<bool, IndexError> {
        let of_that_name = self.root.indexes.iter().find(|it| it.index.name() == index.name());
        match of_that_name {
            None => Ok(false),
            Some(postings) if postings.index.is(index) => Ok(true),
            Some(_) => Err(IndexError::Duplicate { name: index.name().into() }),
        }
    }

    /// The store as the writer sees it.
    fn unpublished(&mut self) -> Snapshot<T> {
        Snapshot::new(Arc::new(self.root.share()))
    }
}

impl<T> fmt::Debug for IndexBuild<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexBuild").field("index", &self.postings.index).finish_non_exhaustive()
    }
}
