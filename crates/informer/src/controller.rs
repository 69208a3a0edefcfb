//! Controllers: a reconcile loop on shared informers.
//!
//! A [`Controller`] calls one function, `reconcile`, for each object of a kind: after the first
//! list, when the object changes, when something that belongs to it changes, when it asks for it,
//! and again after a failure. The function makes the world as the object wants it. It is not told
//! what has changed; it looks at what is.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use informer::controller::{Action, Context, Controller};
//! use informer::{SharedInformer, SharedInformerFactory};
//! use k8s_openapi::api::apps::v1::ReplicaSet;
//! use k8s_openapi::api::core::v1::Pod;
//!
//! struct State { pods: SharedInformer<Pod> }
//!
//! async fn reconcile(set: Arc<ReplicaSet>, ctx: Context<State>) -> anyhow::Result<Action> {
//!     let own = ctx.owned(&ctx.state().pods)?; // what the store shows of its Pods
//!     // … make the world as `set` says
//! #   _ = (set, own);
//!     Ok(Action::requeue_after(Duration::from_secs(300)))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anyhow::Result<()> {
//! # let server = informer_testkit::TestServer::start().await?;
//! # let client = server.client()?;
//! let factory = SharedInformerFactory::builder(client.clone()).build();
//! let (sets, pods) = (factory.informer::<ReplicaSet>()?, factory.informer::<Pod>()?);
//! let controller = Controller::new(client, &sets).owns(&pods).concurrency(4);
//! # let shutdown_signal = async || ();
//! controller.graceful_shutdown_on(shutdown_signal()).run(reconcile, State { pods }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//! - No object is reconciled twice at a time, and no change stays unreconciled: what changes during
//!   a reconcile is followed by another. (A map of [`watches`](Controller::watches) that panics is
//!   logged and counted; what it did not say is not reconciled.)
//! - A reconcile sees an object that is in the informer's store. When the object is gone, nothing
//!   is called any more and the key is forgotten: what must be done before that is done under a
//!   finalizer. (controller-runtime calls the reconciler, which finds nothing.) An object that was
//!   deleted and created again under its name is reconciled as the new one; what the old one left
//!   behind has another owner's UID.
//! - A reconcile that fails, panics, or takes longer than
//!   [`reconcile_timeout`](Controller::reconcile_timeout) comes again as the
//!   [rate limiter](Controller::rate_limiter) says: later each time, for each object and for all
//!   together.
//! - Changes come before the first list and before resyncs, which are added with
//!   [low priority](crate::workqueue::Priority::Low); of ten reconciles one is of low priority
//!   while any waits, so that none waits for ever.
//! - It starts when all its informers have synced, and says in its
//!   [status](ControllerHandle::status), and after 5 s in the log, what it waits for.
//!
//! # Never stale
//! What a reconcile writes through its [`Context`] is remembered, and the next reconcile of the same
//! object begins when every informer of this controller on a written resource shows it: creates,
//! updates, patches, server-side applies, deletes, also those whose answer was lost. So a reconcile
//! does not create twice what it created before. A request whose reconcile is cancelled, as by a
//! [timeout](Controller::reconcile_timeout), goes on, and its answer is waited for. The exception is
//! a request that is carried out after its connection broke, or more than a minute later:
//! [`read_your_writes`](crate::manual::read_your_writes).
//!
//! - What is waited for is the version of the store, not the object: somebody may have changed or
//!   deleted it since.
//! - Only informers of this controller are waited for: read children from one that it
//!   [owns](Controller::owns) or [watches](Controller::watches).
//! - After [5 s](Controller::own_writes_deadline) the key is put back, with an entry in the status,
//!   and waits again. It is not reconciled with an older view: during an outage nothing happens,
//!   rather than something twice.
//! - This holds for the key that wrote. Reconciles of other keys that read the same objects wait for
//!   them with [`after_all_writes`](Controller::after_all_writes).
//! - Writes through another client are not remembered. [`Writer::client`] is one whose writes are,
//!   for kube's `Api` and whatever takes it.
//!
//! When a write is answered with 409 (Conflict, AlreadyExists), let the reconcile fail: the object
//! is read, the informers are waited for at its version, and the key comes again, without a line in
//! the log unless that happens often.
//!
//! # Sharing
//! A controller takes its informers from a factory, and opens no watch of its own: five controllers
//! over Pods are one watch and one store. Informers may be of any representation: `Lazy`, metadata
//! only, a struct of your own; what a controller needs of the metadata, [`HasMetadata`] reads.
//!
//! # Events
//! Kubernetes Events are written with kube-runtime's `Recorder`, if you want them: it takes
//! [`Writer::client`], or any other, and a reference to the object.
//!
//! # Replicas
//! With [`leader_election`](Controller::leader_election) one of several replicas reconciles, and the
//! others keep their informers ready.

mod action;
mod context;
mod error;
mod exchange;
mod finalizer;
mod followed;
mod gate;
mod handle;
mod meter;
mod metrics;
mod own_writes;
mod predicate;
#[cfg(feature = "prometheus-client")]
mod prometheus;
mod run;
mod shared;
mod signals;
mod source;
mod status;
#[cfg(test)]
mod tests;
mod worker;
mod writer;

