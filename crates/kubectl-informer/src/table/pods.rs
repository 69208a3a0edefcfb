//! The columns of Pods, of which the status is the most involved.

use serde_json::Value;

use super::row::{Row, array, at, text};
use super::{Column, or_none};
use crate::age;

pub(super) const COLUMNS: &[Column] = &[
    Column::new("READY", ready),
    Column::new("STATUS", status),
    Column::new("RESTARTS", restarts),
    Column::new("AGE", |row| row.age()),
    Column::wide("IP", |row| or_none(row.text("status.podIP").to_owned())),
    Column::wide("NODE", |row| or_none(row.text("spec.nodeName").to_owned())),
    Column::wide("NOMINATED NODE", |row| or_none(row.text("status.nominatedNodeName").to_owned())),
    Column::wide("READINESS GATES", readiness_gates),
];

fn ready(row: &Row<'_>) -> String {
    let statuses = row.array("status.containerStatuses");
    let ready =
        statuses.iter().filter(|it| at(it, "ready").and_then(Value::as_bool) == Some(true)).count();
    format!("{ready}/{}", row.array("spec.containers").len())
}

/// What ails or occupies the Pod: the reason of its init containers, else of its containers, else
/// its phase.
fn status(row: &Row<'_>) -> String {
    let deleting = row.object.metadata.deletion_timestamp.is_some();
    let reason = row.text("status.reason");
    if deleting {
        return if reason == "NodeLost" { "Unknown" } else { "Terminating" }.to_owned();
    }
    if let Some(init) = init_status(row) {
        return init;
    }
    let mut status = if reason.is_empty() { row.text("status.phase") } else { reason }.to_owned();
    let mut running = false;
    for container in row.array("status.containerStatuses").iter().rev() {
        let (waiting, ended) =
            (text(container, "state.waiting.reason"), at(container, "state.terminated"));
        if !waiting.is_empty() {
            waiting.clone_into(&mut status);
        } else if let Some(ended) = ended {
            status = end_reason(ended);
        } else if at(container, "state.running").is_some()
            && at(container, "ready").and_then(Value::as_bool) == Some(true)
        {
            running = true;
        }
    }
    if status == "Completed" && running {
        return if row.condition("Ready") == "True" { "Running" } else { "NotReady" }.to_owned();
    }
    if status.is_empty() { "Unknown".to_owned() } else { status }
}

fn init_status(row: &Row<'_>) -> Option<String> {
    let total = row.array("spec.initContainers").len();
    for (at_index, container) in row.array("status.initContainerStatuses").iter().enumerate() {
        if let Some(ended) = at(container, "state.terminated") {
            if at(ended, "exitCode").and_then(Value::as_i64) == Some(0) {
                continue;
            }
            return Some(format!("Init:{}", end_reason(ended)));
        }
        if is_sidecar(row, text(container, "name"))
            && at(container, "started").and_then(Value::as_bool) == Some(true)
        {
            continue;
        }
        let waiting = text(container, "state.waiting.reason");
        if !waiting.is_empty() && waiting != "PodInitializing" {
            return Some(format!("Init:{waiting}"));
        }
        return Some(format!("Init:{at_index}/{total}"));
    }
    None
}

/// An init container that keeps running beside the others.
fn is_sidecar(row: &Row<'_>, name: &str) -> bool {
    let containers = row.array("spec.initContainers");
    containers.iter().any(|it| text(it, "name") == name && text(it, "restartPolicy") == "Always")
}

fn end_reason(ended: &Value) -> String {
    let reason = text(ended, "reason");
    if !reason.is_empty() {
        return reason.to_owned();
    }
    let number = |path| at(ended, path).and_then(Value::as_i64).unwrap_or_default();
    match number("signal") {
        0 => format!("ExitCode:{}", number("exitCode")),
        signal => format!("Signal:{signal}"),
    }
}

fn restarts(row: &Row<'_>) -> String {
    let statuses = row.array("status.containerStatuses");
    let count: i64 =
        statuses.iter().filter_map(|it| at(it, "restartCount").and_then(Value::as_i64)).sum();
    let last = statuses
        .iter()
        .map(|it| text(it, "lastState.terminated.finishedAt"))
        .max()
        .unwrap_or_default();
    if count == 0 || last.is_empty() {
        return count.to_string();
    }
    format!("{count} ({} ago)", age::age_of(Some(last), row.now))
}

/// How many of the conditions that the Pod is to wait for are met.
fn readiness_gates(row: &Row<'_>) -> String {
    let gates = row.array("spec.readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let met = gates.iter().filter(|it| row.condition(text(it, "conditionType")) == "True").count();
    format!("{met}/{}", gates.len())
}

/// Names of the containers of a template.
pub(super) fn containers(row: &Row<'_>) -> String {
    super::row::joined(row.array("spec.template.spec.containers"), "name")
}

/// Images of the containers of a template.
pub(super) fn images(row: &Row<'_>) -> String {
    super::row::joined(row.array("spec.template.spec.containers"), "image")
}

/// A label selector's `matchLabels`, or a plain map of labels.
pub(super) fn selector(row: &Row<'_>, path: &str) -> String {
    let selected = row.at(path);
    let labels =
        selected.and_then(|it| it.get("matchLabels")).or(selected).and_then(Value::as_object);
    let pair =
        |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    let mut text = labels.into_iter().flatten().map(pair).collect::<Vec<_>>().join(",");
    for expression in array(selected.unwrap_or(&Value::Null), "matchExpressions") {
        text.push_str(if text.is_empty() { "" } else { "," });
        text.push_str(super::row::text(expression, "key"));
        text.push_str(" …");
    }
    or_none(text)
}
