//! The short paths.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use informer::decode::Encoding;
use informer::source::{Failure, FailureKind};
use informer_testkit::{Verb, generate};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::*;
use crate::gateway::answer;

/// The names of the items, which must be a `List`.
fn names(answer: &Answer) -> Vec<String> {
    let list = answer.json();
    let is = (&list["apiVersion"], &list["kind"]);
    assert_eq!(is, (&json!("v1"), &json!("List")), "{}", answer.text);
    assert!(list["metadata"]["resourceVersion"].as_str().is_some_and(|it| !it.is_empty()));
    answer.items()
}

#[tokio::test]
async fn lists_by_every_kind_of_name() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    for path in
        ["/deploy", "/deployments", "/Deployment", "/deployments.v1.apps", "/apps/v1/deployments"]
    {
        let answer = get(&gateway, path).await;
        assert_eq!(names(&answer), ["coredns"], "{path}");
        assert_eq!(answer.headers["content-type"], "application/json");
    }
    let item = &get(&gateway, "/deploy?labels[k8s-app]=kube-dns").await.json()["items"][0];
    assert_eq!((&item["apiVersion"], &item["kind"]), (&json!("apps/v1"), &json!("Deployment")));
    assert_eq!(item["spec"]["replicas"], 2);
    assert_eq!(names(&get(&gateway, "/core/v1/pods").await), ["cart-0", "web-0", "web-1", "web-0"]);
    // One informer per resource, whatever the name.
    assert_eq!(gateway.statuses().len(), 2);
}

#[tokio::test]
async fn single_objects() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    let pod = get(&gateway, "/core/v1/pods/web/web-0").await.json();
    assert_eq!((&pod["kind"], &pod["metadata"]["namespace"]), (&json!("Pod"), &json!("web")));
    assert_eq!(get(&gateway, "/core/v1/nodes/node-1").await.json()["kind"], "Node");
    let missing = get(&gateway, "/core/v1/pods/web/nobody").await.refusal(404, "NotFound");
    assert_eq!(missing, "pods \"nobody\" not found");
    let hint = get(&gateway, "/core/v1/pods/web").await.refusal(400, "BadRequest");
    assert!(hint.contains("/core/v1/pods/NAMESPACE/web"), "{hint}");
    let hint = get(&gateway, "/core/v1/nodes/web/node-1").await.refusal(400, "BadRequest");
    assert!(hint.contains("/core/v1/nodes/node-1"), "{hint}");
    get(&gateway, "/core/v1/nodes/node-1?limit=1").await.refusal(400, "BadRequest");
}

#[tokio::test]
async fn selectors_select() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    for (query, expected) in [
        ("labels[app]=web", &["web-0", "web-1", "web-0"][..]),
        ("labels[app]=web&namespace=shop", &["web-0", "web-1"]),
        ("labels[app]=web&labels[k8s.io/tier]=x&namespace=web", &["web-0"]),
        ("labels[app]=web&labels[app]=cart", &[]),
        ("labelSelector=app in (cart,none)", &["cart-0"]),
        ("labelSelector=!app", &[]),
        ("fieldSelector=spec.nodeName=node-2", &["web-1", "web-0"]),
        ("fieldSelector=spec.nodeName=node-1,metadata.name!=cart-0", &["web-0"]),
        ("fieldSelector=metadata.namespace=web&labels[app]=web", &["web-0"]),
        ("namespace=shop", &["cart-0", "web-0", "web-1"]),
        ("namespace=nowhere", &[]),
        ("limit=0", &["cart-0", "web-0", "web-1", "web-0"]),
    ] {
        assert_eq!(names(&get(&gateway, &format!("/pods?{query}")).await), expected, "{query}");
    }
}

