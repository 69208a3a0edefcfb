//! Ten fields of a Pod, which is what a controller may need.

#![expect(dead_code, reason = "only kept")]

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct TenFields {
    metadata: Metadata,
    spec: Spec,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Box<str>,
    namespace: Box<str>,
    #[serde(default)]
    labels: BTreeMap<Box<str>, Box<str>>,
    creation_timestamp: Option<Box<str>>,
    deletion_timestamp: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<Box<str>>,
    service_account_name: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: Option<Box<str>>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
    start_time: Option<Box<str>>,
}
