//! The requests of the differential test: a few hundred reads, valid and not.

mod others;
mod selecting;
mod watching;

use std::collections::BTreeSet;

use http::Method;
use informer::discovery::{ApiResourceInfo, Discovery};

use self::others::{of_discovery, others};
use self::selecting::{selectors, tables};
use self::watching::{encodings, watches};

/// One request, the same for both servers.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Path and query, with `{…}` for what only a running server tells; see [`Facts`].
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// What replaces the words in braces.
#[derive(Debug, Clone)]
pub(crate) struct Facts(pub(crate) Vec<(&'static str, String)>);

impl Facts {
    /// The text with the facts in it.
    pub(crate) fn fill(&self, text: &str) -> String {
        let fill = |text: String, (word, value): &(&str, String)| text.replace(word, value);
        self.0.iter().fold(text.to_owned(), fill)
    }
}

impl Request {
    fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), headers: Vec::new() }
    }

    fn with(mut self, header: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }

    fn accepting(self, accept: &str) -> Self {
        self.with("accept", accept)
    }

    /// Names the request in a failure, and is what the known differences are listed by.
    pub(crate) fn name(&self) -> String {
        let mut name = format!("{} {}", self.method, self.path);
        for (header, value) in &self.headers {
            name.push_str(&format!(" [{header}: {value}]"));
        }
        name
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_watch(&self) -> bool {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        // As the API server reads it.
        let asks = |parameter: &str| {
            let value = parameter.strip_prefix("watch=");
            value.is_some_and(|it| !["false", "0"].contains(&it))
        };
        path.starts_with("/api/v1/watch/") || query.split('&').any(asks)
    }

    /// Whether it asks for bookmarks, and lasts until one has come for certain.
    pub(crate) fn waits_for_bookmarks(&self) -> bool {
        self.path.contains("allowWatchBookmarks=true&") && self.path.contains("timeoutSeconds=3")
    }
}

/// What kubectl accepts.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,\
    application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const TABLE_V1: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const TABLE_V1BETA1: &str = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const METADATA_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What client-go's typed clients accept.
const PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf,application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_V2BETA1: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
/// What client-go's discovery accepts.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

const PODS: &str = "/api/v1/pods";
const TEAM: &str = "/api/v1/namespaces/team/pods";
const MAPS: &str = "/api/v1/namespaces/odd/configmaps";
const WIDGETS: &str = "/apis/differences.example.com/v1/namespaces/team/gauges";

/// All requests. `discovery` is the API server's: each resource that it lets one list is asked for
/// in all forms.
pub(crate) fn requests(discovery: &Discovery) -> Vec<Request> {
    let mut all = Vec::new();
    all.extend(of_every_resource(discovery));
    all.extend(gets());
    all.extend(lists());
    all.extend(selectors());
    all.extend(tables());
    all.extend(watches());
    all.extend(encodings());
    all.extend(of_discovery());
    all.extend(others());
    let mut names = BTreeSet::new();
    all.retain(|request| names.insert(request.name()));
    all
}

/// The path of a collection that is at rest: the API server renews a Lease of its own.
fn at_rest(path: String) -> String {
    match path.strip_suffix("/leases") {
        Some(version) => format!("{version}/namespaces/default/leases"),
        None => path,
    }
}

fn of_every_resource(discovery: &Discovery) -> Vec<Request> {
    let mut all = Vec::new();
    // The API server computes ComponentStatuses for each request, in any order.
    let listed = |info: &&ApiResourceInfo| {
        info.verbs.iter().any(|it| it == "list") && info.resource.kind != "ComponentStatus"
    };
    for info in discovery.resources().iter().filter(listed) {
        let path = at_rest(info.resource.path(None));
        all.push(Request::get(&path));
        all.push(Request::get(format!("{path}?limit=1")));
        all.push(Request::get(&path).accepting(PROTOBUF_OR_JSON));
        all.push(Request::get(&path).accepting(TABLE));
        all.push(Request::get(&path).accepting(METADATA_LIST_PROTOBUF));
        if info.can_be_watched() {
            let watch = format!("{path}?watch=1&resourceVersion=0&timeoutSeconds=1");
            all.push(Request::get(watch).accepting(PROTOBUF_OR_JSON));
        }
        let one = format!("{path}/no-such-object");
        if !info.resource.namespaced {
            all.push(Request::get(one).accepting(PROTOBUF_OR_JSON));
        }
    }
    all
}

