//! The short paths.

mod answer;
mod pages;
mod upstream;

use super::*;

/// The names of the items, which must be a `List`.
fn names(answer: &Answer) -> Vec<String> {
    let list = answer.json();
    let is = (&list["apiVersion"], &list["kind"]);
    assert_eq!(is, (&json!("v1"), &json!("List")), "{}", answer.text);
    assert!(list["metadata"]["resourceVersion"].as_str().is_some_and(|it| !it.is_empty()));
    answer.items()
}

/// Creates a custom resource with one object.
fn create_widget(server: &TestServer) {
    for object in [
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
        json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "shop"},
            "spec": {"size": 3, "text": "<é\n>", "none": null}}),
    ] {
        server.cluster().create(&object).unwrap();
    }
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
    create_widget(&server);
    for path in ["/wd", "/widgets.example.com", "/example.com/v1/widgets?fieldSelector=spec.size=3"]
    {
        assert_eq!(names(&get(&gateway, path).await), ["w"], "{path}");
    }
}
