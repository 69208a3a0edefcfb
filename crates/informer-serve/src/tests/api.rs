//! Kubernetes' own paths: who answers, and on what conditions.

use std::time::Duration;

use http::HeaderName;
use http::header::ACCEPT;
use informer::SharedInformerFactory;
use informer_testkit::{Cut, Fault, TestServer, Verb, generate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tower::service_fn;

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
async fn nothing_is_written_and_nobody_is_impersonated() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    get(&endpoint, "/api/v1/pods").await;
    server.clear_requests();
    for (method, path) in [
        (Method::POST, NAMESPACED),
        (Method::PUT, "/api/v1/namespaces/shop/pods/web-0"),
        (Method::PATCH, "/api/v1/namespaces/shop/pods/web-0"),
        (Method::DELETE, "/api/v1/namespaces/shop/pods/web-0"),
        (Method::DELETE, NAMESPACED),
        (Method::POST, "/api/v1/namespaces/shop/pods/web-0/exec"),
        (Method::POST, "/apis"),
        (Method::GET, "/api/v1/namespaces/shop/pods/web-0/exec"),
        (Method::GET, "/api/v1/namespaces/shop/pods/web-0/attach"),
        (Method::GET, "/api/v1/namespaces/shop/pods/web-0/portforward"),
        (Method::GET, "/api/v1/namespaces/shop/pods/web-0/proxy"),
        (Method::GET, "/api/v1/nodes/node-1/proxy"),
        (Method::GET, "/api/v1/nodes/node-1/proxy/"),
        (Method::GET, "/api/v1/nodes/http:node-1:10250/proxy/pods"),
        (Method::GET, "/api/v1/namespaces/shop/services/web/proxy/metrics/x"),
    ] {
        let answer = ask(&endpoint, request(method.clone(), "localhost", path)).await;
        let message = answer.refusal(403, "Forbidden");
        assert!(message.contains("API server itself"), "{method} {path}: {message}");
    }
    for (name, value) in
        [("upgrade", "websocket"), ("connection", "keep-alive, Upgrade"), ("impersonate-user", "x")]
    {
        let name = HeaderName::from_static(name);
        let path = "/api/v1/pods?watch=1";
        with(&endpoint, name, value, path).await.refusal(403, "Forbidden");
    }
    let name = HeaderName::from_static("impersonate-group");
    with(&endpoint, name, "system:masters", "/api").await.refusal(403, "Forbidden");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn secrets_and_what_is_not_allowed_stay_hidden_by_whatever_path() {
    let server = server().await;
    let hidden = endpoint(&server, Options::default());
    for path in [
        "/api/v1/secrets",
        "/api/v1/namespaces/shop/secrets",
        "/api/v1/namespaces/shop/secrets/s",
        "/api/v1/namespaces/shop/secret%73/s",
        "/api/v1/secrets?watch=1",
        "/api//v1//secrets",
    ] {
        let message = get(&hidden, path).await.refusal(403, "Forbidden");
        assert!(message.contains("--allow secrets"), "{message}");
    }
    for path in [
        "/api/v1/namespaces/shop/pods/..%2Fsecrets%2Fs",
        "/api/v1/namespaces/shop/pods/%2e%2e/secrets",
        "/apis/..%2fapi%2fv1%2fsecrets",
        "/openapi/..%2fapi%2fv1%2fsecrets",
    ] {
        get(&hidden, path).await.refusal(400, "BadRequest");
    }
    for path in ["/api/v1/watch/secrets", "/api/v1/SECRETS", "/apis//v1/secrets", "/api/v1/nope"] {
        assert_eq!(get(&hidden, path).await.code, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(server.requests().resource("secrets").is_empty());

    let open = endpoint(&server, Options { allow: vec!["secrets".into()], ..Options::default() });
    assert_eq!(get(&open, "/api/v1/secrets").await.items(), ["s"]);
    get(&open, "/api/v1/pods").await.refusal(403, "Forbidden");
}

#[tokio::test]
async fn an_address_that_others_reach_answers_nothing_without_tls_unless_that_is_wanted() {
    let server = server().await;
    for (unprotected_api, code) in [(false, "403 Forbidden"), (true, "200 OK")] {
        let options = Options { unprotected_api, ..Options::default() };
        let endpoint = endpoint(&server, options);
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving =
            tokio::spawn(
                async move { endpoint.serve(listener, async { drop(stopped.await) }).await },
            );
        let paths = ["/api/v1/pods", "/version", "/pods", "/core/v1/pods", "/metrics", "/"];
        let paths = paths.map(|path| (path, code)).into_iter().chain([("/livez", "200 OK")]);
        for (path, code) in paths {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let head =
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {code}")), "{path}: {text}");
            assert_eq!(text.contains("--unprotected-api"), code == "403 Forbidden", "{text}");
        }
        stop.send(()).unwrap();
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn pages_of_other_hosts_are_refused() {
    let server = server().await;
    let endpoint = endpoint(&server, Options::default());
    let origin = HeaderName::from_static("origin");
    let path = "/api/v1/pods";
    for foreign in ["http://evil.example", "null"] {
        with(&endpoint, origin.clone(), foreign, path).await.refusal(403, "Forbidden");
    }
    let own = with(&endpoint, origin, "http://localhost:8888", path).await;
    assert_eq!(own.code, StatusCode::OK);
    let foreign = ask(&endpoint, request(Method::GET, "evil.example", path)).await;
    foreign.refusal(421, "MisdirectedRequest");
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

#[tokio::test(start_paused = true)]
async fn a_document_is_asked_for_again_after_a_while_and_believed_if_nobody_answers() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    let first = get(&endpoint, "/apis").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    server.clear_requests();
    get(&endpoint, "/apis").await;
    assert_eq!(server.requests().len(), 0);
    tokio::time::sleep(Duration::from_secs(4)).await;
    get(&endpoint, "/apis").await;
    assert_eq!(server.requests().len(), 1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    server.faults().inject(Fault::hang_up());
    assert_eq!(get(&endpoint, "/apis").await.json(), first.json());
    get(&endpoint, "/version").await.refusal(503, "ServiceUnavailable");
}

#[tokio::test(start_paused = true)]
async fn versions_ahead_are_waited_for_then_asked_of_the_server() {
    let server = server().await;
    let endpoint = unhurried(&server, Options::default());
    let list = get(&endpoint, "/api/v1/pods").await;
    let version: u64 =
        list.json()["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    // It comes while it is waited for.
    let next = format!("/api/v1/pods?resourceVersion={}", version + 1);
    let (answer, ()) = tokio::join!(get(&endpoint, &next), async {
        tokio::task::yield_now().await;
        server.cluster().create(&pod("shop", "late", "web", "node-1")).unwrap();
    });
    assert!(answer.items().contains(&"late".to_owned()));

    // The server is ahead of a cache whose watch is not answered.
    let stalled = server.faults().inject(Fault::stall().on(Verb::Watch).resource("pods"));
    server.faults().cut_watches(Cut::Close, Some("pods"));
    server.cluster().create(&pod("shop", "later", "web", "node-1")).unwrap();
    let ahead = format!("/api/v1/pods?resourceVersion={}", version + 2);
    let answer = get(&endpoint, &ahead).await;
    assert!(answer.items().contains(&"later".to_owned()));
    // What the server has told, the cache must not deny.
    assert!(get(&endpoint, "/api/v1/pods").await.items().contains(&"later".to_owned()));
    // Nobody has a version of twenty digits, and asking for it harms no other reader.
    let far = get(&endpoint, "/api/v1/pods?resourceVersion=18446744073709551615").await;
    far.refusal(504, "Timeout");
    let far = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=18446744073709551615";
    assert!(get(&endpoint, far).await.text.contains("Too large resource version"));
    stalled.lift();
    get(&endpoint, "/api/v1/pods").await.items();
    let lists = asked(&server, Verb::List, "pods");
    get(&endpoint, "/api/v1/pods").await.items();
    assert_eq!(asked(&server, Verb::List, "pods"), lists);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_only_a_request_names_is_not_believed() {
    const FAR: &str = "resourceVersion=10000000000000000000";
    let server = server().await;
    let (service, version) = (server.service(), server.cluster().version());
    // As a server may that does not look at it.
    let list = json!({"kind": "PodList", "apiVersion": "v1",
        "metadata": {"resourceVersion": version.to_string()}, "items": []});
    let careless = service_fn(move |request: Request<kube::client::Body>| {
        let (service, list) = (service.clone(), list.to_string());
        async move {
            if request.uri().query() != Some(FAR) {
                return service.oneshot(request).await;
            }
            let answer = http::Response::builder().header("content-type", "application/json");
            Ok(answer.body(k8s_serve::Body::full(list.into())).unwrap())
        }
    });
    let endpoint = Endpoint::new(kube::Client::new(careless, "default"), Options::default());
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
    assert!(get(&endpoint, &format!("/api/v1/pods?{FAR}")).await.items().is_empty());
    let collection = endpoint.inner.collections.now().pop().unwrap();
    assert!(collection.history.floor() <= version, "{}", collection.history.floor());
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_hears_nothing_is_refreshed_then_refused_unless_told_otherwise() {
    let never = Duration::from_secs(1 << 30);
    let server = TestServer::builder().bookmark_interval(never).start().await.unwrap();
    for name in ["a", "b", "c", "d"] {
        server.cluster().create(&pod("web", name, "web", "node-1")).unwrap();
    }
    let endpoint = unhurried(&server, Options::default());
    let patient = unhurried(&server, Options { serve_stale: true, ..Options::default() });
    for it in [&endpoint, &patient] {
        assert_eq!(get(it, "/api/v1/pods").await.items().len(), 4);
    }
    tokio::time::sleep(Duration::from_secs(80)).await;
    get(&endpoint, "/api/v1/pods").await.items();
    tokio::time::sleep(Duration::from_secs(12)).await;
    let answer = get(&endpoint, "/api/v1/pods").await;
    let message = answer.refusal(503, "ServiceUnavailable");
    assert!(message.contains("--max-staleness"), "{message}");
    assert!(answer.headers.contains_key("retry-after"));
    for path in ["/pods", "/core/v1/pods/shop/web-0"] {
        let answer = get(&endpoint, path).await;
        assert_eq!(answer.refusal(503, "ServiceUnavailable"), message, "{path}");
        assert!(answer.headers.contains_key("retry-after"), "{path}");
    }
    assert_eq!(get(&patient, "/api/v1/pods").await.items().len(), 4);
    // A list stands in for the bookmarks that do not come.
    endpoint.sweep().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(get(&endpoint, "/api/v1/pods").await.items().len(), 4);
}

#[tokio::test]
async fn while_the_first_list_runs_readers_are_told_to_come_back() {
    let server = server().await;
    let options = Options { sync_timeout: Duration::from_millis(50), ..Options::default() };
    let endpoint = endpoint(&server, options);
    get(&endpoint, "/readyz").await;
    server.faults().inject(Fault::stall().resource("pods"));
    let answer = get(&endpoint, "/api/v1/pods").await;
    answer.refusal(429, "TooManyRequests");
    assert_eq!(answer.headers["retry-after"], "1");
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
