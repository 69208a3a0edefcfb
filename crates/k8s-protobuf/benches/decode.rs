//! One pod of a fleet, from protobuf and from JSON, into types of different sizes.
//!
//! `cargo bench -p k8s-protobuf --bench decode`

use std::hint::black_box;

use criterion::{Criterion, criterion_group};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_protobuf::{Envelope, Kind, encode, from_message, without_managed_fields};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}

fn decode(c: &mut Criterion) {
    let whole = Case::new(&pod());
    println!("{} bytes of protobuf, {} of JSON", whole.message.len(), whole.json.len());
    whole.run::<Pod>(c, "pod with managedFields");
    whole.run::<Metadata>(c, "metadata with managedFields");
    whole.run::<Value>(c, "value with managedFields");
    let mut bare = pod();
    bare["metadata"].as_object_mut().expect("an object").remove("managedFields");
    let bare = Case::new(&bare);
    println!("{} bytes of protobuf, {} of JSON", bare.message.len(), bare.json.len());
    let mut scratch = Vec::new();
    assert_eq!(bare.message, without_managed_fields(&whole.message, &mut scratch).expect("a pod"));
    bare.run::<Pod>(c, "pod");
    bare.run::<Metadata>(c, "metadata");
    bare.run::<Slim>(c, "ten fields");
    bare.run::<IgnoredAny>(c, "nothing");
}

struct Case {
    kind: Kind,
    message: Vec<u8>,
    json: Vec<u8>,
}

impl Case {
    fn new(object: &Value) -> Self {
        let mut body = Vec::new();
        encode::object(object, &mut body).expect("a pod");
        let (kind, message) = Envelope::parse(&body).and_then(|envelope| envelope.message()).expect("a pod");
        let json = serde_json::to_vec(object).expect("a value");
        Self { kind, message: message.to_vec(), json }
    }

    fn run<T: DeserializeOwned>(&self, c: &mut Criterion, name: &str) {
        let mut group = c.benchmark_group(name);
        group.bench_function("protobuf", |b| {
            b.iter(|| from_message::<T>(self.kind, black_box(&self.message)).expect("a pod"));
        });
        group.bench_function("JSON", |b| {
            b.iter(|| serde_json::from_slice::<T>(black_box(&self.json)).expect("a pod"));
        });
        group.finish();
    }
}

