//! The status page, and what it reads.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use http::HeaderMap;

use super::*;
use crate::status_page::PARTS;

/// How long a line may be waited for: longer than a permission outlives the right.
const SOON: Duration = Duration::from_secs(100);

/// A stream of changes, line by line.
pub(super) struct Lines {
    body: BodyDataStream,
    text: String,
}

impl Lines {
    pub(super) fn of(body: Body) -> Self {
        Self { body: body.into_data_stream(), text: String::new() }
    }

    async fn open(endpoint: &Endpoint, query: &str) -> Self {
        let asked = request(Method::GET, "localhost", &format!("/ui/changes?{query}"));
        let response = endpoint.router().oneshot(asked).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{query}");
        Self::of(response.into_body())
    }

    /// The next line; `None` at the end.
    pub(super) async fn line(&mut self) -> Option<Value> {
        while !self.text.contains('\n') {
            self.text.push_str(std::str::from_utf8(&self.body.next().await?.unwrap()).unwrap());
        }
        let (line, rest) = self.text.split_once('\n').unwrap();
        let line = serde_json::from_str(line).unwrap();
        self.text = rest.to_owned();
        Some(line)
    }

    /// The next line of a type.
    pub(super) async fn next(&mut self, wanted: &str) -> Value {
        let next = async {
            loop {
                let line = self.line().await?;
                if line["type"] == wanted {
                    return Some(line);
                }
            }
        };
        // Lines come every few seconds, whatever happens.
        let next = tokio::time::timeout(SOON, next).await;
        next.ok().flatten().unwrap_or_else(|| panic!("no {wanted} came"))
    }

    /// Resource, verb, and name of the next change.
    async fn change(&mut self) -> (String, String, String) {
        let line = self.next("change").await;
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        (text("resource"), text("verb"), text("name"))
    }
}

async fn from_browser(endpoint: &Endpoint, path: &str) -> Answer {
    let mut asked = request(Method::GET, "localhost", path);
    let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    asked.headers_mut().insert("accept", accept.parse().unwrap());
    ask(endpoint, asked).await
}

/// The parts of the content security policy.
fn policy(headers: &HeaderMap) -> Vec<&str> {
    let policy = headers["content-security-policy"].to_str().unwrap();
    policy.split(';').map(str::trim).collect()
}

#[tokio::test]
async fn browsers_get_the_page_and_others_what_they_got() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let page = from_browser(&endpoint, "/").await;
    assert_eq!(page.code, StatusCode::OK);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    assert!(page.text.starts_with("<!doctype html>"));
    let help = get(&endpoint, "/").await;
    assert!(help.text.contains("/{group}/{version}/{resource}"), "{}", help.text);
    assert_eq!(help.headers["content-type"], "text/plain; charset=utf-8");
    for (path, content_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/ui/page/main.js", "text/javascript; charset=utf-8"),
        ("/ui/page/text.js", "text/javascript; charset=utf-8"),
        ("/ui/style.css", "text/css; charset=utf-8"),
    ] {
        let part = from_browser(&endpoint, path).await;
        assert_eq!(part.code, StatusCode::OK, "{path}");
        assert_eq!(part.headers["content-type"], content_type, "{path}");
        assert_eq!(part.headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(part.headers["referrer-policy"], "no-referrer", "{path}");
        assert_eq!(part.headers["cache-control"], "no-store", "{path}");
        let policy = policy(&part.headers);
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(&rule), "{path}: {rule}: {policy:?}");
        }
        assert!(!policy.iter().any(|it| it.contains("unsafe")), "{policy:?}");
    }
}

