//! Ready-made indexes.

use informer_core::store::Index;
use kube::Resource;

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
