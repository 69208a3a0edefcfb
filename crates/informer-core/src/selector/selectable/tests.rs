use std::borrow::Cow;

use serde_json::json;

use super::*;
use crate::selector::field_value;

fn value(fields: &SelectableFields, label: &str, object: &Value) -> String {
    fields.value(label, |path| Some(field_value(object, path))).into_owned()
}

fn refusal(fields: &SelectableFields, selector: &str) -> String {
    fields.check(&selector.parse().unwrap()).unwrap_err().to_string()
}

#[test]
fn values_are_those_that_the_server_compares() {
    let event = |fields: Value| (SelectableFields::of("", "v1", "Event", true), fields);
    let pod = |fields: Value| (SelectableFields::of("", "v1", "Pod", true), fields);
    for ((fields, object), label, expected) in [
        (pod(json!({})), "spec.hostNetwork", "false"),
        (pod(json!({"spec": {"hostNetwork": true}})), "spec.hostNetwork", "true"),
        (pod(json!({"spec": {}})), "spec.nodeName", ""),
        (pod(json!({"spec": {"nodeName": "n"}})), "spec.host", "n"),
        (
            pod(json!({"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}})),
            "status.podIPs",
            "",
        ),
        (
            event(json!({"source": {"component": "kubelet"}, "reportingComponent": "x"})),
            "source",
            "kubelet",
        ),
        (event(json!({"source": {}, "reportingComponent": "x"})), "source", "x"),
        (event(json!({"source": {"component": ""}, "reportingComponent": "x"})), "source", "x"),
        (event(json!({})), "source", ""),
        (
            (
                SelectableFields::of("", "v1", "Node", false),
                json!({"spec": {"unschedulable": true}}),
            ),
            "spec.unschedulable",
            "true",
        ),
        ((SelectableFields::of("", "v1", "Node", false), json!({})), "spec.unschedulable", "false"),
        ((SelectableFields::of("batch", "v1", "Job", true), json!({})), "status.successful", "0"),
        (
            (SelectableFields::of("batch", "v1", "Job", true), json!({"status": {"succeeded": 2}})),
            "status.successful",
            "2",
        ),
        (
            (SelectableFields::of("", "v1", "ReplicationController", true), json!({})),
            "status.replicas",
            "0",
        ),
        // What the server does not select by is read as it stands there.
        (
            (
                SelectableFields::of("apps", "v1", "Deployment", true),
                json!({"spec": {"replicas": 3}}),
            ),
            "spec.replicas",
            "3",
        ),
    ] {
        assert_eq!(value(&fields, label, &object), expected, "{label} of {object}");
    }
}

#[test]
fn what_is_not_selectable_is_refused_in_the_words_of_the_server() {
    let of = |group, kind, namespaced| SelectableFields::of(group, "v1", kind, namespaced);
    for (fields, selector, expected) in [
        (of("", "Pod", true), "spec.nodename=a", "field label not supported: spec.nodename"),
        (of("", "Pod", true), "a.b=1,spec.nodeName=n,spec.x=1", "field label not supported: a.b"),
        (
            of("", "Node", false),
            "metadata.namespace=a",
            "field label not supported: metadata.namespace",
        ),
        (of("events.k8s.io", "Event", true), "source=a", "field label not supported: source"),
        (
            of("batch", "Job", true),
            "status.succeeded=1",
            r#"field label "status.succeeded" not supported for Job"#,
        ),
        (
            of("resource.k8s.io", "ResourceSlice", false),
            "metadata.namespace=a",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: metadata.namespace",
        ),
        // In the set of what is compared, and not accepted.
        (
            of("apps", "ReplicaSet", true),
            "status.replicas=1",
            r#""status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        ),
        (
            of("", "ConfigMap", true),
            "data.a=1",
            r#""data.a" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        ),
        (of("example.com", "Widget", true), "spec.size=1", "field label not supported: spec.size"),
        (
            of("example.com", "Cluster", false),
            "metadata.namespace=a",
            "field label not supported: metadata.namespace",
        ),
    ] {
        assert_eq!(refusal(&fields, selector), expected);
    }
    let error = of("", "Pod", true).check(&"b=1".parse().unwrap()).unwrap_err();
    assert_eq!(error.label(), "b");
}

#[test]
fn every_field_of_the_table_is_accepted_and_metadata_where_the_server_takes_it() {
    for rules in &KINDS {
        assert!(BUILT_IN_GROUPS.contains(&rules.group), "{}", rules.group);
        let fields = SelectableFields::of(rules.group, "v1", rules.kind, rules.by_namespace);
        let labels: Vec<_> = fields.labels().collect();
        assert_eq!(
            labels.len(),
            rules.fields.len() + 1 + usize::from(rules.by_namespace),
            "{labels:?}"
        );
        for label in labels {
            let selector = FieldSelector::default().with_equal(label, "x").unwrap();
            assert_eq!(fields.check(&selector), Ok(()), "{label} of {}", rules.kind);
        }
    }
    let maps = SelectableFields::of("", "v1", "ConfigMap", true);
    assert!(maps.labels().eq(["metadata.name", "metadata.namespace"]));
}

#[test]
fn custom_resources_are_selected_by_what_their_definition_declares() {
    let definition = json!({"spec": {"scope": "Namespaced", "versions": [
        {"name": "v1", "selectableFields": [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]},
        {"name": "v2"},
    ]}});
    let fields = SelectableFields::of_definition(&definition, "v1");
    assert!(fields.labels().eq(["metadata.name", "metadata.namespace", "spec.color", "spec.size"]));
    assert_eq!(value(&fields, "spec.size", &json!({"spec": {"size": 3}})), "3");
    assert_eq!(value(&fields, "spec.color", &json!({})), "");
    assert_eq!(refusal(&fields, "spec.x=1"), "field label not supported: spec.x");
    let older = SelectableFields::of_definition(&definition, "v2");
    assert_eq!(refusal(&older, "spec.color=red"), "field label not supported: spec.color");
    let cluster = SelectableFields::of_definition(&json!({"spec": {"scope": "Cluster"}}), "v1");
    assert!(cluster.labels().eq(["metadata.name"]));
    assert_eq!(fields.value("spec.color", |_| Some(Cow::Borrowed("red"))), "red");
}
