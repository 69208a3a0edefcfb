//! Heap per object, of each way to keep Pods, in a small informer; and allocations per event. All of it counted, so that it
//! is the same each time.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use informer::decode::{Decode, Kind};
use informer::source::WireObject;
use informer::{InformerOptions, Lazy, Resource, SharedInformer};
use informer_benches::HEAP;
use informer_testkit::generate;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{DynamicObject, PartialObjectMeta};
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Builder;

use crate::figures::print;
use crate::memory_source::{Feed, MemorySource};
use crate::{informers, memory};

const PODS: usize = 2_000;

/// A struct of one's own.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only kept")]
struct Phase {
    metadata: Name,
    status: Status,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only kept")]
struct Name {
    name: Box<str>,
    labels: BTreeMap<Box<str>, Box<str>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only kept")]
struct Status {
    phase: Box<str>,
}

pub(crate) fn measure() -> Result<()> {
    let whole = generate::pods(PODS).map(|pod| message(&pod)).collect::<Result<Vec<_>>>()?;
    heap::<Pod>("typed", &whole)?;
    heap::<PartialObjectMeta<Pod>>("metadata", &whole)?;
    heap::<Phase>("struct", &whole)?;
    heap::<DynamicObject>("dynamic", &whole)?;
    heap::<Lazy<Pod>>("lazy", &whole)?;
    heap::<Lazy<DynamicObject>>("lazy-dynamic", &whole)?;
    memory::sized(PODS);
    for batch in [64, 1] {
        print(&format!("informer.{batch}.allocations"), informers::allocations(batch)?);
    }
    crate::events::allocations();
    Ok(())
}

fn message(pod: &str) -> Result<WireObject> {
    let kind = Kind::of("v1", "Pod").context("there are Pods")?;
    let pod: Value = serde_json::from_str(pod)?;
    let mut message = Vec::new();
    k8s_protobuf::encode::message(kind, &pod, &mut message)?;
    Ok(WireObject::Protobuf(kind, message.into()))
}

fn heap<T: Decode>(name: &str, pods: &[WireObject]) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    let start = |list: Vec<WireObject>| -> Result<SharedInformer<T>> {
        let objects = list.len();
        let source = MemorySource::new([list], &Feed::new([]));
        let options = InformerOptions::new().streaming_lists(false).page_size(None);
        let informer = SharedInformer::<T>::new(source, Resource::of::<Pod>(), options);
        informer.start();
        let lister = runtime.block_on(informer.synced())?;
        ensure!(lister.len() == objects, "{} objects", lister.len());
        Ok(informer)
    };
    // What the first informer of a process sets up stays, and so do tables that decoders build.
    let first = start(pods[..10].to_vec())?;
    runtime.block_on(first.stop());
    drop(first);
    let before = HEAP.live();
    let informer = start(pods.to_vec())?;
    let taken = HEAP.live() - before;
    print(&format!("heap.{name}.bytes-per-pod"), taken as f64 / pods.len() as f64);
    runtime.block_on(informer.stop());
    Ok(())
}
