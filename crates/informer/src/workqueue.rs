//! Work queues: from an informer's events to the workers of a controller (client-go's
//! `util/workqueue`).
//!
//! Events say what changed; a controller wants to know which object to look at, once, and again if
//! that failed. A [`WorkQueue`] holds keys: each at most once, never with two workers at a time,
//! later if asked for, and after a failure as late as a [`RateLimiter`] says.
//!
//! ```
//! use informer::workqueue::{Enqueue, WorkQueue};
//! use informer::{Lister, ObjectKey, Resource, SharedInformerFactory};
//! use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anyhow::Result<()> {
//! # let server = informer_testkit::TestServer::start().await?;
//! # let client = server.client()?;
//! # server.cluster().load(informer_testkit::generate::deployments(1))?;
//! let factory = SharedInformerFactory::builder(client).build();
//! let deployments = factory.informer::<Deployment>()?;
//! let sets = factory.informer::<ReplicaSet>()?;
//!
//! // Each Deployment that changes, or of which a ReplicaSet does.
//! let queue = WorkQueue::new("deployments");
//! deployments.add_event_handler(Enqueue::object(&queue))?;
//! sets.add_event_handler(Enqueue::owner(&queue, &Resource::of::<Deployment>()))?;
//! factory.start();
//! factory.wait_for_sync().await?;
//!
//! let lister = deployments.synced().await?;
//! # let stop = queue.clone();
//! # tokio::spawn(async move { stop.shutdown_with_drain().await });
//! // Four at a time, until `queue.shutdown()`; what fails is tried again, later each time.
//! queue.run_workers(4, move |key| reconcile(lister.clone(), key)).await;
//! # factory.shutdown().await;
//! # Ok(())
//! # }
//!
//! async fn reconcile(deployments: Lister<Deployment>, key: ObjectKey) -> anyhow::Result<()> {
//!     let Some(deployment) = deployments.get(&key) else { return Ok(()) }; // deleted
//!     // … make the world as `deployment` says
//! #   _ = deployment;
//!     Ok(())
//! }
//! ```
//! The example `workqueue` of this crate is a whole one: owners, status, conflicts. A
//! [`Controller`](crate::Controller) does most of that by itself.
//!
//! # Deleted objects
//! [`Enqueue`] takes keys from events, and owners from the last known state of what is gone, so
//! deletes need no care: the worker asks the lister and finds nothing.
//!
//! # Reading one's own writes
//! A lister may be behind what a worker has just written: a worker that creates Pods and is called
//! again at once may count too few. Wait for the object that the write returned
//! ([`wait_for_object_within`](crate::SharedInformer::wait_for_object_within)) before the key is
//! done, and before the next look at it if that failed:
//! [`read_your_writes`](crate::manual::read_your_writes).
//!
//! # kube-runtime
//! Reconcilers written for `kube_runtime::Controller` can be fed by informers as well:
//! [`from_kube_rs`](crate::manual::from_kube_rs). `docs/kube-runtime.md` in the repository has the
//! code.
//!
//! # Metrics
//! [`WorkQueue::metrics`] has the figures, named as client-go names them. With the feature
//! `prometheus-client`, `WorkQueueCollector` registers them where you want.

mod enqueue;
mod item;
#[cfg(feature = "prometheus-client")]
mod prometheus;
mod workers;

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use informer_core::workqueue::{Polled, Queue, SharedQueue, Ticket};
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, Sleep, sleep_until};

pub use enqueue::Enqueue;
pub(crate) use enqueue::{each_state, owner_key, priority_of};
pub use informer_core::workqueue::{
    BucketLimiter, ExponentialLimiter, FastSlowLimiter, Histogram, MaxOfLimiter, MaxWaitLimiter,
    Metrics, Priority, RateLimiter, default_limiter,
};
pub use item::Item;
#[cfg(feature = "prometheus-client")]
pub use prometheus::WorkQueueCollector;
pub(crate) use workers::brief;

/// A queue of keys to work on, shared by those who add and those who work. A handle: cloning is
/// cheap, and all clones are the same queue.
///
/// - Keys are handed out in the order in which they were added; a key that waits already is not
///   added again.
/// - Keys of [low priority](Self::add_with_priority) wait for all others, but of ten keys handed
///   out while some wait, one is of low priority.
/// - No two workers have the same key. One that is added while a worker has it comes again, once,
///   when the worker is done with it.
/// - A key that waits for its time comes at the earliest time that was asked for.
///
/// It has no task of its own: those who wait in [`next`](Self::next) see to delayed keys as well.
pub struct WorkQueue<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    name: String,
    queue: SharedQueue<K>,
    /// Where the queue's time begins.
    epoch: Instant,
}

/// What a queue holds: something small that names a piece of work, such as an
/// [`ObjectKey`](crate::ObjectKey).
pub trait Key: Hash + Eq + Clone + Send + 'static {}

impl<K: Hash + Eq + Clone + Send + 'static> Key for K {}

