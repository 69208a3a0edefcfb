//! Snapshots: one consistent, unchanging view over the objects and every index.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::index::{Index, IndexError, Posting, Postings};
use super::records::Slot;
use super::table::{Entries, Table};
use crate::sorted_map::Iter;
use crate::{ObjectKey, Record, ResourceVersion};

/// An immutable state of a store. Cloning copies a pointer.
pub struct Snapshot<T>(Arc<Root<T>>);

/// One object of a snapshot: its key and its record.
pub struct Entry<'a, T> {
    /// Namespace and name.
    pub key: &'a ObjectKey,
    /// UID, version and the object.
    pub record: &'a Record<T>,
}

/// Iterates over objects of a [`Snapshot`] in key order.
pub struct Objects<'a, T> {
    entries: Entries<'a, T>,
    /// Stop at the end of this namespace.
    namespace: Option<&'a str>,
}

/// Iterates over the objects filed under one value of an index, or those of them in one namespace,
/// in key order.
pub struct IndexHits<'a, T> {
    root: &'a Root<T>,
    postings: Iter<'a, Posting, Slot>,
    value: &'a str,
    namespace: Option<&'a str>,
}

impl<T> Snapshot<T> {
    pub(super) fn new(root: Arc<Root<T>>) -> Self {
        Self(root)
    }

    /// The version of the store in this state; unset before the first list.
    #[must_use]
    pub fn version(&self) -> &ResourceVersion {
        &self.0.version
    }

    /// How often the server's history was replaced; versions compare only within one epoch (G14).
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.objects.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record of `key`.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<&Record<T>> {
        self.0.objects.get(key)
    }

    /// The object with this namespace (empty for cluster-scoped ones) and name.
    #[must_use]
    pub fn find(&self, namespace: &str, name: &str) -> Option<Entry<'_, T>> {
        self.0.objects.find(namespace, name).map(|(key, record)| Entry { key, record })
    }

    /// All objects in key order.
    #[must_use]
    pub fn iter(&self) -> Objects<'_, T> {
        Objects { entries: self.0.objects.iter(), namespace: None }
    }

    /// The objects of one namespace in key order; visits no others (G12).
    #[must_use]
    pub fn namespace<'a>(&'a self, namespace: &'a str) -> Objects<'a, T> {
        let entries = self.0.objects.seek(|key| key.cmp_parts(namespace, ""));
        Objects { entries, namespace: Some(namespace) }
    }

    /// The objects whose keys come after `key`, in key order; resumes a page or a cursor.
    #[must_use]
    pub fn after<'a>(&'a self, key: &ObjectKey) -> Objects<'a, T> {
        Objects { entries: self.0.objects.after(key), namespace: None }
    }

    /// The objects that `index` files under `value`, in key order.
    ///
    /// # Errors
    /// [`IndexError::Missing`] if the snapshot is older than the index, or of another store.
    pub fn by_index<'a>(
        &'a self,
        index: &Index<T>,
        value: &'a str,
    ) -> Result<IndexHits<'a, T>, IndexError> {
        let postings = self.postings(index)?.starting_at(value);
        Ok(IndexHits { root: &self.0, postings, value, namespace: None })
    }

    /// The objects of one namespace that `index` files under `value`, in key order; visits no
    /// others (G12).
    ///
    /// # Errors
    /// [`IndexError::Missing`] as for [`by_index`](Self::by_index).
    pub fn by_index_in<'a>(
        &'a self,
        index: &Index<T>,
        value: &'a str,
        namespace: &'a str,
    ) -> Result<IndexHits<'a, T>, IndexError> {
        let postings = self.postings(index)?.starting_in(value, namespace);
        Ok(IndexHits { root: &self.0, postings, value, namespace: Some(namespace) })
    }

    /// All values in `index`, in order (`ListIndexFuncValues`).
    ///
    /// # Errors
    /// [`IndexError::Missing`] as for [`by_index`](Self::by_index).
    pub fn index_values(&self, index: &Index<T>) -> Result<Vec<Arc<str>>, IndexError> {
        let postings = self.postings(index)?;
        let mut values: Vec<Arc<str>> = postings
            .starting_at("")
            .next()
            .map(|(p, _)| Arc::clone(&p.value))
            .into_iter()
            .collect();
        while let Some(next) = values.last().and_then(|last| postings.after_value(last)) {
            values.push(Arc::clone(&next.value));
        }
        Ok(values)
    }

    /// The objects that share an indexed value with `object`, without duplicates, in key order
    /// (client-go's `Indexer.Index`).
    ///
    /// # Errors
    /// [`IndexError::Missing`] as for [`by_index`](Self::by_index).
    pub fn like(&self, index: &Index<T>, values: &[&str]) -> Result<Vec<Entry<'_, T>>, IndexError> {
        let postings = self.postings(index)?;
        let found: BTreeMap<&ObjectKey, Slot> = values
            .iter()
            .flat_map(|value| {
                postings
                    .starting_at(value)
                    .take_while(move |(p, _)| *p.value == **value)
                    .map(|(p, slot)| (&p.key, *slot))
            })
            .collect();
        Ok(found.into_iter().filter_map(|(key, slot)| self.0.entry(key, slot)).collect())
    }

    /// The index over the values of label `key`, if there is one.
    #[must_use]
    pub fn label_index(&self, key: &str) -> Option<&Index<T>> {
        self.0
            .indexes
            .iter()
            .map(|postings| &postings.index)
            .find(|index| index.label_key() == Some(key))
    }

    /// The index over the values of the field `label`, if there is one.
    #[must_use]
    pub fn field_index(&self, label: &str) -> Option<&Index<T>> {
        self.0
            .indexes
            .iter()
            .map(|postings| &postings.index)
            .find(|index| index.field_label() == Some(label))
    }

    fn postings(&self, index: &Index<T>) -> Result<&Postings<T>, IndexError> {
        self.0
            .indexes
            .iter()
            .find(|postings| postings.index.is(index))
            .ok_or_else(|| IndexError::Missing { name: index.name().into() })
    }
}

