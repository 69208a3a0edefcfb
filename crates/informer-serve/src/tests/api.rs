//! Kubernetes' own paths: which responses come from the cache.

mod freshness;
mod refused;

use http::HeaderName;
use http::header::ACCEPT;
use informer::SharedInformerFactory;
use informer_testkit::{Fault, TestServer, Verb, generate};

use super::*;
use crate::Object;

const NAMESPACED: &str = "/api/v1/namespaces/shop/pods";

/// The same request, answered by the API server itself.
async fn direct(server: &TestServer, path: &str) -> Value {
    let request = Request::get(path).body(Vec::new()).unwrap();
    server.client().unwrap().request(request).await.unwrap()
}

async fn with(endpoint: &Endpoint, name: HeaderName, value: &str, path: &str) -> Answer {
    let mut asked = request(Method::GET, "localhost", path);
    asked.headers_mut().insert(name, value.parse().unwrap());
    ask(endpoint, asked).await
}

/// How many requests of these the API server was asked.
fn asked(server: &TestServer, verb: Verb, resource: &str) -> usize {
    server.requests().verb(verb).resource(resource).len()
}

#[tokio::test]
async fn lists_and_objects_are_answered_from_one_cache_as_the_server_would() {
    let server = TestServer::start().await.unwrap();
    server.cluster().load(generate::pods(30)).unwrap();
    server.cluster().load(generate::deployments(5)).unwrap();
    let keep = Options { keep_managed_fields: true, ..Options::default() };
    let (whole, slim) = (endpoint(&server, keep), endpoint(&server, Options::default()));
    let key = server.cluster().list("pods")[0].key().clone();
    let (namespace, name) = (key.namespace(), key.name());
    for path in [
        "/api/v1/pods",
        &format!("/api/v1/namespaces/{namespace}/pods"),
        "/api/v1/pods?labelSelector=app%3Dweb",
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1",
        "/api/v1/pods?resourceVersion=0",
        &format!("/api/v1/namespaces/{namespace}/pods/{name}"),
        "/apis/apps/v1/deployments",
    ] {
        let mut own = direct(&server, path).await;
        assert_eq!(get(&whole, path).await.json(), own, "{path}");
        let strip = |object: &mut Value| {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.remove("managedFields");
        };
        match own.get_mut("items").and_then(Value::as_array_mut) {
            Some(items) => items.iter_mut().for_each(strip),
            None => strip(&mut own),
        }
        assert_eq!(get(&slim, path).await.json(), own, "{path}");
    }
    server.clear_requests();
    get(&slim, "/api/v1/pods").await;
    get(&slim, &format!("/api/v1/namespaces/{namespace}/pods/{name}")).await;
    assert_eq!(server.requests().len(), 0);
    get(&slim, "/api/v1/namespaces/shop/pods/nope").await.refusal(404, "NotFound");
    get(&slim, "/api/v1/pods?fieldSelector=spec.image%3Di").await.refusal(400, "BadRequest");
}

#[tokio::test]
async fn one_object_is_no_reason_to_hold_all() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let path = "/api/v1/namespaces/shop/pods/web-0";
    assert_eq!(get(&endpoint, path).await.json(), direct(&server, path).await);
    assert_eq!(endpoint.statuses().len(), 0);
    let metrics = get(&endpoint, "/metrics").await.text;
    let line =
        r#"serve_api_requests_total{verb="get",resource="pods.v1",code="200",from="upstream"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn eager_resources_are_there_before_the_first_request_and_readiness_waits() {
    let server = server().await;
    let options = Options {
        cache: vec!["pods".into(), "no".into(), "nonsense".into()],
        ..Options::default()
    };
    let endpoint = endpoint(&server, options);
    let ready = get(&endpoint, "/readyz").await;
    assert_eq!(ready.code, StatusCode::SERVICE_UNAVAILABLE);
    assert!(ready.text.contains("--cache"), "{}", ready.text);
    assert!(endpoint.warm().await.unwrap_err().contains("nonsense"));
    while get(&endpoint, "/readyz").await.code != StatusCode::OK {
        tokio::task::yield_now().await;
    }
    server.clear_requests();
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
    assert_eq!(get(&endpoint, "/api/v1/nodes/node-1").await.code, StatusCode::OK);
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn pages_belong_to_one_snapshot_and_go_on_at_the_server_when_it_is_gone() {
    let server = server().await;
    let endpoint = endpoint(&server, Options { kept_snapshots: 1, ..Options::default() });
    let first = get(&endpoint, "/api/v1/pods?limit=2").await;
    assert_eq!(first.items(), ["cart-0", "web-0"]);
    let token = first.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    assert_eq!(first.json()["metadata"]["remainingItemCount"], 2);
    server.cluster().delete("pods", "web", "web-0").unwrap();
    let rest = |token: &str| format!("/api/v1/pods?limit=2&continue={token}");
    let second = get(&endpoint, &rest(&token)).await;
    assert_eq!(second.items(), ["web-1", "web-0"]);
    assert_eq!(
        second.json()["metadata"]["resourceVersion"],
        first.json()["metadata"]["resourceVersion"]
    );

    // Another list takes its place; the API server knows the version still.
    server.cluster().create(&pod("web", "web-7", "web", "node-1")).unwrap();
    while !get(&endpoint, "/api/v1/pods").await.items().contains(&"web-7".to_owned()) {
        tokio::task::yield_now().await;
    }
    get(&endpoint, "/api/v1/pods?limit=2").await;
    let lists = asked(&server, Verb::List, "pods");
    assert_eq!(get(&endpoint, &rest(&token)).await.items(), ["web-1", "web-0"]);
    assert_eq!(asked(&server, Verb::List, "pods"), lists + 1);
}

