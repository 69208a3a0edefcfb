//! The test kit writes protobuf as a real API server does, byte for byte.
//!
//! The real server is asked for its objects in JSON; the test kit's read side is given these, and
//! must answer as the real server does when both are asked for protobuf.

use std::sync::Arc;

use anyhow::{Context, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use informer::ObjectKey;
use informer_testkit::Object;
use informer_tests::assortment::create_assortment;
use informer_tests::real::RealCluster;
use k8s_serve::watch_cache::{Capacity, Interest, WatchCache, Watcher};
use k8s_serve::{
    At, Backend, Discovery, DiscoveryPath, ReadError, ReadOptions, ReadSide, Resource,
    ResourcePath, Route, Snapshot,
};
use kube::Client;
use serde_json::Value;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What a server has of a resource, as it told it.
#[derive(Clone)]
struct Copy {
    resource: Arc<Resource>,
    objects: Arc<[Object]>,
    version: u64,
}

impl Backend for Copy {
    type Object = Object;
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
    ) -> Result<Watcher<Object>, ReadError> {
        // No change ever comes.
        let cache = WatchCache::new(0, Capacity::Changes(1));
        cache.close();
        cache.watch(after, interest).map_err(|it| ReadError::Expired { current: it.current })
    }
}

impl Snapshot for Copy {
    type Object = Object;

    fn version(&self) -> u64 {
        self.version
    }

    fn object(&self, namespace: &str, name: &str) -> Option<Object> {
        self.objects
            .iter()
            .find(|object| *object.key() == ObjectKey::namespaced(namespace, name))
            .cloned()
    }

    fn page(&self, _: Option<&str>, after: Option<&ObjectKey>, limit: usize) -> Vec<Object> {
        let behind = |object: &&Object| after.is_none_or(|after| object.key() > after);
        self.objects.iter().filter(behind).take(limit).cloned().collect()
    }

    fn remaining(&self, namespace: Option<&str>, after: &ObjectKey) -> usize {
        self.page(namespace, Some(after), usize::MAX).len()
    }
}

/// An answer, as far as both servers must agree.
#[derive(PartialEq, Eq)]
struct Answer {
    code: StatusCode,
    content_type: String,
    body: Bytes,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {:?}", self.code, self.content_type, self.body)
    }
}

async fn answer<B>(response: http::Response<B>) -> anyhow::Result<Answer>
where
    B: http_body::Body<Error: std::error::Error + Send + Sync + 'static>,
{
    let header = response.headers().get(CONTENT_TYPE).map(|value| value.to_str()).transpose()?;
    let (code, content_type) = (response.status(), header.unwrap_or_default().to_owned());
    Ok(Answer { code, content_type, body: response.into_body().collect().await?.to_bytes() })
}

async fn ask_real(client: &Client, path: &str, accept: &str) -> anyhow::Result<Answer> {
    let request = Request::get(path).header(ACCEPT, accept).body(kube::client::Body::empty())?;
    answer(client.send(request).await?).await
}

async fn ask_copy(copy: &Copy, path: &str, accept: &str) -> anyhow::Result<Answer> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, accept.parse()?);
    let side = ReadSide::new(copy.clone(), ReadOptions::default());
    answer(side.respond(&Route::parse(path), query, &headers).await).await
}

/// The server's collection at this path.
async fn copy_of(client: &Client, resource: Resource, path: &str) -> anyhow::Result<Copy> {
    let list: Value =
        serde_json::from_slice(&ask_real(client, path, "application/json").await?.body)?;
    let version = list["metadata"]["resourceVersion"].as_str().context("a version")?.parse()?;
    let items = list["items"].as_array().context("a list")?;
    let objects = items.iter().map(|item| Object::parse(&resource, item.to_string().as_bytes()));
    let objects = objects.collect::<Result<Vec<_>, _>>()?.into();
    Ok(Copy { resource: Arc::new(resource), objects, version })
}

