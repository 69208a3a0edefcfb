//! Builds an index in steps of any size; the store may be written between them (G11).

use super::Store;
use super::index::{Index, IndexError, Postings};
use crate::ObjectKey;

/// An index under construction, invisible to readers.
pub(super) struct Building<T> {
    pub(super) postings: Postings<T>,
    /// Objects up to this key are indexed, and every write keeps them so. Later ones are not
    /// indexed yet.
    filed_to: Option<ObjectKey>,
}

impl<T> Building<T> {
    /// Whether a write of `key` must update the index now; if not, a later step indexes the object.
    pub(super) fn has_filed(&self, key: &ObjectKey) -> bool {
        self.filed_to.as_ref().is_some_and(|filed_to| key <= filed_to)
    }
}

impl<T> Store<T> {
    /// Builds an index at once.
    #[cfg(test)]
    pub(super) fn add_index(&mut self, index: &Index<T>) -> Result<(), IndexError> {
        self.build_index(index, usize::MAX).map(drop)
    }

    /// Adds up to `objects` more objects to a new index. Returns whether the index is complete; a
    /// complete index is published. The store may be written, replaced and published between two
    /// calls.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if another index has its name.
    pub(crate) fn build_index(
        &mut self,
        index: &Index<T>,
        objects: usize,
    ) -> Result<bool, IndexError> {
        if self.has_index(index)? {
            return Ok(true);
        }
        let at = self.building.iter().position(|building| building.postings.index.is(index));
        let at = at.unwrap_or_else(|| {
            self.building.push(Building { postings: Postings::new(index.clone()), filed_to: None });
            self.building.len() - 1
        });
        let Building { postings, filed_to } = &mut self.building[at];
        let table = &self.root.objects;
        let mut entries = match &*filed_to {
            Some(key) => table.after(key),
            None => table.iter(),
        };
        let mut last = None;
        for (key, slot, record) in entries.by_ref().take(objects) {
            postings.update(key, slot, None, Some(&record.object), &mut self.faults);
            last = Some(key.clone());
        }
        if last.is_some() {
            *filed_to = last;
        }
        if entries.next().is_some() {
            return Ok(false);
        }
        let complete = self.building.swap_remove(at).postings;
        self.root.indexes.push(complete);
        self.dirty = true;
        self.publish();
        Ok(true)
    }

    /// Discards an index that is not complete.
    pub(crate) fn abandon_index(&mut self, index: &Index<T>) {
        self.building.retain(|building| !building.postings.index.is(index));
    }

    fn has_index(&self, index: &Index<T>) -> Result<bool, IndexError> {
        let complete = self.root.indexes.iter();
        let building = self.building.iter().map(|building| &building.postings);
        let of_that_name =
            complete.clone().chain(building).find(|postings| postings.index.name() == index.name());
        match of_that_name {
            Some(postings) if !postings.index.is(index) => {
                Err(IndexError::Duplicate { name: index.name().into() })
            }
            _ => Ok(complete.into_iter().any(|postings| postings.index.is(index))),
        }
    }
}
