use super::*;

fn of(method: &str, url: &str) -> Attributes {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    Attributes::of_request(&Method::from_bytes(method.as_bytes()).unwrap(), path, query)
}

/// `verb group/version namespace resource/subresource name`, or `verb path`.
fn short(attributes: &Attributes) -> String {
    match attributes {
        Attributes::Path { path, verb } => format!("{verb} {path}"),
        Attributes::Resource(it) => {
            let or = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
            format!(
                "{} {}/{} {} {}/{} {}",
                or(&it.verb),
                it.group,
                it.version,
                or(&it.namespace),
                it.resource,
                it.subresource,
                or(&it.name)
            )
        }
    }
}

/// The rules of `RequestInfoFactory` of kube-apiserver 1.36.
#[test]
fn attributes_are_those_that_kube_apiserver_derives() {
    for (method, url, expected) in [
        ("GET", "/", "get /"),
        ("GET", "/api", "get /api"),
        ("GET", "/api/v1", "get /api/v1"),
        ("GET", "/apis/apps", "get /apis/apps"),
        ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
        ("HEAD", "/version", "head /version"),
        ("GET", "/openapi/v3/apis/apps/v1?hash=x", "get /openapi/v3/apis/apps/v1"),
        ("GET", "/metrics", "get /metrics"),
        ("POST", "/nothing/here", "post /nothing/here"),
        ("GET", "/api/v1/pods", "list /v1 - pods/ -"),
        ("HEAD", "/api/v1/pods", "list /v1 - pods/ -"),
        ("GET", "/api/v1/pods?watch=true", "watch /v1 - pods/ -"),
        ("GET", "/api/v1/pods?watch=1", "watch /v1 - pods/ -"),
        ("GET", "/api/v1/pods?watch", "watch /v1 - pods/ -"),
        ("GET", "/api/v1/pods?watch=false", "list /v1 - pods/ -"),
        ("GET", "/api/v1/pods?watch=0&watch=1", "list /v1 - pods/ -"),
        ("GET", "/api/v1/namespaces/a/pods", "list /v1 a pods/ -"),
        ("GET", "/api/v1/namespaces/a/pods/b", "get /v1 a pods/ b"),
        ("GET", "/api/v1/namespaces/a/pods/b?watch=1", "get /v1 a pods/ b"),
        ("GET", "/api/v1/namespaces/a/pods/b/log", "get /v1 a pods/log b"),
        ("GET", "/api/v1/namespaces/a/pods/b/proxy/x/y", "get /v1 a pods/proxy b"),
        ("GET", "/api/v1/namespaces", "list /v1 - namespaces/ -"),
        ("GET", "/api/v1/namespaces/a", "get /v1 a namespaces/ a"),
        ("GET", "/api/v1/namespaces/a/status", "get /v1 a namespaces/status a"),
        ("PUT", "/api/v1/namespaces/a/finalize", "update /v1 a namespaces/finalize a"),
        ("GET", "/api/v1/nodes/n", "get /v1 - nodes/ n"),
        ("GET", "/api/v1/nodes/n/proxy", "get /v1 - nodes/proxy n"),
        ("POST", "/apis/apps/v1/namespaces/a/deployments", "create apps/v1 a deployments/ -"),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/d", "patch apps/v1 a deployments/ d"),
        (
            "PUT",
            "/apis/apps/v1/namespaces/a/deployments/d/scale",
            "update apps/v1 a deployments/scale d",
        ),
        ("DELETE", "/api/v1/namespaces/a/pods/b", "delete /v1 a pods/ b"),
        ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection /v1 a pods/ -"),
        ("OPTIONS", "/api/v1/pods", "- /v1 - pods/ -"),
        ("GET", "/api/v1/watch/pods", "watch /v1 - pods/ -"),
        ("GET", "/api/v1/watch/namespaces/a/pods/b", "watch /v1 a pods/ b"),
        ("GET", "/api/v1/proxy/namespaces/a/pods/b/c", "proxy /v1 a pods/c b"),
        // Names by selectors.
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Db", "list /v1 - pods/ b"),
        (
            "GET",
            "/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name=b,spec.nodeName=n",
            "watch /v1 a pods/ b",
        ),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name!=b", "list /v1 - pods/ -"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name=..", "list /v1 - pods/ -"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name=a/b", "list /v1 - pods/ -"),
        (
            "GET",
            "/api/v1/pods?fieldSelector=x=y&fieldSelector=metadata.name=b",
            "list /v1 - pods/ -",
        ),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name=b&labelSelector=(", "list /v1 - pods/ -"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name=b&limit=x", "list /v1 - pods/ -"),
        (
            "DELETE",
            "/api/v1/namespaces/a/pods?fieldSelector=metadata.name=b",
            "deletecollection /v1 a pods/ -",
        ),
        // As they are forwarded and answered.
        ("GET", "//api//v1/namespaces/a/pods", "list /v1 a pods/ -"),
        ("GET", "/API/v1/pods", "get /API/v1/pods"),
        ("GET", "/api/v1/Pods", "list /v1 - Pods/ -"),
        ("GET", "/api/v1/pods%2Fsecrets", "list /v1 - pods/secrets/ -"),
        ("GET", "/%61pi/v1/secrets", "list /v1 - secrets/ -"),
    ] {
        assert_eq!(short(&of(method, url)), expected, "{method} {url}");
    }
}