impl<K: Key> WorkQueue<K> {
    /// A queue whose failures wait as those of client-go's controllers: see [`default_limiter`].
    /// The name tells queues apart in logs and metrics.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self::with_limiter(name, default_limiter())
    }

    /// A queue with a rate limiter of your choice, for
    /// [`add_rate_limited`](Self::add_rate_limited).
    #[must_use]
    pub fn with_limiter(name: impl Into<String>, limiter: impl RateLimiter<K>) -> Self {
        let queue = SharedQueue::new(Queue::new(limiter));
        Self { inner: Arc::new(Inner { name: name.into(), queue, epoch: Instant::now() }) }
    }

    /// The name it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Adds a key, unless it waits to be handed out already. Does nothing once the queue is shut
    /// down.
    pub fn add(&self, key: K) {
        self.inner.with(|queue, now| queue.add(now, key));
    }

    /// Adds a key with a priority. One that waits already keeps the higher of both priorities, so
    /// that a change of an object is seen to before a backlog of others, also if the object was in
    /// that backlog. Does nothing once the queue is shut down.
    pub fn add_with_priority(&self, key: K, priority: Priority) {
        self.inner.with(|queue, now| queue.add_with_priority(now, key, priority));
    }

    /// Adds a key when `delay` has passed. One that waits for its time already keeps the earlier
    /// time. Does nothing once the queue is shut down; keys that wait for their time then are
    /// dropped.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.inner.with(|queue, now| queue.add_after(now, key, delay));
    }

    /// Adds a key when the rate limiter lets it: for work that failed.
    pub fn add_rate_limited(&self, key: K) {
        self.inner.with(|queue, now| queue.add_rate_limited(now, key));
    }

    /// Makes the rate limiter forget the failures of a key: for work that succeeded, or is given
    /// up.
    pub fn forget(&self, key: &K) {
        self.inner.with(|queue, _| queue.forget(key));
    }

    /// How often a key was added rate limited since it was last forgotten.
    #[must_use]
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.inner.with(|queue, _| queue.num_requeues(key))
    }

    /// Waits for a key to work on; `None` when the queue is shut down and all was handed out, also
    /// what was added again while in work. Once `None`, always `None`.
    ///
    /// Several workers may wait; each key wakes one of them, the one that has waited longest.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: a key is handed out only as its result, and a wake-up
    /// that was on its way goes to another who waits. A future that is kept but polled no more may
    /// hold up a key that others could take.
    pub async fn next(&self) -> Option<Item<K>> {
        // Workers that never find the queue empty let others run as well.
        consume_budget().await;
        let inner = &self.inner;
        let mut place = Place { inner, ticket: Ticket::default(), leave: SharedQueue::leave };
        let mut sleep = pin!(None::<Sleep>);
        let mut asleep_until = None;
        poll_fn(|context| {
            loop {
                let until =
                    match inner.queue.poll_take(inner.now(), &mut place.ticket, context.waker()) {
                        Polled::Item(key) => {
                            return Poll::Ready(Some(Item::new(key, Arc::clone(inner))));
                        }
                        Polled::Over => return Poll::Ready(None),
                        Polled::Pending(until) => until,
                    };
                if until != asleep_until {
                    asleep_until = until;
                    sleep.set(until.map(|until| sleep_until(inner.instant(until))));
                }
                match sleep.as_mut().as_pin_mut().map(|sleep| sleep.poll(context)) {
                    Some(Poll::Ready(())) => asleep_until = None,
                    Some(Poll::Pending) | None => return Poll::Pending,
                }
            }
        })
        .await
    }

    /// How many keys wait to be handed out (client-go's `Len`); not those that wait for their time,
    /// or that were added again while in work.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.with(|queue, _| queue.len())
    }

    /// Whether no key waits to be handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes no more keys, drops those that wait for their time, and lets workers finish what was
    /// added before. Returns at once, and ends waits in
    /// [`shutdown_with_drain`](Self::shutdown_with_drain).
    pub fn shutdown(&self) {
        self.inner.queue.shut_down();
    }

    /// [`shutdown`](Self::shutdown), and waits until all that was added is handed out and done.
    /// With nobody who calls [`next`](Self::next) any more, or a worker that keeps its item, that
    /// is never.
    ///
    /// # Cancel safety
    /// The queue is shut down at the first poll; dropping the future only ends the wait.
    pub async fn shutdown_with_drain(&self) {
        let inner = &self.inner;
        inner.queue.begin_drain();
        let mut place = Place { inner, ticket: Ticket::default(), leave: SharedQueue::leave_drain };
        poll_fn(|context| match inner.queue.poll_drained(&mut place.ticket, context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Whether the queue was shut down.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.inner.with(|queue, _| queue.is_shutting_down())
    }

    /// The queue's figures now. Nothing runs to keep them current.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.inner.with(|queue, now| queue.metrics(now))
    }
}

impl<K: Key> Inner<K> {
    fn with<R>(&self, change: impl FnOnce(&mut Queue<K>, Duration) -> R) -> R {
        let now = self.now();
        self.queue.with(now, |queue| change(queue, now))
    }
}

impl<K> Inner<K> {
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// A time of the queue on tokio's clock; one that is too far away for it is as good as never.
    fn instant(&self, time: Duration) -> Instant {
        const NEVER: Duration = Duration::from_secs(86_400 * 365);
        self.epoch.checked_add(time).unwrap_or_else(|| Instant::now() + NEVER)
    }
}

/// The place of one who waits, given up when the wait ends.
struct Place<'a, K: Key> {
    inner: &'a Inner<K>,
    ticket: Ticket,
    leave: fn(&SharedQueue<K>, &mut Ticket),
}

impl<K: Key> Drop for Place<'_, K> {
    fn drop(&mut self) {
        (self.leave)(&self.inner.queue, &mut self.ticket);
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
