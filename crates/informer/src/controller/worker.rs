//! Workers: each takes a key, reconciles its object, and says what becomes of the key.

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, Location};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer_core::ObjectKey;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::action::{Action, Next};
use super::context::Context;
use super::exchange::{Conflict, ConflictReason};
use super::gate::Gate;
use super::meter::Outcome;
use super::own_writes::OwnWrites;
use super::shared::Shared;
use crate::workqueue::{Item, brief};
use crate::{Lister, Resource};

/// How many conflicts of one object in a row are normal. A name that is still taken once the
/// informers show it says nothing new; another writer may change the object each time.
fn quiet_conflicts(reason: ConflictReason) -> u32 {
    match reason {
        ConflictReason::Conflict => 5,
        ConflictReason::AlreadyExists => 1,
    }
}

/// What the workers of a controller share.
pub(super) struct Reconciler<T, S, F> {
    pub(super) shared: Arc<Shared>,
    pub(super) own_writes: Arc<OwnWrites>,
    pub(super) waits: Waits,
    pub(super) gate: Gate,
    pub(super) objects: Lister<T>,
    pub(super) resource: Resource,
    pub(super) state: Arc<S>,
    pub(super) reconcile: Arc<F>,
    pub(super) timeout: Option<Duration>,
    /// No more keys are taken from here on.
    pub(super) stopping: CancellationToken,
    pub(super) called_at: &'static Location<'static>,
}