#[test]
fn selectors_are_a_part_of_the_review() {
    let list = of(
        "GET",
        "/api/v1/pods?fieldSelector=spec.nodeName=n,status.phase!=Failed&labelSelector=a+in+(x,y),!b,c,d!=e,f>1",
    );
    assert_eq!(
        list.to_review(),
        (
            "resourceAttributes",
            json!({
                "verb": "list", "version": "v1", "resource": "pods",
                "fieldSelector": { "requirements": [
                    { "key": "spec.nodeName", "operator": "In", "values": ["n"] },
                    { "key": "status.phase", "operator": "NotIn", "values": ["Failed"] },
                ] },
                "labelSelector": { "requirements": [
                    { "key": "a", "operator": "In", "values": ["x", "y"] },
                    { "key": "b", "operator": "DoesNotExist" },
                    { "key": "c", "operator": "Exists" },
                    { "key": "d", "operator": "NotIn", "values": ["e"] },
                ] },
            })
        )
    );
    // Only where they select.
    let get = of("GET", "/api/v1/namespaces/a/pods/b?labelSelector=a=b");
    let expected = json!({ "verb": "get", "version": "v1", "resource": "pods", "namespace": "a", "name": "b" });
    assert_eq!(get.to_review(), ("resourceAttributes", expected));
    assert_eq!(
        of("GET", "/metrics").to_review(),
        ("nonResourceAttributes", json!({ "path": "/metrics", "verb": "get" }))
    );
}

#[test]
fn requests_that_differ_are_other_questions() {
    let urls = [
        "/api/v1/pods",
        "/api/v1/pods?watch=1",
        "/api/v1/secrets",
        "/api/v1/namespaces/a/pods",
        "/api/v1/namespaces/b/pods",
        "/api/v1/namespaces/a/pods/b",
        "/api/v1/namespaces/a/pods/b/log",
        "/apis/metrics.k8s.io/v1/pods",
        "/apis/metrics.k8s.io/v1beta1/pods",
        "/api/v1/pods?labelSelector=a=b",
        "/api/v1/pods?labelSelector=a=c",
        "/api/v1/pods?fieldSelector=a=b",
        "/api/v1/pods?fieldSelector=metadata.name=b",
        "/metrics",
        "/",
    ];
    let all: std::collections::HashSet<_> = urls.iter().map(|it| of("GET", it)).collect();
    assert_eq!(all.len(), urls.len());
}

#[test]
fn refusals_are_in_the_words_of_an_api_server() {
    let alice = Identity { user: "alice".to_owned(), ..Identity::default() };
    for (url, reason, expected) in [
        (
            "/api/v1/namespaces/y/pods",
            "",
            r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "y""#,
        ),
        (
            "/apis/apps/v1/deployments?watch=1",
            "RBAC: not found",
            r#"deployments.apps is forbidden: User "alice" cannot watch resource "deployments" in API group "apps" at the cluster scope: RBAC: not found"#,
        ),
        (
            "/api/v1/namespaces/y/pods/z/log",
            "",
            r#"pods "z" is forbidden: User "alice" cannot get resource "pods/log" in API group "" in the namespace "y""#,
        ),
        ("/a<b>&c", "", r#"forbidden: User "alice" cannot get path "/a&lt;b&gt;&amp;c""#),
    ] {
        assert_eq!(of("GET", url).forbidden(&alice, reason).message, expected);
    }
    let metrics = of("GET", "/metrics").forbidden(&alice, "").to_json();
    assert!(metrics.contains(r#""reason":"Forbidden","details":{},"code":403"#), "{metrics}");
}

#[test]
fn selectors_too_long_for_a_review_are_left_out_of_it() {
    let selectors = |query: &str| {
        let of = of("GET", &format!("/api/v1/namespaces/a/pods?{query}"));
        let (_, review) = of.to_review();
        assert_eq!((&review["verb"], &review["namespace"]), (&json!("list"), &json!("a")));
        ["fieldSelector", "labelSelector"].map(|it| review.get(it).is_some())
    };
    let labels = |count: usize| (0..count).map(|it| format!("k{it}=v")).collect::<Vec<_>>();
    let values = |count: usize| (0..count).map(|it| it.to_string()).collect::<Vec<_>>();
    let of_labels = |count| selectors(&format!("labelSelector={}", labels(count).join(",")));
    assert_eq!((of_labels(100), of_labels(101)), ([false, true], [false, false]));
    let both = format!("fieldSelector=spec.nodeName=n&labelSelector={}", labels(100).join(","));
    assert_eq!(selectors(&both), [false, false]);
    let of_values = |count| selectors(&format!("labelSelector=k+in+({})", values(count).join(",")));
    assert_eq!((of_values(1000), of_values(1001)), ([false, true], [false, false]));
}
