//! Reads with selectors, and tables.

use super::*;

pub(super) fn selectors() -> Vec<Request> {
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

pub(super) fn tables() -> Vec<Request> {
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
