//! Reading the store: by key, by namespace, by selector, by index (client-go's listers).

use std::fmt;
use std::sync::Arc;

use informer_core::ObjectKey;
use informer_core::selector::{LabelSelector, ParseSelectorError};
use informer_core::store::{Entry, Index, IndexError, Snapshot};

use crate::HasLabels;
use crate::shared::{Owner, Shared};
use crate::status::InformerState;

/// Reads an informer's store. Obtained by waiting for the first list
/// ([`SharedInformer::synced`](crate::SharedInformer::synced)), so it never mistakes an informer that has not
/// synced for an empty cluster (G21). Cloning is cheap.
///
/// Each call answers from the store as it is at that moment; take a [`snapshot`](Self::snapshot) for several
/// questions to one state. A lister outlives the informer's stop, and says so ([`state`](Self::state)).
///
/// # Costs
/// `get`: one search. `namespace(…)`: the objects of that namespace only. `select`: the objects of the scope,
/// or those that a label index names if the selector asks for values of an indexed label (G12); what it names is not looked
/// at again if that is all that the selector asks.
pub struct Lister<T> {
    shared: Arc<Shared<T>>,
    owner: Arc<Owner>,
}

/// Reads one namespace of an informer's store. Cloning is cheap.
pub struct NamespaceLister<T> {
    lister: Lister<T>,
    namespace: String,
}

/// The objects of one snapshot that match a selector, in key order.
pub struct Selection<T> {
    snapshot: Snapshot<T>,
    keep: Keep<T>,
    namespace: Option<String>,
    selector: LabelSelector,
}

/// How to tell whether an object of a [`Selection`] matches.
struct Keep<T>(fn(&LabelSelector, &T) -> bool);

impl<T> Lister<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>, owner: Arc<Owner>) -> Self {
        Self { shared, owner }
    }

    /// The object of `key`.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.snapshot().get(key).map(|record| Arc::clone(&record.object))
    }

    /// The object with this namespace (empty for cluster-scoped ones) and name.
    #[must_use]
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.snapshot().find(namespace, name).map(|entry| Arc::clone(entry.object()))
    }

    /// All objects, in key order.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<T>> {
        self.snapshot().iter().map(|entry| Arc::clone(entry.object())).collect()
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.snapshot().len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One namespace.
    #[must_use]
    pub fn namespace(&self, namespace: impl Into<String>) -> NamespaceLister<T> {
        NamespaceLister { lister: self.clone(), namespace: namespace.into() }
    }

    /// The objects that `index` files under `value`, in key order.
    ///
    /// # Errors
    /// [`IndexError::Missing`] if the index is not of this informer.
    pub fn by_index(&self, index: &Index<T>, value: &str) -> Result<Vec<Arc<T>>, IndexError> {
        Ok(self.snapshot().by_index(index, value)?.map(|entry| Arc::clone(entry.object())).collect())
    }

    /// The keys that `index` files under `value`, in order (client-go's `IndexKeys`).
    ///
    /// # Errors
    /// [`IndexError::Missing`] if the index is not of this informer.
    pub fn index_keys(&self, index: &Index<T>, value: &str) -> Result<Vec<ObjectKey>, IndexError> {
        Ok(self.snapshot().by_index(index, value)?.map(|entry| entry.key.clone()).collect())
    }

    /// The store as it is now, for as long as it is kept: O(1), and never waits.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<T> {
        self.shared.reader.snapshot()
    }

    /// What the informer is doing: whether the store still follows the server.
    #[must_use]
    pub fn state(&self) -> InformerState {
        self.shared.live.borrow().state.clone()
    }
}

// The bound stands at the methods, since the compiler explains it only there.
impl<T> Lister<T> {
    /// The objects whose labels match, such as `app=web,tier in (a,b),!canary`.
    ///
    /// # Errors
    /// When `selector` is no label selector; the error quotes the place.
    pub fn select(&self, selector: &str) -> Result<Selection<T>, ParseSelectorError>
    where
        T: HasLabels,
    {
        Ok(self.select_with(selector.parse()?))
    }

    /// The objects whose labels match.
    #[must_use]
    pub fn select_with(&self, selector: LabelSelector) -> Selection<T>
    where
        T: HasLabels,
    {
        Selection::new(self.snapshot(), None, selector)
    }
}

