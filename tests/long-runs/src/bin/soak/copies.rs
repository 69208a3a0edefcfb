//! Copies of a collection, of whatever type: stores, and what handlers were given.

use informer::{HasLabels, Index, ObjectKey, SharedInformer, Snapshot, Status};
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;

use crate::collection::{Collection, Digest, LABEL, Objects};
use crate::history::{Counts, Faults, History, Identity};

/// A history of whatever type.
pub(crate) trait Given: Send + Sync {
    fn name(&self) -> &'static str;
    fn digest(&self) -> Digest;
    fn counts(&self) -> Counts;
    fn objects(&self) -> Objects;
}

/// The store of an informer of whatever type.
pub(crate) trait Store: Send + Sync {
    fn name(&self) -> String;
    fn collection(&self) -> Collection;
    fn status(&self) -> Status;
    /// The keys, UIDs and versions of the records, which must be those of the objects too.
    fn objects(&self, faults: &Faults) -> Objects;
}

/// An informer, and how to read its objects' identity.
pub(crate) struct Kept<T> {
    collection: Collection,
    informer: SharedInformer<T>,
    identity: Identity<T>,
}

impl<T: Send + Sync + 'static> Kept<T> {
    pub(crate) fn boxed(
        collection: Collection,
        informer: SharedInformer<T>,
        identity: Identity<T>,
    ) -> Box<dyn Store> {
        Box::new(Self { collection, informer, identity })
    }
}

impl<T: Send + Sync + 'static> Store for Kept<T> {
    fn name(&self) -> String {
        format!("{} in {}", self.informer.resource(), self.informer.scope())
    }

    fn collection(&self) -> Collection {
        self.collection
    }

    fn status(&self) -> Status {
        self.informer.status()
    }

    fn objects(&self, faults: &Faults) -> Objects {
        let snapshot = self.informer.unsynced_store().snapshot();
        let entries = snapshot.iter().map(|entry| {
            let (uid, version) = (entry.record.uid.to_string(), entry.record.version.to_string());
            let of_object = (self.identity)(entry.object());
            if of_object != [uid.as_str(), version.as_str()] {
                faults.add(format!(
                    "{} is {uid} at {version}, but its object {of_object:?}",
                    entry.key
                ));
            }
            (entry.key.to_string(), (uid, version))
        });
        entries.collect()
    }
}

impl<T: Send + Sync + 'static> Given for History<T> {
    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn digest(&self) -> Digest {
        Self::digest(self)
    }

    fn counts(&self) -> Counts {
        Self::counts(self)
    }

    fn objects(&self) -> Objects {
        Self::objects(self)
    }
}

/// UID and version of an object with metadata.
pub(crate) fn of_metadata<T: Resource>(object: &T) -> [&str; 2] {
    let metadata = object.meta();
    [&metadata.uid, &metadata.resource_version].map(|text| text.as_deref().unwrap_or_default())
}

/// What the indexes over the label and the node do not have, or have too much (G11).
pub(crate) fn index_faults(
    snapshot: &Snapshot<Pod>,
    by_tier: &Index<Pod>,
    by_node: &Index<Pod>,
) -> Vec<String> {
    let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let tier = |pod: &Pod| pod.label(LABEL).map(ToOwned::to_owned);
    let mut faults = Vec::new();
    faults.extend(index_fault(snapshot, by_tier, tier));
    faults.extend(index_fault(snapshot, by_node, node));
    faults
}

fn index_fault(
    snapshot: &Snapshot<Pod>,
    index: &Index<Pod>,
    value: impl Fn(&Pod) -> Option<String>,
) -> Option<String> {
    let mut expected: Vec<(String, &ObjectKey)> =
        snapshot.iter().filter_map(|entry| Some((value(entry.object())?, entry.key))).collect();
    expected.sort();
    let values = match snapshot.index_values(index) {
        Ok(values) => values,
        Err(error) => return Some(format!("index {}: {error}", index.name())),
    };
    let mut found: Vec<(String, &ObjectKey)> = Vec::new();
    for value in &values {
        let hits = snapshot.by_index(index, value).into_iter().flatten();
        found.extend(hits.map(|entry| (value.to_string(), entry.key)));
    }
    found.sort();
    (found != expected).then(|| {
        format!(
            "index {} has {} entries, not the {} it must",
            index.name(),
            found.len(),
            expected.len()
        )
    })
}
