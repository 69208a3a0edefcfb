//! Discovery, OpenAPI, other methods and subresources.

use super::*;

pub(super) fn of_discovery() -> Vec<Request> {
    let mut all = Vec::new();
    for path in ["/api", "/apis"] {
        for accept in [AGGREGATED, AGGREGATED_V2BETA1, DISCOVERY, PROTOBUF, PROTOBUF_OR_JSON] {
            all.push(Request::get(path).accepting(accept));
        }
        all.push(Request::get(path));
        let nopeer = format!("{AGGREGATED};profile=nopeer,application/json");
        all.push(Request::get(path).accepting(&nopeer));
        all.push(Request::get(path).accepting(AGGREGATED).with("if-none-match", "\"x\""));
        let etag = if path == "/api" { "{api-etag}" } else { "{apis-etag}" };
        all.push(Request::get(path).accepting(AGGREGATED).with("if-none-match", etag));
    }
    all.extend(
        [
            "/",
            "/api/",
            "/api/v1",
            "/api/v1/",
            "/api/v2",
            "/apis/",
            "/apis/apps",
            "/apis/apps/",
            "/apis/apps/v1",
            "/apis/apps/v9",
            "/apis/differences.example.com",
            "/apis/differences.example.com/v1",
            "/apis/differences.example.com/v9",
            "/apis/no.such.group",
            "/apis/no.such.group/v1",
            "/apis/rbac.authorization.k8s.io/v1",
            "/version",
            "/version/",
            "/version?pretty=true",
            "/openapi",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/",
            "/openapi/v3/api/v1",
            "/openapi/v3/apis/apps/v1",
            "/openapi/v3/apis/differences.example.com/v1",
            "/openapi/v3/apis/no.such.group/v1",
            "{openapi-apps}",
            "/healthz",
            "/livez",
            "/readyz",
        ]
        .map(Request::get),
    );
    for path in ["/apis/apps/v1", "/apis/apps", "/apis/apps/v9", "/api/v1"] {
        all.push(Request::get(path).accepting(PROTOBUF));
        all.push(Request::get(path).accepting(AGGREGATED));
    }
    let openapi_protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    all.push(Request::get("/openapi/v3/apis/apps/v1").accepting(openapi_protobuf));
    let etag = "{openapi-apps-etag}";
    all.push(Request::get("/openapi/v3/apis/apps/v1").with("if-none-match", etag));
    all.push(Request::get("{openapi-apps}").with("if-none-match", etag));
    all.push(Request::get("/openapi/v3/apis/apps/v1").with("if-none-match", "\"x\""));
    all
}

pub(super) fn others() -> Vec<Request> {
    let mut all = Vec::new();
    for (method, path) in [
        (Method::HEAD, PODS),
        (Method::HEAD, "/version"),
        (Method::HEAD, "/api/v1/namespaces/team/pods/running"),
        (Method::OPTIONS, PODS),
        (Method::TRACE, PODS),
    ] {
        all.push(Request { method, path: path.to_owned(), headers: Vec::new() });
    }
    all.extend(
        [
            "/api/v1/namespaces/team/pods/pending/log",
            "/api/v1/namespaces/team/pods/running/ephemeralcontainers",
            "/apis/apps/v1/namespaces/default/deployments/kinds/status",
            "/api/v1/namespaces/default/replicationcontrollers/kinds/scale",
            "/api/v1/componentstatuses/etcd-0",
            "/api/v1/componentstatuses/nothing",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "/api/v1/bindings",
            "/api/v1/namespaces/team/bindings",
            "/apis/metrics.k8s.io/v1beta1/pods",
        ]
        .map(Request::get),
    );
    all
}
