//! What handlers are told.

use std::fmt;
use std::sync::Arc;

use crate::ObjectKey;

/// One change of one object, as a registration receives it.
///
/// Per registration and key, events read `Added (Updated)* Deleted`, repeated (G3). An object with
/// the same name and another UID is `Deleted` then `Added`, never `Updated` (G5).
pub enum Event<T> {
    /// The object is new to this registration.
    Added {
        /// Namespace and name.
        key: ObjectKey,
        /// The object.
        object: Arc<T>,
        /// Whether it belongs to the registration's initial set: what the store held when the
        /// registration began (client-go's `isInInitialList`).
        initial: bool,
    },
    /// The object changed, or a resync shows it again.
    Updated {
        /// Namespace and name.
        key: ObjectKey,
        /// What this registration was last given for the key, also when changes were merged.
        old: Arc<T>,
        /// The state now; the same as `old` in a resync.
        new: Arc<T>,
        /// Why this is delivered.
        reason: UpdateReason,
    },
    /// The object is gone.
    Deleted(Deleted<T>),
}

/// Why an [`Event::Updated`] is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UpdateReason {
    /// The object changed on the server.
    Change,
    /// The registration asked to see everything again periodically, and this is such a time (G8).
    Resync,
}

/// An object that is gone.
///
/// Whoever acts on what an object was — a filter, the owner it had — looks at `old` and `last`, as
/// at `old` and `new` of an update: a change that this registration was not given may lie between
/// the two.
pub struct Deleted<T> {
    /// Namespace and name.
    pub key: ObjectKey,
    /// What this registration was last given for the key (G3).
    pub old: Arc<T>,
    /// The last state known; the same as `old` if nothing changed after that.
    pub last: Arc<T>,
    /// Whether `last` is the object's final state.
    pub final_state: FinalState,
}

/// Whether the final state of a deleted object was seen (client-go's `DeletedFinalStateUnknown`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinalState {
    /// The deletion was seen as it happened; the last state is the final one.
    Known,
    /// The deletion was missed and found out later; the object may have changed before it went.
    Unknown,
}

impl<T> Event<T> {
    /// The namespace and name of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added { key, .. }
            | Self::Updated { key, .. }
            | Self::Deleted(Deleted { key, .. }) => key,
        }
    }

    /// The newest state in the event: the one added or updated to, or the last one of a deleted
    /// object.
    #[must_use]
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted(deleted) => &deleted.last,
        }
    }

    /// Whether this is an `Added` of the registration's initial set.
    #[must_use]
    pub fn is_initial(&self) -> bool {
        matches!(self, Self::Added { initial: true, .. })
    }
}

// Not derived: `T` need not be `Clone`, and contents never reach `Debug` output (G34).

impl<T> Clone for Event<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { key, object, initial } => {
                Self::Added { key: key.clone(), object: Arc::clone(object), initial: *initial }
            }
            Self::Updated { key, old, new, reason } => Self::Updated {
                key: key.clone(),
                old: Arc::clone(old),
                new: Arc::clone(new),
                reason: *reason,
            },
            Self::Deleted(deleted) => Self::Deleted(deleted.clone()),
        }
    }
}

impl<T> Clone for Deleted<T> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            old: Arc::clone(&self.old),
            last: Arc::clone(&self.last),
            final_state: self.final_state,
        }
    }
}

impl<T> fmt::Debug for Event<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { key, initial: true, .. } => write!(f, "Added({key}, initial)"),
            Self::Added { key, .. } => write!(f, "Added({key})"),
            Self::Updated { key, reason, .. } => write!(f, "Updated({key}, {reason:?})"),
            Self::Deleted(deleted) => deleted.fmt(f),
        }
    }
}

impl<T> fmt::Debug for Deleted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deleted({}, final state {:?})", self.key, self.final_state)
    }
}
