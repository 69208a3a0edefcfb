//! That an informer stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A [`CancellationToken`] that can be asked before every single event: the token's own answer takes a lock, which all
/// handlers would share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stopping {
    token: CancellationToken,
    is_cancelled: Arc<AtomicBool>,
}

impl Stopping {
    /// Whoever waits is woken, and whoever asks is told.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.token.cancel();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    pub(crate) fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.token.cancelled()
    }
}
