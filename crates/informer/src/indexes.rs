//! Ready-made indexes.

use informer_core::store::Index;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;

/// The name of [`by_owner_uid`].
pub const OWNER_UID: &str = "owner-uid";

/// The name of [`by_node_name`].
pub const NODE_NAME: &str = "node-name";

/// Files objects under the UIDs of their owners, all of them.
#[must_use]
#[track_caller]
pub fn by_owner_uid<K: Resource>() -> Index<K> {
    Index::new(OWNER_UID, |object: &K, values| {
        let owners = object.meta().owner_references.iter().flatten();
        values.extend(owners.map(|owner| owner.uid.as_str()));
    })
}

/// Files Pods under the node that they are assigned to, if they are.
#[must_use]
#[track_caller]
pub fn by_node_name() -> Index<Pod> {
    Index::new(NODE_NAME, |pod: &Pod, values| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        values.extend(node.filter(|name| !name.is_empty()));
    })
}
