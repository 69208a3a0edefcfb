//! The reflector's driver: opens what the state machine asks for, moves bytes, decodes, sleeps.
//!
//! The decisions are in [`informer_core::reflector`]; a [`Reflector`] here carries them out against a
//! [`ListWatch`] and delivers deltas to a [`Sink`]. It is usable alone: a sink can be anything.

mod decoder;
mod session;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use informer_core::reflector::{ReflectorConfig, State};
use informer_core::store::Store;
use informer_core::{DeltaQueue, ObjectKey, ResourceVersion, Uid};
use tokio::time::Instant;

use crate::decode::Decode;
use crate::options::InformerOptions;
use crate::source::ListWatch;
use crate::{Resource, Scope};

pub(crate) use decoder::{Decoder, Identity, identity_of};

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
    decoder: Decoder<T>,
    epoch: Instant,
}

/// Where a [`Reflector`] delivers (client-go's `ReflectorStore`).
pub trait Sink<T>: Send {
    /// Takes deltas out of the queue and applies them; `now` is on the clock of [`next_sync`](Self::next_sync).
    /// What is left stays queued; while the queue is full nothing more is read from the server.
    fn deliver(&mut self, now: Duration, deltas: &mut DeltaQueue<T>);

    /// What the sink holds under this name: an object that it holds in the very state that was listed is not
    /// decoded again, but delivered as [`Delta::Kept`](crate::Delta::Kept) (G7). Nothing, by default.
    fn held(&self, namespace: &str, name: &str, uid: &Uid, version: &ResourceVersion) -> Held {
        _ = (namespace, name, uid, version);
        Held::Nothing
    }

    /// When a [`Delta::Sync`](crate::Delta::Sync) shall be queued next. Never, by default.
    fn next_sync(&self) -> Option<Duration> {
        None
    }

    /// Ends when [`next_sync`](Self::next_sync) has changed otherwise than by a delivery. Never, by default.
    ///
    /// # Cancel safety
    /// Dropped and called again at every step; a change in between must not be lost.
    fn rescheduled(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Hears what the reflector is doing. Must be quick.
    fn report(&mut self, report: Report<'_>) {
        _ = report;
    }
}

/// What a [`Sink`] holds under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// This very state of this very object.
    Same(ObjectKey),
    /// Another state of the same object.
    Older(ObjectKey),
    /// Another object, with another UID.
    Other(ObjectKey),
}

/// What a store holds under a name.
pub(crate) fn held_in<T>(
    store: &Store<T>,
    namespace: &str,
    name: &str,
    uid: &Uid,
    version: &ResourceVersion,
) -> Held {
    match store.find(namespace, name) {
        None => Held::Nothing,
        Some((key, record)) if record.is_state(uid, version) => Held::Same(key.clone()),
        Some((key, record)) if record.uid == *uid => Held::Older(key.clone()),
        Some((key, _)) => Held::Other(key.clone()),
    }
}

/// What a [`Reflector`] is doing.
#[derive(Debug)]
#[non_exhaustive]
pub enum Report<'a> {
    /// Its state; after each step, changed or not.
    State(&'a State),
    /// Whether the server has streaming lists, as was found out.
    StreamingLists {
        /// It has.
        supported: bool,
    },
    /// A request is sent.
    Requested {
        /// `list`, `watch` or `discover`.
        verb: &'static str,
    },
    /// Objects or events were taken from the wire.
    Received {
        /// How many events of a watch.
        events: usize,
        /// How many bookmarks.
        bookmarks: usize,
        /// How many bytes of objects.
        bytes: usize,
    },
    /// A list begins: until it is published or abandoned, what is undecodable or decodable belongs to it.
    ListBegan,
    /// The list is complete and about to be delivered. An empty one: the resource is gone.
    ListPublished,
    /// The list broke off.
    ListAbandoned,
    /// Something failed.
    Failed {
        /// `list`, `watch` or `discover`.
        phase: &'static str,
        /// What happened, for people.
        message: &'a str,
    },
    /// An object was decoded (`true`), or was held already.
    Object {
        /// Whether it was decoded.
        decoded: bool,
    },
    /// An object could not be decoded or transformed; the sink keeps what it holds (G30).
    Undecodable {
        /// Namespace and name.
        key: &'a ObjectKey,
        /// `decode` or `transform`.
        phase: &'static str,
        /// Path and type, never the value.
        cause: &'a str,
    },
    /// An item of a list was left out: it cannot be read, and does not even say who it is (G30). The list is incomplete.
    Unreadable {
        /// Which item of the list, counted from 1.
        number: usize,
        /// What is wrong with it, never what stood there.
        cause: &'a str,
    },
    /// An object that was undecodable has a good state again, or is gone.
    Decodable {
        /// Namespace and name.
        key: &'a ObjectKey,
    },
    /// A list has objects of which none is usable (G20); it was not published.
    NothingDecodes {
        /// How many objects it has.
        objects: usize,
        /// Why the last one could not be decoded.
        cause: &'a str,
    },
}

impl<T: Decode, S: ListWatch> Reflector<T, S> {
    /// A reflector of what `source` lists, which holds `resource`. Of the options, scope and resync mean
    /// nothing here: the one is the source's, the other the sink's.
    ///
    /// # Panics
    /// With options that a factory answers with [`Error::InvalidOption`](crate::Error::InvalidOption).
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
            decoder: Decoder::new(resource, options),
            epoch,
        }
    }

    /// Takes over what was learnt of the server: whether it has streaming lists for this resource (G27).
    pub(crate) fn streaming_lists(mut self, supported: bool) -> Self {
        self.config.streaming_lists &= supported;
        self
    }

    /// Lists, watches and delivers, for ever.
    ///
    /// # Cancel safety
    /// Dropping the future stops the reflector: requests are given up, and a list that was not complete is
    /// never delivered as complete.
    pub async fn run(self, sink: impl Sink<T>) {
        session::Session::new(self, sink).run().await;
    }
}

impl<T, S> fmt::Debug for Reflector<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector").field("config", &self.config).finish_non_exhaustive()
    }
}
