//! What a controller is doing, as a value.

use std::fmt;
use std::time::SystemTime;

use informer_core::ObjectKey;
use serde::Serialize;

use crate::Status;
use crate::status::rfc3339;

/// Everything a controller says of itself at one moment. It serializes, for a status page: names in
/// camelCase, times as RFC 3339.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ControllerStatus {
    /// The controller's name; empty before its run.
    pub name: String,
    /// What it is doing.
    pub phase: ControllerPhase,
    /// Whether it reconciles, or would if it led: for a readiness probe.
    pub is_ready: bool,
    /// Whether it runs, or will: for a liveness probe. An API server that does not answer makes no
    /// controller unhealthy, for a restart would help nobody.
    pub is_healthy: bool,
    /// Keys that wait for a worker.
    pub queued: usize,
    /// Of these, keys of low priority: the rest of the first list, or of a resync.
    pub queued_low: usize,
    /// How many reconciles may run at a time.
    pub max_concurrent_reconciles: usize,
    /// The reconciles that run, in the order of their keys.
    pub running: Vec<RunningReconcile>,
    /// The keys that wait until the informers show what their reconciles wrote.
    pub waiting_for_own_writes: Vec<ObjectKey>,
    /// The last reconciles that failed, oldest first.
    pub recent_errors: Vec<FailedReconcile>,
    /// The controller's informers; none once it has ended.
    pub informers: Vec<Status>,
}

/// How far a controller has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "phase", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ControllerPhase {
    /// Nobody runs it yet.
    NotStarted,
    /// It waits for the first lists.
    WaitingForInformers {
        /// The informers that have not synced, with their states and last errors.
        waiting_for: Vec<String>,
    },
    /// It waits until this process leads, and until its informers are refreshed then.
    Standby,
    /// It reconciles.
    Running,
    /// It was told to end, and waits for the reconciles that run.
    ShuttingDown,
    /// It has ended.
    Ended,
}

/// A reconcile that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunningReconcile {
    /// The object.
    pub key: ObjectKey,
    /// Since when.
    #[serde(serialize_with = "rfc3339")]
    pub since: SystemTime,
}

/// A reconcile that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FailedReconcile {
    /// When.
    #[serde(serialize_with = "rfc3339")]
    pub at: SystemTime,
    /// The object.
    pub key: ObjectKey,
    /// The first line of what the error says.
    pub message: String,
}

/// One line for people.
impl fmt::Display for ControllerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, phase, queued, running, .. } = self;
        write!(f, "{name}: {phase}, {} reconciles run, {queued} keys wait", running.len())
    }
}

impl fmt::Display for ControllerPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("not started"),
            Self::WaitingForInformers { waiting_for } => {
                write!(f, "waiting for {}", waiting_for.join("; "))
            }
            Self::Standby => f.write_str("waiting to lead"),
            Self::Running => f.write_str("running"),
            Self::ShuttingDown => f.write_str("shutting down"),
            Self::Ended => f.write_str("ended"),
        }
    }
}
