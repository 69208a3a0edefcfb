//! Ready-made indexes.

use informer_core::store::Index;
use kube::Resource;

use crate::HasMetadata;
use crate::metadata::controller_of;

/// The name of [`by_owner_uid`].
pub const OWNER_UID: &str = "owner-uid";

/// Files objects under the UIDs of their owners, all of them.
#[must_use]
#[track_caller]
pub fn by_owner_uid<K: Resource>() -> Index<K> {
    Index::new(OWNER_UID, |object: &K, values| {
        let owners = object.meta().owner_references.iter().flatten();
        values.extend(owners.map(|owner| owner.uid.as_str()));
    })
}

/// Files objects under the UID of the owner that controls them: the one whose owner reference says
/// `controller: true`. Every call makes the same index, so that all who need it share one.
/// [`Controller::owns`](crate::Controller::owns) adds it.
#[must_use]
#[track_caller]
pub fn by_controller_uid<T: HasMetadata>() -> Index<T> {
    Index::controller(|object: &T| {
        let metadata = object.metadata();
        controller_of(&metadata).map(|owner| owner.uid.as_str().into())
    })
}
