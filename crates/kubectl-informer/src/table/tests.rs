//! How tables look. What is in them is tested in `k8s-serve`.

use serde_json::json;

use super::*;

const NOW: &str = "2026-01-02T00:00:00Z";

fn resource(group: &str, kind: &str, plural: &str, namespaced: bool) -> Resource {
    Resource {
        group: group.into(),
        version: "v1".into(),
        plural: plural.into(),
        kind: kind.into(),
        namespaced,
    }
}

fn print(resource: &Resource, objects: &[Value], options: TableOptions) -> String {
    let columns = Columns::of_kind(&resource.group, &resource.kind);
    table(resource, objects, &columns, options, NOW.parse().unwrap())
}

fn deployments() -> (Resource, [Value; 2]) {
    let deployment = |name: &str, image: &str| {
        json!({
            "metadata": {"name": name, "namespace": "x", "creationTimestamp": "2025-12-30T00:00:00Z"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": name}},
                "template": {"spec": {"containers": [{"name": "c", "image": image}]}},
            },
            "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2},
        })
    };
    let resource = resource("apps", "Deployment", "deployments", true);
    (resource, [deployment("web", "nginx:1"), deployment("a-long-name", "")])
}

#[test]
fn columns_are_as_wide_as_their_widest_cell() {
    let (resource, objects) = deployments();
    insta::assert_snapshot!(print(&resource, &objects, TableOptions::default()), @r"
    NAME          READY   UP-TO-DATE   AVAILABLE   AGE
    web           2/3     3            2           3d
    a-long-name   2/3     3            2           3d
    ");
}

#[test]
fn wide_tables_have_more_columns_and_others_have_kinds_and_namespaces() {
    let (resource, objects) = deployments();
    let options = TableOptions { wide: true, with_kind: true, ..TableOptions::default() };
    insta::assert_snapshot!(print(&resource, &objects, options), @r"
    NAME                          READY   UP-TO-DATE   AVAILABLE   AGE   CONTAINERS   IMAGES    SELECTOR
    deployment.apps/web           2/3     3            2           3d    c            nginx:1   app=web
    deployment.apps/a-long-name   2/3     3            2           3d    c                      app=a-long-name
    ");
    let options =
        TableOptions { with_namespace: true, no_headers: true, ..TableOptions::default() };
    insta::assert_snapshot!(print(&resource, &objects[..1], options), @"x     web   2/3   3     2     3d");
}

#[test]
fn cluster_scoped_resources_have_no_namespace_column() {
    let options = TableOptions { with_namespace: true, ..TableOptions::default() };
    let namespace = json!({"metadata": {"name": "web"}});
    let text = print(&resource("", "Namespace", "namespaces", false), &[namespace], options);
    insta::assert_snapshot!(text, @r"
    NAME   STATUS   AGE
    web    Active   <unknown>
    ");
}

#[test]
fn flow_schemas_come_by_precedence() {
    let schema = |name: &str, precedence: i64| {
        json!({
            "metadata": {"name": name},
            "spec": {"matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": "p"}},
        })
    };
    let objects = [schema("b", 2), schema("c", 1), schema("a", 2)];
    let flows = resource("flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas", false);
    let text =
        print(&flows, &objects, TableOptions { no_headers: true, ..TableOptions::default() });
    let names: Vec<&str> = text.lines().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(names, ["c", "a", "b"]);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let events = resource("", "Event", "events", true);
    let event = json!({"metadata": {"name": "e"}, "reason": "\u{1b}[31mred\ttab",
        "message": "one\ntwo", "type": "Normal"});
    let text = print(&events, &[event], TableOptions::default());
    let line = text.lines().nth(1).unwrap();
    assert!(line.contains("^[[31mred tab") && line.ends_with("one..."), "{line}");
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn cells_beyond_the_columns_are_left_out() {
    let address = json!({"metadata": {"name": "10.0.0.1"}});
    let addresses = resource("networking.k8s.io", "IPAddress", "ipaddresses", false);
    insta::assert_snapshot!(print(&addresses, &[address], TableOptions::default()), @r"
    NAME       PARENTREF
    10.0.0.1   <none>
    ");
}

#[test]
fn narrow_columns_have_six_characters() {
    let column = |name: &str| json!({"name": name, "type": "string", "jsonPath": ".spec.n"});
    let definition = json!({"spec": {"versions": [
        {"name": "v1", "additionalPrinterColumns": [column("N"), column("M")]},
    ]}});
    let columns = Columns::of_definition(&definition, "v1").unwrap();
    let object = json!({"metadata": {"name": "a"}, "spec": {"n": 1}});
    let widgets = resource("example.com", "Widget", "widgets", true);
    let text = table(&widgets, [object], &columns, TableOptions::default(), NOW.parse().unwrap());
    assert_eq!(text, "NAME   N     M\na      1     1\n");
}
