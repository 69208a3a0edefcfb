//! Go's protobuf and Go's JSON of the same objects are the same as types of k8s-openapi, all of
//! them.

mod corpus;
#[path = "typed/kinds.rs"]
mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use corpus::Pair;
use k8s_protobuf::{Kind, from_slice};
use serde::de::DeserializeOwned;

/// How the objects of each kind are compared.
#[derive(Default)]
pub(crate) struct Kinds(BTreeMap<(&'static str, &'static str), Compare>);

type Compare = fn(&Pair) -> Outcome;

enum Outcome {
    Same,
    /// The type does not take what Go wrote.
    Refused,
    Different(String),
}

impl Kinds {
    pub(crate) fn add<T: DeserializeOwned + PartialEq + Debug + 'static>(
        &mut self,
        api_version: &'static str,
        kind: &'static str,
    ) {
        self.0.insert((api_version, kind), compare::<T>);
    }
}

fn compare<T: DeserializeOwned + PartialEq + Debug + 'static>(pair: &Pair) -> Outcome {
    match (serde_json::from_slice::<T>(&pair.json), from_slice::<T>(&pair.protobuf)) {
        (Ok(json), Ok(protobuf)) if json == protobuf => Outcome::Same,
        (Err(_), Err(_)) => Outcome::Refused,
        (json, protobuf) => Outcome::Different(format!(
            "{}: {}\n{}",
            pair.name,
            protobuf.map_or_else(|error| error.to_string(), |object| format!("{object:?}")),
            json.map_or_else(|error| error.to_string(), |object| format!("{object:?}")),
        )),
    }
}

#[test]
fn an_object_is_what_gos_json_is() {
    let mut pairs = corpus::pairs();
    let kinds = kinds::all();
    let (mut same, mut refused, mut different) = (0, 0, Vec::new());
    for pair in &mut pairs {
        let Some((kind, _)) = pair.message() else { continue };
        let Some(compare) = kinds.0.get(&(kind.api_version(), kind.name())) else { continue };
        pair.end_earlier();
        match compare(pair) {
            Outcome::Same => same += 1,
            Outcome::Refused => refused += 1,
            Outcome::Different(what) => different.push(what),
        }
    }
    assert!(different.is_empty(), "{}, such as {}", different.len(), different[0]);
    // Go writes null for some times that the types must have.
    assert!(
        refused * 50 < same,
        "{same} are the same, but {refused} are refused in both encodings"
    );
}

/// What is in the table and not in k8s-openapi: `*` are all kinds of the version; of those named,
/// the lists too.
const NOT_TYPED: &[(&str, &[&str])] = &[
    // Only sent to webhooks.
    ("admission.k8s.io/v1", &["*"]),
    ("admission.k8s.io/v1beta1", &["*"]),
    ("apiextensions.k8s.io/v1", &["ConversionReview"]),
    ("imagepolicy.k8s.io/v1alpha1", &["*"]),
    // Not in the OpenAPI document of Kubernetes, from which k8s-openapi is made.
    ("apidiscovery.k8s.io/v2", &["*"]),
    ("apidiscovery.k8s.io/v2beta1", &["*"]),
    ("meta.k8s.io/v1", &["*"]),
    ("meta.k8s.io/v1beta1", &["*"]),
    ("metrics.k8s.io/v1beta1", &["*"]),
    ("v1", &["List", "PodStatusResult", "RangeAllocation", "SerializedReference"]),
    // Types without a version of their own there.
    ("v1", &["DeleteOptions", "WatchEvent"]),
    // Parameters of requests.
    ("v1", &["CreateOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"]),
    ("v1", &["NodeProxyOptions", "PodProxyOptions", "ServiceProxyOptions"]),
    ("v1", &["PodAttachOptions", "PodExecOptions", "PodLogOptions", "PodPortForwardOptions"]),
    // Versions that Kubernetes 1.36 does not serve any more.
    (
        "admissionregistration.k8s.io/v1alpha1",
        &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"],
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apps/v1beta1", &["*"]),
    ("apps/v1beta2", &["*"]),
    ("authentication.k8s.io/v1alpha1", &["*"]),
    ("authentication.k8s.io/v1beta1", &["*"]),
    ("authorization.k8s.io/v1beta1", &["*"]),
    ("batch/v1beta1", &["*"]),
    ("certificates.k8s.io/v1beta1", &["CertificateSigningRequest"]),
    ("coordination.k8s.io/v1beta1", &["Lease"]),
    ("discovery.k8s.io/v1beta1", &["*"]),
    ("events.k8s.io/v1beta1", &["*"]),
    ("extensions/v1beta1", &["*"]),
    ("flowcontrol.apiserver.k8s.io/v1beta1", &["*"]),
    ("flowcontrol.apiserver.k8s.io/v1beta2", &["*"]),
    ("flowcontrol.apiserver.k8s.io/v1beta3", &["*"]),
    ("networking.k8s.io/v1beta1", &["Ingress", "IngressClass"]),
    ("node.k8s.io/v1alpha1", &["*"]),
    ("node.k8s.io/v1beta1", &["*"]),
    ("policy/v1beta1", &["*"]),
    ("rbac.authorization.k8s.io/v1alpha1", &["*"]),
    ("rbac.authorization.k8s.io/v1beta1", &["*"]),
    ("scheduling.k8s.io/v1beta1", &["*"]),
    ("storage.k8s.io/v1alpha1", &["*"]),
    (
        "storage.k8s.io/v1beta1",
        &["CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"],
    ),
];

#[test]
fn no_kind_is_forgotten() {
    let kinds = kinds::all();
    for (api_version, kind) in kinds.0.keys() {
        assert!(Kind::of(api_version, kind).is_some(), "{api_version} {kind} is not in the table");
    }
    let mut exceptions: BTreeSet<(&str, &str)> = NOT_TYPED
        .iter()
        .flat_map(|(version, kinds)| kinds.iter().map(move |kind| (*version, *kind)))
        .collect();
    let mut used = BTreeSet::new();
    for kind in Kind::all() {
        let (version, name) = (kind.api_version(), kind.name());
        let item = name.strip_suffix("List").unwrap_or(name);
        let candidates = [(version, "*"), (version, name), (version, item)];
        let exception = candidates.into_iter().find(|candidate| exceptions.contains(candidate));
        let is_typed = kinds.0.contains_key(&(version, name));
        assert!(
            is_typed != exception.is_some(),
            "{kind} is typed: {is_typed}, and excepted: {exception:?}"
        );
        used.extend(exception);
    }
    exceptions.retain(|exception| !used.contains(exception));
    assert!(exceptions.is_empty(), "{exceptions:?} are not in the table");
}