fn gets() -> Vec<Request> {
    let mut all = Vec::new();
    let objects = [
        "/api/v1/namespaces/team/pods/running",
        "/api/v1/namespaces/team/pods/odd.name-0",
        "/api/v1/namespaces/team",
        "/api/v1/nodes/node-1",
        "/apis/apps/v1/namespaces/default/deployments/kinds",
        "/apis/differences.example.com/v1/namespaces/team/gauges/one",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:basic-user",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Abasic-user",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/odd%20name%3A%20%C3%BC%2B%3F%23",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
    ];
    let accepts = [PROTOBUF, METADATA, METADATA_PROTOBUF, TABLE, TABLE_V1BETA1];
    for object in objects {
        all.push(Request::get(object));
        all.extend(accepts.map(|accept| Request::get(object).accepting(accept)));
    }
    let queries = [
        "/api/v1/namespaces/team/pods/running?resourceVersion=0",
        "/api/v1/namespaces/team/pods/running?resourceVersion=1",
        "/api/v1/namespaces/team/pods/running?resourceVersion={now}",
        "/api/v1/namespaces/team/pods/running?resourceVersion=9999999",
        "/api/v1/namespaces/team/pods/running?resourceVersion=x",
        "/api/v1/namespaces/team/pods/running?resourceVersion=-1",
        "/api/v1/namespaces/team/pods/running?resourceVersion=99999999999999999999",
        "/api/v1/namespaces/team/pods/running?resourceVersion=",
        "/api/v1/namespaces/team/pods/running?pretty=true",
        "/api/v1/namespaces/team/pods/running?pretty=1",
        "/api/v1/namespaces/team/pods/running?pretty=false",
        "/api/v1/namespaces/team/pods/running?unknown=1",
        "/api/v1/namespaces/team/pods/running/",
        "/api/v1/namespaces/team/pods/running/status",
        "/api/v1/namespaces/team/pods/running/nothing",
        "/api/v1/namespaces/team/pods/absent",
        "/api/v1/namespaces/team/pods/Not_A%20Name",
        "/api/v1/namespaces/team/pods/%2e%2e",
        "/api/v1/namespaces/absent/pods/absent",
        "/api/v1/namespaces/absent",
        "/api/v1/namespaces/team/status",
        "/api/v1/namespaces/team/nothing",
        "/api/v1/pods/running",
        "/api/v1/nodes/absent",
        "/api/v1/namespaces/team/nodes",
        "/api/v1/namespaces/team/nodes/node-1",
        "/api/v1/watch/pods/x/y/z",
        "/apis/differences.example.com/v1/namespaces/team/gauges/absent",
        "/apis/differences.example.com/v1/namespaces/team/gauges/one/status",
        "/apis/differences.example.com/v1/namespaces/team/gauges/one/scale",
        "/apis/differences.example.com/v2/namespaces/team/gauges/one",
        "/apis/apps/v1/namespaces/default/deployments/kinds/scale",
        "/apis/apps/v1/namespaces/default/deployments/absent",
        "/apis/apps/v9/namespaces/default/deployments/kinds",
        "/apis/no.such.group/v1/things",
        "/api/v2/pods",
    ];
    all.extend(queries.map(Request::get));
    all.push(Request::get(objects[0]).with("user-agent", "curl/8"));
    all.push(Request::get(objects[0]).with("if-none-match", "\"x\""));
    let absent = "/api/v1/namespaces/team/pods/absent";
    all.push(Request::get(absent).accepting(PROTOBUF));
    all.push(Request::get(absent).accepting(TABLE));
    all
}