use std::fmt;
use std::future::pending;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use informer_core::ObjectKey;
use kube::Client;

use crate::leader_election::Leadership;
use crate::workqueue::{MaxOfLimiter, RateLimiter, default_limiter};
use crate::{HasMetadata, SharedInformer};

pub use action::Action;
pub use context::Context;
pub use error::{NotCaughtUp, NotShown, WriteError};
pub use finalizer::{FinalizerEvent, finalizer};
pub use handle::ControllerHandle;
pub use metrics::{ControllerMetrics, ReconcileTimes, ReconcileTotals};
pub use own_writes::OwnWritesMetrics;
pub use predicate::{Predicate, annotations_changed, generation_changed, labels_changed};
#[cfg(feature = "prometheus-client")]
pub use prometheus::ControllerCollector;
pub use run::RunError;
pub use signals::shutdown_signal;
pub use status::{ControllerPhase, ControllerStatus, FailedReconcile, RunningReconcile};
pub use writer::Writer;

use shared::Shared;
use source::{Source, Watch};

/// How long the informers have for showing what a reconcile wrote.
const OWN_WRITES_DEADLINE: Duration = Duration::from_secs(5);

/// How long running reconciles have for their end: less than the 30 s after which a kubelet kills
/// a container.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(25);

/// Reconciles the objects of a kind (controller-runtime's and kube-runtime's `Controller`): see the
/// [module](self).
pub struct Controller<T> {
    objects: SharedInformer<T>,
    filter: Option<Predicate<T>>,
    others: Vec<Arc<dyn Source>>,
    settings: Settings,
    shared: Arc<Shared>,
}

/// What does not depend on the objects.
struct Settings {
    client: Client,
    name: String,
    limiter: MaxOfLimiter<ObjectKey>,
    concurrency: usize,
    timeout: Option<Duration>,
    own_writes_deadline: Duration,
    after_all_writes: bool,
    leadership: Option<Leadership>,
    shutdown: BoxFuture<'static, ()>,
    shutdown_deadline: Duration,
}

