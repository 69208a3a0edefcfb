//! One informer, shared by everybody who needs its collection.

mod observe;
mod own_writes;
mod refresh;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{self, StreamExt};
use informer_core::ResourceVersion;
use informer_core::ingest::Phase;
use informer_core::store::{Index, IndexError, IndexValues};

use crate::error::NotSynced;
use crate::events::EventStream;
use crate::fields::Field;
use crate::handler::{EventHandler, HandlerOptions, Handlers};
use crate::lister::Lister;
use crate::options::InformerOptions;
use crate::reflector::Reflector;
use crate::registration::{Reader, Registration};
use crate::shared::{Finishing, Owner, Shared, warning_if_unstarted};
use crate::sink::SharedSink;
use crate::source::ListWatch;
use crate::status::{InformerState, Status, StatusStream, StopCause};
use crate::{Error, HasFields, HasLabels, Resource, Scope, runtime};

pub use observe::Observation;

/// How long [`SharedInformer::stop`] waits for callbacks.
pub(crate) const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// Objects that a new index files before the informer and other tasks have their turn.
const INDEX_STEP: usize = 256;

/// An always-current, indexed copy of one collection, with events for every change (client-go's
/// `SharedIndexInformer`). A handle: cloning is cheap, and all clones are the same informer.
///
/// Ask a [`SharedInformerFactory`](crate::SharedInformerFactory) for it, or make one of its own
/// with [`new`](Self::new), which then lives while a handle, lister, stream or callback of it does
/// (G24).
///
/// Handlers and indexes may be added before or after the start; a [`Lister`] is obtained by waiting
/// for the first list ([`synced`](Self::synced)).
pub struct SharedInformer<T> {
    pub(crate) shared: Arc<Shared<T>>,
    pub(crate) owner: Arc<Owner>,
    default_resync: Option<Duration>,
    /// Whether callbacks keep the informer running, as those of a standalone one do.
    callbacks_own: bool,
}

impl<T: Send + Sync + 'static> SharedInformer<T> {
    /// An informer of what `list_watch` lists, which holds objects of `resource` (client-go's
    /// `NewSharedIndexInformer`). Namespace and selectors of the options only name the scope here;
    /// the source decides what it lists.
    ///
    /// `InformerOptions::<DynamicObject>::new()` means plain serde here: `apiVersion` and `kind`
    /// stay absent where the server leaves them out, and transforms may change the identity
    /// unchecked. `InformerOptions::of(Representation::dynamic())` has both, as
    /// [`factory.dynamic`](crate::SharedInformerFactory::dynamic) does; for typed objects
    /// [`Representation::typed`](crate::Representation::typed) has the check.
    ///
    /// # Panics
    /// Outside of a tokio runtime, which its task will run on; the panic names the place of this
    /// call. With options that a factory answers with [`Error::InvalidOption`].
    ///
    /// # Examples
    /// ```
    /// use informer::source::KubeSource;
    /// use informer::{InformerOptions, Resource, Scope, SharedInformer};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> anyhow::Result<()> {
    /// # let server = informer_testkit::TestServer::start().await?;
    /// # let client = server.client()?;
    /// let resource = Resource::of::<Pod>();
    /// let source = KubeSource::new(client, resource.clone(), Scope::namespace("default"));
    /// let pods = SharedInformer::<Pod>::new(source, resource, InformerOptions::new().namespace("default"));
    /// pods.start();
    /// assert!(pods.synced().await?.is_empty());
    /// pods.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(
        list_watch: impl ListWatch,
        resource: Resource,
        options: InformerOptions<T>,
    ) -> Self {
        let scope = options.scope(&Scope::all(), resource.namespaced);
        options.check(&resource, &scope).unwrap_or_else(|error| panic!("{error}"));
        let shared = Shared::new(resource, scope, runtime::current());
        Self::from_parts(shared, list_watch, options, true)
    }

    pub(crate) fn from_parts(
        shared: Shared<T>,
        list_watch: impl ListWatch,
        options: InformerOptions<T>,
        callbacks_own: bool,
    ) -> Self {
        let shared = Arc::new(shared);
        let default_resync = options.resync.filter(|period| !period.is_zero());
        // Made here, for a task that is never polled.
        let finishing = Finishing(Arc::clone(&shared));
        let driver = async move {
            let shared = Arc::clone(&finishing.0);
            let supported = shared.learn_streaming_lists.as_ref();
            let supported = supported.is_none_or(|known| known.load(Ordering::Relaxed));
            let reflector =
                Reflector::on_clock(list_watch, &shared.resource, options, shared.epoch)
                    .streaming_lists(supported);
            let run = AssertUnwindSafe(reflector.run(SharedSink::new(Arc::clone(&shared))))
                .catch_unwind();
            let mut run = pin!(run);
            // Dropped before the source, whose drop may block: all who wait are told first.
            let _finishing = finishing;
            tokio::select! {
                ended = &mut run => {
                    if ended.is_err() {
                        // Not the text of the panic, which may quote an object (G34).
                        shared.report(Phase::List, format!("{} stops: {}", shared.name, StopCause::Panicked));
                    }
                    shared.stopping.cancel(ended.map_or(StopCause::Panicked, |()| StopCause::Asked));
                }
                () = shared.stopping.cancelled() => {}
                never = shared.watch_callbacks() => match never {},
            }
        };
        let owner = Arc::new(Owner::new(shared.stopping.clone(), Box::pin(driver)));
        Self { shared, owner, default_resync, callbacks_own }
    }
}

