use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn text(old: &Value, new: &Value) -> String {
    rendered(&between(old, new, &DiffOptions::default()), &TextStyle::default())
}

fn rendered(diff: &Diff, style: &TextStyle) -> String {
    let mut text = String::new();
    diff.write_text(&mut text, style).unwrap();
    text
}

/// Generates JSON with field names that the comparison treats specially. It uses few different
/// values, so that many are equal.
fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4).prop_map(Value::from),
        Just(json!(0.5)),
        "[ab]{0,2}".prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        Just(Value::from("x".repeat(300))),
    ];
    scalar.prop_recursive(6, 60, 5, |inner| {
        let name = prop_oneof![
            prop::sample::select(vec![
                "kind",
                "metadata",
                "annotations",
                "status",
                "spec",
                "data",
                "conditions",
                "type",
                "name",
                "key",
                "ports",
                "port",
                "protocol",
                "args",
                "uid",
                "generation",
                "resourceVersion",
                "finalizers",
                "kubectl.kubernetes.io/last-applied-configuration",
            ])
            .prop_map(str::to_owned),
            "[ab]{0,2}",
            "\\PC{0,3}",
        ];
        let members = prop::collection::vec((name, inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::Array),
            members.prop_map(|it| Value::Object(it.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Generates a state, and a second one by changing parts of the first.
fn two_states() -> impl Strategy<Value = (Value, Value)> {
    (any_value(), any::<u64>(), any_value()).prop_map(|(old, seed, other)| {
        let new = mutated(&old, &mut fastrand::Rng::with_seed(seed), &other);
        (old, new)
    })
}

fn mutated(value: &Value, random: &mut fastrand::Rng, other: &Value) -> Value {
    match value {
        _ if random.u8(..) < 20 => other.clone(),
        Value::Array(list) => {
            let mut list: Vec<Value> = list.iter().map(|it| mutated(it, random, other)).collect();
            match random.u8(..6) {
                0 => random.shuffle(&mut list),
                1 => drop(list.pop()),
                2 => list.insert(random.usize(..=list.len()), other.clone()),
                _ => {}
            }
            Value::Array(list)
        }
        Value::Object(members) => {
            let mut members: Map<String, Value> = members
                .iter()
                .filter_map(|(name, value)| {
                    let stays = random.u8(..8) > 0;
                    stays.then(|| (name.clone(), mutated(value, random, other)))
                })
                .collect();
            if random.u8(..8) == 0 {
                members.insert("name".to_owned(), other.clone());
            }
            Value::Object(members)
        }
        scalar => scalar.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn applied_to_the_old_state_an_exact_diff_makes_the_new_one((old, new) in two_states()) {
        let diff = between(&old, &new, &DiffOptions::exact());
        let mut state = old.clone();
        diff.apply(&mut state).unwrap();
        prop_assert_eq!(&state, &new);
        prop_assert_eq!(diff.is_empty(), old == new);
    }

    #[test]
    fn equal_states_have_no_diff(state in any_value()) {
        for options in [DiffOptions::default(), DiffOptions::exact()] {
            prop_assert!(between(&state, &state.clone(), &options).is_empty());
        }
    }

    #[test]
    fn output_is_bounded_and_has_no_controls((old, new) in two_states(), width in 0usize..60) {
        let limits = Limits { changes: 3, bytes: 10 };
        let diff = between(&old, &new, &DiffOptions { limits, ..DiffOptions::default() });
        prop_assert!(diff.changes.len() <= 3);
        prop_assert!(old != new || diff.is_empty());
        let style = TextStyle { width: Some(width), ..TextStyle::default() };
        let text = rendered(&diff, &style);
        prop_assert!(text.lines().count() <= 3 * 3 + 1);
        prop_assert!(text.chars().all(|it| it == '\n' || !it.is_control()));
        prop_assert!(serde_json::to_string(&diff).unwrap().len() < 3 * 2000);
    }

    #[test]
    fn values_of_secrets_are_in_no_output(
        (old, new) in two_states(),
        secret in "[a-z]{12}",
        other in "[a-z]{12}",
        noise in prop::sample::select(vec![Noise::Folded, Noise::Shown]),
    ) {
        // Adds the secret in every place where a Secret may have a copy of it.
        let state = |value: &Value, secret: &str| {
            let mut value = match value {
                Value::Object(members) => Value::Object(members.clone()),
                _ => json!({}),
            };
            value["kind"] = json!("Secret");
            value["data"] = json!({"password": secret});
            value["stringData"] = json!({"password": [secret]});
            let copy = json!({"data": {"password": secret}}).to_string();
            value["metadata"] = json!({"annotations":
                {"kubectl.kubernetes.io/last-applied-configuration": copy, "original": copy}});
            value
        };
        let with = state(&old, &secret);
        let states = [with.clone(), state(&new, &other), json!({"kind": "Secret"}), old,
            json!({"kind": "Secret", "metadata": 1, "data": "x"}), Value::Null];
        let options = DiffOptions { noise, ..DiffOptions::default() };
        for state in &states {
            for (old, new) in [(&with, state), (state, &with)] {
                let diff = between(old, new, &options);
                let all = serde_json::to_string(&diff).unwrap()
                    + &rendered(&diff, &TextStyle::default()) + &format!("{diff:?}");
                prop_assert!(!all.contains(&secret), "{}", all);
            }
        }
    }
}

#[test]
fn elements_of_lists_are_named_by_their_keys() {
    let old = json!({"kind": "Pod", "spec": {
        "containers": [
            {"name": "app", "image": "a:1", "ports": [
                {"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
             "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
             "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}], "args": ["-a", "-b"]},
            {"name": "log", "image": "l:1"}],
        "tolerations": [{"key": "b"}, {"key": "a", "tolerationSeconds": 30}],
    }, "metadata": {"finalizers": ["a/x", "b/y"], "ownerReferences": [{"uid": "u-1", "controller": true}]}});
    let new = json!({"kind": "Pod", "spec": {
        "containers": [
            {"name": "log", "image": "l:2"},
            {"name": "app", "image": "a:2", "ports": [
                {"containerPort": 80, "protocol": "TCP"},
                {"containerPort": 80, "protocol": "UDP", "hostPort": 1}],
             "env": [{"name": "B", "value": "2"}, {"name": "C"}],
             "volumeMounts": [{"name": "tmp", "mountPath": "/tmp", "readOnly": true}],
             "args": ["-a", "-c", "-b"]}],
        "tolerations": [{"key": "b"}, {"key": "a", "tolerationSeconds": 60}],
    }, "metadata": {"finalizers": ["b/y", "c/z"], "ownerReferences": [{"uid": "u-1", "controller": false}],
        "labels": {"app.kubernetes.io/name": "x", "tier": "y"}}});
    insta::assert_snapshot!(text(&old, &new), @r#"
    - metadata.finalizers[]: "a/x"
    + metadata.finalizers[]: "c/z"
    ~ metadata.ownerReferences[u-1].controller: true -> false
    + metadata.labels: {"app.kubernetes.io/name":"x","tier":"y"}
    + spec.containers[app].args[1]: "-c"
    - spec.containers[app].env[A]: {"name":"A","value":"1"}
    ~ spec.containers[app].env[B].value: "1" -> "2"
    + spec.containers[app].env[C]: {"name":"C"}
    ~ spec.containers[app].image: "a:1" -> "a:2"
    + spec.containers[app].ports[80/UDP].hostPort: 1
    + spec.containers[app].volumeMounts[/tmp].readOnly: true
    ~ spec.containers[log].image: "l:1" -> "l:2"
    ~ spec.containers: reordered
    ~ spec.tolerations[a].tolerationSeconds: 30 -> 60
    "#);
}

/// A snapshot of typical changes on a terminal of 100 columns.
#[test]
fn typical_changes() {
    let mut all = String::new();
    for (name, old, new) in typical() {
        let diff = between(&old, &new, &DiffOptions::default());
        let style = TextStyle { width: Some(100), indent: 2, ..TextStyle::default() };
        all += &format!("{name} ({} folded)\n{}", diff.folded, rendered(&diff, &style));
    }
    insta::assert_snapshot!(all);
}

fn typical() -> Vec<(&'static str, Value, Value)> {
    let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
    let pod = |version: &str, status: Value| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-0", "resourceVersion": version, "managedFields": [version]},
            "status": status})
    };
    let running = json!({"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}],
        "conditions": [
            {"type": "Ready", "status": "True", "lastProbeTime": null,
             "lastTransitionTime": "2026-01-01T00:00:09Z"},
            {"type": "PodScheduled", "status": "True", "lastProbeTime": null}],
        "containerStatuses": [{"name": "app", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:08Z"}}}]});
    let pending = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "True", "lastProbeTime": null},
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady",
             "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:01Z"}],
        "containerStatuses": [{"name": "app", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ContainerCreating"}}}]});
    let deployment = |generation: u8, image: &str, replicas: u8| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web",
            "generation": generation, "resourceVersion": generation.to_string(),
            "annotations": {last_applied: image}},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [
                {"name": "app", "image": image}]}}}})
    };
    let node = |heartbeat: &str, ready: &str, unschedulable: bool| {
        let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
            "spec": {}, "status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"},
                    {"type": "InternalIP", "address": "fd00::1"}],
                "conditions": [
                    {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": heartbeat},
                    {"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}]}});
        if unschedulable {
            node["spec"] = json!({"unschedulable": true, "taints": [
                {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]});
        }
        node
    };
    let lease = |time: &str, holder: &str| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "leader", "resourceVersion": time},
            "spec": {"holderIdentity": holder, "renewTime": time}})
    };
    let secret = |password: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "login", "annotations": {last_applied: password, "note": "short"}},
            "data": {"password": password}})
    };
    let custom = |versions: Value, generation: u8| {
        json!({"apiVersion": "example.com/v1", "kind": "Shop",
            "metadata": {"name": "s", "generation": generation, "finalizers": ["example.com/clean"]},
            "spec": {"mirrors": versions, "domains": ["a.example", "b.example"]}})
    };
    let mut ending = custom(json!([{"id": "x", "weight": 1}]), 2);
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    vec![
        ("a Pod starts", pod("1", pending), pod("2", running)),
        ("a rollout", deployment(1, "shop:1", 2), deployment(2, "shop:2", 3)),
        ("nothing but a generation", deployment(1, "shop:1", 2), {
            let mut next = deployment(1, "shop:1", 2);
            next["metadata"]["generation"] = json!(2);
            next
        }),
        ("a heartbeat", node("1", "True", false), node("2", "True", false)),
        ("a cordoned Node", node("1", "True", false), node("2", "Unknown", true)),
        ("a Lease renewed", lease("1", "a"), lease("2", "a")),
        ("a Lease taken", lease("1", "a"), lease("2", "b")),
        ("a Secret", secret("aHVudGVyMg=="), secret("Y29ycmVjdCBob3JzZQ==")),
        (
            "a custom resource",
            custom(json!([{"id": "x", "weight": 1}, {"id": "y", "weight": 1}]), 1),
            custom(json!([{"id": "y", "weight": 2}, {"id": "x", "weight": 1}]), 2),
        ),
        ("a deletion", custom(json!([{"id": "x", "weight": 1}]), 1), ending),
    ]
}

