//! The fields that Kubernetes 1.36 selects built-in kinds by.
//!
//! Accepted fields are in `pkg/apis/*/conversion.go` (`AddFieldLabelConversionFunc`), compared ones
//! in `pkg/registry/**/strategy.go` (`GetAttrs`). A field counts only if it is in both; one that is
//! accepted and never compared is always empty. The paths are those of the served versions.

/// How the server selects the objects of one built-in kind.
#[derive(Debug)]
pub(super) struct BuiltIn {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    /// Whether `metadata.namespace` is accepted.
    pub(super) by_namespace: bool,
    /// The fields besides name and namespace.
    pub(super) fields: &'static [Field],
    pub(super) refusal: Refusal,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) label: &'static str,
    pub(super) paths: [Option<&'static str>; 2],
    pub(super) default: &'static str,
}

/// The message for a field that is not accepted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refusal {
    NotSupported,
    NotSupportedForKind,
    QuotedNotSupported,
    NotKnown,
}

/// Every kind without rules of its own.
pub(super) const OTHER: BuiltIn =
    BuiltIn { group: "", kind: "", by_namespace: true, fields: &[], refusal: Refusal::NotKnown };

pub(super) const KINDS: [BuiltIn; 13] = [
    namespaced(
        "",
        "Pod",
        &[
            same("spec.nodeName"),
            same("spec.restartPolicy"),
            same("spec.schedulerName"),
            same("spec.serviceAccountName"),
            same("spec.hostNetwork").or("false"),
            same("status.phase"),
            same("status.podIP"),
            Field { label: "status.podIPs", paths: [None, None], default: "" },
            same("status.nominatedNodeName"),
            read("spec.host", "spec.nodeName"),
        ],
    ),
    namespaced(
        "",
        "Event",
        &[
            same("involvedObject.kind"),
            same("involvedObject.namespace"),
            same("involvedObject.name"),
            same("involvedObject.uid"),
            same("involvedObject.apiVersion"),
            same("involvedObject.resourceVersion"),
            same("involvedObject.fieldPath"),
            same("reason"),
            same("reportingComponent"),
            Field {
                label: "source",
                paths: [Some("source.component"), Some("reportingComponent")],
                default: "",
            },
            same("type"),
        ],
    ),
    namespaced(
        "events.k8s.io",
        "Event",
        &[
            same("regarding.kind"),
            same("regarding.namespace"),
            same("regarding.name"),
            same("regarding.uid"),
            same("regarding.apiVersion"),
            same("regarding.resourceVersion"),
            same("regarding.fieldPath"),
            same("reason"),
            same("reportingController"),
            same("type"),
        ],
    ),
    namespaced("", "Secret", &[same("type")]),
    namespaced("", "Service", &[same("spec.clusterIP"), same("spec.type")]),
    namespaced("", "ReplicationController", &[same("status.replicas").or("0")]),
    cluster("", "Namespace", &[same("status.phase")]),
    cluster("", "Node", &[same("spec.unschedulable").or("false")]),
    BuiltIn {
        refusal: Refusal::QuotedNotSupported,
        ..namespaced("batch", "Job", &[read("status.successful", "status.succeeded").or("0")])
    },
    cluster("certificates.k8s.io", "CertificateSigningRequest", &[same("spec.signerName")]),
    cluster("certificates.k8s.io", "ClusterTrustBundle", &[same("spec.signerName")]),
    // It has namespaces, and the server does not select by them.
    cluster(
        "certificates.k8s.io",
        "PodCertificateRequest",
        &[same("spec.signerName"), same("spec.podName"), same("spec.nodeName")],
    ),
    BuiltIn {
        refusal: Refusal::NotSupportedForKind,
        ..cluster("resource.k8s.io", "ResourceSlice", &[same("spec.nodeName"), same("spec.driver")])
    },
];

/// The groups that are built into API servers, without definitions or extension servers.
pub(super) const BUILT_IN_GROUPS: [&str; 23] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

const fn namespaced(group: &'static str, kind: &'static str, fields: &'static [Field]) -> BuiltIn {
    BuiltIn { group, kind, by_namespace: true, fields, refusal: Refusal::NotSupported }
}

const fn cluster(group: &'static str, kind: &'static str, fields: &'static [Field]) -> BuiltIn {
    BuiltIn { by_namespace: false, ..namespaced(group, kind, fields) }
}

const fn same(label: &'static str) -> Field {
    read(label, label)
}

const fn read(label: &'static str, path: &'static str) -> Field {
    Field { label, paths: [Some(path), None], default: "" }
}

impl Field {
    const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }
}