impl<T: Send + Sync + 'static> SharedInformer<T> {
    /// Starts the informer and returns at once. Starting again, from whatever task or thread, does
    /// nothing (G22). If its runtime has ended, it stops at once and says so.
    pub fn start(&self) {
        self.owner.start(&self.shared.tasks, &self.shared.runtime);
    }

    /// Starts the informer and returns when it has stopped (client-go's `Run`).
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the informer; [`stop`](Self::stop) or dropping all handles
    /// does.
    pub async fn run(&self) {
        self.start();
        let mut reached = self.shared.reached.subscribe();
        _ = reached.wait_for(|reached| reached.stopped).await;
    }

    /// Stops the informer, lets running callbacks return, and comes back when all its tasks have
    /// ended, or after 30 s, when callbacks that still run are left behind. The store stays
    /// readable as it was.
    ///
    /// Several may wait for the end, and none comes back before it. Inside one of the informer's
    /// own callbacks (`Handle::current().block_on(informer.stop())`) it comes back when everything
    /// else has ended, and the current call is the last. A task that such a callback starts and
    /// then waits for cannot be told apart, and waits for the deadline.
    ///
    /// # Cancel safety
    /// The informer stops at the first poll; dropping the future only ends the wait.
    pub async fn stop(&self) {
        self.stop_within(STOP_DEADLINE).await;
    }

    /// [`stop`](Self::stop) with a deadline of your own for running callbacks.
    ///
    /// # Cancel safety
    /// As for `stop`.
    pub async fn stop_within(&self, deadline: Duration) {
        self.shared.stop(deadline).await;
    }

    /// Adds a handler of closures, before or after the start. It first gets what the store holds,
    /// as adds with `initial`, then what follows (G17). Status and logs name the place of this
    /// call.
    ///
    /// Each handler has a thread of its own from its first event on; for hundreds of handlers use
    /// [`events`](Self::events).
    ///
    /// A handler that keeps a lister or handle of this informer keeps it running after its factory
    /// is dropped, as every owner does: stop it, shut the factory down, or
    /// [remove](Registration::remove) the registration.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    #[track_caller]
    pub fn add_handler(
        &self,
        build: impl FnOnce(Handlers<T>) -> Handlers<T>,
    ) -> Result<Registration, Error> {
        let (options, handler) = build(Handlers::new()).split();
        self.add_boxed(handler, &options)
    }

    /// Adds a handler, before or after the start; see [`add_handler`](Self::add_handler).
    ///
    /// # Errors
    /// [`Error::Stopped`].
    #[track_caller]
    pub fn add_event_handler(&self, handler: impl EventHandler<T>) -> Result<Registration, Error> {
        self.add_boxed(Box::new(handler), &HandlerOptions::new())
    }

    /// Adds a handler with options, such as a resync period of its own (client-go's
    /// `AddEventHandlerWithOptions`).
    ///
    /// # Errors
    /// [`Error::Stopped`].
    #[track_caller]
    pub fn add_event_handler_with(
        &self,
        handler: impl EventHandler<T>,
        options: &HandlerOptions,
    ) -> Result<Registration, Error> {
        self.add_boxed(Box::new(handler), options)
    }

    #[track_caller]
    fn add_boxed(
        &self,
        handler: Box<dyn EventHandler<T>>,
        options: &HandlerOptions,
    ) -> Result<Registration, Error> {
        let reader = Reader::Callback(OnceLock::new());
        let (registration, queue) = self.shared.register(options, self.default_resync, reader)?;
        let (shared, started) = (Arc::clone(&self.shared), registration.clone());
        let callbacks_own = self.callbacks_own;
        self.owner.when_started(Box::new(move |owner| {
            let owner = callbacks_own.then(|| Arc::clone(owner));
            shared.drive(&started, queue, handler, owner);
        }));
        Ok(registration)
    }

    /// The events as a stream: first the store's content, then what follows (G17). A stream needs
    /// no thread: it is polled by your task.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    #[track_caller]
    pub fn events(&self) -> Result<EventStream<T>, Error> {
        self.events_with(&HandlerOptions::new())
    }

    /// The events as a stream, with options.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    #[track_caller]
    pub fn events_with(&self, options: &HandlerOptions) -> Result<EventStream<T>, Error> {
        EventStream::new(&self.shared, &self.owner, options, self.default_resync)
    }

    /// Adds an index, before or after the start; it is complete when this returns (G11). `values`
    /// emits the values that an object is filed under; it must be a plain function of the object.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`](crate::store::IndexError::Duplicate) if the informer has another
    /// index of that name.
    ///
    /// A large store is indexed a few hundred objects at a time, while the informer and other tasks
    /// go on.
    ///
    /// # Cancel safety
    /// Dropping the future gives the index up, unless the store is small: then it was added at the
    /// first poll.
    #[track_caller]
    pub fn add_index(
        &self,
        name: &str,
        values: impl Fn(&T, &mut IndexValues) + Send + Sync + 'static,
    ) -> impl Future<Output = Result<Index<T>, Error>> + Send {
        let index = Index::new(name, values);
        async move {
            self.add_ready_index(&index).await?;
            Ok(index)
        }
    }

    /// Adds an index made elsewhere, such as those of [`indexes`](crate::indexes). Adding the same
    /// one again does nothing.
    ///
    /// # Errors
    /// [`IndexError::Duplicate`](crate::store::IndexError::Duplicate) if the informer has another
    /// index of that name.
    ///
    /// # Cancel safety
    /// As for [`add_index`](Self::add_index).
    pub async fn add_ready_index(&self, index: &Index<T>) -> Result<(), Error> {
        let building = BuildingIndex { shared: &self.shared, index };
        while !building.step()? {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Waits for the first complete list and hands out the lister; as often as wanted (G19, G21).
    /// Waiting before anyone has started the informer waits for that too, and says so in the log
    /// after 5 s (G22).
    ///
    /// # Errors
    /// [`Error::Stopped`] if the informer stops before that, or stopped at any time without being
    /// told to; [`Error::NothingDecodes`] if the list has objects and none of them can be decoded
    /// (G20).
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn synced(&self) -> Result<Lister<T>, Error> {
        let mut reached = self.shared.reached.subscribe();
        let synced = async {
            let reached =
                reached.wait_for(|it| it.has_synced || it.hopeless.is_some() || it.stopped);
            reached.await.map(|reached| (reached.has_synced, reached.hopeless.clone()))
        };
        let reached =
            warning_if_unstarted(&self.shared.name, || self.owner.is_started(), synced).await;
        match reached {
            // The store is as it was when that happened, and who asks now would take it for the
            // cluster.
            _ if self.shared.has_failed() => Err(self.shared.stopped()),
            Ok((true, _)) => Ok(self.lister()),
            Ok((false, Some(hopeless))) => Err(hopeless),
            Ok((false, None)) | Err(_) => Err(self.shared.stopped()),
        }
    }

    /// [`synced`](Self::synced), for no longer than `deadline`.
    ///
    /// # Errors
    /// As `synced`, and [`Error::NotSynced`], which names the informer's state and its last error.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn synced_within(&self, deadline: Duration) -> Result<Lister<T>, Error> {
        tokio::time::timeout(deadline, self.synced()).await.unwrap_or_else(|_| {
            Err(Error::NotSynced(NotSynced { missing: vec![self.shared.missing(None)] }))
        })
    }

    /// Whether the first complete list is in the store.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.shared.reached.borrow().has_synced
    }

    /// The store, synced or not: before the first list it is empty, and says nothing about the
    /// cluster.
    #[must_use]
    pub fn unsynced_store(&self) -> Lister<T> {
        self.lister()
    }

    /// Waits until the store has reached `version`, to read one's own writes: the version that a
    /// create or update returned (G14). For a delete, wait for the event. Waiting before anyone has
    /// started the informer waits for that too, and says so in the log after 5 s (G22).
    ///
    /// While the watch is broken it waits for as long as that takes: what must go on has a deadline
    /// ([`wait_for_within`](Self::wait_for_within)).
    ///
    /// # Errors
    /// [`Error::HistoryChanged`] if the server's history is replaced meanwhile;
    /// [`Error::UnorderedVersion`] if the version is not a decimal number, as the API defines them;
    /// [`Error::Stopped`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait and nothing else.
    pub async fn wait_for(&self, version: impl Into<ResourceVersion>) -> Result<(), Error> {
        let wanted = version.into();
        if !wanted.is_ordered() {
            return Err(Error::UnorderedVersion { version: wanted.to_string() });
        }
        let mut reached = self.shared.reached.subscribe();
        let epoch = reached.borrow().epoch;
        let wait = async {
            let reached = reached.wait_for(|it| {
                it.has_synced && it.version.has_reached(&wanted) || it.epoch != epoch || it.stopped
            });
            reached
                .await
                .map(|reached| (reached.epoch == epoch, reached.version.has_reached(&wanted)))
        };
        match warning_if_unstarted(&self.shared.name, || self.owner.is_started(), wait).await {
            Ok((true, true)) => Ok(()),
            Ok((false, _)) => Err(Error::HistoryChanged),
            Ok((true, false)) | Err(_) => Err(self.shared.stopped()),
        }
    }

    /// The resource.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.shared.resource
    }

    /// The scope.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.shared.scope
    }

    /// The version that the store stands for; unset before the first list.
    #[must_use]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.shared.reader.snapshot().version().clone()
    }

    /// Whether the informer has stopped. It will not start again; ask the factory anew.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.shared.is_stopping()
    }

    /// What it is doing, and what went wrong (G31).
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// The status now, and each time it changes; a slow reader gets the latest.
    #[must_use]
    pub fn status_changes(&self) -> StatusStream {
        let mut live = self.shared.live.subscribe();
        live.mark_changed();
        let state = (StatusReader::new(&self.shared), live, false);
        let changes = stream::unfold(state, |(reader, mut live, ended)| async move {
            if ended || live.changed().await.is_err() {
                return None;
            }
            let status = { reader.0.upgrade()?.status() };
            let ended = matches!(status.state, InformerState::Stopped { .. });
            Some((status, (reader, live, ended)))
        });
        StatusStream::new(changes.boxed())
    }

    fn lister(&self) -> Lister<T> {
        Lister::new(Arc::clone(&self.shared), Arc::clone(&self.owner))
    }
}

