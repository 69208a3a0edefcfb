//! The objects that are measured with: as small as can be, so that what is seen is ours.

use std::sync::Arc;

use anyhow::{Context, Result};
use informer::decode::{Decode, DecodeError, Kind, RawObject};
use informer::source::{WatchEventType, WatchFrame, WireObject};
use informer::{HasLabels, Resource};
use informer_core::{Delta, Item, ObjectKey, Pipeline, Record};
use serde_json::json;

/// How many objects have the same value of the label `app`.
pub(crate) const PER_APP: usize = 100;

/// An object of one's own: a label and its number.
#[derive(Debug)]
pub(crate) struct Small {
    pub(crate) app: Box<str>,
    pub(crate) value: u64,
}

impl HasLabels for Small {
    fn label(&self, key: &str) -> Option<&str> {
        (key == "app").then_some(&self.app)
    }
}

/// Reads nothing, so that only what the library itself reads of an object is measured.
impl Decode for Small {
    fn decode(raw: RawObject<'_>) -> Result<Self, DecodeError> {
        Ok(Self { app: Box::default(), value: raw.wire.bytes().len() as u64 })
    }
}

/// The kind that stands on the wire.
pub(crate) fn resource() -> Resource {
    Resource::of::<k8s_openapi::api::core::v1::ConfigMap>()
}

/// Key of number `at`, in one of 20 namespaces.
pub(crate) fn key(at: usize) -> ObjectKey {
    ObjectKey::namespaced(&format!("namespace-{:02}", at % NAMESPACES), &format!("object-{at:07}"))
}

const NAMESPACES: usize = 20;

/// All numbers, in the order of their keys: as a server lists them, and so what lies side by side in memory.
pub(crate) fn in_key_order(count: usize) -> impl Iterator<Item = usize> {
    (0..NAMESPACES).flat_map(move |namespace| (namespace..count).step_by(NAMESPACES))
}

fn uid(at: usize) -> String {
    format!("{at:08x}-0000-4000-8000-{at:012x}")
}

/// Number `at` of `count`. Objects of one app are far from each other.
pub(crate) fn item(at: usize, count: usize, version: u64) -> Item<Small> {
    let app = format!("app-{}", at % (count / PER_APP).max(1)).into();
    Item::new(key(at), uid(at).as_str().into(), version.into(), Small { app, value: at as u64 })
}

/// All of them, in key order.
pub(crate) fn items(count: usize) -> Vec<Item<Small>> {
    in_key_order(count).map(|at| item(at, count, 1)).collect()
}

/// The same objects at another version, with the keys that the store has, in another order: neighbours in it are far
/// from each other in the store.
pub(crate) fn updated(items: &[Item<Small>], version: u64) -> Vec<Item<Small>> {
    let update = |at: usize| {
        let Item { key, record } = &items[at * 7919 % items.len()];
        let object = Arc::new(Small { app: record.object.app.clone(), value: record.object.value });
        Item { key: key.clone(), record: Record { uid: record.uid.clone(), version: version.into(), object } }
    };
    (0..items.len()).map(update).collect()
}

/// A pipeline that has synced with these.
pub(crate) fn synced(items: &[Item<Small>]) -> Pipeline<Small> {
    let mut pipeline = Pipeline::new();
    list(&mut pipeline, items.iter().cloned().map(Delta::Listed));
    pipeline
}

/// Lists these.
pub(crate) fn list(pipeline: &mut Pipeline<Small>, listed: impl Iterator<Item = Delta<Small>>) {
    let begin = [Delta::ReplaceStarted { distrust: false }];
    let end = [Delta::ReplaceFinished { version: 1.into(), history_changed: false }];
    pipeline.apply(std::time::Duration::ZERO, begin.into_iter().chain(listed).chain(end));
}

/// A ConfigMap in protobuf, about 150 bytes.
pub(crate) fn wire_object(at: usize, version: usize) -> Result<WireObject> {
    let kind = Kind::of("v1", "ConfigMap").context("there are ConfigMaps")?;
    let key = key(at);
    let object = json!({
        "metadata": {
            "name": key.name(), "namespace": key.namespace(), "uid": uid(at), "resourceVersion": version.to_string(),
            "labels": { "app": "some-app" },
        },
        "data": { "value": "some-value" },
    });
    let mut message = Vec::new();
    k8s_protobuf::encode::message(kind, &object, &mut message)?;
    Ok(WireObject::Protobuf(kind, message.into()))
}

/// A watch's frame that says that number `at` has changed.
pub(crate) fn modified(at: usize, version: usize) -> Result<WatchFrame> {
    Ok(WatchFrame { kind: WatchEventType::Modified, object: wire_object(at, version)? })
}
