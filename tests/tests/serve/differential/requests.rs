//! The requests of the differential test: a few hundred reads, valid and not.

use std::collections::BTreeSet;

use http::Method;
use informer::discovery::{ApiResourceInfo, Discovery};

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

fn selectors() -> Vec<Request> {
    let labels = [
        "app%3Dweb",
        "app%3D%3Dweb",
        "app!%3Dweb",
        "app",
        "!app",
        "app%20in%20(web,db)",
        "app%20notin%20(web)",
        "app%3Dweb,tier%3Dfront",
        "size%3E3",
        "size%3C3",
        "app%3Dnone",
        "app%3D",
        ",",
        "app%3D%3D%3Dweb",
        "app%20in%20web",
        "app%20in%20()",
        "(",
        "-app",
        "app%3D-x",
        "size%3Ex",
        "a/b/c%3D1",
        "%00",
        "app%3D%C3%BC",
        "app%20within%20(x)",
    ];
    let fields = [
        "metadata.name%3Drunning",
        "metadata.name!%3Drunning",
        "metadata.namespace%3Dteam",
        "metadata.namespace%3Dteam,metadata.name%3Drunning",
        "spec.nodeName%3Dnode-1",
        "spec.nodeName%3D",
        "spec.nodeName!%3D",
        "spec.restartPolicy%3DAlways",
        "spec.schedulerName%3Ddefault-scheduler",
        "spec.serviceAccountName%3Ddefault",
        "spec.hostNetwork%3Dfalse",
        "status.phase%3DRunning",
        "status.phase!%3DRunning,status.phase!%3DPending",
        "status.podIP%3D10.1.0.1",
        "status.podIPs%3D10.1.0.1",
        "status.nominatedNodeName%3D",
        "spec.containers%3Dx",
        "metadata.labels%3Dx",
        "metadata.uid%3Dx",
        "name%3Drunning",
        "status.phase",
        "status.phase%20in%20(Running)",
        "%3D",
        "a%5C%5Cb%3Dc",
        "status.phase%3DRun%5Cning",
        ",",
    ];
    let mut all = Vec::new();
    for selector in labels {
        all.push(Request::get(format!("{PODS}?labelSelector={selector}")));
    }
    for selector in fields {
        all.push(Request::get(format!("{PODS}?fieldSelector={selector}")));
    }
    for (path, field) in [
        (WIDGETS, "spec.colour%3Dred"),
        (WIDGETS, "spec.colour!%3Dred"),
        (WIDGETS, "spec.size%3D3"),
        (WIDGETS, "spec.other%3D3"),
        (WIDGETS, "metadata.name%3Done"),
        ("/apis/apps/v1/deployments", "metadata.name%3Dkinds"),
        ("/apis/apps/v1/deployments", "status.replicas%3D1"),
        ("/api/v1/nodes", "spec.unschedulable%3Dfalse"),
        ("/api/v1/nodes", "spec.podCIDR%3Dx"),
        ("/api/v1/namespaces", "status.phase%3DActive"),
        ("/api/v1/namespaces", "name%3Dteam"),
        ("/api/v1/services", "spec.type%3DClusterIP"),
        ("/api/v1/services", "spec.clusterIP%3D10.0.0.1"),
        ("/api/v1/secrets", "type%3DOpaque"),
        ("/api/v1/events", "involvedObject.name%3Drunning,involvedObject.namespace%3Dteam"),
        ("/api/v1/events", "involvedObject.kind%3DPod,reason%3DStarted"),
        ("/api/v1/events", "type%3DNormal"),
        ("/api/v1/events", "source%3Dkubelet"),
        ("/apis/events.k8s.io/v1/events", "regarding.name%3Drunning"),
        ("/apis/events.k8s.io/v1/events", "involvedObject.name%3Drunning"),
        ("/apis/batch/v1/jobs", "status.successful%3D0"),
        ("/apis/apps/v1/replicasets", "status.replicas%3D0"),
        ("/api/v1/replicationcontrollers", "status.replicas%3D0"),
        ("/apis/certificates.k8s.io/v1/certificatesigningrequests", "spec.signerName%3Dx"),
    ] {
        all.push(Request::get(format!("{path}?fieldSelector={field}")));
    }
    let pair = format!("{PODS}?labelSelector=app%3Dweb&fieldSelector=status.phase%3DRunning");
    for query in ["", "&limit=1", "&limit=1&resourceVersion=0"] {
        all.push(Request::get(format!("{pair}{query}")));
    }
    all.push(Request::get(&pair).accepting(TABLE));
    all.push(Request::get(&pair).accepting(PROTOBUF));
    for (selector, accept) in [("labelSelector=(", PROTOBUF), ("fieldSelector=x%3D1", TABLE)] {
        all.push(Request::get(format!("{PODS}?{selector}")).accepting(accept));
    }
    all.push(Request::get(format!("{TEAM}/running?labelSelector=app%3Dnone")));
    all
}

fn tables() -> Vec<Request> {
    let mut all = Vec::new();
    for accept in [TABLE_V1, TABLE_V1BETA1] {
        for object in ["", "Object", "Metadata", "None", "Whatever", "object"] {
            let query = format!("{TEAM}?includeObject={object}");
            all.push(Request::get(query).accepting(accept));
        }
        all.push(Request::get(WIDGETS).accepting(accept));
        all.push(Request::get(format!("{TEAM}?limit=1")).accepting(accept));
    }
    for path in [TEAM, WIDGETS, "/api/v1/nodes", "/api/v1/namespaces/none/pods"] {
        let include = format!("{path}?includeObject=Object");
        all.push(Request::get(include).accepting(TABLE));
    }
    let odd = [
        "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.5,application/json",
        "application/json;as=Table;v=v2;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=other.k8s.io",
        "application/json;as=Table",
        "application/json;as=Chair;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v2;g=meta.k8s.io,application/json",
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
        "application/yaml;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1",
        METADATA,
        METADATA_LIST,
        METADATA_PROTOBUF,
    ];
    all.extend(odd.map(|accept| Request::get(TEAM).accepting(accept)));
    all.extend(odd.map(|accept| Request::get(format!("{TEAM}/running")).accepting(accept)));
    for accept in [METADATA, METADATA_LIST, METADATA_LIST_PROTOBUF] {
        all.push(Request::get(WIDGETS).accepting(accept));
    }
    all
}

fn watches() -> Vec<Request> {
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

fn encodings() -> Vec<Request> {
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

fn of_discovery() -> Vec<Request> {
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

fn others() -> Vec<Request> {
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
