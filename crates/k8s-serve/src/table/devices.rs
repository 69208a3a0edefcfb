//! Devices (dynamic resource allocation).

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::keep::{Keep, keep};
use super::view::View;

pub(super) static KINDS: [BuiltIn; 6] = [
    BuiltIn::new(GROUP, "DeviceClass", &definitions::DEVICE_CLASS, name_and_age)
        .keeping(&NAME_AND_AGE),
    BuiltIn::new(GROUP, "DeviceTaintRule", &definitions::DEVICE_TAINT_RULE, taint_rule),
    BuiltIn::new(GROUP, "ResourceClaim", &definitions::RESOURCE_CLAIM, claim)
        .keeping(&CLAIM_FIELDS),
    BuiltIn::new(
        GROUP,
        "ResourceClaimTemplate",
        &definitions::RESOURCE_CLAIM_TEMPLATE,
        name_and_age,
    )
    .keeping(&NAME_AND_AGE),
    BuiltIn::new(
        GROUP,
        "ResourcePoolStatusRequest",
        &definitions::RESOURCE_POOL_STATUS_REQUEST,
        pool_status,
    ),
    BuiltIn::new(GROUP, "ResourceSlice", &definitions::RESOURCE_SLICE, |it| {
        cells![
            it.name(),
            it.text("spec.nodeName"),
            it.text("spec.driver"),
            it.text("spec.pool.name"),
            it.age(),
        ]
    }),
];

const GROUP: &str = "resource.k8s.io";

// Without the parameters of drivers, which are any JSON.
static NAME_AND_AGE: Keep = keep! { metadata { name namespace creationTimestamp } };
static CLAIM_FIELDS: Keep = keep! {
    metadata { name namespace creationTimestamp deletionTimestamp }
    status { reservedFor allocation {} }
};

fn name_and_age(it: View<'_>) -> Vec<Value> {
    cells![it.name(), it.age()]
}

fn taint_rule(it: View<'_>) -> Vec<Value> {
    let added = match it.has("spec.taint.timeAdded") {
        true => it.since("spec.taint.timeAdded"),
        false => String::new(),
    };
    cells![
        it.name(),
        it.text("spec.taint.key"),
        it.text("spec.taint.value"),
        it.text("spec.taint.effect"),
        added,
        it.age(),
    ]
}

fn claim(it: View<'_>) -> Vec<Value> {
    let is_reserved = it.count("status.reservedFor") > 0;
    let state = match (it.is_being_deleted(), it.has("status.allocation"), is_reserved) {
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
    };
    cells![it.name(), state, it.age()]
}

fn pool_status(it: View<'_>) -> Vec<Value> {
    let end = it
        .list("status.conditions")
        .filter(|it| it.text("status") == "True")
        .find(|it| ["Complete", "Failed"].contains(&it.text("type")));
    let count = it.integer("status.poolCount");
    let listed = it.count("status.pools");
    let (status, completed) = match end.map(|end| (end.text("type"), end)) {
        Some(("Complete", end)) => {
            let is_cut = i64::try_from(listed).is_ok_and(|it| it < count);
            let status = match is_cut {
                true => format!("Complete ({listed}/{count} pools)"),
                false => "Complete".to_owned(),
            };
            (status, end.since("lastTransitionTime"))
        }
        Some((other, _)) => (other.to_owned(), "<none>".to_owned()),
        None => ("Pending".to_owned(), "<none>".to_owned()),
    };
    let is_known = it.has("status") && status != "Failed";
    let shown = |number: i32| if is_known { number.to_string() } else { "-".to_owned() };
    // Of 32 bits, as the fields are.
    let number = |pool: View<'_>, path| i32::try_from(pool.integer(path)).unwrap_or_default();
    let sum =
        |path| shown(it.list("status.pools").fold(0, |sum, it| sum.wrapping_add(number(it, path))));
    let errors = it.list("status.pools").filter(|it| it.has("validationError")).count();
    cells![
        it.name(),
        it.text("spec.driver"),
        sum("totalDevices"),
        sum("availableDevices"),
        sum("allocatedDevices"),
        sum("unavailableDevices"),
        shown(i32::try_from(errors).unwrap_or(i32::MAX)),
        count,
        status,
        completed,
    ]
}