#[tokio::test]
async fn pages_are_of_one_snapshot_however_the_cluster_changes() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    let first = get(&gateway, "/pods?limit=2").await;
    assert_eq!(names(&first), ["cart-0", "web-0"]);
    let metadata = first.json()["metadata"].clone();
    let (token, version) =
        (metadata["continue"].as_str().unwrap(), metadata["resourceVersion"].clone());

    let cluster = server.cluster();
    cluster.create(&pod("shop", "x", "web", "n")).unwrap();
    let newest = cluster.delete("pods", "web", "web-0").unwrap();
    wait_for(&gateway, &newest.version().to_string()).await;
    assert_eq!(names(&get(&gateway, "/pods").await), ["cart-0", "web-0", "web-1", "x"]);

    let second = get(&gateway, &format!("/pods?limit=2&continue={token}")).await;
    assert_eq!(names(&second), ["web-1", "web-0"]);
    assert_eq!(second.json()["metadata"], json!({"resourceVersion": version}));
    // By another name of the same resource, and again.
    let again = get(&gateway, &format!("/core/v1/pods?continue={token}")).await;
    assert_eq!(names(&again), ["web-1", "web-0"]);

    let other = get(&gateway, &format!("/pods?continue={token}&namespace=web")).await;
    assert!(other.refusal(400, "BadRequest").contains("another request"));
    let garbage = get(&gateway, "/pods?continue=garbage").await;
    assert!(garbage.refusal(400, "BadRequest").contains("metadata.continue"));
    // Selected pages end where the selection ends.
    let exact = get(&gateway, "/pods?limit=1&labels[app]=cart").await;
    assert_eq!(names(&exact), ["cart-0"]);
    assert_eq!(exact.json()["metadata"]["continue"], Value::Null);
}

#[tokio::test]
async fn pages_of_a_snapshot_that_is_gone_are_gone() {
    let server = server().await;
    let gateway = endpoint(&server, Options { kept_snapshots: 1, ..Options::default() });
    let token =
        |answer: &Answer| answer.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let first = token(&get(&gateway, "/pods?limit=1").await);
    let second = token(&get(&gateway, "/pods?limit=1").await);
    let gone =
        get(&gateway, &format!("/pods?limit=1&continue={first}")).await.refusal(410, "Expired");
    assert!(gone.contains("without continue="), "{gone}");
    assert_eq!(names(&get(&gateway, &format!("/pods?limit=9&continue={second}")).await).len(), 3);
}

#[tokio::test]
async fn mistakes_are_answered_with_what_to_do() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    for (path, code, reason, expected) in [
        ("/pdos", 404, "NotFound", "did you mean pods?"),
        ("/apps/v1/deploymentz", 404, "NotFound", "did you mean deployments.v1.apps?"),
        ("/apps/v2/deployments", 404, "NotFound", "deployments.v1.apps"),
        ("/a/b", 404, "NotFound", "no such path: /a/b"),
        ("/pods?labelSelector=a in (x", 400, "BadRequest", "at offset 7"),
        ("/pods?labels[a b]=x", 400, "BadRequest", "labels[a b]"),
        ("/pods?fieldSelector=spec.nodeName", 400, "BadRequest", "field selector"),
        ("/pods?limit=x", 400, "BadRequest", "limit=x"),
        ("/pods?label=x", 400, "BadRequest", "labels[KEY]"),
        ("/%ff", 400, "BadRequest", "UTF-8"),
        ("/core/v1/pods/%ff/x", 400, "BadRequest", "UTF-8"),
        ("/nodes?namespace=x", 400, "BadRequest", "do not live in namespaces"),
        ("/secrets", 403, "Forbidden", "--allow secrets"),
        ("/core/v1/secrets/shop/s", 403, "Forbidden", "--allow secrets"),
    ] {
        let message = get(&gateway, path).await.refusal(code, reason);
        assert!(message.contains(expected), "{path}: {message}");
    }
    let long = format!("/pods?labelSelector={}", "a".repeat(9000));
    assert!(get(&gateway, &long).await.refusal(400, "BadRequest").contains("8192"));
    // Nothing was started for any of them.
    assert_eq!(gateway.statuses().len(), 0);
}

