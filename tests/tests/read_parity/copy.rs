//! A read side over the objects of a real server.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, DATE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use informer_core::ObjectKey;
use informer_core::wire::{FieldPath, ListPart, MediaType, ObjectHead, Wire, WireObject};
use informer_tests::fixtures::widget_definition;
use jiff::Timestamp;
use k8s_serve::table::Columns;
use k8s_serve::watch_cache::{Capacity, Interest, WatchCache, Watcher};
use k8s_serve::{
    At, Backend, Discovery, DiscoveryPath, Object, ReadError, ReadOptions, ReadSide, Resource,
    ResourcePath, Route, Snapshot,
};
use kube::Client;

/// What a server has of a resource, as it sent it.
#[derive(Clone)]
pub(crate) struct Copy {
    resource: Arc<Resource>,
    objects: Arc<[Kept]>,
    pub(crate) version: u64,
    now: Timestamp,
}

#[derive(Clone)]
pub(crate) struct Kept {
    key: ObjectKey,
    version: u64,
    wire: WireObject,
}

/// An answer, as far as both servers must agree.
#[derive(PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Bytes,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.code, self.headers, self.body)
    }
}

/// The answer of the real server, and when it gave it.
pub(crate) async fn ask(
    client: &Client,
    uri: &str,
    accept: &str,
) -> anyhow::Result<(Answer, Timestamp)> {
    let request = Request::get(uri)
        .header(ACCEPT, accept)
        .header(USER_AGENT, "test")
        .body(kube::client::Body::empty())?;
    let response = client.send(request).await?;
    let date = response.headers().get(DATE).context("a date")?.to_str()?;
    let now = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date)?;
    Ok((answer(response).await?, now))
}

async fn answer<B>(response: http::Response<B>) -> anyhow::Result<Answer>
where
    B: http_body::Body<Error: std::error::Error + Send + Sync + 'static>,
{
    let names = [CONTENT_TYPE, CACHE_CONTROL, RETRY_AFTER];
    let header = |name| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
    let headers = names.into_iter().filter_map(header).collect();
    let code = response.status().as_u16();
    Ok(Answer { code, headers, body: response.into_body().collect().await?.to_bytes() })
}

impl Copy {
    /// The server's collection: in protobuf, if it has that.
    pub(crate) async fn of(
        client: &Client,
        resource: Resource,
        path: &str,
    ) -> anyhow::Result<Self> {
        let media = if resource.custom { MediaType::Json } else { MediaType::Protobuf };
        let (answer, now) = ask(client, path, media.as_str()).await?;
        let (mut splitter, mut parts) = (media.list_splitter(1 << 24), Vec::new());
        splitter.push(answer.body, &mut parts)?;
        let version = splitter.finish()?.resource_version.to_string().parse()?;
        let objects = parts.into_iter().filter_map(|part| match part {
            ListPart::Item(wire) => Some(Kept::new(wire)),
            ListPart::TooLarge { .. } => None,
        });
        let objects = objects.collect::<anyhow::Result<_>>()?;
        Ok(Self { resource: Arc::new(resource), objects, version, now })
    }

    /// The name of the first object, in a namespace if there are any.
    pub(crate) fn name_in(&self, namespace: &str) -> Option<String> {
        let namespace = if self.resource.namespaced { namespace } else { "" };
        let object = self.objects.iter().find(|object| object.key.namespace() == namespace)?;
        Some(object.key.name().to_owned())
    }

    pub(crate) async fn ask(
        &self,
        uri: &str,
        accept: &str,
        now: Timestamp,
    ) -> anyhow::Result<Answer> {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse()?);
        let side = ReadSide::new(Self { now, ..self.clone() }, ReadOptions::default());
        answer(side.respond(&Route::parse(path), query, &headers).await).await
    }
}

impl Kept {
    fn new(wire: WireObject) -> anyhow::Result<Self> {
        let head = ObjectHead::of(wire.wire())?;
        let key = ObjectKey::namespaced(&head.namespace, &head.name);
        let version = head.version.to_string().parse()?;
        Ok(Self { key, version, wire })
    }
}

impl Object for Kept {
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
        if let Ok(path) = path.parse::<FieldPath>() {
            self.wire.wire().fields(&path, &mut |value| {
                first.get_or_insert(value);
            });
        }
        first.unwrap_or_default()
    }

    fn wire(&self) -> Wire<'_> {
        self.wire.wire()
    }
}

impl Backend for Copy {
    type Object = Kept;
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

    async fn columns(&self, resource: &Resource) -> Result<Columns, ReadError> {
        let definition = serde_json::to_value(widget_definition()).unwrap_or_default();
        let own = Columns::of_definition(&definition, &resource.version);
        Ok(own
            .filter(|_| resource.custom)
            .unwrap_or_else(|| Columns::of_kind(&resource.group, &resource.kind)))
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    async fn snapshot(&self, _: &Resource, _: At) -> Result<Self, ReadError> {
        Ok(self.clone())
    }

    async fn reached(&self, _: &Resource, _: u64) -> Result<(), ReadError> {
        Ok(())
    }

    async fn version(&self, _: &Resource) -> Result<u64, ReadError> {
        Ok(self.version)
    }

    async fn watch(
        &self,
        _: &Resource,
        after: u64,
        interest: &Arc<Interest>,
    ) -> Result<Watcher<Kept>, ReadError> {
        // No change ever comes.
        let cache = WatchCache::new(0, Capacity::Changes(1));
        cache.close();
        cache.watch(after, interest).map_err(|it| ReadError::Expired { current: it.current })
    }
}

impl Snapshot for Copy {
    type Object = Kept;

    fn version(&self) -> u64 {
        self.version
    }

    fn object(&self, namespace: &str, name: &str) -> Option<Kept> {
        let key = ObjectKey::namespaced(namespace, name);
        self.objects.iter().find(|object| object.key == key).cloned()
    }

    fn page(&self, namespace: Option<&str>, after: Option<&ObjectKey>, limit: usize) -> Vec<Kept> {
        self.objects
            .iter()
            .filter(|object| namespace.is_none_or(|namespace| object.key.namespace() == namespace))
            .filter(|object| after.is_none_or(|after| object.key > *after))
            .take(limit)
            .cloned()
            .collect()
    }

    fn remaining(&self, namespace: Option<&str>, after: &ObjectKey) -> usize {
        self.page(namespace, Some(after), usize::MAX).len()
    }
}
