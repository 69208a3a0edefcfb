//! The columns of the common kinds.

use informer::Resource;
use serde_json::Value;

use super::pods::{self, containers, images, selector};
use super::row::{Row, array, at, joined, text};
use super::{Column, or_none};
use crate::age;

/// The columns after the name, if the resource is one of the common ones.
pub(super) fn columns(resource: &Resource) -> Option<&'static [Column]> {
    Some(match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pods::COLUMNS,
        ("apps", "deployments") => DEPLOYMENTS,
        ("apps", "replicasets") | ("", "replicationcontrollers") => REPLICA_SETS,
        ("apps", "statefulsets") => STATEFUL_SETS,
        ("apps", "daemonsets") => DAEMON_SETS,
        ("batch", "jobs") => JOBS,
        ("batch", "cronjobs") => CRON_JOBS,
        ("", "nodes") => NODES,
        ("", "services") => SERVICES,
        ("", "namespaces") => NAMESPACES,
        ("", "configmaps") => CONFIG_MAPS,
        ("", "secrets") => SECRETS,
        ("", "events") => EVENTS,
        ("", "persistentvolumeclaims") => CLAIMS,
        ("", "persistentvolumes") => VOLUMES,
        ("networking.k8s.io", "ingresses") => INGRESSES,
        ("coordination.k8s.io", "leases") => LEASES,
        ("apiextensions.k8s.io", "customresourcedefinitions") => DEFINITIONS,
        _ => return None,
    })
}

const AGE: Column = Column::new("AGE", |row| row.age());
const CONTAINERS: Column = Column::wide("CONTAINERS", containers);
const IMAGES: Column = Column::wide("IMAGES", images);
const SELECTOR: Column = Column::wide("SELECTOR", |row| selector(row, "spec.selector"));

