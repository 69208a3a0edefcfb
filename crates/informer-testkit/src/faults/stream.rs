//! A response body that faults can stop and cut.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Active, Cut, Effect, Faults, OpenWatch};
use crate::protocol::{BodyError, ResourcePath, Verb};

/// What a cut watch sends last: an event that never ends.
const HALF_AN_EVENT: &[u8] = b"{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"";

/// A body under the influence of faults.
pub(crate) struct Guarded {
    inner: Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>,
    open: OpenStream,
    verb: Verb,
    path: Option<ResourcePath>,
    sent: u64,
    /// What was read and not sent.
    pending: Bytes,
    /// The faults that this body has been counted by.
    counted: Vec<Arc<Active>>,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Running,
    /// Half an event is out; the connection is next.
    Resetting,
    Ended,
}

/// A response that is being sent; a watch can be cut as long as this lives.
pub(crate) struct OpenStream {
    faults: Faults,
    id: u64,
    cut: Option<oneshot::Receiver<Cut>>,
    /// Makes the connection end with a reset.
    reset: Option<CancellationToken>,
}

impl Faults {
    /// Registers a response that is about to be sent.
    pub(crate) fn open(
        &self,
        verb: Verb,
        path: Option<&ResourcePath>,
        reset: Option<CancellationToken>,
    ) -> OpenStream {
        let id = self.0.ids.fetch_add(1, Ordering::Relaxed);
        let cut = path.filter(|_| verb == Verb::Watch).map(|path| {
            let (sender, receiver) = oneshot::channel();
            let mut watches = self.0.watches.lock().unwrap_or_else(PoisonError::into_inner);
            watches.push(OpenWatch { id, path: path.clone(), cut: sender });
            receiver
        });
        OpenStream { faults: self.clone(), id, cut, reset }
    }

    /// The fault that lets a body send only so many bytes.
    fn limit(
        &self,
        verb: Verb,
        path: Option<&ResourcePath>,
        counted: &mut Vec<Arc<Active>>,
    ) -> Option<(u64, Arc<Active>)> {
        self.lock().iter().find_map(|active| {
            let Effect::StallAfter(bytes) = active.fault.effect else { return None };
            let known = counted.iter().any(|known| Arc::ptr_eq(known, active));
            if !known {
                if !active.fault.is_for(verb, path) || !active.hit() {
                    return None;
                }
                counted.push(Arc::clone(active));
            }
            Some((bytes, Arc::clone(active)))
        })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut watches = self.faults.0.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|open| open.id != self.id);
    }
}

impl Guarded {
    pub(crate) fn new(
        inner: Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>,
        open: OpenStream,
        verb: Verb,
        path: Option<ResourcePath>,
    ) -> Self {
        Self {
            inner,
            open,
            verb,
            path,
            sent: 0,
            pending: Bytes::new(),
            counted: Vec::new(),
            state: State::Running,
        }
    }

    /// The body as a stream.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Bytes, BodyError>> + Send {
        futures_util::stream::unfold(self, |mut guarded| async move {
            let chunk = guarded.next().await?;
            Some((chunk, guarded))
        })
    }

    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        match self.state {
            State::Ended => return None,
            State::Resetting => {
                // The connection writes out what it has before it comes back here.
                tokio::task::yield_now().await;
                self.state = State::Ended;
                if let Some(reset) = &self.open.reset {
                    reset.cancel();
                }
                return Some(Err(BodyError));
            }
            State::Running => {}
        }
        loop {
            if self.pending.is_empty() {
                tokio::select! {
                    biased;
                    how = cut(&mut self.open.cut) => return self.end(how),
                    chunk = self.inner.next() => match chunk {
                        Some(Ok(chunk)) => self.pending = chunk,
                        end => return end,
                    },
                }
            }
            let limit = self.open.faults.limit(self.verb, self.path.as_ref(), &mut self.counted);
            let Some((bytes, active)) = limit else {
                return self.send(usize::MAX);
            };
            let allowed = usize::try_from(bytes.saturating_sub(self.sent)).unwrap_or(usize::MAX);
            if allowed > 0 {
                return self.send(allowed);
            }
            tokio::select! {
                how = cut(&mut self.open.cut) => return self.end(how),
                () = active.lifted.cancelled() => {}
            }
        }
    }

    fn send(&mut self, at_most: usize) -> Option<Result<Bytes, BodyError>> {
        let chunk = self.pending.split_to(at_most.min(self.pending.len()));
        self.sent += chunk.len() as u64;
        Some(Ok(chunk))
    }

    fn end(&mut self, how: Cut) -> Option<Result<Bytes, BodyError>> {
        match how {
            Cut::Close => {
                self.state = State::Ended;
                None
            }
            Cut::Reset => {
                self.state = State::Resetting;
                Some(Ok(Bytes::from_static(HALF_AN_EVENT)))
            }
        }
    }
}

/// Waits to be cut, for ever if that cannot happen.
async fn cut(receiver: &mut Option<oneshot::Receiver<Cut>>) -> Cut {
    if let Some(open) = receiver {
        if let Ok(how) = open.await {
            return how;
        }
        *receiver = None;
    }
    std::future::pending().await
}
