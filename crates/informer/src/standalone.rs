//! The informer with a single handler.

use std::fmt;
use std::time::Duration;

use informer_core::fan_out::RegistrationQueue;
use informer_core::{DeltaQueue, Pipeline};
use tokio::time::Instant;

use crate::handler::EventHandler;
use crate::options::InformerOptions;
use crate::reflector::{Held, Reflector, Report, Sink, log};
use crate::source::ListWatch;
use crate::store::Reader;
use crate::{Resource, ResourceVersion, Uid};

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

    fn held(&self, namespace: &str, name: &str, uid: &Uid, version: &ResourceVersion) -> Held {
        self.pipeline.held(namespace, name, uid, version)
    }

    fn next_sync(&self) -> Option<Duration> {
        self.pipeline.next_resync()
    }

    fn report(&mut self, report: Report<'_>) {
        log(&report);
    }
}

impl<T, S> fmt::Debug for Informer<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer").field("reflector", &self.reflector).finish_non_exhaustive()
    }
}
