//! Watches, and encodings.

use super::*;

pub(super) fn watches() -> Vec<Request> {
    let mut all = Vec::new();
    let initial =
        "resourceVersionMatch=NotOlderThan&sendInitialEvents=true&allowWatchBookmarks=true";
    for query in [
        "",
        "&resourceVersion=",
        "&resourceVersion=0",
        "&resourceVersion=1",
        "&resourceVersion={before}",
        "&resourceVersion={before}&allowWatchBookmarks=true",
        "&resourceVersion={now}",
        "&resourceVersion=9999999",
        "&resourceVersion=x",
        "&resourceVersion=-1",
        "&resourceVersion=99999999999999999999",
        "&resourceVersionMatch=NotOlderThan",
        "&resourceVersionMatch=Exact&resourceVersion={now}",
        "&sendInitialEvents=true",
        "&sendInitialEvents=false",
        "&sendInitialEvents=x",
        "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={before}",
        "&sendInitialEvents=true&resourceVersionMatch=Exact",
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=x",
        "&limit=1",
        "&limit=x",
        "&continue=x",
        "&labelSelector=(",
        "&fieldSelector=x%3D1",
        "&fieldSelector=metadata.name%3Drunning&resourceVersion=0",
        "&fieldSelector=status.phase%3DRunning&resourceVersion={before}",
        "&labelSelector=app%3Dweb&resourceVersion={before}",
        "&allowWatchBookmarks=x",
    ] {
        all.push(Request::get(format!("{PODS}?watch=1&timeoutSeconds=1{query}")));
    }
    for version in ["", "&resourceVersion=0", "&resourceVersion={now}", "&resourceVersion=1"] {
        let query = format!("watch=1&timeoutSeconds=1&{initial}{version}");
        all.push(Request::get(format!("{PODS}?{query}")));
        all.push(Request::get(format!("{PODS}?{query}")).accepting(PROTOBUF_OR_JSON));
        all.push(Request::get(format!("{TEAM}?{query}")).accepting(METADATA_PROTOBUF));
        all.push(Request::get(format!("{WIDGETS}?{query}")));
    }
    // Bookmarks come two seconds before the end.
    for path in [PODS, WIDGETS] {
        let query = "watch=1&timeoutSeconds=3&allowWatchBookmarks=true";
        all.push(Request::get(format!("{path}?{query}&resourceVersion={{before}}")));
    }
    for timeout in ["x", "-1", "1.5", "99999999999999999999"] {
        all.push(Request::get(format!("{PODS}?watch=1&timeoutSeconds={timeout}&limit=x")));
    }
    let accepts = [
        TABLE,
        TABLE_V1BETA1,
        METADATA,
        METADATA_LIST,
        PROTOBUF,
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/yaml",
        "application/yaml,application/json",
        "application/cbor",
        "text/html",
        "*/*",
    ];
    for accept in accepts {
        for path in [TEAM, WIDGETS] {
            let path = format!("{path}?watch=true&timeoutSeconds=1&resourceVersion={{before}}");
            all.push(Request::get(path).accepting(accept));
        }
        let path = format!("{TEAM}?watch=true&timeoutSeconds=1&resourceVersion=0");
        all.push(Request::get(path).accepting(accept));
    }
    for path in [
        "/api/v1/namespaces/team/pods/running?watch=1&timeoutSeconds=1&resourceVersion=0",
        "/api/v1/namespaces/team/pods/absent?watch=1&timeoutSeconds=1&resourceVersion={now}",
        "/api/v1/componentstatuses?watch=1&timeoutSeconds=1",
        "/api/v1/namespaces?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dteam",
        "/api/v1/namespaces/team?watch=1&timeoutSeconds=1",
        "/api/v1/pods?watch=t&timeoutSeconds=1&resourceVersion={now}",
        "/api/v1/pods?watch=TRUE&timeoutSeconds=1&resourceVersion={now}",
    ] {
        all.push(Request::get(path));
    }
    let table =
        format!("{TEAM}?watch=true&timeoutSeconds=1&resourceVersion=0&includeObject=Object");
    all.push(Request::get(table).accepting(TABLE));
    all
}

pub(super) fn encodings() -> Vec<Request> {
    let mut all = Vec::new();
    let accepts = [
        "*/*",
        "",
        "application/*",
        "application/json",
        "application/json, */*",
        "application/json;charset=utf-8",
        "application/json;q=0.1,application/vnd.kubernetes.protobuf;q=0.9",
        "application/vnd.kubernetes.protobuf;q=0.1,application/json;q=0.9",
        "application/json;q=0",
        "application/yaml",
        "application/cbor",
        "application/cbor,application/json",
        "text/html",
        "text/html,application/json",
        "text/html, */*;q=0.1",
        "application/xml;q=0.9,*/*;q=0.8",
        "application/json;stream=watch",
        "application/json;pretty=1",
        "nonsense",
        ";;;,",
        "APPLICATION/JSON",
    ];
    for path in [TEAM, "/api/v1/namespaces/team/pods/absent", "/api", "/version", WIDGETS] {
        all.extend(accepts.map(|accept| Request::get(path).accepting(accept)));
    }
    let encodings = ["gzip", "deflate", "gzip;q=0", "identity", "*", "br, gzip"];
    for encoding in encodings {
        all.push(Request::get(MAPS).with("accept-encoding", encoding));
    }
    for accept in [PROTOBUF, TABLE, METADATA_LIST] {
        all.push(Request::get(MAPS).accepting(accept).with("accept-encoding", "gzip"));
    }
    for path in [
        "/api/v1/namespaces/odd/configmaps/large",
        "/api/v1/namespaces/team/pods?limit=1",
        "/api/v1/namespaces/odd/configmaps?watch=1&timeoutSeconds=1&resourceVersion=0",
        "/apis",
        "/openapi/v3",
        "/openapi/v3/apis/apps/v1",
    ] {
        all.push(Request::get(path).with("accept-encoding", "gzip"));
    }
    all
}