#[tokio::test]
async fn what_is_strict_or_out_of_scope_or_a_subresource_is_the_servers_answer() {
    let server = server().await;
    let options = Options { strict: vec!["nodes".into()], ..Options::default() };
    let strict = endpoint(&server, options);
    for path in
        ["/api/v1/nodes", "/api/v1/nodes/node-1", "/api/v1/namespaces/shop/pods/web-0/status"]
    {
        assert_eq!(get(&strict, path).await.json(), direct(&server, path).await, "{path}");
    }
    assert_eq!(strict.statuses().len(), 0);

    let one = endpoint(&server, Options { namespace: Some("web".into()), ..Options::default() });
    assert_eq!(get(&one, "/api/v1/namespaces/web/pods").await.items(), ["web-0"]);
    assert_eq!(get(&one, NAMESPACED).await.items().len(), 3);
    assert_eq!(get(&one, "/api/v1/pods").await.items().len(), 4);
    assert_eq!(one.statuses()[0].scope, "namespace web");
}

#[tokio::test]
async fn what_does_not_fit_or_may_not_be_listed_is_passed_on() {
    let server = server().await;
    let few = endpoint(&server, Options { max_collections: 1, ..Options::default() });
    assert_eq!(get(&few, "/api/v1/pods").await.items().len(), 4);
    assert_eq!(get(&few, "/api/v1/nodes").await.items(), ["node-1"]);
    assert_eq!(few.statuses().len(), 1);

    let small = endpoint(&server, Options { max_bytes: 100, ..Options::default() });
    assert_eq!(get(&small, "/api/v1/pods").await.items().len(), 4);
    // Once it is known that they do not fit:
    small.sweep().await;
    assert_eq!(small.statuses().len(), 0);
    assert_eq!(get(&small, "/api/v1/pods").await.items().len(), 4);
    assert_eq!(small.statuses().len(), 0);

    server.auth().add_token("t", "eve");
    for verb in [Verb::List, Verb::Watch] {
        server.auth().deny("eve", verb, "pods");
    }
    let eve = Endpoint::new(server.client_for("t").unwrap(), Options::default());
    let message = get(&eve, "/api/v1/pods").await.refusal(403, "Forbidden");
    assert!(message.contains("eve") && message.contains("pods"), "{message}");
    assert_eq!(eve.statuses().len(), 0, "what may not be listed takes no place");
}

#[tokio::test]
async fn what_is_being_watched_is_never_let_go() {
    let server = server().await;
    let endpoint = endpoint(&server, Options { max_bytes: 100, ..Options::default() });
    let watched = request(Method::GET, "localhost", "/api/v1/pods?watch=1");
    let watch = endpoint.router().oneshot(watched).await.unwrap();
    endpoint.sweep().await;
    assert_eq!(endpoint.statuses().len(), 1);
    drop(watch);
    endpoint.sweep().await;
    assert_eq!(endpoint.statuses().len(), 0);
}

#[tokio::test]
async fn discovery_is_the_servers_own_and_asked_for_once() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let first = with(&endpoint, ACCEPT, aggregated, "/apis").await;
    assert_eq!(first.headers["content-type"], aggregated);
    assert_eq!(first.json()["kind"], "APIGroupDiscoveryList");
    let count = server.requests().len();
    assert_eq!(with(&endpoint, ACCEPT, aggregated, "/apis").await.json(), first.json());
    assert_eq!(server.requests().len(), count);
    // In another form it is another document.
    assert_eq!(get(&endpoint, "/apis").await.json()["kind"], "APIGroupList");
    for path in ["/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/openapi/v2"] {
        assert_eq!(get(&endpoint, path).await.json(), direct(&server, path).await, "{path}");
    }
    for path in ["/apis/nope.example", "/openapi/v3/nope"] {
        assert_eq!(get(&endpoint, path).await.code, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_program_shares_its_own_informers() {
    let server = server().await;
    let factory = SharedInformerFactory::builder(server.client().unwrap()).build();
    let pods = informer::Resource::of::<k8s_openapi::api::core::v1::Pod>();
    let own = factory.informer_as::<Object>(pods, informer::InformerOptions::new()).unwrap();
    factory.start();
    let lister = own.synced().await.unwrap();
    server.clear_requests();
    let endpoint = Endpoint::over(factory, Options::default());
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), lister.len());
    assert_eq!(asked(&server, Verb::List, "pods") + asked(&server, Verb::Watch, "pods"), 0);
    // And a watch from where the informer stood before the endpoint came.
    let version = lister.snapshot().version().to_string();
    server.cluster().delete("pods", "web", "web-0").unwrap();
    own.wait_for(server.cluster().version()).await.unwrap();
    let path = format!("/api/v1/pods?watch=1&resourceVersion={version}&timeoutSeconds=1");
    let watched = get(&endpoint, &path).await.text;
    assert!(watched.starts_with(r#"{"type":"DELETED""#), "{watched}");
}

/// One object must not spoil a list for everyone.
#[tokio::test]
async fn what_cannot_be_written_is_answered_by_the_api_server() {
    let server = server().await;
    let fault = server.faults().inject(Fault::undecodable("web-0").resource("pods"));
    let endpoint = endpoint(&server, Options::default());
    let others = get(&endpoint, "/api/v1/pods?labelSelector=app%3Dcart").await;
    assert_eq!(others.json()["items"].as_array().unwrap().len(), 1);
    fault.lift();
    for path in ["/api/v1/pods", "/api/v1/namespaces/shop/pods/web-0"] {
        assert_eq!(get(&endpoint, path).await.json(), direct(&server, path).await, "{path}");
    }
    assert_eq!(asked(&server, Verb::Get, "pods"), 2, "the second is the test's own");
}
