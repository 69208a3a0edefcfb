//! Requests that are refused: writes, resources that are not allowed, foreign pages, and the whole
//! API on an address that other machines reach.

use super::listening::Listening;
use super::*;

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
        let listening = Listening::start(endpoint, "0.0.0.0", None).await;
        let paths = ["/api/v1/pods", "/version", "/pods", "/core/v1/pods", "/metrics", "/"];
        let paths = paths.map(|path| (path, code)).into_iter().chain([("/livez", "200 OK")]);
        for (path, code) in paths {
            let text = listening.get(path).await;
            assert!(text.starts_with(&format!("HTTP/1.1 {code}")), "{path}: {text}");
            assert_eq!(text.contains("--unprotected-api"), code == "403 Forbidden", "{text}");
        }
        listening.stop().await;
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
