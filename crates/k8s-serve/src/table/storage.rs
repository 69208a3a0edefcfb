//! Volumes, and what provides them.

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::selector::or_none;
use super::view::View;

pub(super) static KINDS: [BuiltIn; 3] = [
    BuiltIn::new("", "PersistentVolume", &definitions::PERSISTENT_VOLUME, volume),
    BuiltIn::new("", "PersistentVolumeClaim", &definitions::PERSISTENT_VOLUME_CLAIM, claim),
    BuiltIn::new(GROUP, "VolumeAttachment", &definitions::VOLUME_ATTACHMENT, attachment),
];

pub(super) static CLASSES: [BuiltIn; 4] = [
    BuiltIn::new(GROUP, "CSIDriver", &definitions::CSI_DRIVER, driver),
    BuiltIn::new(GROUP, "CSINode", &definitions::CSI_NODE, |it| {
        cells![it.name(), it.count("spec.drivers"), it.age()]
    }),
    BuiltIn::new(GROUP, "StorageClass", &definitions::STORAGE_CLASS, class),
    BuiltIn::new(GROUP, "VolumeAttributesClass", &definitions::VOLUME_ATTRIBUTES_CLASS, |it| {
        cells![it.name(), it.text("driverName"), it.age()]
    }),
];

const GROUP: &str = "storage.k8s.io";

fn volume(it: View<'_>) -> Vec<Value> {
    let claim = it.at("spec.claimRef").map_or_else(String::new, |claim| {
        format!("{}/{}", claim.text("namespace"), claim.text("name"))
    });
    cells![
        it.name(),
        it.quantity("spec.capacity.storage"),
        access_modes(it, "spec.accessModes"),
        it.text_or("spec.persistentVolumeReclaimPolicy", "Retain"),
        phase(it),
        claim,
        storage_class(it),
        it.present_or("spec.volumeAttributesClassName", "<unset>"),
        it.text("status.reason"),
        it.age(),
        it.present_or("spec.volumeMode", "Filesystem"),
    ]
}

fn claim(it: View<'_>) -> Vec<Value> {
    let (capacity, modes) = match it.text("spec.volumeName") {
        "" => (String::new(), String::new()),
        _ => (it.quantity("status.capacity.storage"), access_modes(it, "status.accessModes")),
    };
    cells![
        it.name(),
        phase(it),
        it.text("spec.volumeName"),
        capacity,
        modes,
        storage_class(it),
        it.present_or("spec.volumeAttributesClassName", "<unset>"),
        it.age(),
        it.present_or("spec.volumeMode", "Filesystem"),
    ]
}

fn phase(it: View<'_>) -> &str {
    if it.is_being_deleted() { "Terminating" } else { it.text_or("status.phase", "Pending") }
}

/// The name of the storage class, which was an annotation once.
fn storage_class<'a>(it: View<'a>) -> &'a str {
    let annotation = it.annotation("volume.beta.kubernetes.io/storage-class");
    annotation.unwrap_or_else(|| it.text("spec.storageClassName"))
}

/// `RWO,RWX`
fn access_modes(it: View<'_>, path: &str) -> String {
    let modes = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let present = modes.into_iter().filter(|(mode, _)| it.texts(path).any(|it| it == *mode));
    present.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

fn attachment(it: View<'_>) -> Vec<Value> {
    cells![
        it.name(),
        it.text("spec.attacher"),
        it.text("spec.source.persistentVolumeName"),
        it.text("spec.nodeName"),
        it.boolean("status.attached"),
        it.age(),
    ]
}

fn driver(it: View<'_>) -> Vec<Value> {
    let audiences = match it.has("spec.tokenRequests") {
        true => it
            .list("spec.tokenRequests")
            .map(|it| it.text("audience"))
            .collect::<Vec<_>>()
            .join(","),
        false => "<unset>".to_owned(),
    };
    let modes = match it.has("spec.volumeLifecycleModes") {
        true => or_none(it.texts("spec.volumeLifecycleModes").collect::<Vec<_>>().join(",")),
        false => "Persistent".to_owned(),
    };
    cells![
        it.name(),
        it.boolean_or("spec.attachRequired", true),
        it.boolean("spec.podInfoOnMount"),
        it.boolean("spec.storageCapacity"),
        audiences,
        it.boolean("spec.requiresRepublish"),
        modes,
        it.age(),
    ]
}

fn class(it: View<'_>) -> Vec<Value> {
    let is_default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]
    .into_iter()
    .any(|key| it.annotation(key) == Some("true"));
    cells![
        format!("{}{}", it.name(), if is_default { " (default)" } else { "" }),
        it.text("provisioner"),
        it.present_or("reclaimPolicy", "Delete"),
        it.present_or("volumeBindingMode", "Immediate"),
        it.boolean("allowVolumeExpansion"),
        it.age(),
    ]
}
