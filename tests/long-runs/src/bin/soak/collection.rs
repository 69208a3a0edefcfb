//! What is compared: the collections that informers follow, and digests of them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};

/// For each object, by `namespace/name`, its UID and version.
pub(crate) type Objects = BTreeMap<String, (String, String)>;

/// The label that selectors ask for, and its values.
pub(crate) const LABEL: &str = "tier";
pub(crate) const TIERS: [&str; 3] = ["gold", "silver", "bronze"];

/// The namespaces with objects in them.
pub(crate) const NAMESPACES: [&str; 6] =
    ["soak-0", "soak-1", "soak-2", "soak-3", "soak-4", "soak-5"];

/// One collection of the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Collection {
    Pods,
    /// The Pods of one namespace with one label.
    SelectedPods,
    ConfigMaps,
    Widgets,
}

impl Collection {
    pub(crate) const ALL: [Self; 4] =
        [Self::Pods, Self::SelectedPods, Self::ConfigMaps, Self::Widgets];

    /// Where the server lists it.
    pub(crate) fn path(self) -> String {
        match self {
            Self::Pods => "/api/v1/pods".to_owned(),
            Self::SelectedPods => {
                format!(
                    "/api/v1/namespaces/{}/pods?labelSelector={LABEL}%3D{}",
                    NAMESPACES[1], TIERS[0]
                )
            }
            Self::ConfigMaps => "/api/v1/configmaps".to_owned(),
            Self::Widgets => "/apis/example.com/v1/widgets".to_owned(),
        }
    }
}

/// The same for the same objects, in whatever order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Digest {
    pub(crate) objects: usize,
    sum: u64,
}

impl Digest {
    pub(crate) fn of(objects: &Objects) -> Self {
        let mut digest = Self::default();
        for (key, (uid, version)) in objects {
            digest.add(key, uid, version);
        }
        digest
    }

    pub(crate) fn add(&mut self, key: &str, uid: &str, version: &str) {
        self.objects += 1;
        self.sum = self.sum.wrapping_add(hash(key, uid, version));
    }

    pub(crate) fn remove(&mut self, key: &str, uid: &str, version: &str) {
        self.objects -= 1;
        self.sum = self.sum.wrapping_sub(hash(key, uid, version));
    }
}

/// The same in both processes: it has no random keys.
fn hash(key: &str, uid: &str, version: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, uid, version).hash(&mut hasher);
    hasher.finish()
}