fn lists() -> Vec<Request> {
    let mut all: Vec<_> = [
        "",
        "limit=2",
        "limit=0",
        "limit=1000",
        "limit=-1",
        "limit=x",
        "limit=99999999999999999999",
        "limit=",
        "limit=2&limit=3",
        "resourceVersion=",
        "resourceVersion=0",
        "resourceVersion=0&limit=2",
        "resourceVersion=1",
        "resourceVersion={now}",
        "resourceVersion=9999999",
        "resourceVersion=x",
        "resourceVersion=-1",
        "resourceVersion=1.5",
        "resourceVersion=%201",
        "resourceVersion=99999999999999999999",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=Whatever",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Exact&resourceVersion={now}",
        "resourceVersionMatch=Exact&resourceVersion={now}&limit=2",
        "resourceVersionMatch=Exact&resourceVersion=9999999",
        "resourceVersionMatch=NotOlderThan&resourceVersion=0",
        "resourceVersionMatch=NotOlderThan&resourceVersion={now}",
        "resourceVersionMatch=NotOlderThan&resourceVersion={now}&limit=2",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1",
        "resourceVersionMatch=Whatever&resourceVersion=1",
        "continue=x",
        "continue=",
        "continue=%7B%7D",
        "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ",
        "continue={token}",
        "continue={token}&limit=2",
        "continue={token}&resourceVersion=0",
        "continue={token}&resourceVersion=1",
        "continue={token}&resourceVersionMatch=Exact",
        "continue={gone}",
        "continue={gone}&limit=2",
        "sendInitialEvents=true",
        "sendInitialEvents=false",
        "timeoutSeconds=10",
        "timeoutSeconds=x",
        "allowWatchBookmarks=true",
        "allowWatchBookmarks=x",
        "watch=x&timeoutSeconds=1",
        "watch=false&timeoutSeconds=1",
        "watch=0&timeoutSeconds=1",
        "watch=&timeoutSeconds=1",
        "pretty=true",
        "unknown=1",
        "labelSelector=&fieldSelector=",
        "%",
        "limit=%zz",
        "a;b",
    ]
    .map(|query| Request::get(format!("{PODS}?{query}")))
    .into();
    all.extend(
        [
            TEAM,
            "/api/v1/namespaces/absent/pods",
            "/api/v1/namespaces/team/pods?limit=1",
            "/api/v1/namespaces/team/pods?limit=1&resourceVersion=0",
            "/api/v1/namespaces/team-a/pods?limit=1",
            "/api/v1/namespaces/team/pods/",
            "/api/v1/pods/",
            "/api/v1//pods",
            "//api/v1/pods",
            "/api/v1/namespaces/",
            "/api/v1/namespaces//pods",
            "/api/v1/Pods",
            "/api/v1/pod",
            "/api/v1/configmaps?limit=3",
            "/api/v1/namespaces/odd/configmaps?limit=3",
            "/api/v1/namespaces/odd/configmaps?limit=3&continue={map-token}",
            "/apis/apps/v1/deployments?limit=1",
            WIDGETS,
            "/apis/differences.example.com/v1/gauges",
            "/apis/differences.example.com/v1/gauges?limit=1",
            "/apis/differences.example.com/v1/gauges?limit=1&continue={gauge-token}",
            "/apis/differences.example.com/v1/gauges?resourceVersion=0",
            "/apis/differences.example.com/v1/gauges?limit=x",
            "/apis/differences.example.com/v1/unknowns",
            "/api/v1/watch/pods?timeoutSeconds=1",
            "/api/v1/watch/namespaces/team/pods/running?timeoutSeconds=1&resourceVersion=0",
        ]
        .map(Request::get),
    );
    all.extend(["x", "9999999", "-1"].map(|version| {
        Request::get(format!("{WIDGETS}?resourceVersion={version}")).accepting(TABLE)
    }));
    for accept in [PROTOBUF, METADATA_LIST, TABLE] {
        for query in ["limit=2", "resourceVersion=0", "continue=x", "resourceVersion=x"] {
            all.push(Request::get(format!("{PODS}?{query}")).accepting(accept));
        }
    }
    all
}
