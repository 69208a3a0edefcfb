//! A backend whose objects never change, and its answers by hand.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::allow_attributes, reason = "an expectation would not hold in every test file")]

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt;
use informer_core::ObjectKey;
use informer_core::wire::{Encoding, FieldPath, ObjectHead, Wire, WireObject};
use k8s_protobuf::{Kind, encode};
use k8s_serve::{
    At, Backend, Change, Discovery, DiscoveryPath, Feed, FeedEnd, Object, ReadError, Resource,
    ResourcePath, Snapshot,
};
use serde_json::Value;

/// The version of the collection.
pub(crate) const VERSION: u64 = 7;

/// An object that is its bytes.
#[derive(Clone)]
pub(crate) struct Plain {
    key: ObjectKey,
    version: u64,
    wire: WireObject,
}

impl Plain {
    pub(crate) fn json(object: &Value) -> Self {
        Self::new(Bytes::from(object.to_string()).into())
    }

    pub(crate) fn protobuf(kind: Kind, object: &Value) -> Self {
        let mut message = Vec::new();
        encode::message(kind, object, &mut message).unwrap();
        Self::new(WireObject { encoding: Encoding::Protobuf(kind), bytes: message.into() })
    }

    fn new(wire: WireObject) -> Self {
        let head = ObjectHead::of(wire.wire()).unwrap();
        Self {
            key: ObjectKey::namespaced(&head.namespace, &head.name),
            version: head.version.to_string().parse().unwrap(),
            wire: wire.clone(),
        }
    }
}

impl Object for Plain {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.wire.wire().label(key)
    }

    fn field(&self, path: &str) -> Cow<'_, str> {
        let mut first = None;
        self.wire.wire().fields(&path.parse::<FieldPath>().unwrap(), &mut |value| {
            first.get_or_insert(value);
        });
        first.unwrap_or_default()
    }

    fn wire(&self) -> Wire<'_> {
        self.wire.wire()
    }
}

/// A collection that never changes.
#[derive(Clone)]
pub(crate) struct Fixed {
    pub(crate) resource: Arc<Resource>,
    pub(crate) objects: Arc<[Plain]>,
    pub(crate) ready: bool,
}

/// No change ever comes.
pub(crate) struct Silence;

impl Backend for Fixed {
    type Object = Plain;
    type Snapshot = Self;
    type Feed = Silence;

    async fn discovery(&self, _: &DiscoveryPath, _: &HeaderMap) -> Result<Discovery, ReadError> {
        Ok(Discovery::Resources(Arc::new([Arc::clone(&self.resource)])))
    }

    async fn resolve(&self, path: &ResourcePath) -> Result<Arc<Resource>, ReadError> {
        match path.names(&self.resource) {
            true => Ok(Arc::clone(&self.resource)),
            false => Err(ReadError::NotServed),
        }
    }

    async fn snapshot(&self, _: &Resource, at: At) -> Result<Self, ReadError> {
        match at {
            _ if !self.ready => Err(ReadError::NotReady { retry_after: Duration::from_secs(5) }),
            At::Exact(version) if version < VERSION => Err(ReadError::Expired { current: VERSION }),
            _ => Ok(self.clone()),
        }
    }

    async fn reached(&self, _: &Resource, version: u64) -> Result<(), ReadError> {
        if version > VERSION {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    async fn version(&self, _: &Resource) -> Result<u64, ReadError> {
        Ok(VERSION)
    }

    async fn feed(&self, _: &Resource, _: u64) -> Result<Silence, ReadError> {
        Ok(Silence)
    }
}

impl Snapshot for Fixed {
    type Object = Plain;

    fn version(&self) -> u64 {
        VERSION
    }

    fn object(&self, namespace: &str, name: &str) -> Option<Plain> {
        self.objects.iter().find(|o| *o.key() == ObjectKey::namespaced(namespace, name)).cloned()
    }

    fn page(&self, namespace: Option<&str>, after: Option<&ObjectKey>, limit: usize) -> Vec<Plain> {
        self.objects
            .iter()
            .filter(|o| namespace.is_none_or(|namespace| o.key().namespace() == namespace))
            .filter(|o| after.is_none_or(|after| o.key() > after))
            .take(limit)
            .cloned()
            .collect()
    }

    fn remaining(&self, namespace: Option<&str>, after: &ObjectKey) -> usize {
        self.page(namespace, Some(after), usize::MAX).len()
    }
}

impl Feed for Silence {
    type Object = Plain;

    async fn next(&mut self) -> Result<Vec<Change<Plain>>, FeedEnd> {
        Err(FeedEnd::Closed)
    }

    fn progress(&self) -> Option<u64> {
        Some(VERSION)
    }
}

/// The lines of a watch.
pub(crate) struct Lines<B> {
    body: B,
    buffer: Vec<u8>,
}

impl<B> Lines<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    pub(crate) fn new(body: B) -> Self {
        Self { body, buffer: Vec::new() }
    }

    /// The next line; `None` at the end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line[..end].to_vec()).unwrap());
            }
            let frame = self.body.frame().await?.map_err(|error| error.to_string()).unwrap();
            self.buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
    }

    /// The next event as `TYPE name@version`; of a bookmark `BOOKMARK @version`.
    pub(crate) async fn short(&mut self) -> Option<String> {
        let event: Value = serde_json::from_str(&self.line().await?).unwrap();
        let metadata = &event["object"]["metadata"];
        Some(format!(
            "{} {}@{}",
            event["type"].as_str().unwrap(),
            metadata["name"].as_str().unwrap_or_default(),
            metadata["resourceVersion"].as_str().unwrap_or_default()
        ))
    }
}