impl<'a, T> Entry<'a, T> {
    /// The object.
    #[must_use]
    pub fn object(&self) -> &'a Arc<T> {
        &self.record.object
    }
}

impl<'a, T> IntoIterator for &'a Snapshot<T> {
    type Item = Entry<'a, T>;
    type IntoIter = Objects<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> Iterator for Objects<'a, T> {
    type Item = Entry<'a, T>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, _, record) = self.entries.next()?;
        match self.namespace {
            Some(namespace) if key.namespace() != namespace => None,
            _ => Some(Entry { key, record }),
        }
    }
}

impl<'a, T> Iterator for IndexHits<'a, T> {
    type Item = Entry<'a, T>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (posting, slot) = self.postings.next()?;
            let is_in = |namespace| posting.key.namespace() == namespace;
            if *posting.value != *self.value || !self.namespace.is_none_or(is_in) {
                return None;
            }
            // An index function that depends on more than its object may leave a posting without a
            // record.
            if let Some(entry) = self.root.entry(&posting.key, *slot) {
                return Some(entry);
            }
        }
    }
}

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Clone for Entry<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entry<'_, T> {}

impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("objects", &self.len())
            .field("version", self.version())
            .finish()
    }
}

impl<T> fmt::Debug for Entry<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({} {:?})", self.key, self.record)
    }
}

impl<T> fmt::Debug for IndexHits<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexHits").field("value", &self.value).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Objects<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// Everything one publication makes visible.
pub(super) struct Root<T> {
    pub(super) objects: Table<T>,
    pub(super) indexes: Vec<Postings<T>>,
    pub(super) version: ResourceVersion,
    pub(super) epoch: u64,
}

impl<T> Root<T> {
    pub(super) fn new() -> Self {
        Self {
            objects: Table::new(),
            indexes: Vec::new(),
            version: ResourceVersion::unset(),
            epoch: 0,
        }
    }

    fn entry<'a>(&'a self, key: &'a ObjectKey, slot: Slot) -> Option<Entry<'a, T>> {
        self.objects.record(slot).map(|record| Entry { key, record })
    }
}

/// Clones share all structure.
impl<T> Clone for Root<T> {
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            indexes: self.indexes.clone(),
            version: self.version.clone(),
            epoch: self.epoch,
        }
    }
}
