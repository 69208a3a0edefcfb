//! Priorities, disruptions and scheduling.

use std::cmp::Ordering;

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::view::View;

pub(super) static KINDS: [BuiltIn; 6] = [
    BuiltIn::new(
        "policy",
        "PodDisruptionBudget",
        &definitions::POD_DISRUPTION_BUDGET,
        disruption_budget,
    ),
    BuiltIn::new(SCHEDULING, "PriorityClass", &definitions::PRIORITY_CLASS, priority_class),
    BuiltIn::new(SCHEDULING, "Workload", &definitions::WORKLOAD, |it| cells![it.name(), it.age()]),
    BuiltIn::new(SCHEDULING, "PodGroup", &definitions::POD_GROUP, pod_group),
    BuiltIn {
        order: Some(by_precedence),
        ..BuiltIn::new(FLOWS, "FlowSchema", &definitions::FLOW_SCHEMA, flow_schema)
    },
    BuiltIn::new(
        FLOWS,
        "PriorityLevelConfiguration",
        &definitions::PRIORITY_LEVEL_CONFIGURATION,
        priority_level,
    ),
];

const SCHEDULING: &str = "scheduling.k8s.io";
const FLOWS: &str = "flowcontrol.apiserver.k8s.io";

fn disruption_budget(it: View<'_>) -> Vec<Value> {
    let limit = |path| it.written(path).unwrap_or_else(|| "N/A".to_owned());
    cells![
        it.name(),
        limit("spec.minAvailable"),
        limit("spec.maxUnavailable"),
        it.integer("status.disruptionsAllowed"),
        it.age(),
    ]
}

fn priority_class(it: View<'_>) -> Vec<Value> {
    cells![
        it.name(),
        it.integer("value"),
        it.boolean("globalDefault"),
        it.age(),
        it.present_or("preemptionPolicy", "PreemptLowerPriority"),
    ]
}

fn pod_group(it: View<'_>) -> Vec<Value> {
    let status =
        match (it.last_condition("DisruptionTarget"), it.last_condition("PodGroupScheduled")) {
            (Some(disruption), _) => disruption.text("reason"),
            (None, Some(scheduled)) if scheduled.text("status") == "True" => "Scheduled",
            (None, Some(_)) => "Unschedulable",
            (None, None) => "Pending",
        };
    let workload = it.at("spec.podGroupTemplateRef").map(|it| it.text("workload.workloadName"));
    cells![
        it.name(),
        if it.has("spec.schedulingPolicy.gang") { "Gang" } else { "Basic" },
        workload.unwrap_or("<none>"),
        status,
        it.age(),
    ]
}

fn flow_schema(it: View<'_>) -> Vec<Value> {
    let method = it.at("spec.distinguisherMethod").map(|it| it.text("type"));
    cells![
        it.name(),
        it.text("spec.priorityLevelConfiguration.name"),
        precedence(it.value()),
        method.unwrap_or("<none>"),
        it.age(),
        it.condition("Dangling").map_or("?", |it| it.text("status")),
    ]
}

fn precedence(schema: &Value) -> i64 {
    schema["spec"]["matchingPrecedence"].as_i64().filter(|it| *it != 0).unwrap_or(1000)
}

fn by_precedence(one: &Value, other: &Value) -> Ordering {
    let name = |it: &Value| it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    precedence(one).cmp(&precedence(other)).then_with(|| name(one).cmp(&name(other)))
}

fn priority_level(it: View<'_>) -> Vec<Value> {
    let none = || Value::from("<none>");
    let shares = it.at("spec.limited").map_or_else(none, |it| {
        // What the first versions called it.
        let first = it.integer_or("assuredConcurrencyShares", 30);
        Value::from(it.integer_or("nominalConcurrencyShares", first))
    });
    let queuing = it.at("spec.limited.limitResponse.queuing");
    let of_queuing = |path, otherwise| {
        queuing.map_or_else(none, |it| Value::from(it.integer_or(path, otherwise)))
    };
    cells![
        it.name(),
        it.text("spec.type"),
        shares,
        of_queuing("queues", 64),
        of_queuing("handSize", 8),
        of_queuing("queueLengthLimit", 50),
        it.age(),
    ]
}
