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

/// JSON with the names that mean something, and few values, so that much is equal.
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

/// A state and another that has much in common with it.
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
        // Wherever an object may stand that has it.
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
        let states = [with.clone(), state(&new, &other), json!({"kind": "Secret"}), old.clone(),
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
