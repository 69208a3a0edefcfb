//! What API servers keep about themselves, and leases.

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::text::{first_three, resource_name};
use super::view::View;

pub(super) static KINDS: [BuiltIn; 5] = [
    BuiltIn::new("coordination.k8s.io", "Lease", &definitions::LEASE, |it| {
        cells![it.name(), it.text("spec.holderIdentity"), it.age()]
    }),
    BuiltIn::new("coordination.k8s.io", "LeaseCandidate", &definitions::LEASE_CANDIDATE, |it| {
        cells![
            it.name(),
            it.text("spec.leaseName"),
            it.text("spec.binaryVersion"),
            it.text("spec.emulationVersion"),
            it.age(),
        ]
    }),
    BuiltIn::new("apiregistration.k8s.io", "APIService", &definitions::API_SERVICE, api_service),
    BuiltIn::new(
        "internal.apiserver.k8s.io",
        "StorageVersion",
        &definitions::STORAGE_VERSION,
        storage_version,
    ),
    BuiltIn::new(
        "storagemigration.k8s.io",
        "StorageVersionMigration",
        &definitions::STORAGE_VERSION_MIGRATION,
        migration,
    ),
];

fn api_service(it: View<'_>) -> Vec<Value> {
    let service = it.at("spec.service").map_or_else(
        || "Local".to_owned(),
        |it| format!("{}/{}", it.text("namespace"), it.text("name")),
    );
    let available = match it.condition("Available") {
        Some(condition) => match (condition.text("status"), condition.text("reason")) {
            (status @ "True", _) | (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
        None => "Unknown".to_owned(),
    };
    cells![it.name(), service, available, it.age()]
}

fn storage_version(it: View<'_>) -> Vec<Value> {
    let versions = it.list("status.storageVersions");
    let versions = first_three(
        versions.map(|it| format!("{}={}", it.text("apiServerID"), it.text("encodingVersion"))),
    );
    cells![
        it.name(),
        it.present_or("status.commonEncodingVersion", "<unset>"),
        if versions.is_empty() { "<unset>".to_owned() } else { versions },
        it.age(),
    ]
}

fn migration(it: View<'_>) -> Vec<Value> {
    let resource = it
        .at("spec.resource")
        .map_or_else(String::new, |it| resource_name(it.text("resource"), it.text("group")));
    let status = it
        .list("status.conditions")
        .filter(|it| it.text("status") == "True")
        .map(|it| it.text("type"))
        .rfind(|it| ["Running", "Failed", "Succeeded"].contains(it));
    cells![it.name(), resource, status.unwrap_or("Unknown")]
}
