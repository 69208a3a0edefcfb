//! One pod of a fleet, from protobuf to JSON and back, and single fields of it.
//!
//! `cargo bench -p k8s-protobuf --bench json`

mod pod;

use std::hint::black_box;

use criterion::{Criterion, criterion_group};
use k8s_protobuf::{Envelope, FieldPath, encode, message_to_json};
use serde_json::Value;

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}

fn json(c: &mut Criterion) {
    let whole = pod::pod();
    let mut bare = whole.clone();
    bare["metadata"].as_object_mut().expect("an object").remove("managedFields");
    for (name, object) in [("pod with managedFields", &whole), ("pod", &bare)] {
        let mut body = Vec::new();
        encode::object(object, &mut body).expect("a pod");
        let (kind, message) =
            Envelope::parse(&body).and_then(|envelope| envelope.message()).expect("a pod");
        let mut group = c.benchmark_group(name);
        let mut out = Vec::new();
        message_to_json(kind, message, &mut out).expect("a pod");
        println!("{} bytes of protobuf, {} of JSON", message.len(), out.len());
        group.bench_function("to JSON", |b| {
            b.iter(|| {
                out.clear();
                message_to_json(kind, black_box(message), &mut out).expect("a pod");
            });
        });
        group.bench_function("to JSON and a value", |b| {
            b.iter(|| {
                out.clear();
                message_to_json(kind, black_box(message), &mut out).expect("a pod");
                serde_json::from_slice::<Value>(&out).expect("a pod")
            });
        });
        let mut written = Vec::new();
        group.bench_function("from a value", |b| {
            b.iter(|| {
                written.clear();
                encode::message(kind, black_box(object), &mut written).expect("a pod");
            });
        });
        for path in
            ["spec.nodeName", "metadata.labels['team']", "status.phase", "spec.containers[*].image"]
        {
            let path = FieldPath::of(kind, path).expect("a path");
            group.bench_function(path.to_string(), |b| {
                b.iter(|| path.read(black_box(message)).expect("a pod"))
            });
        }
        group.finish();
    }
}

criterion_group!(benches, json);