#[tokio::test]
async fn the_test_kit_writes_protobuf_as_a_real_server_does() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let client = cluster.client().await?;
    create_assortment(&client).await?;

    let of = |group: &str, version: &str, plural: &str, kind: &str, namespaced: bool| Resource {
        namespaced,
        custom: group == "example.com",
        ..Resource::new(group, version, plural, kind)
    };
    let default = "/namespaces/default";
    let collections = [
        (of("", "v1", "pods", "Pod", true), format!("/api/v1{default}/pods")),
        (of("", "v1", "configmaps", "ConfigMap", true), format!("/api/v1{default}/configmaps")),
        (of("", "v1", "secrets", "Secret", true), format!("/api/v1{default}/secrets")),
        (of("", "v1", "services", "Service", true), format!("/api/v1{default}/services")),
        (of("", "v1", "namespaces", "Namespace", false), "/api/v1/namespaces".to_owned()),
        (
            of("apps", "v1", "deployments", "Deployment", true),
            format!("/apis/apps/v1{default}/deployments"),
        ),
        (
            of("batch", "v1", "cronjobs", "CronJob", true),
            format!("/apis/batch/v1{default}/cronjobs"),
        ),
        (
            of("coordination.k8s.io", "v1", "leases", "Lease", true),
            format!("/apis/coordination.k8s.io/v1{default}/leases"),
        ),
        (
            of("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", false),
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas".to_owned(),
        ),
        (
            of("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(),
        ),
        (
            of(
                "apiextensions.k8s.io",
                "v1",
                "customresourcedefinitions",
                "CustomResourceDefinition",
                false,
            ),
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
        ),
        (
            of("example.com", "v1", "widgets", "Widget", true),
            format!("/apis/example.com/v1{default}/widgets"),
        ),
    ];
    let compared = collections.map(|(resource, path)| {
        let client = &client;
        async move { compare(client, resource, &path).await.context(path) }
    });
    try_join_all(compared).await.map(drop)
}

/// Both servers' answers to all that can be asked of a collection, and of its first object.
async fn compare(client: &Client, resource: Resource, path: &str) -> anyhow::Result<()> {
    let copy = copy_of(client, resource, path).await?;
    let name = copy.objects.first().context("there is an object")?.key().name();
    let exact = format!("{path}?resourceVersion={}&resourceVersionMatch=Exact", copy.version);
    let empty = format!("{exact}&labelSelector=nobody=has-it");
    // The last page, since the token of another one is each server's own.
    let page = format!("{exact}&limit=500");
    let (metadata, metadata_list) =
        (format!("{PROTOBUF};{METADATA}"), format!("{PROTOBUF};{METADATA_LIST}"));
    for (path, accept) in [
        (&format!("{path}/{name}"), PROTOBUF),
        (&format!("{path}/{name}"), &metadata),
        (&exact, PROTOBUF),
        (&exact, &metadata_list),
        (&empty, PROTOBUF),
        (&page, PROTOBUF),
        (&format!("{path}/nobody"), PROTOBUF),
        (&format!("{path}/nobody"), &format!("{PROTOBUF},application/json")),
        (
            &format!("{path}?watch=1&sendInitialEvents=true"),
            &format!("{PROTOBUF},application/json"),
        ),
    ] {
        let (real, kit) =
            (ask_real(client, path, accept).await?, ask_copy(&copy, path, accept).await?);
        ensure!(
            real == kit
                || (copy.resource.custom
                    && real.code == kit.code
                    && real.code == StatusCode::NOT_ACCEPTABLE),
            "{accept} {path}\nreal: {real:?}\nkit:  {kit:?}"
        );
    }
    let stream = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
    for accept in [&format!("{PROTOBUF};stream=watch"), &metadata, "application/json"] {
        if copy.resource.custom && accept.ends_with("stream=watch") {
            continue;
        }
        let path = format!("{path}?{stream}&resourceVersion={}", copy.version);
        let (real, kit) =
            (ask_real(client, &path, accept).await?, ask_copy(&copy, &path, accept).await?);
        ensure!(
            (real.code, &real.content_type) == (kit.code, &kit.content_type),
            "{real:?} {kit:?}"
        );
        let is_json = accept == "application/json";
        let split = if is_json { lines } else { frames };
        let (mut real, mut kit) = (split(&real.body), split(&kit.body));
        // The order of the initial events is each server's own; the bookmark has its own version.
        let (real_end, kit_end) = (real.pop().context("frames")?, kit.pop().context("frames")?);
        real.sort_unstable();
        kit.sort_unstable();
        // In JSON the order of fields within objects is each server's own.
        ensure!(real == kit || is_json, "{accept} {path}\nreal: {real:?}\nkit:  {kit:?}");
        let hidden = |frame: &[u8]| {
            String::from_utf8_lossy(frame).replace(|c: char| c.is_ascii_digit(), "0")
        };
        let (real_end, kit_end) = (hidden(real_end), hidden(kit_end));
        ensure!(real_end == kit_end, "{accept} {path}\nreal: {real_end}\nkit:  {kit_end}");
    }
    Ok(())
}

fn lines(body: &[u8]) -> Vec<&[u8]> {
    body.split_inclusive(|&byte| byte == b'\n').collect()
}

fn frames(mut body: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        frames.push(frame);
        body = rest;
    }
    frames
}
