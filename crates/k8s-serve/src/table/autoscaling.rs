//! Autoscalers.

use k8s_protobuf::hides_levels;
use serde_json::{Value, json};

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::view::View;

pub(super) static KINDS: [BuiltIn; 2] = [
    BuiltIn::new(
        "autoscaling",
        "HorizontalPodAutoscaler",
        &definitions::HORIZONTAL_POD_AUTOSCALER,
        autoscaler,
    ),
    BuiltIn::new("autoscaling", "Scale", &definitions::SCALE, |it| {
        cells![it.name(), it.integer("spec.replicas"), it.integer("status.replicas"), it.age()]
    }),
];

fn autoscaler(it: View<'_>) -> Vec<Value> {
    let target = it.at("spec.scaleTargetRef");
    let of_target = |path| target.map_or("", |it| it.text(path));
    cells![
        it.name(),
        format!("{}/{}", of_target("kind"), of_target("name")),
        metrics(it),
        it.integer_or("spec.minReplicas", 1).to_string(),
        it.integer("spec.maxReplicas"),
        it.integer("status.currentReplicas"),
        it.age(),
    ]
}

/// What is to be reached, and what is: `cpu: 30%/80%`, of up to two metrics.
fn metrics(it: View<'_>) -> String {
    let (specs, statuses) = match it.has("spec.metrics") {
        true => (values(it, "spec.metrics"), values(it, "status.currentMetrics")),
        false => of_version_1(it),
    };
    let view = |value| View::new(value, it.now());
    let texts: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(position, spec)| metric(view(spec), statuses.get(position).map(view)))
        .collect();
    match texts.as_slice() {
        [first, second, more @ ..] if !more.is_empty() => {
            format!("{first}, {second} + {} more...", more.len())
        }
        few => few.join(", "),
    }
}

fn values(it: View<'_>, path: &str) -> Vec<Value> {
    it.list(path).map(|it| it.value().clone()).collect()
}

fn metric(spec: View<'_>, status: Option<View<'_>>) -> String {
    let source = match spec.text("type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    // Absent quantities are written as Go writes them.
    let written = |it: View<'_>, path: &str| it.written(path).unwrap_or_else(|| "<nil>".to_owned());
    let unknown = || "<unknown>".to_owned();
    let target = |name: &str| format!("{source}.target.{name}");
    let status = status.filter(|it| it.has(source));
    let current =
        |name: &str| status.and_then(|it| it.written(&format!("{source}.current.{name}")));
    let has_average = spec.has(&target("averageValue"));
    let average = written(spec, &target("averageValue"));
    match source {
        "pods" => {
            let current =
                status.map_or_else(unknown, |it| written(it, "pods.current.averageValue"));
            format!("{current}/{average}")
        }
        "external" | "object" if has_average => {
            format!("{}/{average} (avg)", current("averageValue").unwrap_or_else(unknown))
        }
        "external" | "object" => {
            let path = format!("{source}.current.value");
            let current = status.map_or_else(unknown, |it| written(it, &path));
            format!("{current}/{}", written(spec, &target("value")))
        }
        _ => {
            let name = spec.text(&format!("{source}.name"));
            if has_average {
                let path = format!("{source}.current.averageValue");
                let current = status.map_or_else(unknown, |it| written(it, &path));
                return format!("{name}: {current}/{average}");
            }
            let percent = |it: String| format!("{it}%");
            let current = current("averageUtilization").map_or_else(unknown, percent);
            let target = spec.written(&target("averageUtilization"));
            format!("{name}: {current}/{}", target.map_or_else(|| "<auto>".to_owned(), percent))
        }
    }
}

/// The metrics and their states of an object of version 1, or of one without metrics. Version 1 has
/// a field for one metric, the utilization of CPU, and the others in annotations.
fn of_version_1(it: View<'_>) -> (Vec<Value>, Vec<Value>) {
    let others = |name| {
        let text = it.annotation(name).filter(|it| !hides_levels(it.as_bytes()))?;
        serde_json::from_str::<Vec<Value>>(text).ok()
    };
    let mut specs: Vec<Value> = others("autoscaling.alpha.kubernetes.io/metrics")
        .unwrap_or_default()
        .iter()
        .map(|metric| of_annotation(View::new(metric, it.now()), "target"))
        .collect();
    let utilization = it.at("spec.targetCPUUtilizationPercentage").map(View::value);
    if let Some(utilization) = utilization.cloned().or_else(|| specs.is_empty().then(|| json!(80)))
    {
        specs.push(json!({
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"averageUtilization": utilization}},
        }));
    }
    let statuses = match others("autoscaling.alpha.kubernetes.io/current-metrics") {
        Some(statuses) => {
            statuses.iter().map(|it_| of_annotation(View::new(it_, it.now()), "current")).collect()
        }
        None => it
            .at("status.currentCPUUtilizationPercentage")
            .map(|it| json!({"resource": {"current": {"averageUtilization": it.value()}}}))
            .into_iter()
            .collect(),
    };
    let statuses = if it.has("status.currentMetrics") {
        values(it, "status.currentMetrics")
    } else {
        statuses
    };
    (specs, statuses)
}

/// A metric or its state in an annotation, whose fields have other names, in the form of version 2.
/// `side` is `target` or `current`.
fn of_annotation(metric: View<'_>, side: &str) -> Value {
    let mut converted = json!({"type": metric.text("type")});
    for source in ["external", "pods", "object", "resource", "containerResource"] {
        let Some(fields) = metric.at(source) else { continue };
        let own = |name: &str| fields.at(&format!("{side}{name}")).map(View::value);
        let (value, average) = match source {
            "object" => (own("Value"), fields.at("averageValue").map(View::value)),
            _ => (own("Value"), own("AverageValue")),
        };
        let mut values = json!({});
        for (name, value) in [
            ("value", value),
            ("averageValue", average),
            ("averageUtilization", own("AverageUtilization")),
        ] {
            if let Some(value) = value {
                values[name] = value.clone();
            }
        }
        converted[source] = json!({"name": fields.text("name"), side: values});
    }
    converted
}