/// All of the metadata and nothing else.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only decoded")]
struct Metadata {
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only decoded")]
struct Slim {
    metadata: SlimMetadata,
    spec: SlimSpec,
    status: SlimStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only decoded")]
struct SlimMetadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    labels: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only decoded")]
struct SlimSpec {
    node_name: Option<String>,
    service_account_name: Option<String>,
    host_network: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only decoded")]
struct SlimStatus {
    phase: String,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

/// Two containers, as a ReplicaSet makes them and a kubelet runs them.
fn pod() -> Value {
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example.com/team-a/{name}:v1.42.7"),
            "command": ["/bin/server"],
            "args": ["--port=8080", "--log-level=info", "--config=/etc/server/config.yaml"],
            "ports": [
                { "name": "http", "containerPort": 8080, "protocol": "TCP" },
                { "name": "metrics", "containerPort": 9090, "protocol": "TCP" },
            ],
            "env": [
                { "name": "POD_NAME", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } } },
                { "name": "NODE_IP", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "status.hostIP" } } },
                { "name": "REGION", "value": "eu-central-1" },
                { "name": "DATABASE_URL", "valueFrom": { "secretKeyRef": { "name": "database", "key": "url" } } },
            ],
            "resources": {
                "limits": { "cpu": "2", "memory": "1Gi" },
                "requests": { "cpu": "250m", "memory": "256Mi" },
            },
            "volumeMounts": [
                { "name": "config", "mountPath": "/etc/server", "readOnly": true },
                {
                    "name": "kube-api-access-x7k2p",
                    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                    "readOnly": true,
                },
            ],
            "livenessProbe": probe("/healthz"),
            "readinessProbe": probe("/readyz"),
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        })
    };
    let status = |name: &str| {
        json!({
            "name": name,
            "state": { "running": { "startedAt": "2026-11-21T10:00:05Z" } },
            "lastState": {},
            "ready": true,
            "restartCount": 0,
            "image": format!("registry.example.com/team-a/{name}:v1.42.7"),
            "imageID": "registry.example.com/team-a/server@sha256:4f1c1a7e0d5c9d0b7f6c3f5b8a9e2d1c4b7a6f5e8d9c0b1a2f3e4d5c6b7a8f9e",
            "containerID": "containerd://1f2e3d4c5b6a79880f1e2d3c4b5a69788f0e1d2c3b4a59687f0e1d2c3b4a5968",
            "started": true,
        })
    };
    let condition = |kind: &str| {
        json!({
            "type": kind,
            "status": "True",
            "lastProbeTime": null,
            "lastTransitionTime": "2026-11-21T10:00:10Z",
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-7d4b9c6f5d-x7k2p",
            "generateName": "web-7d4b9c6f5d-",
            "namespace": "team-a",
            "uid": "0b0f0c1e-5b1a-4c57-9a55-3f6f0a6a5a11",
            "resourceVersion": "104857600",
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "labels": {
                "app.kubernetes.io/name": "web",
                "app.kubernetes.io/instance": "web-production",
                "app.kubernetes.io/part-of": "shop",
                "app.kubernetes.io/version": "v1.42.7",
                "pod-template-hash": "7d4b9c6f5d",
                "team": "a",
            },
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9090",
                "checksum/config": "4f1c1a7e0d5c9d0b7f6c3f5b8a9e2d1c4b7a6f5e8d9c0b1a2f3e4d5c6b7a8f9e",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web-7d4b9c6f5d",
                "uid": "7e3a0f3c-0a9b-4f0e-8a55-b1f0f5a3d2c1",
                "controller": true,
                "blockOwnerDeletion": true,
            }],
            "managedFields": [managed("kube-controller-manager", ""), managed("kubelet", "status")],
        },
        "spec": {
            "volumes": [
                { "name": "config", "configMap": { "name": "web", "defaultMode": 420 } },
                {
                    "name": "kube-api-access-x7k2p",
                    "projected": {
                        "sources": [
                            { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                            {
                                "configMap": {
                                    "name": "kube-root-ca.crt",
                                    "items": [{ "key": "ca.crt", "path": "ca.crt" }],
                                },
                            },
                        ],
                        "defaultMode": 420,
                    },
                },
            ],
            "containers": [container("server"), container("proxy")],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "web",
            "serviceAccount": "web",
            "nodeName": "node-0417.eu-central-1.example.com",
            "securityContext": { "runAsNonRoot": true },
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
                {
                    "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
            "priority": 0,
            "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                condition("PodReadyToStartContainers"),
                condition("Initialized"),
                condition("Ready"),
                condition("ContainersReady"),
                condition("PodScheduled"),
            ],
            "hostIP": "10.0.4.17",
            "hostIPs": [{ "ip": "10.0.4.17" }],
            "podIP": "10.1.17.42",
            "podIPs": [{ "ip": "10.1.17.42" }],
            "startTime": "2026-11-21T10:00:00Z",
            "containerStatuses": [status("server"), status("proxy")],
            "qosClass": "Burstable",
        },
    })
}

fn probe(path: &str) -> Value {
    json!({
        "httpGet": { "path": path, "port": "http", "scheme": "HTTP" },
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    })
}

/// What a manager wrote: the same fields with each.
fn managed(manager: &str, subresource: &str) -> Value {
    let container = json!({
        ".": {}, "f:args": {}, "f:command": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
        "f:env": {
            ".": {},
            "k:{\"name\":\"POD_NAME\"}": { ".": {}, "f:name": {}, "f:valueFrom": { ".": {}, "f:fieldRef": {} } },
            "k:{\"name\":\"REGION\"}": { ".": {}, "f:name": {}, "f:value": {} },
        },
        "f:livenessProbe": { ".": {}, "f:failureThreshold": {}, "f:httpGet": { ".": {}, "f:path": {}, "f:port": {} } },
        "f:resources": { ".": {}, "f:limits": { ".": {}, "f:cpu": {}, "f:memory": {} } },
    });
    json!({
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-21T10:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": { "f:generateName": {}, "f:labels": { ".": {}, "f:team": {}, "f:pod-template-hash": {} } },
            "f:spec": {
                "f:containers": {
                    "k:{\"name\":\"server\"}": container,
                    "k:{\"name\":\"proxy\"}": container,
                },
                "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:terminationGracePeriodSeconds": {},
            },
        },
        "subresource": subresource,
    })
}

criterion_group!(benches, decode);
