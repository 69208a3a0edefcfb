//! Requests that go on without the reconcile that made them.

use std::future::pending;
use std::mem::replace;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::Response;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::controller::error::WriteError;

/// How long the answer to a request is waited for after its reconcile was cancelled. API servers
/// give up a request after a minute by default, so that nothing is applied later.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

type Answered = Result<Response<Bytes>, WriteError>;

/// A write and its answer. If this is dropped before its end the write goes on in a task of its own:
/// a read that is sent now could overtake the write, and tell that it was not applied.
pub(super) struct Exchange {
    write: BoxFuture<'static, Answered>,
    is_over: bool,
    /// When the write is given up.
    ended: CancellationToken,
}

impl Exchange {
    pub(super) fn new(
        write: impl Future<Output = Answered> + Send + 'static,
        ended: CancellationToken,
    ) -> Self {
        Self { write: write.boxed(), is_over: false, ended }
    }

    pub(super) async fn finish(mut self) -> Answered {
        let answered = self.write.as_mut().await;
        self.is_over = true;
        answered
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // Without a runtime the write ends here, and its outcome is unknown.
        let Ok(runtime) = Handle::try_current() else { return };
        if self.is_over {
            return;
        }
        let write = replace(&mut self.write, pending().boxed());
        let ended = self.ended.clone();
        runtime.spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                _ = timeout(ANSWERED_WITHIN, write) => {}
            }
        });
    }
}
