//! Looking at a controller from outside.

use std::fmt;
use std::sync::Arc;

use informer_core::ObjectKey;

use super::metrics::ControllerMetrics;
use super::shared::{Phase, Shared};
use super::status::ControllerStatus;

/// A handle to a controller, for status pages, probes and metrics. Cloning is cheap. It keeps
/// nothing running.
#[derive(Clone)]
pub struct ControllerHandle(pub(crate) Arc<Shared>);

impl ControllerHandle {
    /// What the controller is doing.
    #[must_use]
    pub fn status(&self) -> ControllerStatus {
        self.0.status()
    }

    /// The controller's figures.
    #[must_use]
    pub fn metrics(&self) -> ControllerMetrics {
        self.0.metrics()
    }

    /// The figures of the controller's work queue; none before its run.
    #[must_use]
    pub fn queue_metrics(&self) -> crate::workqueue::Metrics {
        self.0.queue_if_any().map(crate::workqueue::WorkQueue::metrics).unwrap_or_default()
    }

    /// Asks for a reconcile of `key`, for a reason that no informer knows of. Before the run this
    /// does nothing, since every object is reconciled then.
    pub fn enqueue(&self, key: ObjectKey) {
        if let Some(queue) = self.0.queue_if_any() {
            queue.add(key);
        }
    }

    /// Waits until the controller reconciles, or has ended; says whether it reconciles.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn started(&self) -> bool {
        let mut phase = self.0.phase.subscribe();
        let reached = phase
            .wait_for(|phase| matches!(phase, Phase::Running | Phase::ShuttingDown | Phase::Ended));
        matches!(reached.await.as_deref(), Ok(Phase::Running))
    }
}

impl fmt::Debug for ControllerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerHandle").field("name", &self.0.name()).finish_non_exhaustive()
    }
}
