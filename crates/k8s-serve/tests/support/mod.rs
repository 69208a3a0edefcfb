//! A backend whose objects never change, and its answers by hand.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::allow_attributes, reason = "an expectation would not hold in every test file")]

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body_util::BodyExt;
use informer_core::ObjectKey;
use informer_core::wire::{Encoding, FieldPath, ObjectHead, Wire, WireObject};
use jiff::Timestamp;
use k8s_protobuf::{Kind, encode};
use k8s_serve::table::Columns;
use k8s_serve::watch_cache::{Capacity, Interest, WatchCache, Watcher};
use k8s_serve::{
    At, Backend, Change, Discovery, DiscoveryPath, Object, ReadError, ReadOptions, ReadSide,
    Resource, ResourcePath, Route, Snapshot, Status, WatchEnd,
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
        Self::text(object.to_string().as_bytes())
    }

    pub(crate) fn text(json: &[u8]) -> Self {
        Self::new(Bytes::copy_from_slice(json).into())
    }

    pub(crate) fn protobuf(kind: Kind, object: &Value) -> Self {
        let mut message = Vec::new();
        encode::message(kind, object, &mut message).unwrap();
        Self::new(WireObject { encoding: Encoding::Protobuf(kind), bytes: message.into() })
    }

    /// The same, cut short.
    pub(crate) fn broken(mut self) -> Self {
        self.wire.bytes.truncate(self.wire.bytes.len() - 1);
        self
    }

    fn new(wire: WireObject) -> Self {
        let head = ObjectHead::of(wire.wire()).unwrap();
        let key = ObjectKey::namespaced(&head.namespace, &head.name);
        let version = head.version.to_string().parse().unwrap();
        Self { key, version, wire }
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

/// A collection that never changes but for what watches are told.
#[derive(Clone)]
pub(crate) struct Fixed {
    pub(crate) resource: Arc<Resource>,
    pub(crate) objects: Arc<[Plain]>,
    pub(crate) ready: bool,
    /// What happens once a watch is open.
    pub(crate) changes: Vec<Change<Plain>>,
    /// How watches end after that; not at all if it is not said.
    pub(crate) end: Option<End>,
    /// Other columns than those of the kind.
    pub(crate) columns: Option<Columns>,
}

impl Fixed {
    pub(crate) fn new(resource: Resource, objects: Vec<Plain>) -> Self {
        Self {
            resource: Arc::new(resource),
            objects: objects.into(),
            ready: true,
            changes: Vec::new(),
            end: Some(End::Closed),
            columns: None,
        }
    }

    pub(crate) fn read(self) -> ReadSide<Self> {
        ReadSide::new(self, ReadOptions::default())
    }
}

/// How a watch ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// What it has not read is no longer known.
    Expired,
    Refused(Status),
    Closed,
}

/// An answer to a GET.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: http::Extensions,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// The answer to a GET of a path with a query, with these headers.
pub(crate) async fn get(
    side: &ReadSide<Fixed>,
    uri: &str,
    headers: &[(&'static str, &str)],
) -> Answer {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
        .collect();
    let response = side.respond(&Route::parse(path), query, &headers).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        code: parts.status.as_u16(),
        headers: parts.headers,
        extensions: parts.extensions,
        body,
    }
}

impl Backend for Fixed {
    type Object = Plain;
    type Snapshot = Self;

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

    async fn columns(&self, resource: &Resource) -> Result<Columns, ReadError> {
        let columns = self.columns.clone();
        Ok(columns.unwrap_or_else(|| Columns::of_kind(&resource.group, &resource.kind)))
    }

    fn now(&self) -> Timestamp {
        "2026-01-01T01:00:00Z".parse().unwrap()
    }

    async fn watch(
        &self,
        _: &Resource,
        after: u64,
        interest: &Arc<Interest>,
    ) -> Result<Watcher<Plain>, ReadError> {
        let cache = WatchCache::new(2, Capacity::Changes(100));
        cache.push(VERSION, []);
        let watcher = cache.watch(after, interest);
        let watcher = watcher.map_err(|_| ReadError::Expired { current: VERSION })?;
        cache.push(VERSION, self.changes.clone());
        match self.end {
            None | Some(End::Refused(_)) => {}
            Some(End::Expired) => cache.restart(VERSION + 2),
            Some(End::Closed) => cache.close(),
        }
        Ok(watcher)
    }

    async fn watch_end(self) -> WatchEnd {
        match self.end {
            Some(End::Refused(status)) => WatchEnd::Refused(Box::new(status)),
            None | Some(End::Expired | End::Closed) => std::future::pending().await,
        }
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