#[tokio::test]
async fn the_page_has_no_markup_from_elsewhere_and_makes_none() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let page = from_browser(&endpoint, "/").await.text;
    for part in [" style=", "<style", " onclick", "http://", "https://", "//cdn"] {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<script").count(), 1, "the one with a source");
    for (name, ..) in PARTS {
        let part = get(&endpoint, &format!("/ui/{name}")).await.text;
        for way in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("]
        {
            assert!(!part.contains(way), "{name}: {way}");
        }
        for way in ["localStorage", "sessionStorage", "document.cookie", "indexedDB"] {
            assert!(!part.contains(way), "{name}: {way}");
        }
    }
}

/// All that the page loads is served, and by names that hold below any prefix.
#[tokio::test]
async fn modules_import_each_other_by_relative_names() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let page = from_browser(&endpoint, "/").await.text;
    assert!(page.contains(r#"<script type="module" src="ui/page/main.js">"#), "{page}");
    let mut imported = BTreeSet::from(["page/main.js".to_owned()]);
    let scripts = || PARTS.into_iter().filter(|(name, ..)| name.ends_with(".js"));
    for (name, _, text) in scripts() {
        for line in text.lines().filter(|it| it.contains(" from '")) {
            let from = line.split("from '").nth(1).and_then(|it| it.strip_suffix("';"));
            let of = from.and_then(|it| it.strip_prefix("./"));
            imported.insert(format!("page/{}", of.unwrap_or_else(|| panic!("{name}: {line}"))));
        }
    }
    assert_eq!(imported, scripts().map(|(name, ..)| name.to_owned()).collect());
}

#[tokio::test]
async fn collections_are_told_in_figures() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    assert_eq!(get(&endpoint, "/ui/collections").await.json()["collections"], json!([]));
    get(&endpoint, "/api/v1/pods").await.items();
    get(&endpoint, "/pods").await.items();
    let told = get(&endpoint, "/ui/collections").await;
    assert_eq!(told.headers["cache-control"], "no-store");
    let told = told.json();
    let pods = &told["collections"][0];
    assert_eq!((&pods["id"], &pods["kind"]), (&json!("pods.v1"), &json!("Pod")));
    let figures = &pods["figures"];
    assert_eq!((&figures["objects"], &figures["hits"]), (&json!(4), &json!(2)));
    assert_eq!((&figures["synced"], &figures["watchers"]), (&json!(true), &json!(0)));
    assert!(figures["bytes"].as_u64().unwrap() > 400, "{figures}");
    assert!(figures["staleness"].as_f64().is_some() && figures["state"]["state"].is_string());
}

#[tokio::test]
async fn what_may_be_held_is_offered_where_nothing_is_held() {
    let server = server().await;
    let allow = vec!["configmaps".to_owned(), "services".to_owned()];
    let endpoint = endpoint(&server, Options { allow, ..Options::default() });
    let told = get(&endpoint, "/ui/collections").await.json();
    assert_eq!(told["offered"], json!(["services", "configmaps"]));
    get(&endpoint, "/api/v1/services").await.items();
    assert_eq!(get(&endpoint, "/ui/collections").await.json()["offered"], json!([]));
}

#[tokio::test]
async fn failures_come_with_what_to_do() {
    let server = server().await;
    server.auth().add_token("weak", "weak");
    server.auth().deny_all("weak", "nodes");
    let client = server.client_for("weak").unwrap();
    let endpoint = Endpoint::new(client, Options::default());
    get(&endpoint, "/api/v1/pods").await.items();
    assert_eq!(get(&endpoint, "/api/v1/nodes").await.code, StatusCode::FORBIDDEN);
    let told = get(&endpoint, "/ui/collections").await.json();
    assert_eq!(told["forwarded"][0]["id"], "nodes.v1", "{told}");
    assert!(told["forwarded"][0]["why"].as_str().unwrap().contains("forbidden"), "{told}");
}

#[tokio::test]
async fn changes_are_told_field_by_field() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let mut lines = Lines::open(&endpoint, "resource=pods").await;
    let hello = lines.line().await.unwrap();
    assert_eq!(
        (&hello["type"], &hello["resources"][0]["id"]),
        (&json!("hello"), &json!("pods.v1"))
    );
    let cluster = server.cluster();
    let patch = json!({"spec": {"containers": [{"name": "main", "image": "j"}]}});
    cluster.patch("pods", "shop", "web-0", &patch).unwrap();
    let change = lines.next("change").await;
    assert_eq!(
        change["diff"]["changes"],
        json!([{"op": "changed", "path": "spec.containers[main].image",
            "old": {"value": "i"}, "new": {"value": "j"}}])
    );
    assert_eq!((&change["namespace"], &change["name"]), (&json!("shop"), &json!("web-0")));
    assert!(change["time"].as_str().unwrap().ends_with('Z'), "{change}");
    cluster.delete("pods", "shop", "web-0").unwrap();
    assert_eq!(lines.change().await.1, "deleted");
    cluster.create(&pod("shop", "web-2", "web", "node-1")).unwrap();
    assert_eq!(lines.change().await.1, "added");
}

