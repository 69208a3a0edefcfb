//! Pods and their templates.

use std::cmp::max;

use jiff::Timestamp;
use serde_json::Value;

use super::RowCondition;
use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::keep::{Keep, keep};
use super::selector::{containers, labels};
use super::text::{between, human_duration, parse_time};
use super::view::View;

pub(super) static KINDS: [BuiltIn; 2] = [
    BuiltIn { conditions, ..BuiltIn::new("", "Pod", &definitions::POD, pod).keeping(&POD_FIELDS) },
    BuiltIn::new("", "PodTemplate", &definitions::POD_TEMPLATE, pod_template),
];

static POD_FIELDS: Keep = keep! {
    metadata { name namespace creationTimestamp deletionTimestamp }
    spec {
        nodeName
        containers {}
        initContainers { name restartPolicy }
        readinessGates { conditionType }
    }
    status {
        phase reason podIP nominatedNodeName
        podIPs { ip }
        conditions { type status reason }
        initContainerStatuses {
            name ready started restartCount
            state { running {} waiting { reason } terminated { exitCode signal reason } }
            lastState { terminated { finishedAt } }
        }
        containerStatuses {
            ready restartCount
            state { running {} waiting { reason } terminated { exitCode signal reason } }
            lastState { terminated { finishedAt } }
        }
    }
};

static SUCCEEDED: [RowCondition; 1] = [RowCondition {
    condition_type: "Completed",
    status: "True",
    reason: "Succeeded",
    message: "The pod has completed successfully.",
}];
static FAILED: [RowCondition; 1] = [RowCondition {
    condition_type: "Completed",
    status: "True",
    reason: "Failed",
    message: "The pod failed.",
}];

fn conditions(pod: View<'_>) -> &'static [RowCondition] {
    match pod.text("status.phase") {
        "Succeeded" => &SUCCEEDED,
        "Failed" => &FAILED,
        _ => &[],
    }
}

fn pod(pod: View<'_>) -> Vec<Value> {
    let summary = Summary::of(pod);
    let ready = format!("{}/{}", summary.ready, summary.containers);
    let first = || pod.list("status.podIPs").next().map_or("", |it| it.text("ip"));
    let address = Some(pod.text("status.podIP")).filter(|it| !it.is_empty()).unwrap_or_else(first);
    cells![
        pod.name(),
        ready,
        summary.status(pod),
        summary.restarts.shown(pod.now()),
        pod.age(),
        if address.is_empty() { "<none>" } else { address },
        pod.text_or("spec.nodeName", "<none>"),
        pod.text_or("status.nominatedNodeName", "<none>"),
        readiness_gates(pod),
    ]
}

fn pod_template(it: View<'_>) -> Vec<Value> {
    let (names, images) = containers(it, "template.spec");
    cells![it.name(), names, images, labels(it.map("template.metadata.labels"))]
}

/// What the containers of a Pod add up to.
struct Summary {
    /// All that run for as long as the Pod does.
    containers: usize,
    ready: usize,
    /// Why the Pod is in its state, or the phase.
    reason: String,
    restarts: Restarts,
}

#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Summary {
    fn of(pod: View<'_>) -> Self {
        let sidecars = pod.list("spec.initContainers").filter(|it| is_sidecar(*it)).count();
        let mut summary = Self {
            containers: pod.count("spec.containers") + sidecars,
            ready: 0,
            reason: pod.text("status.reason").to_owned(),
            restarts: Restarts::default(),
        };
        if summary.reason.is_empty() {
            pod.text("status.phase").clone_into(&mut summary.reason);
        }
        let is_gated = |it: View<'_>| {
            it.text("type") == "PodScheduled" && it.text("reason") == "SchedulingGated"
        };
        if pod.list("status.conditions").any(is_gated) {
            "SchedulingGated".clone_into(&mut summary.reason);
        }
        let (is_initialized, of_sidecars) = summary.add_init_containers(pod);
        if is_initialized || pod.is_true("Initialized") {
            // Restarts of init containers that are done do not matter any more.
            summary.restarts = of_sidecars;
            summary.add_containers(pod);
        }
        summary
    }

    /// Counts the init containers up to the first that is not done. Whether all are, and the
    /// restarts of those that go on to run beside the others.
    fn add_init_containers(&mut self, pod: View<'_>) -> (bool, Restarts) {
        let mut of_sidecars = Restarts::default();
        for (position, status) in pod.list("status.initContainerStatuses").enumerate() {
            let is_sidecar = pod
                .list("spec.initContainers")
                .rfind(|it| it.text("name") == status.text("name"))
                .is_some_and(is_sidecar);
            self.restarts.add(status);
            if is_sidecar {
                of_sidecars.add(status);
            }
            let terminated = status.at("state.terminated");
            if terminated.is_some_and(|it| it.integer("exitCode") == 0) {
                continue;
            }
            if is_sidecar && status.boolean("started") {
                self.ready += usize::from(status.boolean("ready"));
                continue;
            }
            let reason = match (terminated, status.text("state.waiting.reason")) {
                (Some(terminated), _) => ended(terminated),
                (None, "" | "PodInitializing") => {
                    format!("{position}/{}", pod.count("spec.initContainers"))
                }
                (None, waiting) => waiting.to_owned(),
            };
            self.reason = format!("Init:{reason}");
            return (false, of_sidecars);
        }
        (true, of_sidecars)
    }

    fn add_containers(&mut self, pod: View<'_>) {
        let (mut is_running, mut failure) = (false, None);
        for status in pod.list("status.containerStatuses").rev() {
            self.restarts.add(status);
            let waiting = status.text("state.waiting.reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = status.at("state.terminated") {
                self.reason = ended(terminated);
                if terminated.integer("exitCode") != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status.boolean("ready") && status.has("state.running") {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            // Some container may still run.
            if is_running && pod.list("status.conditions").any(is_ready) {
                "Running".clone_into(&mut self.reason);
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if is_running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }

    fn status(&self, pod: View<'_>) -> String {
        let is_over = matches!(pod.text("status.phase"), "Succeeded" | "Failed");
        if !pod.is_being_deleted() {
            self.reason.clone()
        } else if pod.text("status.reason") == "NodeLost" {
            "Unknown".to_owned()
        } else if !is_over {
            "Terminating".to_owned()
        } else {
            self.reason.clone()
        }
    }
}

impl Restarts {
    fn add(&mut self, status: View<'_>) {
        self.count += status.integer("restartCount");
        self.last = max(self.last, parse_time(status.text("lastState.terminated.finishedAt")));
    }

    fn shown(self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                format!("{} ({} ago)", self.count, human_duration(between(last, now)))
            }
            _ => self.count.to_string(),
        }
    }
}

/// Whether an init container goes on to run beside the others.
fn is_sidecar(container: View<'_>) -> bool {
    container.text("restartPolicy") == "Always"
}

/// How a container ended.
fn ended(terminated: View<'_>) -> String {
    match (terminated.text("reason"), terminated.integer("signal")) {
        ("", 0) => format!("ExitCode:{}", terminated.integer("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn is_ready(condition: View<'_>) -> bool {
    condition.text("type") == "Ready" && condition.text("status") == "True"
}

/// How many of the Pod's readiness gates are open.
fn readiness_gates(pod: View<'_>) -> String {
    let gates = pod.list("spec.readinessGates");
    let total = gates.len();
    if total == 0 {
        return "<none>".to_owned();
    }
    let open = gates.filter(|it| pod.is_true(it.text("conditionType"))).count();
    format!("{open}/{total}")
}
