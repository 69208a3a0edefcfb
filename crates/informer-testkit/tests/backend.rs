//! The read side over something that is no cluster: it knows nothing of writes.

mod support;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http_body_util::BodyExt;
use informer_core::ObjectKey;
use informer_testkit::Resource;
use informer_testkit::protocol::{
    At, Backend, Change, Feed, FeedEnd, Object, ReadError, ReadOptions, ReadSide, Route, Snapshot,
};
use serde_json::Value;
use support::Lines;

/// A collection that never changes, of a resource that can only be read.
#[derive(Clone)]
struct Fixed {
    objects: Arc<[Object]>,
    ready: bool,
}

struct Silence;

const VERSION: u64 = 7;

fn colors() -> Resource {
    Resource {
        verbs: ["get", "list", "watch"].map(str::to_owned).to_vec(),
        ..Resource::new("example.com", "v1", "colors", "Color")
    }
}

impl Backend for Fixed {
    type Snapshot = Self;
    type Feed = Silence;

    fn resources(&self) -> Arc<[Arc<Resource>]> {
        Arc::new([Arc::new(colors())])
    }

    async fn snapshot(&self, _: &Resource, at: At) -> Result<Self, ReadError> {
        match at {
            _ if !self.ready => Err(ReadError::NotReady { retry_after: Duration::from_secs(5) }),
            At::Exact(version) if version < VERSION => Err(ReadError::Expired { current: VERSION }),
            _ => Ok(self.clone()),
        }
    }

    async fn reached(&self, _: &Resource, version: u64) {
        if version > VERSION {
            std::future::pending::<()>().await;
        }
    }

    fn version(&self, _: &Resource) -> u64 {
        VERSION
    }

    fn feed(&self, _: &Resource, _: u64) -> Result<Silence, ReadError> {
        Ok(Silence)
    }
}

impl Snapshot for Fixed {
    fn version(&self) -> u64 {
        VERSION
    }

    fn get(&self, namespace: &str, name: &str) -> Option<Object> {
        self.objects.iter().find(|o| *o.key() == ObjectKey::namespaced(namespace, name)).cloned()
    }

    fn page(&self, _: Option<&str>, after: Option<&ObjectKey>, limit: usize) -> Vec<Object> {
        self.objects
            .iter()
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
    async fn next(&mut self) -> Result<Vec<Change>, FeedEnd> {
        Err(FeedEnd::Closed)
    }

    fn progress(&self) -> Option<u64> {
        Some(VERSION)
    }
}

fn fixed(ready: bool) -> ReadSide<Fixed> {
    let object = |name: &str| {
        let json = format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"3"}},"rgb":1}}"#);
        Object::parse(&colors(), json.as_bytes()).unwrap()
    };
    let objects = ["blue", "green", "red"].map(object).into();
    ReadSide::new(Fixed { objects, ready }, ReadOptions::default())
}

async fn get(side: &ReadSide<Fixed>, path: &str, query: &str) -> (u16, Value) {
    let response = side.respond(&Route::parse(path), query, &HeaderMap::new()).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn any_backend_can_be_read_like_an_api_server() {
    let side = fixed(true);
    let path = "/apis/example.com/v1/colors";
    let (_, discovery) = get(&side, "/apis/example.com/v1", "").await;
    assert_eq!(discovery["resources"][0]["verbs"].as_array().unwrap().len(), 3);
    let (code, page) = get(&side, path, "limit=2").await;
    assert_eq!((code, page["items"].as_array().unwrap().len()), (200, 2));
    let token = page["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = get(&side, path, &format!("limit=2&continue={token}")).await;
    assert_eq!(rest["items"][0]["metadata"]["name"], "red");
    assert_eq!(get(&side, &format!("{path}/green"), "").await.1["rgb"], 1);
    assert_eq!(get(&side, &format!("{path}/black"), "").await.0, 404);
    assert_eq!(get(&side, path, "resourceVersion=1&resourceVersionMatch=Exact").await.0, 410);

    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let response = side.respond(&Route::parse(path), query, &HeaderMap::new()).await;
    let mut lines = Lines::new(response.into_body());
    for expected in ["ADDED blue@3", "ADDED green@3", "ADDED red@3", "BOOKMARK @7"] {
        assert_eq!(lines.short().await.as_deref(), Some(expected));
    }
    assert_eq!(lines.short().await, None);
}

#[tokio::test]
async fn a_backend_that_is_not_ready_asks_for_patience() {
    let response = fixed(false)
        .respond(&Route::parse("/apis/example.com/v1/colors"), "", &HeaderMap::new())
        .await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"5".parse().unwrap())
    );
}