impl<T: Send + Sync + 'static> Controller<T> {
    /// A controller of the objects that `informer` holds, in whatever representation. What
    /// reconciles write goes through `client`.
    ///
    /// It is called after the kind in lower case, works on one object at a time, with the delays of
    /// client-go's controllers after failures.
    #[must_use]
    pub fn new(client: Client, informer: &SharedInformer<T>) -> Self {
        let settings = Settings {
            client,
            name: informer.resource().kind.to_lowercase(),
            limiter: default_limiter(),
            concurrency: 1,
            timeout: None,
            own_writes_deadline: OWN_WRITES_DEADLINE,
            after_all_writes: false,
            leadership: None,
            shutdown: Box::pin(pending()),
            shutdown_deadline: SHUTDOWN_DEADLINE,
        };
        let (objects, shared) = (informer.clone(), Arc::new(Shared::new()));
        Self { objects, filter: None, others: Vec::new(), settings, shared }
    }

    /// Lets only events of the reconciled objects through that pass; by default all do. A second
    /// filter is one more that events have to pass. The first list passes filters of changes, such
    /// as [`generation_changed`].
    #[must_use]
    pub fn filter(mut self, filter: Predicate<T>) -> Self {
        self.filter = Some(match self.filter {
            Some(other) => other.and(filter),
            None => filter,
        });
        self
    }

    /// Reconciles the owner that controls an object, when the object changes or is gone: the owner
    /// whose reference says `controller: true`, of the reconciled group and kind. When an object
    /// changes hands, both owners are reconciled. Reconciles find the objects with
    /// [`Context::owned`], by an index which this adds.
    #[must_use]
    #[track_caller]
    pub fn owns<U: HasMetadata + Send + Sync + 'static>(
        self,
        informer: &SharedInformer<U>,
    ) -> Self {
        let owner = self.objects.resource().clone();
        self.and(Watch::owners(informer, None, owner))
    }

    /// [`owns`](Self::owns), for the events that pass a filter.
    #[must_use]
    #[track_caller]
    pub fn owns_with<U: HasMetadata + Send + Sync + 'static>(
        self,
        informer: &SharedInformer<U>,
        filter: Predicate<U>,
    ) -> Self {
        let owner = self.objects.resource().clone();
        self.and(Watch::owners(informer, Some(filter), owner))
    }

    /// Reconciles what `map` returns for an object that changes or is gone, in an [`Option`], a
    /// [`Vec`] or the like. Of an update both states are asked; of a delete what was last known,
    /// too. `map` may read listers, and must not block.
    #[must_use]
    #[track_caller]
    pub fn watches<U: Send + Sync + 'static, I: IntoIterator<Item = ObjectKey>>(
        self,
        informer: &SharedInformer<U>,
        map: impl Fn(&U) -> I + Send + Sync + 'static,
    ) -> Self {
        self.and(Watch::mapped(informer, None, map))
    }

    /// [`watches`](Self::watches), for the events that pass a filter.
    #[must_use]
    #[track_caller]
    pub fn watches_with<U: Send + Sync + 'static, I: IntoIterator<Item = ObjectKey>>(
        self,
        informer: &SharedInformer<U>,
        filter: Predicate<U>,
        map: impl Fn(&U) -> I + Send + Sync + 'static,
    ) -> Self {
        self.and(Watch::mapped(informer, Some(filter), map))
    }

    fn and(mut self, source: impl Source + 'static) -> Self {
        self.others.push(Arc::new(source));
        self
    }

    /// The name in logs, status and metrics, where it tells controllers apart.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// How many objects are reconciled at a time, at least one.
    #[must_use]
    pub fn concurrency(mut self, reconciles: usize) -> Self {
        self.settings.concurrency = reconciles.max(1);
        self
    }

    /// When failed reconciles are tried again; by default as those of client-go's controllers
    /// ([`default_limiter`]).
    #[must_use]
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey>) -> Self {
        self.settings.limiter = MaxOfLimiter::new().and(limiter);
        self
    }

    /// Cancels a reconcile that takes longer, and tries it again as after a failure. Without this a
    /// reconcile may take as long as it likes.
    #[must_use]
    pub fn reconcile_timeout(mut self, most: Duration) -> Self {
        self.settings.timeout = Some(most);
        self
    }

    /// How long a key waits until its informers show what its reconciles wrote; 5 s by default. Then
    /// it is put back, and waits again, later each time; it is never reconciled with what is older.
    #[must_use]
    pub fn own_writes_deadline(mut self, deadline: Duration) -> Self {
        self.settings.own_writes_deadline = deadline;
        self
    }

    /// Waits before each reconcile for the writes of all keys, not only for those of its own: for
    /// reconciles that read what those of other keys write, such as a common pool.
    ///
    /// The price is latency: every reconcile waits for the newest write of any other, some
    /// milliseconds on a good day and as long as the slowest watch on a bad one, and a worker waits
    /// with it. A write that no store will show, such as one that cannot be decoded, keeps all keys
    /// waiting. Writes that other controllers make are not waited for.
    #[must_use]
    pub fn after_all_writes(mut self) -> Self {
        self.settings.after_all_writes = true;
        self
    }

    /// Reconciles only while this process leads. Its [`LeaderElector`] runs beside the controller,
    /// and may serve several; end it after them, so that the Lease is released when nothing writes
    /// any more.
    ///
    /// The informers run all the time. When this process begins to lead, all of them are
    /// [refreshed](SharedInformer::refresh), so that what the leader before wrote is not done again,
    /// and every object is reconciled. When it leads no more, writes through the [`Context`] are
    /// refused with [`WriteError::NotLeader`], those that wait for a connection or an answer are
    /// given up, running reconciles are cancelled where they wait, and the writes that they made are
    /// forgotten.
    ///
    /// [`LeaderElector`]: crate::leader_election::LeaderElector
    #[must_use]
    pub fn leader_election(mut self, leadership: Leadership) -> Self {
        self.settings.leadership = Some(leadership);
        self
    }

    /// Ends the controller when `signal` resolves, such as [`shutdown_signal`]: no more reconcile
    /// begins, and those that run may end within the
    /// [deadline](Self::graceful_shutdown_deadline).
    #[must_use]
    pub fn graceful_shutdown_on(
        mut self,
        signal: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        self.settings.shutdown = Box::pin(signal);
        self
    }

    /// How long running reconciles have for their end; 25 s by default.
    #[must_use]
    pub fn graceful_shutdown_deadline(mut self, deadline: Duration) -> Self {
        self.settings.shutdown_deadline = deadline;
        self
    }

    /// A handle, for status and metrics.
    #[must_use]
    pub fn handle(&self) -> ControllerHandle {
        ControllerHandle(Arc::clone(&self.shared))
    }

    /// Starts the informers, waits until all have synced, and reconciles until the
    /// [signal](Self::graceful_shutdown_on) comes. `state` is what reconciles share
    /// ([`Context::state`]).
    ///
    /// The informers are their factory's, and go on after the controller. Shut the factory down
    /// after it, not before: a controller without its informers ends with an error.
    ///
    /// # Errors
    /// [`RunError::Informer`] if an informer cannot be used or has stopped; [`RunError::NotLeader`]
    /// if the elector has ended; [`RunError::Cancelled`] if reconciles had to be cancelled during
    /// the shutdown, at its deadline or because the process leads no more.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future ends the controller at once, and cancels running reconciles where they
    /// wait.
    #[track_caller]
    pub fn run<S, F, R, E>(
        self,
        reconcile: F,
        state: S,
    ) -> impl Future<Output = Result<(), RunError>> + Send
    where
        S: Send + Sync + 'static,
        F: Fn(Arc<T>, Context<S>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        run::run(self, reconcile, state, Location::caller())
    }
}

impl<T> fmt::Debug for Controller<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.settings.name).finish_non_exhaustive()
    }
}
