//! The informers of a factory, by collection.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::error::Missing;
use crate::options::Fingerprint;
use crate::registration::RegistrationInner;
use crate::shared::Shared;
use crate::status::StopCause;
use crate::{Error, Resource, Scope, SharedInformer, Status, runtime};

/// What identifies a collection (G23).
pub(super) struct Collection {
    pub(super) type_id: TypeId,
    pub(super) resource: Resource,
    pub(super) scope: Scope,
}

pub(super) struct Registry {
    state: Mutex<State>,
    /// No informers are made any more.
    closing: CancellationToken,
}

struct State {
    entries: Vec<Entry>,
    /// What was learnt of the server, for each resource: whether it has streaming lists (G27).
    streaming_lists: HashMap<Resource, Arc<AtomicBool>>,
    started: bool,
    closed: bool,
    /// Those that were stopped and forgotten, until nothing of them runs any more.
    leaving: Vec<Arc<dyn AnyInformer>>,
}

struct Entry {
    collection: Collection,
    fingerprint: Fingerprint,
    informer: Arc<dyn AnyInformer>,
}

/// An informer whose type does not matter.
pub(super) trait AnyInformer: Any + Send + Sync {
    fn start(&self);
    fn is_stopped(&self) -> bool;
    /// Whether it has stopped though nobody wanted that.
    fn has_failed(&self) -> bool;
    /// Whether it was stopped and nothing of it runs any more.
    fn has_ended(&self) -> bool;
    fn stop(&self, deadline: Duration) -> BoxFuture<'_, ()>;
    fn status(&self) -> Status;
    fn missing(&self, handler: Option<&str>) -> Missing;
    /// Waits for the first list.
    fn synced(&self) -> BoxFuture<'_, Result<(), Error>>;
    fn callbacks(&self) -> Vec<Arc<RegistrationInner>>;
    /// Where its state lives, to tell informers apart.
    fn address(&self) -> *const ();
    fn as_any(&self) -> &dyn Any;
}

impl<T: Send + Sync + 'static> AnyInformer for SharedInformer<T> {
    fn start(&self) {
        Self::start(self);
    }

    fn is_stopped(&self) -> bool {
        Self::is_stopped(self)
    }

    fn has_failed(&self) -> bool {
        self.shared.has_failed()
    }

    fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    fn stop(&self, deadline: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.shared.stop(deadline))
    }

    fn status(&self) -> Status {
        Self::status(self)
    }

    fn missing(&self, handler: Option<&str>) -> Missing {
        self.shared.missing(handler)
    }

    fn synced(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Self::synced(self).await.map(drop) })
    }

    fn callbacks(&self) -> Vec<Arc<RegistrationInner>> {
        let registrations = self.shared.registrations();
        registrations.iter().filter(|it| it.is_callback() && !it.is_removed()).cloned().collect()
    }

    fn address(&self) -> *const () {
        Arc::as_ptr(&self.shared).cast()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Registry {
    pub(super) fn new() -> Self {
        let state = State {
            entries: Vec::new(),
            streaming_lists: HashMap::new(),
            started: false,
            closed: false,
            leaving: Vec::new(),
        };
        Self { state: Mutex::new(state), closing: CancellationToken::new() }
    }

    /// The informer of `collection`, made if there is none that runs or will.
    pub(super) fn find_or_make<T: Send + Sync + 'static>(
        &self,
        collection: Collection,
        runtime: &Handle,
        fingerprint: &Fingerprint,
        make: impl FnOnce(&Collection, Arc<AtomicBool>) -> SharedInformer<T>,
    ) -> Result<SharedInformer<T>, Error> {
        let mut state = self.state();
        if let Some(found) = state.find(&collection, fingerprint)? {
            return Ok(found);
        }
        if runtime::has_ended(runtime) {
            // Nor would one on another runtime run: the client has a task of its own on the one
            // that it was made on.
            let informer = format!("{} in {}", collection.resource, collection.scope);
            return Err(Error::Stopped { informer, cause: StopCause::RuntimeEnded });
        }
        let learn = Arc::clone(
            state
                .streaming_lists
                .entry(collection.resource.clone())
                .or_insert_with(|| Arc::new(AtomicBool::new(true))),
        );
        drop(state);
        // Not under the lock: the constructor of a source is the user's, and may ask the factory
        // for more.
        let informer = make(&collection, learn);
        let mut state = self.state();
        if let Some(found) = state.find(&collection, fingerprint)? {
            return Ok(found);
        }
        if state.started {
            informer.start();
        }
        let entry = Entry {
            collection,
            fingerprint: fingerprint.clone(),
            informer: Arc::new(informer.clone()),
        };
        state.entries.push(entry);
        Ok(informer)
    }

    pub(super) fn start(&self) {
        let mut state = self.state();
        state.started = true;
        for entry in &state.entries {
            entry.informer.start();
        }
    }

    /// Forgets the informer with this state.
    pub(super) fn forget<T>(&self, shared: &Arc<Shared<T>>) {
        let address: *const () = Arc::as_ptr(shared).cast();
        self.state().forget_where(|entry| entry.informer.address() == address);
    }

    /// Forgets all informers, and gives back those of which something may still run; there will be
    /// no others.
    pub(super) fn close(&self) -> Vec<Arc<dyn AnyInformer>> {
        let mut state = self.state();
        state.closed = true;
        self.closing.cancel();
        state.forget_where(|_| true);
        state.leaving.clone()
    }

    /// Lets go of the informers that have ended.
    pub(super) fn sweep(&self) {
        self.state().leaving.retain(|informer| !informer.has_ended());
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn AnyInformer>> {
        self.state().entries.iter().map(|entry| Arc::clone(&entry.informer)).collect()
    }

    pub(super) fn is_started(&self) -> bool {
        self.state().started
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Waits until the factory is shut down.
    pub(super) async fn closing(&self) {
        self.closing.cancelled().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The informer of `collection`, if there is one that runs or will.
    fn find<T: Send + Sync + 'static>(
        &mut self,
        collection: &Collection,
        fingerprint: &Fingerprint,
    ) -> Result<Option<SharedInformer<T>>, Error> {
        if self.closed {
            return Err(Error::ShutDown);
        }
        // What has failed is told of until it is asked for again.
        self.forget_where(|Entry { collection: of, informer, .. }| {
            informer.is_stopped() && (!informer.has_failed() || of.is(collection))
        });
        let Some(entry) = self.entries.iter().find(|entry| entry.collection.is(collection)) else {
            return Ok(None);
        };
        if let Some(option) = entry.fingerprint.difference(fingerprint) {
            let informer = format!("{} in {}", collection.resource, collection.scope);
            return Err(Error::ConflictingOptions { informer, option });
        }
        let informer = entry.informer.as_any().downcast_ref::<SharedInformer<T>>();
        Ok(Some(informer.expect("the collection says the type").clone()))
    }
}

impl State {
    /// Takes out the informers that fit; who shuts down waits for their end.
    fn forget_where(&mut self, fits: impl Fn(&Entry) -> bool) {
        let forgotten = self.entries.extract_if(.., |entry| fits(entry));
        self.leaving.extend(forgotten.map(|entry| entry.informer));
        self.leaving.retain(|informer| !informer.has_ended());
    }
}

impl Collection {
    fn is(&self, other: &Self) -> bool {
        self.type_id == other.type_id
            && self.resource == other.resource
            && self.scope == other.scope
    }
}
