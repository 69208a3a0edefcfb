//! What the store keeps of an object beside the object itself.

use std::fmt;
use std::sync::Arc;

use crate::{ObjectKey, ResourceVersion, Uid};

/// One object as it came from the server: its key, UID and version, read from the wire, and the
/// decoded object. `T` need not know any of the three.
pub struct Item<T> {
    /// Namespace and name.
    pub key: ObjectKey,
    /// UID and version, with the object.
    pub record: Record<T>,
}

/// The value that the store keeps under a key.
pub struct Record<T> {
    /// The identity of the object (G5).
    pub uid: Uid,
    /// The version of this state.
    pub version: ResourceVersion,
    /// The object, shared with everybody who was given it (G13).
    pub object: Arc<T>,
}

impl<T> Item<T> {
    /// An item of its parts; texts of UID and version are taken as they are.
    pub fn new(key: ObjectKey, uid: Uid, version: ResourceVersion, object: T) -> Self {
        Self { key, record: Record { uid, version, object: Arc::new(object) } }
    }
}

impl<T> Record<T> {
    /// Whether this is the state with the given UID and version. Unset versions say nothing.
    #[must_use]
    pub(crate) fn is_state(&self, uid: &Uid, version: &ResourceVersion) -> bool {
        !version.is_unset() && self.uid == *uid && self.version == *version
    }
}

// Not derived: `T` need not be `Clone` or `Debug`, and contents never reach `Debug` output (G34).

impl<T> Clone for Item<T> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), record: self.record.clone() }
    }
}

impl<T> Clone for Record<T> {
    fn clone(&self) -> Self {
        Self {
            uid: self.uid.clone(),
            version: self.version.clone(),
            object: Arc::clone(&self.object),
        }
    }
}

impl<T> fmt::Debug for Item<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({} {:?})", self.key, self.record)
    }
}

impl<T> fmt::Debug for Record<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uid {} at {}", self.uid, self.version)
    }
}
