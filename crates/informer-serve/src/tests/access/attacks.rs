//! What callers try who want to read more than they may.

use std::sync::Arc;

use super::*;
use crate::access::{Caller, Credential};
use crate::{api, gateway};

const PODS: &str = "/api/v1/namespaces/shop/pods";

#[tokio::test]
async fn headers_of_a_proxy_are_not_believed_and_go_no_further() {
    let it = Controlled::start().await;
    it.judge.allows("alice", list_pods("shop"));
    let forged = [
        ("x-remote-user", "root"),
        ("x-remote-group", "system:masters"),
        ("x-remote-extra-scopes", "all"),
        ("x-forwarded-user", "root"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-original-url", "/livez"),
    ];
    it.with(PODS, &forged).await.refusal(401, "Unauthorized");
    let bearer = [("authorization", "Bearer alice-token")];
    let both = [&bearer[..], &forged].concat();
    assert_eq!(it.with(PODS, &both).await.items().len(), 3);
    it.with("/api/v1/pods", &both).await.refusal(403, "Forbidden");
    for spec in it.judge.accesses() {
        assert_eq!(spec["user"], "alice");
    }
}

#[tokio::test]
async fn nobody_is_impersonated_from_the_cache() {
    let it = Controlled::start().await;
    it.judge.knows("root-token", "root", &["system:masters"]);
    assert_eq!(it.get("root-token", PODS).await.items().len(), 3);
    for header in
        ["impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-x"]
    {
        let headers = [("authorization", "Bearer root-token"), (header, "nobody")];
        assert_eq!(it.with(PODS, &headers).await.code, StatusCode::FORBIDDEN, "{header}");
    }
}

#[tokio::test]
async fn a_permission_counts_for_its_caller_alone() {
    let it = Controlled::start().await;
    it.judge.allows("alice", list_pods("shop"));
    it.get("alice-token", PODS).await.items();
    it.get("bob-token", PODS).await.refusal(403, "Forbidden");
    // The same user with other groups, another UID or other extra is another caller.
    for user in [
        json!({"username": "alice", "groups": ["other"]}),
        json!({"username": "alice", "groups": ["team", "system:authenticated"], "uid": "u-2"}),
        json!({"username": "alice", "groups": ["team", "system:authenticated"], "extra": {"a": ["b"]}}),
    ] {
        let before = it.judge.accesses().len();
        it.judge.knows_as(&user.to_string(), user.clone());
        it.get(&user.to_string().replace(' ', ""), PODS).await;
        assert_eq!(it.judge.accesses().len(), before + 1, "{user}");
    }
}

#[tokio::test]
async fn a_permission_counts_for_its_request_alone() {
    let it = Controlled::start().await;
    it.judge.allows("alice", list_pods("shop"));
    let named = json!({"verb": "list", "version": "v1", "resource": "pods", "namespace": "web",
        "name": "web-0", "fieldSelector": {"requirements": [
            {"key": "metadata.name", "operator": "In", "values": ["web-0"]}]}});
    it.judge.allows("alice", named);
    it.get("alice-token", PODS).await.items();
    let selected = "/api/v1/namespaces/web/pods?fieldSelector=metadata.name=web-0";
    assert_eq!(it.get("alice-token", selected).await.items(), ["web-0"]);
    for path in [
        "/api/v1/pods",
        "/api/v1/namespaces/web/pods",
        "/api/v1/namespaces/shop/secrets",
        "/api/v1/namespaces/shop/configmaps",
        "/api/v1/namespaces/shop/pods?watch=1",
        "/api/v1/namespaces/shop/pods/web-0",
        "/api/v1/namespaces/shop/pods/web-0/status",
        "/apis/apps/v1/namespaces/shop/pods",
        "/api/v2/namespaces/shop/pods",
        "/api/v1/namespaces/shop/pods?labelSelector=app=web",
        "/api/v1/namespaces/web/pods?fieldSelector=metadata.name=web-1",
        "/api/v1/namespaces/web/pods?fieldSelector=metadata.name!=web-0",
        // The first one counts, here and there.
        "/api/v1/namespaces/web/pods?fieldSelector=&fieldSelector=metadata.name=web-0",
        "/api/v1/namespaces/web/pods?fieldselector=metadata.name=web-0",
        "/pods?namespace=web",
        "/pods?namespace=web&labels[app]=web",
        "/core/v1/pods/shop/web-0",
    ] {
        let answer = it.get("alice-token", path).await;
        assert_eq!(answer.code, StatusCode::FORBIDDEN, "{path}: {}", answer.text);
        assert!(!answer.text.contains("containers"), "{path}: {}", answer.text);
    }
    // Short paths of the same.
    assert_eq!(it.get("alice-token", "/pods?namespace=shop").await.items().len(), 3);
    assert_eq!(it.get("alice-token", "/core/v1/pods?namespace=shop").await.items().len(), 3);
}

#[tokio::test]
async fn paths_mean_the_same_to_the_review_and_to_the_answer() {
    let it = Controlled::start().await;
    it.judge.allows("alice", list_pods("shop"));
    it.judge.allows("alice", json!({"path": "/version", "verb": "get"}));
    for path in [
        "/api/v1/namespaces/shop/pods/../secrets",
        "/api/v1/namespaces/shop/pods/..%2Fsecrets",
        "/api/v1/namespaces/shop/pods%2F..%2Fsecrets",
        "/api/v1/namespaces/shop/pods/%2e%2e/%2e%2e/web/pods",
        "/api/v1/namespaces/shop%2fpods/pods",
        "/api/v1/namespaces/shop/../web/pods",
        "/version/../api/v1/pods",
        "/version%2f..%2fapi%2fv1%2fpods",
        "/livez/../api/v1/pods",
        "/livez%2f..%2fapi/v1/pods",
        "/%2e%2e/api/v1/pods",
        "/api/v1/Namespaces/shop/pods",
        "/API/v1/pods",
        "/Api/V1/namespaces/shop/pods",
        "/api/v1/namespaces/shop/PODS",
        "/%61pi/v1/pods",
        "/api/v1/namespaces/shop/pods;x=y",
        "/api/v1/namespaces/shop/pods%00",
        "/api/v1/namespaces/shop/pods%20",
        "/api/v1/watch/pods",
        "/api/v1/proxy/namespaces/shop/pods/web-0",
        "//metrics",
        "/metrics/",
        "/./metrics",
        "/%6detrics",
    ] {
        let answer = it.get("alice-token", path).await;
        let code = answer.code.as_u16();
        assert!([400, 403, 404].contains(&code), "{path}: {code}");
        assert!(!answer.text.contains("web-0\",\"namespace"), "{path}: {}", answer.text);
    }
    for path in ["//api//v1/namespaces/shop/pods", "/api/v1/namespaces//shop/pods/"] {
        let answer = it.get("alice-token", path).await;
        // What was reviewed, or nothing.
        match answer.code {
            StatusCode::OK => assert_eq!(answer.items(), ["cart-0", "web-0", "web-1"], "{path}"),
            code => assert!(code.is_client_error(), "{path}: {code}"),
        }
        it.get("bob-token", path).await.refusal(403, "Forbidden");
    }
    let secrets = it.server.requests();
    assert!(secrets.resource("secrets").is_empty());
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_whatever_they_bring() {
    let it = Controlled::start().await;
    it.judge.knows("root-token", "root", &["system:masters"]);
    let bearer = ("authorization", "Bearer root-token");
    let socket = [
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        // root-token
        (
            "sec-websocket-protocol",
            "base64url.bearer.authorization.k8s.io.cm9vdC10b2tlbg, base64.binary.k8s.io",
        ),
    ];
    for origin in ["https://evil.example", "null"] {
        let foreign = ("origin", origin);
        it.with(PODS, &[bearer, foreign]).await.refusal(403, "Forbidden");
        let answer = it.with(&format!("{PODS}?watch=1"), &[&socket[..], &[foreign]].concat()).await;
        answer.refusal(403, "Forbidden");
    }
    assert!(it.judge.tokens().is_empty(), "the token was not looked at");
    let embedded = [bearer, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
    it.with(PODS, &embedded).await.refusal(403, "Forbidden");
    // Without a token, or with a wrong one, an own page reads nothing either.
    let own = ("origin", "https://localhost:8443");
    let without: Vec<_> = socket[..4].iter().copied().chain([own]).collect();
    it.with(&format!("{PODS}?watch=1"), &without).await.refusal(401, "Unauthorized");
    let bad = [
        &without[..],
        &[("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.YQ, v4")],
    ]
    .concat();
    it.with(&format!("{PODS}?watch=1"), &bad).await.refusal(401, "Unauthorized");
}

#[tokio::test]
async fn an_endless_token_is_not_passed_to_the_server() {
    let it = Controlled::start().await;
    it.get(&"x".repeat(60_000), PODS).await.refusal(401, "Unauthorized");
    assert!(it.judge.tokens().is_empty());
}

#[tokio::test]
async fn a_token_of_the_anonymous_user_is_none() {
    let it = Controlled::start().await;
    it.judge.allows("system:anonymous", list_pods("shop"));
    it.judge.knows_as("odd", json!({"username": "system:anonymous"}));
    it.judge.knows_as("empty", json!({}));
    for token in ["odd", "empty"] {
        it.get(token, PODS).await.refusal(401, "Unauthorized");
    }
}

#[tokio::test]
async fn nothing_but_reads_is_answered_with_the_endpoints_account() {
    let it = Controlled::start().await;
    it.judge.knows("root-token", "root", &["system:masters"]);
    for (method, path) in [
        (Method::POST, PODS),
        (Method::DELETE, PODS),
        (Method::GET, "/api/v1/namespaces/shop/pods/web-0/exec"),
        (Method::GET, "/api/v1/nodes/node-1/proxy/secrets"),
    ] {
        let mut asked = request(method, "localhost", path);
        let bearer = "Bearer root-token".parse().unwrap();
        asked.headers_mut().insert("authorization", bearer);
        assert_eq!(it.ask(asked).await.code, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn the_answer_to_an_endless_question_is_not_remembered() {
    let it = Controlled::start().await;
    for (length, asked) in [(8 * 1024, 1), (17 * 1024, 2)] {
        let before = it.judge.accesses().len();
        let path = format!("{PODS}/{}", "x".repeat(length));
        for _ in 0..2 {
            it.get("alice-token", &path).await.refusal(403, "Forbidden");
        }
        assert_eq!(it.judge.accesses().len() - before, asked, "{length} bytes");
    }
}

#[tokio::test]
async fn what_came_past_the_guard_is_not_answered() {
    let it = Controlled::start().await;
    let asked = || request(Method::GET, "localhost", PODS);
    let past = api::answer(&it.endpoint, asked()).await;
    assert_eq!(past.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let credential = Credential::Token(Arc::new("alice-token".into()));
    let mut without_permission = asked();
    let caller = Caller { credential, identity: Arc::default() };
    without_permission.extensions_mut().insert(Arc::new(caller));
    let past = api::answer(&it.endpoint, without_permission).await;
    assert_eq!(past.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let unguarded = gateway::router(Router::new()).with_state(it.endpoint.clone());
    for path in ["/pods", "/core/v1/pods", "/core/v1/pods/shop/web-0", "/nope"] {
        let asked = request(Method::GET, "localhost", path);
        let past = unguarded.clone().oneshot(asked).await.unwrap();
        assert_eq!(past.status(), StatusCode::INTERNAL_SERVER_ERROR, "{path}");
    }
    assert!(it.server.requests().resource("pods").is_empty());
}