impl<T: Send + Sync + 'static> SharedInformer<T> {
    /// Adds an index over the values of the label `key`, which selectors that ask for values of it
    /// then use (G12). Adding it again does nothing.
    ///
    /// # Errors
    /// None but those of [`add_index`](Self::add_index).
    ///
    /// # Cancel safety
    /// As for [`add_index`](Self::add_index).
    #[track_caller]
    pub fn add_label_index(&self, key: &str) -> impl Future<Output = Result<Index<T>, Error>> + Send
    where
        T: HasLabels,
    {
        let index = Index::label(key, |object: &T, key| object.label(key));
        async move {
            self.add_ready_index(&index).await?;
            Ok(index)
        }
    }

    /// Adds an index over the values of a field, such as `spec.nodeName`, which selectors that ask
    /// for one value of it then use (G12). The values are those that the API server compares:
    /// objects that lack the field are filed under its default or the empty value. Adding it again
    /// does nothing.
    ///
    /// # Errors
    /// None but those of [`add_index`](Self::add_index).
    ///
    /// # Cancel safety
    /// As for [`add_index`](Self::add_index).
    #[track_caller]
    pub fn add_field_index(
        &self,
        field: &str,
    ) -> impl Future<Output = Result<Index<T>, Error>> + Send
    where
        T: HasFields,
    {
        let of = Field::of(&self.shared.resource, field);
        let index = Index::field(field, move |object: &T| of.read(object));
        async move {
            self.add_ready_index(&index).await?;
            Ok(index)
        }
    }
}

