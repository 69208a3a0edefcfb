//! Admission.

use std::fmt::Write;

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::view::View;

pub(super) static KINDS: [BuiltIn; 6] = [
    BuiltIn::new(
        GROUP,
        "MutatingWebhookConfiguration",
        &definitions::MUTATING_WEBHOOK_CONFIGURATION,
        webhooks,
    ),
    BuiltIn::new(
        GROUP,
        "ValidatingWebhookConfiguration",
        &definitions::VALIDATING_WEBHOOK_CONFIGURATION,
        webhooks,
    ),
    BuiltIn::new(
        GROUP,
        "ValidatingAdmissionPolicy",
        &definitions::VALIDATING_ADMISSION_POLICY,
        |it| policy(it, "spec.validations"),
    ),
    BuiltIn::new(
        GROUP,
        "ValidatingAdmissionPolicyBinding",
        &definitions::VALIDATING_ADMISSION_POLICY_BINDING,
        binding,
    ),
    BuiltIn::new(GROUP, "MutatingAdmissionPolicy", &definitions::MUTATING_ADMISSION_POLICY, |it| {
        policy(it, "spec.mutations")
    }),
    BuiltIn::new(
        GROUP,
        "MutatingAdmissionPolicyBinding",
        &definitions::MUTATING_ADMISSION_POLICY_BINDING,
        binding,
    ),
];

const GROUP: &str = "admissionregistration.k8s.io";

fn webhooks(it: View<'_>) -> Vec<Value> {
    cells![it.name(), it.count("webhooks"), it.age()]
}

fn policy(it: View<'_>, rules: &str) -> Vec<Value> {
    let parameters = it.at("spec.paramKind").map_or_else(
        || "<unset>".to_owned(),
        |kind| format!("{}/{}", kind.text("apiVersion"), kind.text("kind")),
    );
    cells![it.name(), it.count(rules), parameters, it.age()]
}

fn binding(it: View<'_>) -> Vec<Value> {
    let parameters = it.at("spec.paramRef").and_then(|reference| {
        match (reference.text("name"), reference.text("namespace")) {
            ("", _) => reference.at("selector").map(selector),
            // Whether the parameters have namespaces is not known here.
            (name, "") => Some(format!("*/{name}")),
            (name, namespace) => Some(format!("{namespace}/{name}")),
        }
    });
    cells![
        it.name(),
        it.text("spec.policyName"),
        parameters.unwrap_or_else(|| "<unset>".to_owned()),
        it.age(),
    ]
}

/// A selector as Go's types print themselves, which is what kube-apiserver shows.
fn selector(it: View<'_>) -> String {
    let mut labels = String::new();
    let mut pairs: Vec<(&String, &Value)> = it.map("matchLabels").into_iter().flatten().collect();
    pairs.sort_unstable_by_key(|(key, _)| *key);
    for (key, value) in pairs {
        let _ = write!(labels, "{key}: {},", value.as_str().unwrap_or_default());
    }
    let mut expressions = String::new();
    for it in it.list("matchExpressions") {
        let values = it.texts("values").collect::<Vec<_>>().join(" ");
        let _ = write!(
            expressions,
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
            it.text("key"),
            it.text("operator"),
        );
    }
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
