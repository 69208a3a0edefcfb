//! Roles and certificates.

use jiff::SignedDuration;
use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::selector::labels;
use super::text::human_duration;
use super::view::View;

pub(super) static KINDS: [BuiltIn; 5] = [
    BuiltIn::new(ROLES, "RoleBinding", &definitions::ROLE_BINDING, binding),
    BuiltIn::new(ROLES, "ClusterRoleBinding", &definitions::CLUSTER_ROLE_BINDING, binding),
    BuiltIn::new(
        CERTIFICATES,
        "CertificateSigningRequest",
        &definitions::CERTIFICATE_SIGNING_REQUEST,
        signing_request,
    ),
    BuiltIn::new(CERTIFICATES, "ClusterTrustBundle", &definitions::CLUSTER_TRUST_BUNDLE, |it| {
        cells![it.name(), it.text_or("spec.signerName", "<none>")]
    }),
    BuiltIn::new(
        CERTIFICATES,
        "PodCertificateRequest",
        &definitions::POD_CERTIFICATE_REQUEST,
        pod_certificate_request,
    ),
];

const ROLES: &str = "rbac.authorization.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";

fn binding(it: View<'_>) -> Vec<Value> {
    let role = it.at("roleRef");
    let of_role = |path| role.map_or("", |it| it.text(path));
    let subjects = |kind: &str| {
        let subjects = it.list("subjects").filter(|it| it.text("kind") == kind);
        let names = subjects.map(|it| match kind {
            "ServiceAccount" => format!("{}/{}", it.text("namespace"), it.text("name")),
            _ => it.text("name").to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    cells![
        it.name(),
        format!("{}/{}", of_role("kind"), of_role("name")),
        it.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn signing_request(it: View<'_>) -> Vec<Value> {
    let duration = match it.has("spec.expirationSeconds") {
        true => human_duration(SignedDuration::from_secs(it.integer("spec.expirationSeconds"))),
        false => "<none>".to_owned(),
    };
    let has = |kind| it.condition(kind).is_some();
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if it.text("status.certificate").is_empty() { "" } else { ",Issued" };
    cells![
        it.name(),
        it.age(),
        it.text_or("spec.signerName", "<none>"),
        it.text("spec.username"),
        duration,
        format!("{decision}{failed}{issued}"),
    ]
}

fn pod_certificate_request(it: View<'_>) -> Vec<Value> {
    let states = ["Issued", "Denied", "Failed"];
    let state =
        it.list("status.conditions").map(|it| it.text("type")).rfind(|it| states.contains(it));
    cells![
        it.name(),
        it.text("spec.podName"),
        it.text("spec.serviceAccountName"),
        it.text("spec.nodeName"),
        it.text("spec.signerName"),
        state.unwrap_or("Pending"),
        labels(it.map("spec.unverifiedUserAnnotations")),
    ]
}
