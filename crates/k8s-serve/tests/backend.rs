//! The read side over a collection that never changes, in JSON and in protobuf.

mod support;

use std::sync::Arc;

use http::HeaderMap;
use http_body_util::BodyExt;
use k8s_serve::{ReadOptions, ReadSide, Resource, Route};
use serde_json::Value;
use support::{Fixed, Lines, Plain};

fn colors() -> Resource {
    Resource {
        verbs: ["get", "list", "watch"].map(str::to_owned).to_vec(),
        ..Resource::new("example.com", "v1", "colors", "Color")
    }
}

fn fixed(ready: bool) -> ReadSide<Fixed> {
    let object = |name: &str| {
        Plain::json(&serde_json::json!({
            "metadata": { "name": name, "resourceVersion": "3" }, "rgb": 1
        }))
    };
    let objects = ["blue", "green", "red"].map(object).into();
    let backend = Fixed { resource: Arc::new(colors()), objects, ready };
    ReadSide::new(backend, ReadOptions::default())
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