/// How own writes are waited for.
pub(super) struct Waits {
    pub(super) deadline: Duration,
    /// Those of all keys, not only of the one that is to be reconciled.
    pub(super) for_all: bool,
    /// The waits of keys that no worker has.
    pub(super) tasks: TaskTracker,
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
            if let Some(item) = self.caught_up(item).await {
                self.work_on(item).await;
            }
        }
    }

    /// The item, if every informer shows what reconciles wrote. A key for whose own writes that is
    /// not so waits in a task of its own, and keeps no worker from the others.
    async fn caught_up(&self, item: Item<ObjectKey>) -> Option<Item<ObjectKey>> {
        let Waits { deadline, for_all, tasks } = &self.waits;
        let (own_writes, deadline, key) =
            (Arc::clone(&self.own_writes), *deadline, item.key().clone());
        if *for_all {
            // Waited for here: those who begin anew after each wait would never see an end of it.
            let _waiting = self.shared.meter.waits(item.key());
            return tokio::select! {
                biased;
                () = self.stopping.cancelled() => None,
                caught_up = own_writes.all_caught_up(deadline) => match caught_up {
                    Ok(()) => Some(item),
                    Err(why) => {
                        not_caught_up(&self.shared, &item, &why);
                        None
                    }
                },
            };
        }
        let mut wait: BoxFuture<'static, _> =
            Box::pin(async move { own_writes.caught_up(&key, deadline).await });
        match poll_once(wait.as_mut()).await {
            Poll::Ready(Ok(())) => return Some(item),
            Poll::Ready(Err(why)) => not_caught_up(&self.shared, &item, &why),
            Poll::Pending => {
                let (shared, stopping) = (Arc::clone(&self.shared), self.stopping.clone());
                tasks.spawn(async move {
                    let _waiting = shared.meter.waits(item.key());
                    tokio::select! {
                        () = stopping.cancelled() => {}
                        caught_up = wait => match caught_up {
                            // It is handed out once the item is dropped.
                            Ok(()) => shared.queue().add(item.key().clone()),
                            Err(why) => not_caught_up(&shared, &item, &why),
                        },
                    }
                });
            }
        }
        None
    }

    /// While `item` lives no other worker has its key.
    async fn work_on(&self, item: Item<ObjectKey>) {
        let (shared, queue, key) = (&self.shared, self.shared.queue(), item.key());
        let Some(record) = self.objects.snapshot().get(key).cloned() else {
            // It is gone. What is to be done before that, a finalizer does.
            queue.forget(key);
            self.own_writes.forget_conflicts(key);
            return;
        };
        let running = shared.meter.begin(key);
        let writer = self.own_writes.writer(key.clone(), self.gate.clone());
        let state = Arc::clone(&self.state);
        let context = Context::new(key.clone(), record.uid, state, writer, self.resource.clone());
        let ended = self.call(record.object, context).await;
        let conflict = match &ended {
            Ended::Well(_) => {
                self.own_writes.forget_conflicts(key);
                None
            }
            Ended::Badly(..) => self.own_writes.take_conflict(key),
        };
        let outcome = match (ended, conflict) {
            (Ended::Well(action), _) => match action.next() {
                Next::Change => {
                    queue.forget(key);
                    Outcome::Success
                }
                Next::OwnWrites => {
                    queue.forget(key);
                    queue.add(key.clone());
                    Outcome::Success
                }
                Next::After(Duration::ZERO) => {
                    queue.add_rate_limited(key.clone());
                    Outcome::Requeue
                }
                Next::After(delay) => {
                    queue.forget(key);
                    queue.add_after(key.clone(), delay);
                    Outcome::RequeueAfter
                }
            },
            (Ended::Badly(Outcome::Error, failure), Some((conflict, in_a_row)))
                if in_a_row <= quiet_conflicts(conflict.reason) =>
            {
                tracing::debug!(controller = shared.name(), %key, failure, "a conflict: the reconcile is tried again");
                running.ended(Outcome::Requeue);
                self.settle(item, conflict);
                return;
            }
            (Ended::Badly(outcome, failure), _) => {
                failed(shared, key, &failure);
                queue.add_rate_limited(key.clone());
                outcome
            }
        };
        running.ended(outcome);
    }

    /// Waits, without a worker, until the informers show what the write of a reconcile conflicted
    /// with; then the key comes again.
    fn settle(&self, item: Item<ObjectKey>, conflict: Conflict) {
        let (shared, own_writes) = (Arc::clone(&self.shared), Arc::clone(&self.own_writes));
        let (stopping, deadline) = (self.stopping.clone(), self.waits.deadline);
        shared.meter.conflicted();
        self.waits.tasks.spawn(async move {
            let (key, _waiting) = (item.key(), shared.meter.waits(item.key()));
            tokio::select! {
                () = stopping.cancelled() => return,
                settled = own_writes.settle(key, conflict, deadline) => match settled {
                    Ok(()) => {}
                    Err(error) => failed(&shared, key, &brief(&error.to_string())),
                },
            }
            shared.queue().add_rate_limited(key.clone());
        });
    }

    async fn call(&self, object: Arc<T>, context: Context<S>) -> Ended {
        // What the reconcile shares with others is its own business, as with any handler.
        let reconcile = async {
            let ended = (self.reconcile)(object, context).await;
            ended.map_err(|error| brief(&format!("{error:#}")))
        };
        // Also the error's `Display`, and the drop of what is cancelled, may panic.
        let guarded = AssertUnwindSafe(async {
            match self.timeout {
                None => Ok(reconcile.await),
                Some(most) => tokio::time::timeout(most, reconcile).await.map_err(|_| most),
            }
        });
        match guarded.catch_unwind().await {
            Ok(Ok(Ok(action))) => Ended::Well(action),
            Ok(Ok(Err(failure))) => Ended::Badly(Outcome::Error, failure),
            Ok(Err(most)) => Ended::Badly(
                Outcome::Timeout,
                format!("it took longer than {most:?}, and was cancelled"),
            ),
            // Not the text of the panic, which may quote an object (G34).
            Err(_) => Ended::Badly(
                Outcome::Panic,
                format!("it panicked (the controller runs at {})", self.called_at),
            ),
        }
    }
}

/// The key comes again later, and is not reconciled with what the stores show now.
fn not_caught_up(shared: &Shared, item: &Item<ObjectKey>, why: &impl fmt::Display) {
    let why = brief(&why.to_string());
    tracing::warn!(controller = shared.name(), key = %item.key(), why, "not reconciled, since its informers are behind what it wrote; tried again");
    shared.meter.failed(item.key(), &why);
    shared.queue().add_rate_limited(item.key().clone());
}

fn failed(shared: &Shared, key: &ObjectKey, failure: &str) {
    tracing::warn!(controller = shared.name(), %key, failure, "the reconcile failed, and is tried again");
    shared.meter.failed(key, failure);
}

/// What a future says when it is polled once.
async fn poll_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}