#[tokio::test]
async fn only_reading_and_only_under_the_right_names() {
    let server = server().await;
    let options = Options { allowed_hosts: vec!["ok.example".to_owned()], ..Options::default() };
    let gateway = endpoint(&server, options);
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        for path in ["/pods", "/livez", "/no/such"] {
            let answer = ask(&gateway, request(method.clone(), "localhost", path)).await;
            answer.refusal(405, "MethodNotAllowed");
            assert_eq!(answer.headers["allow"], "GET, HEAD");
        }
    }
    let head = ask(&gateway, request(Method::HEAD, "127.0.0.1:8888", "/pods")).await;
    assert_eq!((head.code, head.text.as_str()), (StatusCode::OK, ""));

    for path in ["/pods", "/metrics", "/"] {
        let answer = ask(&gateway, request(Method::GET, "evil.example", path)).await;
        assert!(answer.refusal(421, "MisdirectedRequest").contains("--allowed-hosts"));
    }
    for host in ["ok.example", "ok.example:80", "[::1]:8888"] {
        assert_eq!(ask(&gateway, request(Method::GET, host, "/pods")).await.code, StatusCode::OK);
    }
    assert_eq!(ask(&gateway, request(Method::GET, "10.0.0.1", "/livez")).await.text, "ok\n");
}

#[tokio::test]
async fn only_what_was_allowed_and_secrets_only_when_named() {
    let server = server().await;
    let allow = |names: &[&str]| {
        let allow = names.iter().map(|it| (*it).to_owned()).collect();
        endpoint(&server, Options { allow, ..Options::default() })
    };
    let few = allow(&["po", "secrets"]);
    assert_eq!(names(&get(&few, "/pods").await).len(), 4);
    assert_eq!(names(&get(&few, "/core/v1/secrets").await), ["s"]);
    get(&few, "/deploy").await.refusal(403, "Forbidden");
    // What may not be asked for is not suggested either.
    let unknown = get(&few, "/deploymnets").await.refusal(404, "NotFound");
    assert!(!unknown.contains("deployments"), "{unknown}");

    let all = allow(&["*", "secrets"]);
    assert_eq!(names(&get(&all, "/secrets").await), ["s"]);
    assert_eq!(names(&get(&all, "/deploy").await), ["coredns"]);
}

#[tokio::test]
async fn a_gateway_of_one_namespace_does_not_speak_for_others() {
    let server = server().await;
    let gateway =
        endpoint(&server, Options { namespace: Some("web".into()), ..Options::default() });
    assert_eq!(names(&get(&gateway, "/pods").await), ["web-0"]);
    assert_eq!(names(&get(&gateway, "/pods?namespace=web").await), ["web-0"]);
    get(&gateway, "/pods?namespace=shop").await.refusal(403, "Forbidden");
    get(&gateway, "/core/v1/pods/shop/web-0").await.refusal(403, "Forbidden");
    assert_eq!(get(&gateway, "/core/v1/nodes/node-1").await.code, StatusCode::OK);
}

#[tokio::test]
async fn requests_share_an_informer_and_there_are_not_too_many() {
    let server = server().await;
    let gateway = endpoint(&server, Options { max_collections: 2, ..Options::default() });
    let answers = join_all((0..20).map(|_| get(&gateway, "/pods"))).await;
    assert!(answers.iter().all(|it| names(it).len() == 4));
    assert_eq!(gateway.statuses().len(), 1);
    names(&get(&gateway, "/nodes").await);
    let refused = get(&gateway, "/deploy").await;
    assert!(refused.refusal(429, "TooManyRequests").contains("--max-collections"));
    assert!(refused.headers.contains_key("retry-after"));
    // Those that are held are still answered.
    names(&get(&gateway, "/pods").await);

    // An hour later, nobody having asked:
    let collections = &gateway.inner.collections;
    collections.sweep(Instant::now() + Duration::from_secs(3600)).await;
    assert_eq!(gateway.statuses().len(), 0);
    assert_eq!(names(&get(&gateway, "/deploy").await), ["coredns"]);
    assert_eq!(names(&get(&gateway, "/pods").await).len(), 4);
    // What was just asked for stays.
    collections.sweep(Instant::now()).await;
    assert_eq!(gateway.statuses().len(), 2);
}

