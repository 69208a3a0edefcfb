//! The read side over a collection that is no API server's, of objects in JSON.

mod support;

use http::HeaderMap;
use k8s_serve::{Miss, ReadSide, Resource, Route};
use serde_json::json;
use support::{Fixed, Lines, Plain, get};

const PATH: &str = "/apis/example.com/v1/colors";

fn colors() -> Fixed {
    let resource = Resource {
        verbs: ["get", "list", "watch"].map(str::to_owned).to_vec(),
        custom: true,
        ..Resource::new("example.com", "v1", "colors", "Color")
    };
    let object = |name: &str| {
        Plain::json(&json!({ "metadata": { "name": name, "resourceVersion": "3" }, "rgb": 1 }))
    };
    Fixed::new(resource, ["blue", "green", "red"].map(object).to_vec())
}

async fn code(side: &ReadSide<Fixed>, uri: &str) -> (u16, Option<Miss>) {
    let answer = get(side, uri, &[]).await;
    (answer.code, answer.extensions.get().copied())
}

#[tokio::test(start_paused = true)]
async fn any_backend_can_be_read_like_an_api_server() {
    let side = colors().read();
    let discovery = get(&side, "/apis/example.com/v1", &[]).await.json();
    assert_eq!(discovery["resources"][0]["verbs"].as_array().unwrap().len(), 3);
    let page = get(&side, &format!("{PATH}?limit=2"), &[]).await.json();
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = get(&side, &format!("{PATH}?limit=2&continue={token}"), &[]).await.json();
    assert_eq!(rest["items"][0]["metadata"]["name"], "red");
    assert_eq!(get(&side, &format!("{PATH}/green"), &[]).await.json()["rgb"], 1);
    assert_eq!(get(&side, &format!("{PATH}/black"), &[]).await.code, 404);

    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let response = side.respond(&Route::parse(PATH), query, &HeaderMap::new()).await;
    let mut lines = Lines::new(response.into_body());
    for expected in ["ADDED blue@3", "ADDED green@3", "ADDED red@3", "BOOKMARK @7"] {
        assert_eq!(lines.short().await.as_deref(), Some(expected));
    }
    assert_eq!(lines.short().await, None);
}

#[tokio::test(start_paused = true)]
async fn what_a_backend_does_not_have_is_told_and_marked_for_those_who_can_ask_elsewhere() {
    let side = colors().read();
    let exact = "resourceVersionMatch=Exact";
    for (uri, answer) in [
        (format!("{PATH}?resourceVersion=1&{exact}"), (410, Some(Miss::Expired))),
        (format!("{PATH}?resourceVersion=8&{exact}"), (504, Some(Miss::Ahead))),
        (format!("{PATH}?resourceVersion=8"), (504, Some(Miss::Ahead))),
        (format!("{PATH}/red?resourceVersion=8"), (504, Some(Miss::Ahead))),
        (format!("{PATH}/red?resourceVersion=7"), (200, None)),
        // Watches are opened first.
        (format!("{PATH}?watch=1&resourceVersion=1"), (200, Some(Miss::Expired))),
        (
            format!(
                "{PATH}?watch=1&resourceVersion=8&sendInitialEvents=1&resourceVersionMatch=NotOlderThan"
            ),
            (200, Some(Miss::Ahead)),
        ),
        (format!("{PATH}?limit=x"), (400, None)),
    ] {
        assert_eq!(code(&side, &uri).await, answer, "{uri}");
    }
    // {"v":"meta.k8s.io/v1","rv":6,"start":"/red\0"}
    let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Niwic3RhcnQiOiIvYmx1ZVx1MDAwMCJ9";
    let expired = get(&side, &format!("{PATH}?continue={token}"), &[]).await;
    assert_eq!((expired.code, expired.extensions.get()), (410, Some(&Miss::Expired)));
    let newest = expired.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let rest = get(&side, &format!("{PATH}?continue={newest}"), &[]).await.json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_backend_that_is_not_ready_asks_for_patience() {
    let side = Fixed { ready: false, ..colors() }.read();
    let answer = get(&side, PATH, &[]).await;
    assert_eq!((answer.code, &answer.headers["retry-after"]), (429, &"5".parse().unwrap()));
    assert_eq!(answer.extensions.get(), Some(&Miss::NotReady));
}
