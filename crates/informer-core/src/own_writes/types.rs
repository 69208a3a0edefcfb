//! The words in which writes and stores are told of.

use crate::{ObjectKey, ResourceVersion, Uid};

/// An informer that is [followed](super::OwnWrites::follow), by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InformerId(pub(super) usize);

impl InformerId {
    /// Its number: informers are counted from 0 in the order in which they were followed.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// What makes two versions of one store comparable: waits end when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct History {
    /// How often the server's history was replaced (G14).
    pub epoch: u64,
    /// How often the resource went away (G32).
    pub removals: u64,
}

/// What the informers show now.
pub trait Views {
    /// The history that the informer's store is of; `None` if the informer has stopped.
    fn history(&self, informer: InformerId) -> Option<History>;

    /// Whether the informer's scope includes a namespace; that of cluster-scoped objects is empty.
    fn includes_namespace(&self, informer: InformerId, namespace: &str) -> bool;

    /// Whether the store has reached a version of the informer's resource.
    fn has_reached(&self, informer: InformerId, version: &ResourceVersion) -> bool;

    /// UID and version of the object that the store has under a key.
    fn held(&self, informer: InformerId, key: &ObjectKey) -> Option<(Uid, ResourceVersion)>;

    /// Why the newest state of an object could not be decoded, if that is so (G30).
    fn undecodable(&self, informer: InformerId, key: &ObjectKey) -> Option<String>;
}

/// What a write does to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Creates it.
    Create,
    /// Replaces or patches it or a subresource, or creates it by server-side apply.
    Change,
    /// Deletes it.
    Delete,
}

/// A write that is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write<R> {
    /// The resource of the object; of a subresource, that of its parent.
    pub resource: R,
    /// What it does.
    pub verb: Verb,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name; `None` if the server chooses it.
    pub name: Option<String>,
    /// The UID, if it is known.
    pub uid: Option<Uid>,
}

impl<R> Write<R> {
    /// Namespace and name, if the name is known.
    #[must_use]
    pub fn object(&self) -> Option<ObjectKey> {
        Some(ObjectKey::namespaced(&self.namespace, self.name.as_deref()?))
    }
}

/// A write that was begun, to answer it once.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(super) key: ObjectKey,
    pub(super) number: u64,
}

/// An object as the server returned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The UID.
    pub uid: Uid,
    /// The version; of an object that is gone it may be older than the deletion.
    pub version: ResourceVersion,
    /// Whether the write ended the object: a delete without anything to wait for, or the removal of
    /// the last finalizer of an object that is being deleted.
    pub is_gone: bool,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing was written: it was refused, a dry run, or not sent.
    NotWritten,
    /// The server returned the object.
    Object(Written),
    /// There is nothing to delete: if the UID is known, the object with it is gone.
    NotFound,
    /// A delete was answered with a `Status`: the object is gone.
    Deleted {
        /// The UID in the answer, if there is one.
        uid: Option<Uid>,
    },
    /// Whether it was applied is unknown, or at which version: there was no answer, or none that
    /// tells.
    Unknown,
}

/// Whether an informer's selectors select an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// They do.
    Selected,
    /// They do not.
    Excluded,
    /// The answer does not have what they select by: that of a `scale`, say, has no labels.
    Unknown,
}

/// A write whose outcome is unknown, and the object that tells it.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsettled<R> {
    /// For [`settled`](super::OwnWrites::settled).
    pub ticket: Ticket,
    /// The resource.
    pub resource: R,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What a read by name has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The object.
    Object(Written),
    /// No object of that name.
    Absent,
}

/// What a store does not show yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing<R> {
    /// A write was not answered yet.
    InFlight {
        /// The resource.
        resource: R,
        /// The name, if it is known.
        name: Option<String>,
    },
    /// The outcome of a write is unknown.
    Unsettled {
        /// The resource.
        resource: R,
        /// The name, if a read by it can settle the write.
        name: Option<String>,
    },
    /// The store has not reached the version of a write.
    Version {
        /// The informer.
        informer: InformerId,
        /// The object.
        key: ObjectKey,
        /// The version.
        version: ResourceVersion,
    },
    /// The store may still hold an object that was deleted.
    Delete {
        /// The informer.
        informer: InformerId,
        /// The object.
        key: ObjectKey,
        /// Its UID.
        uid: Uid,
    },
    /// The history changed during a write: only a refresh tells whether it is shown.
    Refresh {
        /// The informer.
        informer: InformerId,
    },
    /// The object that was written cannot be decoded, so the store will not show it.
    Undecodable {
        /// The informer.
        informer: InformerId,
        /// The object.
        key: ObjectKey,
        /// The version that was written.
        version: ResourceVersion,
        /// Why.
        cause: String,
    },
}
