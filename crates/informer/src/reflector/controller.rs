//! A reflector with a process function of one's own.

use std::fmt;
use std::time::Duration;

use informer_core::fan_out::resync_period;
use informer_core::{Delta, DeltaQueue};

use super::{Phase, Reflector, Report, Sink};
use crate::Resource;
use crate::options::InformerOptions;
use crate::source::ListWatch;

/// Pops deltas in order and hands them to a function of one's own (client-go's `Controller` with
/// `Config`). For those who need neither store nor fan-out, or bring their own. What reconciles
/// objects is [`informer::Controller`](crate::Controller).
///
/// # Examples
/// ```
/// use informer::reflector::Controller;
/// use informer::source::KubeSource;
/// use informer::{Delta, InformerOptions, Resource, Scope};
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

/// Nobody else would hear of it.
pub(crate) fn log(report: &Report<'_>) {
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