impl<T> NamespaceLister<T> {
    /// The object with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<T>> {
        self.lister.find(&self.namespace, name)
    }

    /// All objects of the namespace, in order of their names.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<T>> {
        let snapshot = self.lister.snapshot();
        snapshot.namespace(&self.namespace).map(|entry| Arc::clone(entry.object())).collect()
    }
}

impl<T> NamespaceLister<T> {
    /// The objects of the namespace whose labels match.
    ///
    /// # Errors
    /// When `selector` is no label selector; the error quotes the place.
    pub fn select(&self, selector: &str) -> Result<Selection<T>, ParseSelectorError>
    where
        T: HasLabels,
    {
        Ok(self.select_with(selector.parse()?))
    }

    /// The objects of the namespace whose labels match.
    #[must_use]
    pub fn select_with(&self, selector: LabelSelector) -> Selection<T>
    where
        T: HasLabels,
    {
        Selection::new(self.lister.snapshot(), Some(self.namespace.clone()), selector)
    }
}

impl<T> Selection<T> {
    /// The objects of a snapshot, or of one namespace of it, whose labels match.
    #[must_use]
    pub fn new(snapshot: Snapshot<T>, namespace: Option<String>, selector: LabelSelector) -> Self
    where
        T: HasLabels,
    {
        let keep = Keep(|selector: &LabelSelector, object: &T| selector.matches(|key| object.label(key)));
        Self { snapshot, keep, namespace, selector }
    }

    /// The objects, in key order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries().map(|entry| entry.object())
    }

    /// The objects with their keys and versions, in key order.
    #[must_use]
    pub fn entries(&self) -> Box<dyn Iterator<Item = Entry<'_, T>> + '_> {
        let keep = |entry: &Entry<'_, T>| (self.keep.0)(&self.selector, entry.object());
        if let Some((index, values)) = self.narrowest() {
            // What an index finds has the label's value: to read it from each object is a wait for memory.
            let is_told = self.selector.requirements().len() == 1;
            let of = |value| match &self.namespace {
                Some(namespace) => self.snapshot.by_index_in(index, value, namespace),
                None => self.snapshot.by_index(index, value),
            };
            let hits = values.iter().filter_map(move |value| of(value).ok()).flatten();
            let hits = hits.filter(move |entry| is_told || keep(entry));
            if values.len() == 1 {
                return Box::new(hits);
            }
            // An object has one value of a label, so the hits of several values are disjoint.
            let mut hits: Vec<Entry<'_, T>> = hits.collect();
            hits.sort_unstable_by(|a, b| a.key.cmp(b.key));
            return Box::new(hits.into_iter());
        }
        match &self.namespace {
            Some(namespace) => Box::new(self.snapshot.namespace(namespace).filter(keep)),
            None => Box::new(self.snapshot.iter().filter(keep)),
        }
    }

    /// The number of objects that match: visits them all.
    #[must_use]
    pub fn count(&self) -> usize {
        self.entries().count()
    }

    /// The snapshot that this is a part of.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot<T> {
        &self.snapshot
    }

    /// A label index and the values under which all that match are filed, if the selector asks for any.
    fn narrowest(&self) -> Option<(&Index<T>, &[String])> {
        self.selector.requirements().iter().find_map(|requirement| {
            let values = self.selector.required_values(requirement.key())?;
            let index = self.snapshot.label_index(requirement.key())?;
            Some((index, values))
        })
    }
}

impl<T> Clone for Lister<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), owner: Arc::clone(&self.owner) }
    }
}

impl<T> Clone for NamespaceLister<T> {
    fn clone(&self) -> Self {
        Self { lister: self.lister.clone(), namespace: self.namespace.clone() }
    }
}

impl<T> fmt::Debug for Lister<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("of", &self.shared.name).field("objects", &self.len()).finish()
    }
}

impl<T> fmt::Debug for NamespaceLister<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceLister")
            .field("of", &self.lister.shared.name)
            .field("namespace", &self.namespace)
            .finish()
    }
}

impl<T> fmt::Debug for Selection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection")
            .field("namespace", &self.namespace)
            .field("selector", &self.selector.to_string())
            .finish_non_exhaustive()
    }
}
