//! Building an index while the writer goes on, in steps as small as wanted (G11).

use super::Store;
use super::index::{Index, IndexError, Postings};
use crate::ObjectKey;

/// An index that readers do not have yet.
pub(super) struct Building<T> {
    pub(super) postings: Postings<T>,
    /// The objects up to this key are filed, and kept so by every write; those behind it are not.
    filed_to: Option<ObjectKey>,
}

impl<T> Building<T> {
    /// Whether a write of `key` has to be filed now, rather than by a later step.
    pub(super) fn has_filed(&self, key: &ObjectKey) -> bool {
        self.filed_to.as_ref().is_some_and(|filed_to| key <= filed_to)
    }
}

impl<T> Store<T> {
    /// Adds an index and fills it; readers have it, complete, with the next publication, which this does.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if there is an index of that name which is not this one.
    pub fn add_index(&mut self, index: &Index<T>) -> Result<(), IndexError> {
        while !self.build_index(index, usize::MAX)? {}
        Ok(())
    }

    /// Files up to `objects` objects more in a new index, and says whether it is complete: then it is published, and readers
    /// have it. The store may be written, replaced and published between two calls.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`] if there is an index of that name which is not this one.
    ///
    /// # Examples
    /// ```
    /// use informer_core::store::{Index, Store};
    /// use informer_core::{Item, ObjectKey};
    ///
    /// let item = |name: &str| Item::new(ObjectKey::cluster(name), name.into(), 1.into(), name.to_owned());
    /// let mut store = Store::new();
    /// store.upsert(item("a"));
    /// store.upsert(item("c"));
    ///
    /// let by_name = Index::new("name", |name: &String, values| values.push(name.as_str()));
    /// while !store.build_index(&by_name, 1)? {
    ///     store.upsert(item("b"));
    /// }
    /// assert_eq!(store.reader().snapshot().by_index(&by_name, "b")?.count(), 1);
    /// # Ok::<(), informer_core::store::IndexError>(())
    /// ```
    pub fn build_index(&mut self, index: &Index<T>, objects: usize) -> Result<bool, IndexError> {
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

    /// Gives up an index whose building was not completed.
    pub fn abandon_index(&mut self, index: &Index<T>) {
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
