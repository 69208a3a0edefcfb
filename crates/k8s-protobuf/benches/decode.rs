//! One pod of a fleet, from protobuf and from JSON, into types of different sizes.
//!
//! `cargo bench -p k8s-protobuf --bench decode`

mod pod;

use std::hint::black_box;

use criterion::{Criterion, criterion_group};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_protobuf::{Envelope, Kind, encode, from_message, without_managed_fields};
use pod::pod;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

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
    bare.run::<BySerde<Pod>>(c, "pod through serde");
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
        let (kind, message) =
            Envelope::parse(&body).and_then(|envelope| envelope.message()).expect("a pod");
        let json = serde_json::to_vec(object).expect("a value");
        Self { kind, message: message.to_vec(), json }
    }

    fn run<T: DeserializeOwned + 'static>(&self, c: &mut Criterion, name: &str) {
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

/// The same through serde, where there is a way of its own.
#[derive(Deserialize)]
struct BySerde<T>(T);

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

criterion_group!(benches, decode);
