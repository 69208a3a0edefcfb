//! The read side, over a collection that never changes.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt;
use informer_core::ObjectKey;
use informer_core::wire::{Encoding, FieldPath, Wire, WireObject};
use k8s_protobuf::{Kind, encode};
use k8s_serve::watch_cache::{Capacity, Interest, WatchCache, Watcher};
use k8s_serve::{
    At, Backend, Discovery, DiscoveryPath, Object, ReadError, ReadOptions, ReadSide, Resource,
    ResourcePath, Route, Snapshot,
};
use serde_json::{Value, json};

const VERSION: u64 = 7;

/// A request, as `path?query`, and in the second line what is accepted: none panics, and what is
/// answered in JSON can be read.
pub fn reads(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (uri, accept) = text.split_once('\n').unwrap_or((text, ""));
    let (code, content_type, body) = ask(uri, accept);
    assert!((200..=504).contains(&code), "{code}");
    if !content_type.starts_with("application/json") {
        return;
    }
    if let Ok(whole) = serde_json::from_slice::<Value>(&body) {
        assert_eq!(code >= 400, whole["kind"] == "Status", "{whole}");
    } else {
        for line in body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event: Value = serde_json::from_slice(line).expect("an event");
            assert!(event["type"].is_string() && event["object"].is_object());
        }
    }
}

/// What a continue token stands for: none panics or leads back, and the pages after it end.
pub fn continue_tokens(data: &[u8]) {
    let mut token = BASE64_URL_SAFE_NO_PAD.encode(data);
    let mut last = None;
    for _ in 0..10 {
        let (code, _, body) = ask(&format!("/api/v1/pods?limit=1&continue={token}"), "");
        let list: Value = serde_json::from_slice(&body).expect("JSON");
        if code != 200 {
            assert!(matches!(code, 400 | 410 | 429), "{list}");
            return;
        }
        if let Some(pod) = list["items"].get(0) {
            let text = |name: &str| pod["metadata"][name].as_str().expect("a text").to_owned();
            let key = ObjectKey::namespaced(&text("namespace"), &text("name"));
            assert!(last.as_ref().is_none_or(|last| *last < key));
            last = Some(key);
        }
        match list["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return,
        }
    }
    panic!("there are not so many pages");
}

fn ask(uri: &str, accept: &str) -> (u16, String, Bytes) {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
    }
    static SIDE: LazyLock<ReadSide<Fixed>> =
        LazyLock::new(|| ReadSide::new(Fixed::new(), ReadOptions::default()));
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let mut headers = HeaderMap::new();
    if let Ok(accept) = HeaderValue::from_str(accept) {
        headers.insert(header::ACCEPT, accept);
    }
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let response = SIDE.respond(&Route::parse(path), query, &headers).await;
            let code = response.status().as_u16();
            let content_type = response.headers().get(header::CONTENT_TYPE);
            let content_type = content_type.and_then(|it| it.to_str().ok()).unwrap_or_default();
            let content_type = content_type.to_owned();
            let body = response.into_body().collect().await.expect("a whole body").to_bytes();
            (code, content_type, body)
        })
    })
}

#[derive(Clone)]
struct Fixed {
    resource: Arc<Resource>,
    pods: Arc<[Pod]>,
}

#[derive(Clone)]
struct Pod(ObjectKey, WireObject);

impl Fixed {
    fn new() -> Self {
        let kind = Kind::of("v1", "Pod").expect("Pods are built in");
        let pod = |(number, (namespace, name)): (usize, (&str, &str))| {
            let object = json!({
                "metadata": {
                    "name": name, "namespace": namespace, "resourceVersion": "3",
                    "labels": { "app": "web" },
                },
                "spec": { "nodeName": "n1", "containers": [] },
            });
            let key = ObjectKey::namespaced(namespace, name);
            // In both encodings.
            if number % 2 == 0 {
                return Pod(key, Bytes::from(object.to_string()).into());
            }
            let mut message = Vec::new();
            encode::message(kind, &object, &mut message).expect("a Pod");
            let encoding = Encoding::Protobuf(kind);
            Pod(key, WireObject { encoding, bytes: message.into() })
        };
        let names = [("default", "a"), ("default", "b"), ("team-a", "c"), ("team", "d")];
        let resource = Resource {
            namespaced: true,
            has_status: true,
            ..Resource::new("", "v1", "pods", "Pod")
        };
        Self {
            resource: Arc::new(resource),
            pods: names.into_iter().enumerate().map(pod).collect(),
        }
    }
}

impl Object for Pod {
    fn key(&self) -> &ObjectKey {
        &self.0
    }

    fn version(&self) -> u64 {
        3
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.1.wire().label(key)
    }

    fn field(&self, path: &str) -> Cow<'_, str> {
        let mut first = None;
        if let Ok(path) = path.parse::<FieldPath>() {
            self.1.wire().fields(&path, &mut |value| {
                first.get_or_insert(value);
            });
        }
        first.unwrap_or_default()
    }

    fn wire(&self) -> Wire<'_> {
        self.1.wire()
    }
}

impl Backend for Fixed {
    type Object = Pod;
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
            At::Exact(version) if version < VERSION => Err(ReadError::Expired { current: VERSION }),
            _ => Ok(self.clone()),
        }
    }

    async fn reached(&self, _: &Resource, version: u64) -> Result<(), ReadError> {
        match version > VERSION {
            true => Err(ReadError::NotReady { retry_after: Duration::from_secs(1) }),
            false => Ok(()),
        }
    }

    async fn version(&self, _: &Resource) -> Result<u64, ReadError> {
        Ok(VERSION)
    }

    async fn watch(
        &self,
        _: &Resource,
        after: u64,
        interest: &Arc<Interest>,
    ) -> Result<Watcher<Pod>, ReadError> {
        // No change ever comes.
        let cache = WatchCache::new(0, Capacity::Changes(1));
        cache.close();
        cache.watch(after, interest).map_err(|it| ReadError::Expired { current: it.current })
    }
}

impl Snapshot for Fixed {
    type Object = Pod;

    fn version(&self) -> u64 {
        VERSION
    }

    fn object(&self, namespace: &str, name: &str) -> Option<Pod> {
        let key = ObjectKey::namespaced(namespace, name);
        self.pods.iter().find(|pod| pod.0 == key).cloned()
    }

    fn page(&self, namespace: Option<&str>, after: Option<&ObjectKey>, limit: usize) -> Vec<Pod> {
        self.pods
            .iter()
            .filter(|pod| namespace.is_none_or(|namespace| pod.0.namespace() == namespace))
            .filter(|pod| after.is_none_or(|after| pod.0 > *after))
            .take(limit)
            .cloned()
            .collect()
    }

    fn remaining(&self, namespace: Option<&str>, after: &ObjectKey) -> usize {
        self.page(namespace, Some(after), usize::MAX).len()
    }
}
