//! Publications of a store, as its observers see them.

use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use crate::store::Snapshot;
use crate::{Event, ResourceVersion};

/// One publication of a store: the state that readers see from now on, and what led to it from the
/// state before. All publications in a row are the history of the store, without gap or overlap.
///
/// A registration is told of the same changes, but merges them, and does not learn up to which
/// version they are complete.
pub struct Publication<'a, T> {
    kind: PublicationKind,
    before: &'a ResourceVersion,
    snapshot: &'a Snapshot<T>,
    events: &'a [Event<T>],
    versions: &'a [ResourceVersion],
}

/// What made a [`Publication`] necessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PublicationKind {
    /// Events and bookmarks of a watch.
    Changes,
    /// The first complete list: there are no events, the snapshot has it all.
    FirstList,
    /// A later list. The order of its changes is unknown, and it may have come by them at any
    /// version since the one before.
    Relist {
        /// Whether the server's history was replaced: versions before and after do not compare
        /// (G14).
        history_changed: bool,
    },
    /// The resource is gone from the server, and all objects with it (G32).
    Cleared,
}

impl<'a, T> Publication<'a, T> {
    /// What it comes from.
    #[must_use]
    pub fn kind(&self) -> PublicationKind {
        self.kind
    }

    /// The version of the store before; unset before the first list.
    #[must_use]
    pub fn before(&self) -> &'a ResourceVersion {
        self.before
    }

    /// The version of the store now. Bookmarks advance it without events.
    #[must_use]
    pub fn version(&self) -> &'a ResourceVersion {
        self.snapshot.version()
    }

    /// The state that was published.
    #[must_use]
    pub fn snapshot(&self) -> &'a Snapshot<T> {
        self.snapshot
    }

    /// The changes in order, each with its version. For a deletion that only a later list or state
    /// has shown, that is the version of the store before the publication, or of the state that
    /// showed it.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = (&'a ResourceVersion, &'a Event<T>)> {
        self.versions.iter().zip(self.events)
    }
}

impl<T> fmt::Debug for Publication<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("kind", &self.kind)
            .field("before", self.before)
            .field("version", self.version())
            .field("events", &self.events)
            .finish()
    }
}

/// Names an observer of a pipeline, to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObserverId(u64);

/// An observer panicked and was removed. Does not contain the panic message, which may quote an
/// object (G34).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObserverFault {
    /// Where the observer was added.
    pub added_at: &'static Location<'static>,
}

/// Calls the observers of a pipeline.
pub(super) struct Observers<T> {
    observers: Vec<Observer<T>>,
    added: u64,
    faults: Vec<ObserverFault>,
}

struct Observer<T> {
    id: ObserverId,
    added_at: &'static Location<'static>,
    observe: Box<Observe<T>>,
}

type Observe<T> = dyn FnMut(&Publication<'_, T>) + Send;

impl<T> Observers<T> {
    pub(super) fn new() -> Self {
        Self { observers: Vec::new(), added: 0, faults: Vec::new() }
    }

    #[track_caller]
    pub(super) fn add(
        &mut self,
        observe: impl FnMut(&Publication<'_, T>) + Send + 'static,
    ) -> ObserverId {
        self.added += 1;
        let id = ObserverId(self.added);
        let added_at = Location::caller();
        self.observers.push(Observer { id, added_at, observe: Box::new(observe) });
        id
    }

    pub(super) fn remove(&mut self, id: ObserverId) -> bool {
        let at = self.observers.iter().position(|observer| observer.id == id);
        at.map(|at| self.observers.remove(at)).is_some()
    }

    pub(super) fn clear(&mut self) {
        self.observers.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.observers.is_empty()
    }

    pub(super) fn take_faults(&mut self) -> Vec<ObserverFault> {
        std::mem::take(&mut self.faults)
    }

    /// Calls all of them; one that panics has missed a publication, and is removed.
    pub(super) fn published(
        &mut self,
        kind: PublicationKind,
        before: &ResourceVersion,
        snapshot: &Snapshot<T>,
        batch: &Batch<T>,
    ) {
        let Batch { events, versions, .. } = batch;
        let publication = Publication { kind, before, snapshot, events, versions };
        let faults = &mut self.faults;
        self.observers.retain_mut(|observer| {
            let called = catch_unwind(AssertUnwindSafe(|| (observer.observe)(&publication)));
            if called.is_err() {
                faults.push(ObserverFault { added_at: observer.added_at });
            }
            called.is_ok()
        });
    }
}

/// The events between two publications, and their versions if there are observers.
pub(super) struct Batch<T> {
    pub(super) events: Vec<Event<T>>,
    versions: Vec<ResourceVersion>,
    is_observed: bool,
}

impl<T> Batch<T> {
    pub(super) fn new() -> Self {
        Self { events: Vec::new(), versions: Vec::new(), is_observed: false }
    }

    /// Keeps versions from now on, or does not.
    pub(super) fn observed(&mut self, is_observed: bool) {
        self.is_observed = is_observed;
    }

    pub(super) fn push(&mut self, event: Event<T>, version: &ResourceVersion) {
        self.events.push(event);
        if self.is_observed {
            self.versions.push(version.clone());
        }
    }

    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.versions.clear();
    }

    /// Frees what a large batch took.
    pub(super) fn shrink(&mut self, capacity: usize) {
        if self.events.capacity() > capacity {
            self.events = Vec::new();
        }
        if self.versions.capacity() > capacity {
            self.versions = Vec::new();
        }
    }
}
