//! That an informer stops, and why.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::status::StopCause;

/// A [`CancellationToken`] with a cause. It can be asked before every single event: the token's own
/// answer takes a lock, which all handlers would share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stopping {
    token: CancellationToken,
    cause: Arc<OnceLock<StopCause>>,
}

impl Stopping {
    /// Whoever waits is woken, and whoever asks is told. Says whether this is the first cause,
    /// which stays.
    pub(crate) fn cancel(&self, cause: StopCause) -> bool {
        let is_first = self.cause.set(cause).is_ok();
        self.token.cancel();
        is_first
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cause.get().is_some()
    }

    pub(crate) fn cause(&self) -> Option<StopCause> {
        self.cause.get().copied()
    }

    pub(crate) fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.token.cancelled()
    }
}
