//! Tables of made-up objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-02T00:00:00Z";

fn resource(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Resource {
    Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        kind: kind.into(),
        namespaced,
    }
}

fn print(resource: &Resource, objects: &[Value], options: TableOptions) -> String {
    let objects =
        objects.iter().map(|it| serde_json::from_value::<DynamicObject>(it.clone()).unwrap());
    let now: Timestamp = NOW.parse().unwrap();
    table(resource, objects, &[], options, now)
}

#[expect(clippy::needless_pass_by_value, reason = "called with literals")]
fn pod(name: &str, status: Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "web", "creationTimestamp": "2026-01-01T23:00:00Z"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "a"}, {"name": "b"}],
            "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]},
        "status": status,
    })
}

#[test]
fn pods_say_what_ails_them() {
    let pods = resource("", "v1", "pods", "Pod", true);
    let ended = |code: i64| json!({"terminated": {"exitCode": code}});
    let mut leaving = pod("leaving", json!({"phase": "Running"}));
    leaving["metadata"]["deletionTimestamp"] = json!(NOW);
    let objects = [
        pod(
            "fine",
            json!({"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": [
            {"name": "a", "ready": true, "restartCount": 2, "state": {"running": {}},
             "lastState": {"terminated": {"finishedAt": "2026-01-01T23:55:00Z"}}},
            {"name": "b", "ready": true, "restartCount": 1, "state": {"running": {}}}]}),
        ),
        pod(
            "crashing",
            json!({"phase": "Running", "containerStatuses": [
            {"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 9},
            {"name": "b", "ready": true, "state": {"running": {}}}]}),
        ),
        pod(
            "failed",
            json!({"phase": "Failed", "containerStatuses": [{"name": "a", "state": ended(3)}]}),
        ),
        pod("evicted", json!({"phase": "Failed", "reason": "Evicted"})),
        pod(
            "init",
            json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": {"running": {}}}]}),
        ),
        pod(
            "init-failed",
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": ended(1)}]}),
        ),
        pod(
            "init-pulling",
            json!({"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": ended(0)}, {"name": "s", "state": {"waiting": {"reason": "ErrImagePull"}}}]}),
        ),
        pod("pending", json!({"phase": "Pending"})),
        leaving,
        pod("new", json!({})),
    ];
    insta::assert_snapshot!(print(&pods, &objects, TableOptions::default()), @r"
    NAME           READY   STATUS              RESTARTS     AGE
    fine           2/2     Running             3 (5m ago)   60m
    crashing       1/2     CrashLoopBackOff    9            60m
    failed         0/2     ExitCode:3          0            60m
    evicted        0/2     Evicted             0            60m
    init           0/2     Init:0/2            0            60m
    init-failed    0/2     Init:ExitCode:1     0            60m
    init-pulling   0/2     Init:ErrImagePull   0            60m
    pending        0/2     Pending             0            60m
    leaving        0/2     Terminating         0            60m
    new            0/2     Unknown             0            60m
    ");
    let wide = TableOptions { wide: true, with_namespace: true, ..TableOptions::default() };
    insta::assert_snapshot!(print(&pods, &objects[..2], wide), @r"
    NAMESPACE   NAME       READY   STATUS             RESTARTS     AGE   IP         NODE     NOMINATED NODE   READINESS GATES
    web         fine       2/2     Running            3 (5m ago)   60m   10.0.0.7   node-1   <none>           <none>
    web         crashing   1/2     CrashLoopBackOff   9            60m   <none>     node-1   <none>           <none>
    ");
}

#[test]
fn workloads() {
    let meta =
        json!({"name": "web", "namespace": "x", "creationTimestamp": "2025-12-30T00:00:00Z"});
    let template = json!({"spec": {"containers": [{"name": "c", "image": "nginx:1"}]}});
    let selector = json!({"matchLabels": {"app": "web"}});
    let wide = TableOptions { wide: true, with_kind: true, ..TableOptions::default() };

    let deployment = json!({"metadata": meta, "spec": {"replicas": 3, "selector": selector, "template": template},
        "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2}});
    let deployments = resource("apps", "v1", "deployments", "Deployment", true);
    insta::assert_snapshot!(print(&deployments, std::slice::from_ref(&deployment), wide), @r"
    NAME                  READY   UP-TO-DATE   AVAILABLE   AGE   CONTAINERS   IMAGES    SELECTOR
    deployment.apps/web   2/3     3            2           3d    c            nginx:1   app=web
    ");
    let replica_sets = resource("apps", "v1", "replicasets", "ReplicaSet", true);
    insta::assert_snapshot!(print(&replica_sets, &[deployment], TableOptions::default()), @r"
    NAME   DESIRED   CURRENT   READY   AGE
    web    3         0         2       3d
    ");

    let job = json!({"metadata": meta, "spec": {"completions": 4}, "status": {"succeeded": 4,
        "conditions": [{"type": "Complete", "status": "True"}]}});
    insta::assert_snapshot!(print(&resource("batch", "v1", "jobs", "Job", true), &[job], TableOptions::default()), @r"
    NAME   STATUS     COMPLETIONS   AGE
    web    Complete   4/4           3d
    ");
}

#[test]
fn nodes_and_services() {
    let nodes = resource("", "v1", "nodes", "Node", false);
    let node = |name: &str, ready: &str, cordoned: bool| {
        json!({"metadata": {"name": name, "creationTimestamp": "2025-01-01T00:00:00Z",
                "labels": {"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/etcd": ""}},
            "spec": {"unschedulable": cordoned},
            "status": {"nodeInfo": {"kubeletVersion": "v1.36.3"}, "conditions": [{"type": "Ready", "status": ready}]}})
    };
    // The namespace column is left out: nodes have none.
    let options = TableOptions { with_namespace: true, ..TableOptions::default() };
    let objects = [node("a", "True", false), node("b", "False", true), node("c", "Unknown", false)];
    insta::assert_snapshot!(print(&nodes, &objects, options), @r"
    NAME   STATUS                        ROLES                AGE    VERSION
    a      Ready                         control-plane,etcd   366d   v1.36.3
    b      NotReady,SchedulingDisabled   control-plane,etcd   366d   v1.36.3
    c      NotReady                      control-plane,etcd   366d   v1.36.3
    ");

    let services = resource("", "v1", "services", "Service", true);
    let service = json!({"metadata": {"name": "web"}, "spec": {"type": "NodePort", "clusterIP": "10.0.0.1",
        "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}});
    let balanced = json!({"metadata": {"name": "lb"}, "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.2"}});
    insta::assert_snapshot!(print(&services, &[service, balanced], TableOptions::default()), @r"
    NAME   TYPE           CLUSTER-IP   EXTERNAL-IP   PORT(S)               AGE
    web    NodePort       10.0.0.1     <none>        80:30080/TCP,53/UDP   <unknown>
    lb     LoadBalancer   10.0.0.2     <pending>     <none>                <unknown>
    ");
}

#[test]
fn anything_else_has_name_and_age_or_the_columns_of_its_definition() {
    let widgets = resource("example.com", "v1", "widgets", "Widget", true);
    let widget = json!({"metadata": {"name": "w", "creationTimestamp": "2026-01-01T23:59:00Z"},
        "spec": {"size": 3}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    insta::assert_snapshot!(print(&widgets, std::slice::from_ref(&widget), TableOptions::default()), @r"
    NAME   AGE
    w      60s
    ");
    let headless = TableOptions { no_headers: true, with_kind: true, ..TableOptions::default() };
    insta::assert_snapshot!(print(&widgets, std::slice::from_ref(&widget), headless), @r"
    widget.example.com/w   60s
    ");

    let definition = json!({"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Detail", "type": "string", "jsonPath": ".spec.detail", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}});
    let printer = PrinterColumn::of_definition(&definition, "v1");
    let object: DynamicObject = serde_json::from_value(widget).unwrap();
    let text = table(&widgets, [object], &printer, TableOptions::default(), NOW.parse().unwrap());
    insta::assert_snapshot!(text, @r"
    NAME   SIZE   READY   AGE
    w      3      True    60s
    ");
    assert!(PrinterColumn::of_definition(&definition, "v2").is_empty());
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let events = resource("", "v1", "events", "Event", true);
    let event = json!({"metadata": {"name": "e"}, "message": "one\ntwo\u{1b}[31m red", "reason": "R",
        "involvedObject": {"kind": "Pod", "name": "p"}, "lastTimestamp": "2026-01-01T23:59:00Z", "type": "Normal"});
    let text = print(&events, &[event], TableOptions::default());
    assert_eq!(text.lines().count(), 2);
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn nodes_and_services_show_their_addresses_and_what_is_not_known() {
    let node = resource("", "v1", "nodes", "Node", false);
    let addresses = json!([{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "192.0.2.1"}]);
    let nodes = [
        json!({"metadata": {"name": "known"}, "status": {"addresses": addresses,
            "nodeInfo": {"osImage": "os", "kernelVersion": "6", "containerRuntimeVersion": "c://2", "kubeletVersion": "v1"}}}),
        json!({"metadata": {"name": "new"}}),
    ];
    let text = print(&node, &nodes, TableOptions { wide: true, ..TableOptions::default() });
    let cells = |line: usize| {
        text.lines()
            .nth(line)
            .unwrap()
            .split("   ")
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .skip(1)
            .collect::<Vec<_>>()
    };
    assert!(
        cells(0).ends_with(&[
            "INTERNAL-IP",
            "EXTERNAL-IP",
            "OS-IMAGE",
            "KERNEL-VERSION",
            "CONTAINER-RUNTIME"
        ]),
        "{text}"
    );
    assert!(cells(1).ends_with(&["10.0.0.1", "192.0.2.1", "os", "6", "c://2"]), "{text}");
    assert!(
        cells(2).ends_with(&["<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]),
        "{text}"
    );

    let service = resource("", "v1", "services", "Service", true);
    let balanced = |external: Value, ingress: Value| {
        json!({"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.9", "externalIPs": external},
            "status": {"loadBalancer": {"ingress": ingress}}})
    };
    for (external, ingress, expected) in [
        (json!([]), json!([]), "<pending>"),
        (json!(["192.0.2.4"]), json!([]), "192.0.2.4"),
        (json!(["192.0.2.4", "192.0.2.5"]), json!([{"ip": "192.0.2.5"}]), "192.0.2.5,192.0.2.4"),
    ] {
        let text = print(&service, &[balanced(external, ingress)], TableOptions::default());
        assert_eq!(
            text.lines().nth(1).unwrap().split_whitespace().nth(3),
            Some(expected),
            "{text}"
        );
    }
}

#[test]
fn wide_pods_tell_of_their_readiness_gates() {
    let pods = resource("", "v1", "pods", "Pod", true);
    let mut gated = pod(
        "gated",
        json!({"nominatedNodeName": "node-2", "conditions": [{"type": "a", "status": "True"}]}),
    );
    gated["spec"]["readinessGates"] = json!([{"conditionType": "a"}, {"conditionType": "b"}]);
    let text = print(&pods, &[gated], TableOptions { wide: true, ..TableOptions::default() });
    assert!(text.lines().nth(1).unwrap().ends_with("   node-1   node-2           1/2"), "{text}");
}