const DEPLOYMENTS: &[Column] = &[
    Column::new("READY", ready_replicas),
    Column::new("UP-TO-DATE", |row| row.number("status.updatedReplicas").to_string()),
    Column::new("AVAILABLE", |row| row.number("status.availableReplicas").to_string()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const REPLICA_SETS: &[Column] = &[
    Column::new("DESIRED", |row| wanted_replicas(row).to_string()),
    Column::new("CURRENT", |row| row.number("status.replicas").to_string()),
    Column::new("READY", |row| row.number("status.readyReplicas").to_string()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const STATEFUL_SETS: &[Column] = &[Column::new("READY", ready_replicas), AGE, CONTAINERS, IMAGES];

const DAEMON_SETS: &[Column] = &[
    Column::new("DESIRED", |row| row.number("status.desiredNumberScheduled").to_string()),
    Column::new("CURRENT", |row| row.number("status.currentNumberScheduled").to_string()),
    Column::new("READY", |row| row.number("status.numberReady").to_string()),
    Column::new("UP-TO-DATE", |row| row.number("status.updatedNumberScheduled").to_string()),
    Column::new("AVAILABLE", |row| row.number("status.numberAvailable").to_string()),
    Column::new("NODE SELECTOR", |row| selector(row, "spec.template.spec.nodeSelector")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const JOBS: &[Column] = &[
    Column::new("STATUS", job_status),
    Column::new("COMPLETIONS", |row| {
        let wanted = row.at("spec.completions").and_then(Value::as_i64).unwrap_or(1);
        format!("{}/{wanted}", row.number("status.succeeded"))
    }),
    AGE,
    CONTAINERS,
    IMAGES,
];

const CRON_JOBS: &[Column] = &[
    Column::new("SCHEDULE", |row| row.text("spec.schedule").to_owned()),
    Column::new("SUSPEND", |row| match row.at("spec.suspend").and_then(Value::as_bool) {
        Some(true) => "True".to_owned(),
        _ => "False".to_owned(),
    }),
    Column::new("ACTIVE", |row| row.array("status.active").len().to_string()),
    Column::new("LAST SCHEDULE", |row| match row.text("status.lastScheduleTime") {
        "" => "<none>".to_owned(),
        time => age::age_of(Some(time), row.now),
    }),
    AGE,
];

const NODES: &[Column] = &[
    Column::new("STATUS", node_status),
    Column::new("ROLES", node_roles),
    AGE,
    Column::new("VERSION", |row| row.text("status.nodeInfo.kubeletVersion").to_owned()),
    Column::wide("INTERNAL-IP", |row| node_address(row, "InternalIP")),
    Column::wide("EXTERNAL-IP", |row| node_address(row, "ExternalIP")),
    Column::wide("OS-IMAGE", |row| node_info(row, "status.nodeInfo.osImage")),
    Column::wide("KERNEL-VERSION", |row| node_info(row, "status.nodeInfo.kernelVersion")),
    Column::wide("CONTAINER-RUNTIME", |row| {
        node_info(row, "status.nodeInfo.containerRuntimeVersion")
    }),
];

const SERVICES: &[Column] = &[
    Column::new("TYPE", |row| row.text("spec.type").to_owned()),
    Column::new("CLUSTER-IP", |row| or_none(row.text("spec.clusterIP").to_owned())),
    Column::new("EXTERNAL-IP", external_ip),
    Column::new("PORT(S)", ports),
    AGE,
    SELECTOR,
];

const NAMESPACES: &[Column] =
    &[Column::new("STATUS", |row| row.text("status.phase").to_owned()), AGE];

const CONFIG_MAPS: &[Column] =
    &[Column::new("DATA", |row| (row.size("data") + row.size("binaryData")).to_string()), AGE];

const SECRETS: &[Column] = &[
    Column::new("TYPE", |row| row.text("type").to_owned()),
    Column::new("DATA", |row| row.size("data").to_string()),
    AGE,
];

const EVENTS: &[Column] = &[
    Column::new("LAST SEEN", |row| {
        let last = ["series.lastObservedTime", "lastTimestamp", "eventTime", "firstTimestamp"];
        let time = last.iter().map(|it| row.text(it)).find(|it| !it.is_empty());
        age::age_of(time, row.now)
    }),
    Column::new("TYPE", |row| row.text("type").to_owned()),
    Column::new("REASON", |row| row.text("reason").to_owned()),
    Column::new("OBJECT", |row| {
        format!(
            "{}/{}",
            row.text("involvedObject.kind").to_lowercase(),
            row.text("involvedObject.name")
        )
    }),
    Column::new("MESSAGE", |row| row.text("message").trim().to_owned()),
];

const CLAIMS: &[Column] = &[
    Column::new("STATUS", |row| row.text("status.phase").to_owned()),
    Column::new("VOLUME", |row| row.text("spec.volumeName").to_owned()),
    Column::new("CAPACITY", |row| row.text("status.capacity.storage").to_owned()),
    Column::new("STORAGECLASS", |row| row.text("spec.storageClassName").to_owned()),
    AGE,
];

const VOLUMES: &[Column] = &[
    Column::new("CAPACITY", |row| row.text("spec.capacity.storage").to_owned()),
    Column::new("RECLAIM POLICY", |row| row.text("spec.persistentVolumeReclaimPolicy").to_owned()),
    Column::new("STATUS", |row| row.text("status.phase").to_owned()),
    Column::new("CLAIM", |row| match row.text("spec.claimRef.name") {
        "" => String::new(),
        name => format!("{}/{name}", row.text("spec.claimRef.namespace")),
    }),
    Column::new("STORAGECLASS", |row| row.text("spec.storageClassName").to_owned()),
    AGE,
];

const INGRESSES: &[Column] = &[
    Column::new("CLASS", |row| or_none(row.text("spec.ingressClassName").to_owned())),
    Column::new("HOSTS", |row| match joined(row.array("spec.rules"), "host") {
        hosts if hosts.is_empty() => "*".to_owned(),
        hosts => hosts,
    }),
    Column::new("ADDRESS", load_balancer),
    Column::new("PORTS", |row| {
        if row.array("spec.tls").is_empty() { "80" } else { "80, 443" }.to_owned()
    }),
    AGE,
];

const LEASES: &[Column] =
    &[Column::new("HOLDER", |row| row.text("spec.holderIdentity").to_owned()), AGE];

const DEFINITIONS: &[Column] = &[Column::new("CREATED AT", |row| {
    let created = row.object.metadata.creation_timestamp.as_ref();
    created.map(|it| it.0.to_string()).unwrap_or_default()
})];

fn wanted_replicas(row: &Row<'_>) -> i64 {
    row.at("spec.replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn ready_replicas(row: &Row<'_>) -> String {
    format!("{}/{}", row.number("status.readyReplicas"), wanted_replicas(row))
}

fn job_status(row: &Row<'_>) -> String {
    let is = |kind| row.condition(kind) == "True";
    let status = if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if row.object.metadata.deletion_timestamp.is_some() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else {
        "Running"
    };
    status.to_owned()
}

fn node_status(row: &Row<'_>) -> String {
    let ready = match row.condition("Ready") {
        "True" => "Ready",
        "" => "Unknown",
        _ => "NotReady",
    };
    let cordoned = row.at("spec.unschedulable").and_then(Value::as_bool) == Some(true);
    if cordoned { format!("{ready},SchedulingDisabled") } else { ready.to_owned() }
}

fn node_roles(row: &Row<'_>) -> String {
    let labels = row.object.metadata.labels.iter().flatten();
    let role = |(key, value): (&String, &String)| {
        key.strip_prefix("node-role.kubernetes.io/")
            .map(str::to_owned)
            .or_else(|| (key == "kubernetes.io/role").then(|| value.clone()))
    };
    or_none(labels.filter_map(role).collect::<Vec<_>>().join(","))
}

fn load_balancer(row: &Row<'_>) -> String {
    let ingress = row.array("status.loadBalancer.ingress");
    let address = |it: &Value| {
        let ip = text(it, "ip");
        if ip.is_empty() { text(it, "hostname").to_owned() } else { ip.to_owned() }
    };
    ingress.iter().map(address).collect::<Vec<_>>().join(",")
}

/// The addresses by which a Service is reached from outside.
fn external_ip(row: &Row<'_>) -> String {
    let kind = row.text("spec.type");
    if kind == "ExternalName" {
        return row.text("spec.externalName").to_owned();
    }
    let mut addresses: Vec<&str> = Vec::new();
    let balancer = if kind == "LoadBalancer" { load_balancer(row) } else { String::new() };
    addresses.extend(balancer.split(',').filter(|it| !it.is_empty()));
    for address in row.array("spec.externalIPs").iter().filter_map(Value::as_str) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    match addresses.join(",") {
        none if none.is_empty() && kind == "LoadBalancer" => "<pending>".to_owned(),
        addresses => or_none(addresses),
    }
}

fn node_address(row: &Row<'_>, kind: &str) -> String {
    let found = row.array("status.addresses").iter().find(|it| text(it, "type") == kind);
    or_none(found.map(|it| text(it, "address")).unwrap_or_default().to_owned())
}

fn node_info(row: &Row<'_>, path: &str) -> String {
    match row.text(path) {
        "" => "<unknown>".to_owned(),
        known => known.to_owned(),
    }
}

fn ports(row: &Row<'_>) -> String {
    let port = |it: &Value| {
        let number = |path| at(it, path).and_then(Value::as_i64);
        let node = number("nodePort").map(|it| format!(":{it}")).unwrap_or_default();
        let protocol = text(it, "protocol");
        let protocol = if protocol.is_empty() { "TCP" } else { protocol };
        format!("{}{node}/{protocol}", number("port").unwrap_or_default())
    };
    or_none(array(&row.object.data, "spec.ports").iter().map(port).collect::<Vec<_>>().join(","))
}
