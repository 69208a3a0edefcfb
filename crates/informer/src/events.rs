//! Events as a stream, for asynchronous users.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::task::AtomicWaker;
use informer_core::Event;
use informer_core::fan_out::RegistrationQueue;

use crate::Error;
use crate::handler::HandlerOptions;
use crate::registration::{Reader, Registration};
use crate::shared::{Owner, Shared};

/// Events taken from the queue at a time.
const BATCH: usize = 64;

/// A registration's events as a [`Stream`]: first the store's content as `Added { initial: true }`,
/// then what follows (G17). Ends when the informer stops. Dropping it removes the registration.
///
/// A stream that nobody polls delays nobody else; its events merge by key (G16).
///
/// # Cancel safety
/// `next()` may be dropped at any time without losing an event.
pub struct EventStream<T> {
    shared: Arc<Shared<T>>,
    _owner: Arc<Owner>,
    registration: Registration,
    queue: RegistrationQueue<T>,
    /// The task that waits for events.
    task: Arc<AtomicWaker>,
    batch: VecDeque<Event<T>>,
}

impl<T> EventStream<T> {
    #[track_caller]
    pub(crate) fn new(
        shared: &Arc<Shared<T>>,
        owner: &Arc<Owner>,
        options: &HandlerOptions,
        default_resync: Option<Duration>,
    ) -> Result<Self, Error>
    where
        T: Send + Sync + 'static,
    {
        let task = Arc::new(AtomicWaker::new());
        let (registration, queue) =
            shared.register(options, default_resync, Reader::Stream(Arc::clone(&task)))?;
        let (shared, owner) = (Arc::clone(shared), Arc::clone(owner));
        Ok(Self { shared, _owner: owner, registration, queue, task, batch: VecDeque::new() })
    }

    /// The registration, to wait for its sync or ask for its status while the stream is polled
    /// elsewhere.
    #[must_use]
    pub fn registration(&self) -> Registration {
        self.registration.clone()
    }

    /// Waits until every object of the initial set was taken from the stream, and the next event
    /// asked for. The stream must be polled meanwhile: wait on the
    /// [`registration`](Self::registration) in another task, or check
    /// [`has_synced`](Self::has_synced) between events.
    ///
    /// # Errors
    /// If the informer stops before that.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn synced(&self) -> Result<(), Error> {
        self.registration.synced().await
    }

    /// Whether every object of the initial set was taken from the stream, and the next event asked
    /// for.
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
        // Before the queue is looked into, so that no change goes unseen between the two.
        self.task.register(context.waker());
        let mut queue = self.queue.lock();
        let taken = queue.take(BATCH);
        let is_over = taken.is_empty() && queue.is_over();
        drop(queue);
        self.registration.inner().publish_synced();
        self.batch.extend(taken.iter().cloned());
        match self.batch.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if is_over => {
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
