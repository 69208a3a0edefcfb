//! Events as a stream, for asynchronous users.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use informer_core::Event;
use informer_core::fan_out::SharedQueue;

use crate::Error;
use crate::registration::Registration;
use crate::shared::{Owner, Shared};

/// Events taken from the queue at a time.
const BATCH: usize = 64;

/// A registration's events as a [`Stream`]: first the store's content as `Added { initial: true }`, then what
/// follows (G17). Ends when the informer stops. Dropping it removes the registration.
///
/// A stream that nobody polls delays nobody else; its events merge by key (G16).
///
/// # Cancel safety
/// `next()` may be dropped at any time without losing an event.
pub struct EventStream<T> {
    shared: Arc<Shared<T>>,
    _owner: Arc<Owner>,
    registration: Registration,
    queue: SharedQueue<T>,
    batch: VecDeque<Event<T>>,
}

impl<T> EventStream<T> {
    pub(crate) fn new(
        shared: Arc<Shared<T>>,
        owner: Arc<Owner>,
        registration: Registration,
        queue: SharedQueue<T>,
    ) -> Self {
        Self { shared, _owner: owner, registration, queue, batch: VecDeque::new() }
    }

    /// The registration, to wait for its sync or ask for its status while the stream is polled elsewhere.
    #[must_use]
    pub fn registration(&self) -> Registration {
        self.registration.clone()
    }

    /// Waits until every object of the initial set was taken from the stream, and the next event asked for.
    /// The stream must be polled meanwhile: wait on the [`registration`](Self::registration) in another task,
    /// or check [`has_synced`](Self::has_synced) between events.
    ///
    /// # Errors
    /// If the informer stops before that.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn synced(&self) -> Result<(), Error> {
        self.registration.synced().await
    }

    /// Whether every object of the initial set was taken from the stream, and the next event asked for.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.registration.has_synced()
    }
}

impl<T> Stream for EventStream<T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        if self.registration.inner().is_removed() {
            // By its registration, while events were on their way to the reader.
            self.batch.clear();
        }
        if let Some(event) = self.batch.pop_front() {
            return Poll::Ready(Some(event));
        }
        let mut batch = Vec::new();
        let taken = self.registration.inner().signal.poll(context, || {
            let mut queue = self.queue.lock();
            queue.pop_batch(BATCH, &mut batch);
            (!batch.is_empty() || queue.is_over()).then_some(())
        });
        self.registration.inner().publish_synced();
        self.batch.extend(batch);
        match self.batch.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if taken.is_ready() => {
                self.registration.inner().end();
                Poll::Ready(None)
            }
            None => Poll::Pending,
        }
    }
}

impl<T> Unpin for EventStream<T> {}

impl<T> Drop for EventStream<T> {
    fn drop(&mut self) {
        self.registration.inner().remove();
        self.registration.inner().end();
    }
}

impl<T> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("of", &self.shared.name)
            .field("registration", &self.registration)
            .finish_non_exhaustive()
    }
}
