//! Waking whoever takes from a queue. Model-checked by `tests/model.rs`, which has primitives of its own under `sync`.

use std::task::{Context, Poll};

use super::sync::AtomicWaker;

/// Tells one waiting task that something has changed which it looks at.
pub(crate) struct Signal(AtomicWaker);

impl Signal {
    pub(crate) fn new() -> Self {
        Self(AtomicWaker::new())
    }

    /// Called after each change.
    pub(crate) fn notify(&self) {
        self.0.wake();
    }

    /// What `look` finds; if it is nothing, the task is woken by the next change.
    pub(crate) fn poll<O>(&self, context: &Context<'_>, look: impl FnOnce() -> Option<O>) -> Poll<O> {
        // Registered before looking, so that no change can slip in between unseen.
        self.0.register(context.waker());
        look().map_or(Poll::Pending, Poll::Ready)
    }
}
