//! A reflector and a queue with a process function of one's own, and the informer with a single
//! handler.

use std::fmt;
use std::time::Duration;

use informer_core::fan_out::{RegistrationQueue, resync_period};
use informer_core::{Delta, DeltaQueue, Pipeline};
use tokio::time::Instant;

use crate::handler::EventHandler;
use crate::options::InformerOptions;
use crate::reflector::{Phase, Reflector, Report, Sink};
use crate::source::ListWatch;
use crate::store::Reader;
use crate::{Resource, ResourceVersion, Uid};

/// Pops deltas in order and hands them to a function of one's own (client-go's `Controller` with
/// `Config`). For those who need neither store nor fan-out, or bring their own.
///
/// # Examples
/// ```
/// use informer::source::KubeSource;
/// use informer::{Controller, Delta, InformerOptions, Resource, Scope};
/// use k8s_openapi::api::core::v1::Pod;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anyhow::Result<()> {
/// # let server = informer_testkit::TestServer::start().await?;
/// # let client = server.client()?;
/// # server.cluster().load(informer_testkit::generate::pods(3))?;
/// let source = KubeSource::new(client, Resource::of::<Pod>(), Scope::all());
/// let controller = Controller::new(source, Resource::of::<Pod>(), InformerOptions::<Pod>::new());
/// let (done, mut finished) = tokio::sync::mpsc::channel(1);
/// let mut listed = 0;
/// let process = move |delta: Delta<Pod>| match delta {
///     Delta::Listed(_) => listed += 1,
///     Delta::ReplaceFinished { .. } => _ = done.try_send(listed),
///     _ => {}
/// };
/// tokio::select! {
///     () = controller.run(process) => unreachable!("a controller runs until it is dropped"),
///     listed = finished.recv() => assert_eq!(listed, Some(3)),
/// }
/// # Ok(())
/// # }
/// ```
pub struct Controller<T, S> {
    reflector: Reflector<T, S>,
    resync: Option<Duration>,
}

/// An informer with a single handler and a store, which runs in the caller's task (client-go's
/// `NewInformer`). The handler is called inline: while it runs, nothing is read from the server.
///
/// # Examples
/// ```
/// use informer::source::KubeSource;
/// use informer::{EventHandler, Informer, InformerOptions, Resource, Scope};
/// use k8s_openapi::api::core::v1::Pod;
///
/// struct Announce(tokio::sync::mpsc::UnboundedSender<String>);
///
/// impl EventHandler<Pod> for Announce {
///     fn on_add(&mut self, pod: &std::sync::Arc<Pod>, _initial: bool) {
///         _ = self.0.send(pod.metadata.name.clone().unwrap_or_default());
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anyhow::Result<()> {
/// # let server = informer_testkit::TestServer::start().await?;
/// # let client = server.client()?;
/// # server.cluster().load(informer_testkit::generate::pods(1))?;
/// let source = KubeSource::new(client, Resource::of::<Pod>(), Scope::all());
/// let informer = Informer::new(source, Resource::of::<Pod>(), InformerOptions::<Pod>::new());
/// let store = informer.store();
/// let (sender, mut names) = tokio::sync::mpsc::unbounded_channel();
/// tokio::select! {
///     () = informer.run(Announce(sender)) => unreachable!("an informer runs until it is dropped"),
///     Some(name) = names.recv() => assert!(store.snapshot().iter().any(|pod| pod.key.name() == name)),
/// }
/// # Ok(())
/// # }
/// ```
pub struct Informer<T, S> {
    reflector: Reflector<T, S>,
    resync: Option<Duration>,
    pipeline: Pipeline<T>,
    epoch: Instant,
}

impl<T: Send + Sync + 'static, S: ListWatch> Controller<T, S> {
    /// A controller of what `list_watch` lists, which holds `resource`. With a resync in the
    /// options, a [`Delta::Sync`] comes that often, at most once a second (G8).
    pub fn new(list_watch: S, resource: Resource, options: InformerOptions<T>) -> Self {
        let resync = options.resync.and_then(resync_period);
        Self { reflector: Reflector::new(list_watch, resource, options), resync }
    }

    /// Hands every delta to `process`, in order, for ever. A list comes as
    /// [`ReplaceStarted`](Delta::ReplaceStarted), one [`Listed`](Delta::Listed) per object, and
    /// [`ReplaceFinished`](Delta::ReplaceFinished); without a store to ask, every object of a
    /// relist is decoded.
    ///
    /// # Cancel safety
    /// Dropping the future stops the controller between two deltas.
    pub async fn run(self, process: impl FnMut(Delta<T>) + Send) {
        self.reflector.run(Process { process, resync: self.resync, due: self.resync }).await;
    }
}

