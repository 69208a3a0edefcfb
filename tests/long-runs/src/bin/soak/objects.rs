//! The objects: Pods of realistic size, ConfigMaps and Widgets, as they are sent to the API or
//! stored in etcd.

use informer_testkit::generate::Generator;
use informer_tests::fixtures::Widget;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::ApiResource;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::collection::{LABEL, NAMESPACES, TIERS};

/// What a controller may want of a Pod, and no more.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SlimPod {
    metadata: SlimMetadata,
    #[expect(dead_code, reason = "only kept")]
    spec: SlimSpec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimMetadata {
    uid: Box<str>,
    resource_version: Box<str>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimSpec {
    #[expect(dead_code, reason = "only kept")]
    node_name: Option<Box<str>>,
}

impl SlimPod {
    /// UID and version.
    pub(crate) fn identity(&self) -> [&str; 2] {
        [&self.metadata.uid, &self.metadata.resource_version]
    }
}

/// The kinds of objects that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Pod,
    ConfigMap,
    Widget,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Pod, Self::ConfigMap, Self::Widget];

    /// How the API knows it.
    pub(crate) fn resource(self) -> ApiResource {
        match self {
            Self::Pod => ApiResource::erase::<Pod>(&()),
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::Widget => ApiResource::erase::<Widget>(&()),
        }
    }

    /// Where the API server keeps an object in etcd.
    pub(crate) fn stored_at(self, namespace: &str, name: &str) -> String {
        let resource = match self {
            Self::Pod => "pods",
            Self::ConfigMap => "configmaps",
            Self::Widget => "example.com/widgets",
        };
        format!("/registry/{resource}/{namespace}/{name}")
    }

    /// An object as one would create it. `nonce` decides its label, its node and its size.
    pub(crate) fn object(self, slot: usize, name: &str, nonce: u64) -> Value {
        let metadata = json!({
            "name": name,
            "namespace": namespace(slot),
            "labels": { LABEL: tier(nonce), "app": "soak" },
            "annotations": annotations(nonce),
        });
        let kind = self.resource();
        match self {
            Self::Pod => {
                let text = Generator::default().pod(slot, 40);
                let generated: Value = serde_json::from_str(&text).unwrap_or_default();
                json!({
                    "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                    "spec": generated["spec"], "status": generated["status"],
                })
            }
            Self::ConfigMap => json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "data": { "nonce": nonce.to_string(), "text": padding(nonce >> 8) },
            }),
            Self::Widget => json!({
                "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata,
                "spec": { "colour": "red", "size": nonce >> 12 },
            }),
        }
    }
}

/// The namespace of a slot.
pub(crate) fn namespace(slot: usize) -> &'static str {
    NAMESPACES[slot % NAMESPACES.len()]
}

/// One of the label's values.
pub(crate) fn tier(nonce: u64) -> &'static str {
    TIERS[(nonce % TIERS.len() as u64) as usize]
}

/// Annotations of up to two kilobytes.
pub(crate) fn annotations(nonce: u64) -> Value {
    json!({ "example.com/nonce": nonce.to_string(), "example.com/text": padding(nonce >> 16) })
}

fn padding(random: u64) -> String {
    "abcdefghijklmnop".repeat((random % 128) as usize)
}

/// SplitMix64: small, seeded, good enough to choose objects by.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