#[tokio::test]
async fn refusals_of_the_server_are_passed_on() {
    let server = server().await;
    server.auth().add_token("t", "eve");
    for verb in [Verb::List, Verb::Watch] {
        server.auth().deny("eve", verb, "pods");
    }
    let gateway = Endpoint::new(server.client_for("t").unwrap(), Options::default());
    let message = get(&gateway, "/pods").await.refusal(403, "Forbidden");
    assert!(message.contains("eve") && message.contains("pods"), "{message}");
    assert_eq!(names(&get(&gateway, "/nodes").await), ["node-1"]);

    server.auth().revoke_token("t");
    get(&gateway, "/deploy").await.refusal(401, "Unauthorized");
}

#[tokio::test]
async fn while_it_cannot_sync_the_answer_is_503_with_the_reason() {
    let server = server().await;
    let options = Options { sync_timeout: Duration::from_millis(300), ..Options::default() };
    let gateway = endpoint(&server, options);
    assert_eq!(get(&gateway, "/readyz").await.text, "ok\n");
    server.faults().refuse_connections();
    server.faults().reset_connections();
    let answer = get(&gateway, "/pods").await;
    let message = answer.refusal(503, "ServiceUnavailable");
    assert!(message.contains("pods.v1") && message.contains("failed, next in"), "{message}");
    assert!(answer.headers.contains_key("retry-after"));
    server.faults().accept_connections();
    let patient = Endpoint::new(server.client().unwrap(), Options::default());
    assert_eq!(names(&get(&patient, "/pods").await).len(), 4);
}

#[tokio::test]
async fn without_a_server_it_lives_but_is_not_ready() {
    let server = TestServer::start().await.unwrap();
    let gateway = endpoint(&server, Options::default());
    server.shutdown().await;
    assert_eq!(get(&gateway, "/livez").await.text, "ok\n");
    let ready = get(&gateway, "/readyz").await;
    assert_eq!(ready.code, StatusCode::SERVICE_UNAVAILABLE);
    assert!(ready.text.contains("does not answer"), "{}", ready.text);
    get(&gateway, "/pods").await.refusal(503, "ServiceUnavailable");
}

#[tokio::test]
async fn metrics_count_and_name_no_objects() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    names(&get(&gateway, "/pods").await);
    get(&gateway, "/nope").await.refusal(404, "NotFound");
    let metrics = get(&gateway, "/metrics").await;
    assert!(
        metrics.headers["content-type"]
            .to_str()
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    for expected in [
        "gateway_http_requests_total{code=\"200\"} 1\n",
        "gateway_http_requests_total{code=\"404\"} 1\n",
        "informer_collections 1\n",
        "informer_objects{resource=\"pods.v1\",scope=\"the whole cluster\"} 4\n",
        "informer_synced{resource=\"pods.v1\"",
        "informer_watches_total{resource=\"pods.v1\"",
        "informer_errors_total{resource=\"pods.v1\"",
        "# EOF\n",
    ] {
        assert!(metrics.text.contains(expected), "{expected}\n{}", metrics.text);
    }
    let states =
        metrics.text.lines().filter(|it| it.starts_with("informer_state{") && it.ends_with(" 1"));
    assert_eq!(states.count(), 1);
    assert!(!metrics.text.contains("web-0"));
    // No name of a resource hides the fixed paths, and the start page explains.
    assert!(get(&gateway, "/").await.text.contains("/{group}/{version}/{resource}"));
}

#[tokio::test]
async fn custom_resources_are_found_and_once_gone_so_are_their_objects() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    server
        .cluster()
        .create(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}}))
        .unwrap();
    server
        .cluster()
        .create(&json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "shop"}, "spec": {"size": 3}}))
        .unwrap();
    for path in ["/wd", "/widgets.example.com", "/example.com/v1/widgets?fieldSelector=spec.size=3"]
    {
        assert_eq!(names(&get(&gateway, path).await), ["w"], "{path}");
    }
}

