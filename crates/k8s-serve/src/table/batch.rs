//! Jobs.

use serde_json::Value;

use super::built_in::{BuiltIn, cells};
use super::definitions;
use super::keep::{Keep, keep};
use super::selector::{containers, label_selector};
use super::text::{between, human_duration, parse_time};
use super::view::View;

pub(super) static KINDS: [BuiltIn; 2] = [
    BuiltIn::new("batch", "Job", &definitions::JOB, job).keeping(&JOB_FIELDS),
    BuiltIn::new("batch", "CronJob", &definitions::CRON_JOB, cron_job).keeping(&CRON_JOB_FIELDS),
];

static JOB_FIELDS: Keep = keep! {
    metadata { name namespace creationTimestamp deletionTimestamp }
    spec { completions parallelism selector template { spec { containers { name image } } } }
    status { succeeded startTime completionTime conditions { type status } }
};

static CRON_JOB_FIELDS: Keep = keep! {
    metadata { name namespace creationTimestamp }
    spec {
        schedule timeZone suspend
        jobTemplate { spec { selector template { spec { containers { name image } } } } }
    }
    status { active lastScheduleTime }
};

fn job(it: View<'_>) -> Vec<Value> {
    let (names, images) = containers(it, "spec.template.spec");
    cells![
        it.name(),
        status(it),
        completions(it),
        duration(it),
        it.age(),
        names,
        images,
        label_selector(it.at("spec.selector")),
    ]
}

fn status(it: View<'_>) -> &'static str {
    if it.is_true("Complete") {
        "Complete"
    } else if it.is_true("Failed") {
        "Failed"
    } else if it.is_being_deleted() {
        "Terminating"
    } else {
        let others = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
        others.into_iter().find(|kind| it.is_true(kind)).unwrap_or("Running")
    }
}

fn completions(it: View<'_>) -> String {
    let succeeded = it.integer("status.succeeded");
    let parallelism = it.integer_or("spec.parallelism", 1);
    if it.has("spec.completions") {
        format!("{succeeded}/{}", it.integer("spec.completions"))
    } else if parallelism > 1 {
        format!("{succeeded}/1 of {parallelism}")
    } else {
        format!("{succeeded}/1")
    }
}

/// How long the Job took, or has run.
fn duration(it: View<'_>) -> String {
    let Some(start) = parse_time(it.text("status.startTime")) else { return String::new() };
    let end = parse_time(it.text("status.completionTime")).unwrap_or_else(|| it.now());
    human_duration(between(start, end))
}

fn cron_job(it: View<'_>) -> Vec<Value> {
    let (names, images) = containers(it, "spec.jobTemplate.spec.template.spec");
    let last = match it.has("status.lastScheduleTime") {
        true => it.since("status.lastScheduleTime"),
        false => "<none>".to_owned(),
    };
    cells![
        it.name(),
        it.text("spec.schedule"),
        it.present_or("spec.timeZone", "<none>"),
        if it.boolean("spec.suspend") { "True" } else { "False" },
        it.count("status.active"),
        last,
        it.age(),
        names,
        images,
        label_selector(it.at("spec.jobTemplate.spec.selector")),
    ]
}