/// An index being built; abandoned when this is dropped, unless it is complete.
struct BuildingIndex<'a, T> {
    shared: &'a Shared<T>,
    index: &'a Index<T>,
}

impl<T> BuildingIndex<'_, T> {
    /// Files some objects, and says whether the index is complete.
    fn step(&self) -> Result<bool, IndexError> {
        let mut pipeline = self.shared.pipeline();
        let is_complete = pipeline.build_index(self.index, INDEX_STEP);
        let faults = pipeline.take_faults();
        drop(pipeline);
        self.shared.report_faults(faults);
        is_complete
    }
}

impl<T> Drop for BuildingIndex<'_, T> {
    fn drop(&mut self) {
        self.shared.pipeline().abandon_index(self.index);
    }
}

/// Someone who reads the status. Weak, so that reading keeps nothing running and ends with the
/// informer.
struct StatusReader<T>(Weak<Shared<T>>);

impl<T> StatusReader<T> {
    fn new(shared: &Arc<Shared<T>>) -> Self {
        shared.status_readers.fetch_add(1, Ordering::Relaxed);
        Self(Arc::downgrade(shared))
    }
}

impl<T> Drop for StatusReader<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.status_readers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<T> Clone for SharedInformer<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            owner: Arc::clone(&self.owner),
            default_resync: self.default_resync,
            callbacks_own: self.callbacks_own,
        }
    }
}

impl<T> fmt::Debug for SharedInformer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer").field("of", &self.shared.name).finish_non_exhaustive()
    }
}