#[tokio::test]
async fn the_values_of_secrets_are_not_told() {
    let server = server().await;
    let options = Options { allow: vec!["secrets".to_owned()], ..Options::default() };
    let endpoint = endpoint(&server, options);
    let mut lines = Lines::open(&endpoint, "resource=secrets").await;
    lines.next("at").await;
    let patch = json!({"data": {"password": "c3dvcmRmaXNo"}});
    server.cluster().patch("secrets", "shop", "s", &patch).unwrap();
    let text = lines.next("change").await.to_string();
    assert!(text.contains("data.password") && text.contains("hiddenBytes"), "{text}");
    for value in ["c3dvcmRmaXNo", "aHVudGVyMg==", "swordfish", "hunter2"] {
        assert!(!text.contains(value), "{text}");
    }
    // And they are not allowed unless named.
    let careful = self::endpoint(&server, Options::default());
    let refused = get(&careful, "/ui/changes?resource=secrets").await;
    assert!(refused.refusal(403, "Forbidden").contains("--allow secrets"));
}

#[tokio::test]
async fn a_selection_is_told_what_is_selected_and_nothing_else() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let query = "resource=pods&namespace=shop&labelSelector=app%3Dweb";
    let mut lines = Lines::open(&endpoint, query).await;
    lines.next("at").await;
    let relabel = |name: &str, app: &str, node: &str| {
        let patch = json!({"metadata": {"labels": {"app": app}}, "spec": {"nodeName": node}});
        server.cluster().patch("pods", "shop", name, &patch).unwrap();
    };
    server.cluster().delete("pods", "web", "web-0").unwrap();
    relabel("cart-0", "cart", "elsewhere");
    // An object that enters or leaves the selection is shown in its selected state only.
    relabel("cart-0", "web", "node-1");
    let entered = lines.next("change").await;
    assert_eq!((&entered["verb"], &entered["name"]), (&json!("added"), &json!("cart-0")));
    assert_eq!(entered["diff"]["changes"], json!([]));
    relabel("web-0", "secret-app", "secret-node");
    let left = lines.next("change").await;
    assert_eq!((&left["verb"], &left["name"]), (&json!("deleted"), &json!("web-0")));
    assert!(!left.to_string().contains("secret"), "{left}");

    let one = "resource=pods&namespace=shop&name=web-1&last=10&follow=false";
    relabel("web-1", "web", "node-3");
    assert_eq!(lines.change().await.2, "web-1");
    let answer = get(&endpoint, &format!("/ui/changes?{one}")).await;
    assert_eq!(answer.text.matches(r#""type":"change""#).count(), 1, "{}", answer.text);
}

#[tokio::test]
async fn a_reader_that_comes_back_misses_nothing_or_is_told_so() {
    let server = server().await;
    let endpoint = endpoint(&server, Options { log_bytes: 4096, ..Options::default() });
    let mut lines = Lines::open(&endpoint, "resource=pods").await;
    let at = lines.next("at").await["versions"]["pods.v1"].as_str().unwrap().to_owned();
    drop(lines);
    let cluster = server.cluster();
    cluster.delete("pods", "shop", "web-0").unwrap();
    let again = format!("resource=pods&after=pods.v1@{at}");
    let mut lines = Lines::open(&endpoint, &again).await;
    assert_eq!(lines.change().await.1, "deleted");
    // More than the log keeps, but no more at a time than this reader reads.
    for number in 0..20 {
        cluster.create(&pod("shop", &format!("more-{number}"), "web", "node-1")).unwrap();
        assert_eq!(lines.change().await.1, "added");
    }
    let mut late = Lines::open(&endpoint, &again).await;
    late.next("gap").await;
    cluster.delete("pods", "shop", "more-7").unwrap();
    assert_eq!(late.change().await, ("pods.v1".into(), "deleted".into(), "more-7".into()));
}

#[tokio::test]
async fn past_changes_come_in_parts_and_are_all_told() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let mut lines = Lines::open(&endpoint, "resource=pods").await;
    let cluster = server.cluster();
    for number in 0..150 {
        cluster.create(&pod("shop", &format!("more-{number}"), "web", "node-1")).unwrap();
    }
    for _ in 0..150 {
        lines.change().await;
    }
    for end in ["", "&follow=false"] {
        let path = format!("/ui/changes?resource=pods&last=140{end}");
        let asked = request(Method::GET, "localhost", &path);
        let body = endpoint.router().oneshot(asked).await.unwrap().into_body();
        let mut chunks = body.into_data_stream();
        let mut names = Vec::new();
        // Where a reader that comes back goes on is not told before.
        for (count, at) in [(64, 0), (64, 0), (12, 1)] {
            let chunk = chunks.next().await.unwrap().unwrap();
            let told = String::from_utf8(chunk.to_vec()).unwrap();
            let told: Vec<Value> =
                told.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
            let of_type = |wanted: &str| told.iter().filter(|it| it["type"] == wanted).count();
            assert_eq!((of_type("change"), of_type("at")), (count, at), "{end}");
            names.extend(told.iter().filter_map(|it| it["name"].as_str().map(str::to_owned)));
        }
        assert_eq!(names, Vec::from_iter((10..150).map(|it| format!("more-{it}"))));
        assert!(end.is_empty() || chunks.next().await.is_none());
    }
}

