//! Workers: each takes a key, reconciles its object, and says what becomes of the key.

use std::fmt;
use std::panic::{AssertUnwindSafe, Location};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use informer_core::ObjectKey;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::action::Action;
use super::context::Context;
use super::meter::Outcome;
use super::shared::Shared;
use crate::Lister;
use crate::workqueue::{Item, brief};

/// What the workers of a controller share.
pub(super) struct Reconciler<T, S, F> {
    pub(super) shared: Arc<Shared>,
    pub(super) client: Client,
    pub(super) objects: Lister<T>,
    pub(super) state: Arc<S>,
    pub(super) reconcile: F,
    pub(super) timeout: Option<Duration>,
    /// No more keys are taken from here on.
    pub(super) stopping: CancellationToken,
    pub(super) called_at: &'static Location<'static>,
}

/// How a reconcile ended, and what is to be said of it.
enum Ended {
    Well(Action),
    Badly(Outcome, String),
}

impl<T, S, F, R, E> Reconciler<T, S, F>
where
    F: Fn(Arc<T>, Context<S>) -> R,
    R: Future<Output = Result<Action, E>>,
    E: fmt::Display,
{
    /// Reconciles one object after the other until the controller stops.
    pub(super) async fn work(self: Arc<Self>) {
        loop {
            let item = tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                item = self.shared.queue().next() => item,
            };
            let Some(item) = item else { return };
            self.work_on(item).await;
        }
    }

    /// While `item` lives no other worker has its key.
    async fn work_on(&self, item: Item<ObjectKey>) {
        let (shared, queue, key) = (&self.shared, self.shared.queue(), item.key());
        let Some(record) = self.objects.snapshot().get(key).cloned() else {
            // It is gone. What is to be done before that, a finalizer does.
            queue.forget(key);
            return;
        };
        let running = shared.meter.begin(key);
        let context =
            Context::new(key.clone(), record.uid, Arc::clone(&self.state), self.client.clone());
        let outcome = match self.call(record.object, context).await {
            Ended::Well(action) => match action.delay() {
                None => {
                    queue.forget(key);
                    Outcome::Success
                }
                Some(Duration::ZERO) => {
                    queue.add_rate_limited(key.clone());
                    Outcome::Requeue
                }
                Some(delay) => {
                    queue.forget(key);
                    queue.add_after(key.clone(), delay);
                    Outcome::RequeueAfter
                }
            },
            Ended::Badly(outcome, failure) => {
                tracing::warn!(controller = shared.name(), %key, failure, "the reconcile failed, and is tried again");
                shared.meter.failed(key, &failure);
                queue.add_rate_limited(key.clone());
                outcome
            }
        };
        running.ended(outcome);
    }

    async fn call(&self, object: Arc<T>, context: Context<S>) -> Ended {
        // What the reconcile shares with others is its own business, as with any handler.
        let reconcile = AssertUnwindSafe(async { (self.reconcile)(object, context).await });
        let reconcile = reconcile.catch_unwind();
        let ended = match self.timeout {
            None => reconcile.await,
            Some(most) => match tokio::time::timeout(most, reconcile).await {
                Ok(ended) => ended,
                Err(_) => {
                    let failure = format!("it took longer than {most:?}, and was cancelled");
                    return Ended::Badly(Outcome::Timeout, failure);
                }
            },
        };
        match ended {
            Ok(Ok(action)) => Ended::Well(action),
            Ok(Err(error)) => Ended::Badly(Outcome::Error, brief(&format!("{error:#}"))),
            // Not the text of the panic, which may quote an object (G34).
            Err(_) => Ended::Badly(
                Outcome::Panic,
                format!("it panicked (the controller runs at {})", self.called_at),
            ),
        }
    }
}