struct Process<F> {
    process: F,
    resync: Option<Duration>,
    due: Option<Duration>,
}

impl<T: Send + Sync + 'static, F: FnMut(Delta<T>) + Send> Sink<T> for Process<F> {
    fn deliver(&mut self, now: Duration, deltas: &mut DeltaQueue<T>) {
        for delta in deltas.pop_batch(usize::MAX) {
            if matches!(delta, Delta::Sync) {
                self.due = self.resync.map(|period| now + period);
            }
            (self.process)(delta);
        }
    }

    fn next_sync(&self) -> Option<Duration> {
        self.due
    }

    fn report(&mut self, report: Report<'_>) {
        log(&report);
    }
}

impl<T: Send + Sync + 'static, S: ListWatch> Informer<T, S> {
    /// An informer of what `list_watch` lists, which holds `resource`.
    #[expect(clippy::needless_pass_by_value, reason = "as all constructors take it")]
    pub fn new(list_watch: S, resource: Resource, options: InformerOptions<T>) -> Self {
        let (resync, epoch) = (options.resync, Instant::now());
        let reflector = Reflector::on_clock(list_watch, &resource, options, epoch);
        Self { reflector, resync, pipeline: Pipeline::new(), epoch }
    }

    /// The store, to take snapshots from; it outlives the informer.
    pub fn store(&self) -> Reader<T> {
        self.pipeline.reader()
    }

    /// Calls `handler` with every event, for ever.
    ///
    /// # Cancel safety
    /// Dropping the future stops the informer between two events.
    pub async fn run(mut self, handler: impl EventHandler<T>) {
        let (_, queue) =
            self.pipeline.register(self.epoch.elapsed(), usize::MAX, self.resync, || {});
        let sink = Inline { pipeline: self.pipeline, queue, handler };
        self.reflector.run(sink).await;
    }
}

struct Inline<T, H> {
    pipeline: Pipeline<T>,
    queue: RegistrationQueue<T>,
    handler: H,
}

impl<T: Send + Sync + 'static, H: EventHandler<T>> Sink<T> for Inline<T, H> {
    fn deliver(&mut self, now: Duration, deltas: &mut DeltaQueue<T>) {
        if deltas.is_empty() {
            return;
        }
        self.pipeline.apply(now, deltas.pop_batch(usize::MAX));
        loop {
            let events = self.queue.lock().take(64);
            if events.is_empty() {
                return;
            }
            for event in events.iter() {
                self.handler.on_event(event);
            }
        }
    }

    fn held(
        &self,
        namespace: &str,
        name: &str,
        uid: &Uid,
        version: &ResourceVersion,
    ) -> crate::reflector::Held {
        self.pipeline.held(namespace, name, uid, version)
    }

    fn next_sync(&self) -> Option<Duration> {
        self.pipeline.next_resync()
    }

    fn report(&mut self, report: Report<'_>) {
        log(&report);
    }
}

/// Nobody else would hear of it.
fn log(report: &Report<'_>) {
    match report {
        Report::Failed { phase: Phase::List, failure } => tracing::warn!("{failure}"),
        Report::Failed { phase, failure } => tracing::debug!(%phase, "{failure}"),
        Report::Undecodable { key, why } => {
            tracing::warn!(phase = %why.phase, "{key}: {}", why.cause)
        }
        _ => {}
    }
}

impl<T, S> fmt::Debug for Controller<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("reflector", &self.reflector).finish_non_exhaustive()
    }
}

impl<T, S> fmt::Debug for Informer<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer").field("reflector", &self.reflector).finish_non_exhaustive()
    }
}