/// The watch cache returns only a few large objects at a time.
#[tokio::test]
async fn a_burst_of_large_objects_is_sent_in_large_chunks() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let mut lines = Lines::open(&endpoint, "resource=pods").await;
    lines.next("at").await;
    for number in 0..100 {
        let mut large = pod("shop", &format!("large-{number}"), "web", "node-1");
        large["metadata"]["annotations"] = json!({"large": "x".repeat(20_000)});
        server.cluster().create(&large).unwrap();
    }
    let version = server.cluster().version();
    // The stream reads nothing meanwhile.
    get(&endpoint, &format!("/api/v1/pods?limit=1&resourceVersion={version}")).await.items();
    for count in [64, 36] {
        let chunk = lines.body.next().await.unwrap().unwrap();
        let told = String::from_utf8(chunk.to_vec()).unwrap();
        assert_eq!(told.matches("\"type\":\"change\"").count(), count);
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_is_held_is_told_also_what_is_held_later() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    get(&endpoint, "/api/v1/pods").await.items();
    let mut lines = Lines::open(&endpoint, "last=5").await;
    lines.next("at").await;
    get(&endpoint, "/apis/apps/v1/deployments").await.items();
    loop {
        let at = lines.next("at").await;
        if at["versions"].as_object().unwrap().len() == 2 {
            break;
        }
    }
    server.cluster().delete("deployments.apps", "kube-system", "coredns").unwrap();
    assert_eq!(lines.change().await.0, "deployments.v1.apps");
    endpoint.shutdown().await;
    while lines.line().await.is_some() {}
}

#[tokio::test]
async fn changes_of_what_is_strict_are_not_told() {
    let server = server().await;
    let options = Options { strict: vec!["nodes".into()], ..Options::default() };
    let endpoint = endpoint(&server, options);
    let refused = get(&endpoint, "/ui/changes?resource=nodes").await;
    assert!(refused.refusal(403, "Forbidden").contains("--strict"));
    get(&endpoint, "/api/v1/pods").await.items();
    let nodes = informer::Resource::of::<k8s_openapi::api::core::v1::Node>();
    assert!(endpoint.inner.collections.synced(&nodes).await.is_ok());
    let told = get(&endpoint, "/ui/changes?follow=false").await.text;
    assert!(told.contains("pods.v1") && !told.contains("nodes.v1"), "{told}");
}

#[tokio::test]
async fn what_cannot_be_told_is_refused() {
    let server = server().await;
    let options = Options { namespace: Some("shop".to_owned()), ..Options::default() };
    let endpoint = endpoint(&server, options);
    for (query, code, message) in [
        ("resource=nope", 404, "nope"),
        ("resource=pods&namespace=web", 403, "holds namespace shop only"),
        ("resource=nodes&namespace=shop", 400, "do not live in namespaces"),
        ("resource=pods&labelSelector=a in (", 400, "selector"),
        ("name=x", 400, "name one resource"),
    ] {
        let answer = get(&endpoint, &format!("/ui/changes?{query}")).await;
        assert_eq!(answer.code.as_u16(), code, "{query}: {}", answer.text);
        assert!(answer.text.contains(message), "{query}: {}", answer.text);
    }
    assert_eq!(get(&endpoint, "/ui/nope").await.code, StatusCode::NOT_FOUND);
}