#[test]
fn what_is_long_is_cut_around_the_first_difference() {
    let map = |word: &str| {
        let text = format!("{}{word}{}", "é".repeat(300), "y".repeat(300));
        json!({"kind": "ConfigMap", "data": {"text": text}})
    };
    let limits = Limits { changes: 1, bytes: 40 };
    let options = DiffOptions { limits, ..DiffOptions::default() };
    let diff = between(&map("old"), &map("new"), &options);
    let part = |word: &str| Shown::Part {
        text: format!("{}{word}{}", "é".repeat(12), "y".repeat(13)),
        from: 576,
        bytes: 903,
    };
    let Change::Changed { path, old, new } = &diff.changes[0] else { panic!("{diff:?}") };
    assert_eq!((path.to_string().as_str(), old, new), ("data.text", &part("old"), &part("new")));

    let many = json!({"kind": "ConfigMap", "data": {"a": "1", "b": {"c": "d".repeat(100)}}});
    let diff = between(&json!({"kind": "ConfigMap"}), &many, &options);
    let Change::Added { new, .. } = &diff.changes[0] else { panic!("{diff:?}") };
    let text = many["data"].to_string();
    let start = text[..40].to_owned();
    assert_eq!(new, &Shown::Part { text: start, from: 0, bytes: text.len() });
    let diff = between(&many, &json!({"kind": "ConfigMap", "b": 1, "c": 2}), &options);
    assert_eq!((diff.changes.len(), diff.more), (1, 2));
}

#[test]
fn names_cannot_be_misread() {
    let name = |name: &str| Segment::Name(name.to_owned());
    let key = |value: Value| Segment::Key(vec![("name", value)]);
    let path = |segments: &[Segment]| segments.iter().cloned().collect::<Path>().to_string();
    assert_eq!(path(&[]), ".");
    assert_eq!(path(&[name("a"), name("b.c/d"), name("")]), r#"a["b.c/d"][""]"#);
    assert_eq!(path(&[name("a"), key(json!("b")), Segment::Index(0)]), "a[b][0]");
    assert_eq!(path(&[name("a"), key(json!("0"))]), r#"a[name="0"]"#);
    assert_eq!(path(&[name("a"), key(json!(8080))]), "a[name=8080]");
    assert_eq!(path(&[name("a"), key(json!("b]\u{1b}"))]), r#"a[name="b]\u001b"]"#);
    assert_eq!(path(&[name("a\u{202e}"), Segment::Element]), "[\"a\\u202e\"][]");
    assert_eq!(path(&[name(&"x".repeat(9999))]), "x".repeat(500) + "…");
}