#[tokio::test]
async fn big_answers_are_whole() {
    let server = server().await;
    for at in 0..500 {
        let mut pod = pod("big", &format!("p-{at:04}"), "big", "n");
        pod["metadata"]["annotations"] = json!({"padding": "x".repeat(700)});
        server.cluster().create(&pod).unwrap();
    }
    let gateway = endpoint(&server, Options::default());
    let answer = get(&gateway, "/pods?namespace=big").await;
    assert!(answer.text.len() > 5 * 64 * 1024);
    assert_eq!(names(&answer).into_iter().collect::<BTreeSet<_>>().len(), 500);
    // All pages together are the list.
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let page = get(&gateway, &format!("/pods?namespace=big&limit=99&continue={token}")).await;
        all.extend(names(&page));
        match page.json()["metadata"]["continue"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => break,
        }
    }
    assert_eq!(all, names(&answer));
}

#[tokio::test]
async fn over_tcp_it_serves_until_it_is_stopped() {
    let server = server().await;
    let gateway = endpoint(&server, Options::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = {
        let gateway = gateway.clone();
        tokio::spawn(async move { gateway.serve(listener, async { drop(stopped.await) }).await })
    };
    let mut connection = TcpStream::connect(address).await.unwrap();
    let text = format!("GET /deploy HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"coredns\""), "{answer}");
    stop.send(()).unwrap();
    serving.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
    while server.faults().open_watches(None) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_an_error_and_never_left_out() {
    let server = TestServer::start().await.unwrap();
    let gateway = endpoint(&server, Options::default());
    let metrics = &gateway.inner.metrics;
    let resource = informer::Resource::of::<k8s_openapi::api::core::v1::Pod>();
    let list = |items| {
        answer::List { resource: resource.clone(), version: "7".to_owned(), items, next: None }
            .into_response(metrics)
    };
    let fine: Vec<Arc<Object>> =
        generate::pods(40).map(|it| Arc::new(Object::from_json(it.as_bytes()).unwrap())).collect();
    let broken = Arc::new(broken());

    for refusal in [
        answer::object(&resource, &broken, metrics).unwrap_err(),
        list(vec![fine[0].clone(), broken.clone(), fine[1].clone()]).unwrap_err(),
    ] {
        assert_eq!(refusal.code, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(
            refusal.message.starts_with("pods \"x/broken\" cannot be written"),
            "{}",
            refusal.message
        );
        assert!(!refusal.message.contains("hunter2"), "G34: {}", refusal.message);
    }
    // Once the answer has begun, it ends with an error.
    let begun = list([&fine[..], &[broken][..]].concat()).unwrap();
    assert_eq!(begun.status(), StatusCode::OK);
    let error = begun.into_body().collect().await.unwrap_err().to_string();
    assert!(error.contains("x/broken"), "{error}");
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let text = crate::metrics::encode(&registry).unwrap();
    assert!(text.contains("gateway_unwritable_objects_total 3\n"));

    let whole = list(fine).unwrap().into_body().collect().await.unwrap().to_bytes();
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(whole["items"].as_array().unwrap().len(), 40);
}

#[tokio::test]
async fn lists_and_objects_are_those_of_the_server() {
    let server = TestServer::start().await.unwrap();
    let cluster = server.cluster();
    cluster.load(generate::pods(30)).unwrap();
    cluster.load(generate::deployments(5)).unwrap();
    cluster.load(generate::nodes(3)).unwrap();
    cluster
        .create(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}}))
        .unwrap();
    cluster
        .create(&json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "shop"}, "spec": {"size": 3, "text": "<é\n>", "none": null}}))
        .unwrap();
    let client = server.client().unwrap();
    let gateway = endpoint(&server, Options::default());
    for (path, own, in_protobuf) in [
        ("/api/v1/pods", "/core/v1/pods", true),
        ("/apis/apps/v1/deployments", "/apps/v1/deployments", true),
        ("/api/v1/nodes", "/core/v1/nodes", true),
        ("/apis/example.com/v1/widgets", "/example.com/v1/widgets", false),
    ] {
        let list: Value =
            client.request(Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
        let kind = list["kind"].as_str().unwrap().trim_end_matches("List").to_owned();
        let mut expected = list["items"].as_array().unwrap().clone();
        for item in &mut expected {
            item["apiVersion"] = list["apiVersion"].clone();
            item["kind"] = json!(kind);
            item["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
        let answer = get(&gateway, own).await.json();
        assert!(answer["items"] == json!(expected), "{own}: {answer}");
        assert_eq!(answer["metadata"]["resourceVersion"], list["metadata"]["resourceVersion"]);
        let (metadata, namespace) =
            (&expected[0]["metadata"], expected[0]["metadata"]["namespace"].as_str());
        let namespace = namespace.map(|it| format!("/{it}")).unwrap_or_default();
        let object = format!("{own}{namespace}/{}", metadata["name"].as_str().unwrap());
        assert!(get(&gateway, &object).await.json() == expected[0], "{object}");
        let plural = own.rsplit('/').next().unwrap();
        let resource = gateway.inner.catalog.resource(|it| it.find_by_arg(plural)).await.unwrap();
        let lister = gateway.inner.collections.synced(&resource).await.unwrap().lister;
        let kept = lister.list();
        let wires = kept.iter().map(|it| it.wire().encoding != Encoding::Json);
        assert!(wires.clone().all(|it| it == in_protobuf) && wires.count() > 0, "{own}");
    }
}

#[test]
fn an_answer_from_a_cache_that_is_behind_says_so() {
    let answered = |state| {
        let mut response = axum::response::Response::new(Body::empty());
        answer::warn_if_behind(&mut response, &state);
        response.headers().get("warning").map(|it| it.to_str().unwrap().to_owned())
    };
    let failing = informer::InformerState::BackingOff {
        cause: Failure::new(FailureKind::Refused, "refused: \"x\"\r\nSet-Cookie: y"),
        attempt: 3,
        until: std::time::SystemTime::now(),
    };
    let warning = answered(failing).unwrap();
    assert!(warning.starts_with("299 - \"the cache may be behind: "), "{warning}");
    assert_eq!(warning.matches('"').count(), 2, "{warning}");
    assert_eq!(
        answered(informer::InformerState::Listing { streaming: false, items: 0, remaining: None }),
        None
    );
}

/// Waits until the gateway's Pods have reached `version`.
async fn wait_for(gateway: &Endpoint, version: &str) {
    let pods = informer::Resource::of::<k8s_openapi::api::core::v1::Pod>();
    let factory = gateway.inner.collections.factory();
    let informer = factory.informer_as::<Object>(pods, informer::InformerOptions::new()).unwrap();
    informer.wait_for(version).await.unwrap();
}

#[tokio::test]
async fn deep_objects_are_written_with_the_others() {
    let server = TestServer::start().await.unwrap();
    let gateway = endpoint(&server, Options::default());
    let metrics = &gateway.inner.metrics;
    let resource = informer::Resource::of::<k8s_openapi::api::apps::v1::ControllerRevision>();
    for levels in [200, 5_000, 9_990] {
        let text = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let revision = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
            "metadata": {"name": "deep", "namespace": "x", "resourceVersion": "3"},
            "data": {encode::RAW_JSON: text},
        });
        let mut bytes = Vec::new();
        encode::object(&revision, &mut bytes).unwrap();
        let items = vec![Arc::new(Object::from_protobuf(&bytes).unwrap())];
        let version = "7".to_owned();
        let list = answer::List { resource: resource.clone(), version, items, next: None };
        let list = list.into_response(metrics).unwrap().into_body();
        let list = list.collect().await.unwrap().to_bytes();
        assert!(list.windows(text.len()).any(|part| part == text.as_bytes()), "{levels}");
    }
}
