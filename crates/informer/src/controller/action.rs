//! What a reconcile asks for.

use std::time::Duration;

/// What is to happen with a key after a reconcile that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "return it from the reconcile function"]
pub struct Action {
    requeue_after: Option<Duration>,
}

impl Action {
    /// Nothing, until something changes.
    pub fn await_change() -> Self {
        Self { requeue_after: None }
    }

    /// A reconcile when `delay` has passed, or before that if something changes. An earlier time
    /// that was asked for by an earlier reconcile stands. With a delay of zero the key comes as
    /// after a failure, later each time: a reconcile that always asks for itself is no loop.
    pub fn requeue_after(delay: Duration) -> Self {
        Self { requeue_after: Some(delay) }
    }

    /// The delay that was asked for.
    #[must_use]
    pub fn delay(self) -> Option<Duration> {
        self.requeue_after
    }
}
