//! The reflector: keeps a [`Sink`] equal to a collection.
//!
//! What is asked of the server, and what its answers mean, is decided in [`informer_core::ingest`];
//! a [`Reflector`] moves the bytes between it and a [`ListWatch`], sleeps, and wakes. It is usable
//! alone: a sink can be anything.

mod alarm;
mod controller;
mod decoder;
mod driver;

use std::fmt;
use std::sync::Arc;

use informer_core::reflector::ReflectorConfig;
use tokio::time::Instant;

use crate::options::InformerOptions;
use crate::source::ListWatch;
use crate::{Resource, Scope};

pub use informer_core::ingest::{Held, Phase, Report, Sink, Undecodable};

pub use controller::Controller;
pub(crate) use controller::log;
pub(crate) use decoder::{Identity, ObjectDecoder, identity_of};

/// Keeps a [`Sink`] equal to a collection (client-go's `Reflector`).
///
/// # Examples
/// Counting a collection's objects without a store:
/// ```
/// use std::time::Duration;
/// use informer::reflector::{Held, Reflector, Sink};
/// use informer::source::KubeSource;
/// use informer::{Delta, DeltaQueue, InformerOptions, Resource, ResourceVersion, Scope, Uid};
/// use k8s_openapi::api::core::v1::Pod;
///
/// struct Counter(tokio::sync::watch::Sender<usize>);
///
/// impl Sink<Pod> for Counter {
///     fn deliver(&mut self, _now: Duration, deltas: &mut DeltaQueue<Pod>) {
///         for delta in deltas.pop_batch(usize::MAX) {
///             match delta {
///                 Delta::Listed(_) | Delta::Added(_) => self.0.send_modify(|count| *count += 1),
///                 Delta::Deleted(_) => self.0.send_modify(|count| *count -= 1),
///                 _ => {}
///             }
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> anyhow::Result<()> {
/// # let server = informer_testkit::TestServer::start().await?;
/// # let client = server.client()?;
/// # server.cluster().load(informer_testkit::generate::pods(3))?;
/// let source = KubeSource::new(client, Resource::of::<Pod>(), Scope::all());
/// let reflector = Reflector::new(source, Resource::of::<Pod>(), InformerOptions::<Pod>::new());
/// let (sender, mut count) = tokio::sync::watch::channel(0);
/// tokio::select! {
///     () = reflector.run(Counter(sender)) => unreachable!("a reflector runs until it is dropped"),
///     three = count.wait_for(|count| *count == 3) => { three?; }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reflector<T, S> {
    source: Arc<S>,
    config: ReflectorConfig,
    decoder: ObjectDecoder<T>,
    epoch: Instant,
}

impl<T: Send + Sync + 'static, S: ListWatch> Reflector<T, S> {
    /// A reflector of what `source` lists, which holds `resource`. Of the options, scope and resync
    /// mean nothing here: the one is the source's, the other the sink's.
    ///
    /// `InformerOptions::<DynamicObject>::new()` means plain serde here: `apiVersion` and `kind`
    /// stay absent where the server leaves them out, and transforms may change the identity
    /// unchecked. `InformerOptions::of(Representation::dynamic())` has both; for typed objects
    /// [`Representation::typed`](crate::Representation::typed) has the check.
    ///
    /// # Panics
    /// With options that a factory answers with
    /// [`Error::InvalidOption`](crate::Error::InvalidOption).
    #[expect(clippy::needless_pass_by_value, reason = "as all constructors take it")]
    pub fn new(source: S, resource: Resource, options: InformerOptions<T>) -> Self {
        let scope = options.scope(&Scope::all(), resource.namespaced);
        options.check(&resource, &scope).unwrap_or_else(|error| panic!("{error}"));
        Self::on_clock(source, &resource, options, Instant::now())
    }

    /// A reflector whose time began at `epoch`.
    pub(crate) fn on_clock(
        source: S,
        resource: &Resource,
        options: InformerOptions<T>,
        epoch: Instant,
    ) -> Self {
        Self {
            source: Arc::new(source),
            config: options.reflector_config(crate::seed::random()),
            decoder: ObjectDecoder::new(resource, options),
            epoch,
        }
    }

    /// Takes over what was learnt of the server: whether it has streaming lists for this resource
    /// (G27).
    pub(crate) fn streaming_lists(mut self, supported: bool) -> Self {
        self.config.streaming_lists &= supported;
        self
    }

    /// Lists, watches and delivers, for ever.
    ///
    /// # Cancel safety
    /// Dropping the future stops the reflector: requests are given up, and a list that was not
    /// complete is never delivered as complete.
    pub async fn run(self, sink: impl Sink<T>) {
        driver::Driver::new(self, sink).run().await;
    }
}

impl<T, S> fmt::Debug for Reflector<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector").field("config", &self.config).finish_non_exhaustive()
    }
}
