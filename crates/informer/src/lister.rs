//! Reading the store: by key, by namespace, by selector, by index (client-go's listers).

use std::fmt;
use std::sync::Arc;

use informer_core::ObjectKey;
use informer_core::selector::{LabelSelector, ParseSelectorError};
use informer_core::store::{Index, IndexError, Snapshot};

use crate::Scope;
use crate::fields::{HasFields, HasLabels};
use crate::selection::Selection;
use crate::shared::{Owner, Shared};
use crate::status::InformerState;

/// Reads an informer's store. Obtained by waiting for the first list
/// ([`SharedInformer::synced`](crate::SharedInformer::synced)), so it never mistakes an informer
/// that has not synced for an empty cluster (G21). Cloning is cheap.
///
/// Each call answers from the store as it is at that moment; take a [`snapshot`](Self::snapshot)
/// for several questions to one state. A lister outlives the informer's stop, and says so
/// ([`state`](Self::state)).
///
/// # Costs
/// `get`: one search. `namespace(…)`: the objects of that namespace only. A selection: see
/// [`Selection`].
pub struct Lister<T> {
    shared: Arc<Shared<T>>,
    owner: Arc<Owner>,
}

/// Reads one namespace of an informer's store. Cloning is cheap.
pub struct NamespaceLister<T> {
    lister: Lister<T>,
    namespace: String,
}

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
        Ok(self
            .snapshot()
            .by_index(index, value)?
            .map(|entry| Arc::clone(entry.object()))
            .collect())
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
        self.shared.live.borrow().informer_state(self.shared.now())
    }
}

// The bound stands at the methods, since the compiler explains it only there.
impl<T> Lister<T> {
    /// The objects whose labels match. `selector` is a text, such as
    /// `app=web,tier in (a,b),!canary`, or a [`LabelSelector`].
    ///
    /// # Errors
    /// If a text is no label selector; the error quotes the place. A [`LabelSelector`] never fails.
    pub fn select<S>(&self, selector: S) -> Result<Selection<T>, ParseSelectorError>
    where
        T: HasLabels,
        S: TryInto<LabelSelector>,
        ParseSelectorError: From<S::Error>,
    {
        Selection::new(self.snapshot(), None, selector)
    }

    /// The objects of a scope: those of its namespace whose labels and fields match.
    ///
    /// A field has the value that the API server compares, with its names and defaults; so
    /// `spec.unschedulable=false` finds Nodes that lack the field. Any other path works too, such
    /// as `spec.replicas` of a Deployment, and finds what stands there, if anything. To refuse what
    /// the server would refuse, ask [`selectable_fields`](crate::Resource::selectable_fields)
    /// first. Objects that are kept as metadata only have no fields outside it.
    ///
    /// # Examples
    /// ```
    /// use informer::{Lister, ParseSelectorError, Scope};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// fn running(pods: &Lister<Pod>) -> Result<usize, ParseSelectorError> {
    ///     let scope = Scope::namespace("shop").labels("app=web")?.fields("status.phase=Running")?;
    ///     Ok(pods.select_with(scope).count())
    /// }
    /// ```
    pub fn select_with(&self, scope: impl Into<Scope>) -> Selection<T>
    where
        T: HasLabels + HasFields,
    {
        let Scope { namespace, labels, fields } = scope.into();
        Selection::of(self.snapshot(), namespace, labels).and_fields(&self.shared.resource, &fields)
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
    /// The objects of the namespace whose labels match. `selector` is a text or a
    /// [`LabelSelector`].
    ///
    /// # Errors
    /// If a text is no label selector; the error quotes the place. A [`LabelSelector`] never fails.
    pub fn select<S>(&self, selector: S) -> Result<Selection<T>, ParseSelectorError>
    where
        T: HasLabels,
        S: TryInto<LabelSelector>,
        ParseSelectorError: From<S::Error>,
    {
        Selection::new(self.lister.snapshot(), Some(self.namespace.clone()), selector)
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
        f.debug_struct("Lister")
            .field("of", &self.shared.name)
            .field("objects", &self.len())
            .finish()
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
