//! What is held: started by the first request, shared, bounded in number and memory, let go when
//! idle.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt};
use http::StatusCode;
use informer::source::Failure;
use informer::{
    Error, InformerOptions, InformerState, Lister, Resource, SharedInformer, SharedInformerFactory,
    Status,
};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::catalog::Catalog;
use crate::collection::Collection;
use crate::definition::{Definition, plain};
use crate::extensions::Extensions;
use crate::history::History;
use crate::object::Object;
use crate::options::Options;
use crate::refusal::Refusal;
use crate::unheld::{Rest, Unheld};

/// How often a discovery must have said that a resource is gone before the endpoint says so.
const ABSENT_FOR_GOOD: u32 = 3;
/// A list that trying again does not change: a request that is wrong, no or no valid user, no
/// permission, no such resource.
pub(crate) const FINAL: [u16; 4] = [400, 401, 403, 404];
/// How long a list may take that stands in for a bookmark.
pub(crate) const REFRESH_DEADLINE: Duration = Duration::from_secs(30);
/// Bookmarks are up to 75 s apart: where there are any, a list stands in for one only then.
const BOOKMARK_OVERDUE: Duration = Duration::from_secs(78);

pub(crate) struct Collections {
    factory: SharedInformerFactory,
    options: Options,
    pub(crate) extensions: Extensions,
    held: Mutex<Held>,
    /// The same, for those who cannot wait; some of them may be gone.
    known: std::sync::Mutex<Vec<Weak<Collection>>>,
}

#[derive(Default)]
struct Held {
    collections: HashMap<Resource, Arc<Collection>>,
    /// What cannot be held.
    unheld: HashMap<Resource, Rest>,
    /// The highest versions of what was let go: the next list may come from a cache that has not
    /// reached them.
    floors: HashMap<Stored, u64>,
}

/// What the API server stores as one, in whatever version it is asked for: group and plural name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    group: String,
    plural: String,
}

impl Stored {
    pub(crate) fn of(resource: &Resource) -> Self {
        let Resource { group, plural, .. } = resource;
        let (group, plural) = match (group.as_str(), plural.as_str()) {
            // Events are stored once for both of their groups.
            ("events.k8s.io", plural) => ("", plural),
            // A binding is written to its Pod.
            ("", "bindings") => ("", "pods"),
            stored => stored,
        };
        Self { group: group.to_owned(), plural: plural.to_owned() }
    }
}

impl Held {
    fn remove(&mut self, collection: &Collection) {
        if self.collections.remove(&collection.own).is_some() {
            let floor = self.floors.entry(Stored::of(&collection.own)).or_default();
            *floor = (*floor).max(collection.history.highest());
        }
    }

    /// The version that a new collection must reach: the highest that this resource has had here,
    /// in whatever version of its group.
    fn floor(&self, stored: &Stored) -> u64 {
        let held = self.collections.values().filter(|it| Stored::of(&it.own) == *stored);
        let held = held.map(|it| it.history.highest());
        held.chain(self.floors.get(stored).copied()).max().unwrap_or_default()
    }
}

/// Why a collection is not ready.
pub(crate) enum Unready {
    /// The API server may answer instead.
    Forward(Unheld),
    /// The first list has not come yet, and nothing has failed.
    Listing,
    /// Nobody can answer.
    Refusal(Refusal),
}

/// A synced informer's lister; while this lives, the informer is in use.
pub(crate) struct Synced {
    pub(crate) lister: Lister<Object>,
    pub(crate) collection: Arc<Collection>,
}

impl Collections {
    pub(crate) fn new(
        factory: SharedInformerFactory,
        catalog: Arc<Catalog>,
        options: &Options,
    ) -> Self {
        Self {
            extensions: Extensions::new(factory.clone(), catalog, options),
            factory,
            options: options.clone(),
            held: Mutex::default(),
            known: std::sync::Mutex::default(),
        }
    }

    pub(crate) fn factory(&self) -> &SharedInformerFactory {
        &self.factory
    }

    /// The namespace that the endpoint is limited to, for resources that have any.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.options.namespace.as_deref()
    }

    /// The lister of `resource`, once its first list is there.
    pub(crate) async fn synced(&self, resource: &Resource) -> Result<Synced, Refusal> {
        let acquired = self.acquire(resource, || plain(resource), false).await?;
        let unready = match acquired {
            Ok(collection) => match self.ready(&collection).await {
                Ok(()) => {
                    collection.hit();
                    let lister = collection.lister();
                    return Ok(Synced { lister, collection });
                }
                Err(unready) => unready,
            },
            Err(unheld) => Unready::Forward(unheld),
        };
        Err(match unready {
            Unready::Refusal(refusal) => refusal,
            Unready::Listing => {
                Refusal::unavailable(format!("{resource}: the first list is still coming in"))
            }
            Unready::Forward(unheld) => unheld.refusal(resource, &self.options),
        })
    }

    /// The collection if it is held.
    pub(crate) async fn held(&self, resource: &Resource) -> Option<Arc<Collection>> {
        if self.extensions.unheld_now(resource).is_some() {
            return None;
        }
        let held = self.held.lock().await;
        let collection = held.collections.get(resource).filter(|it| !it.has_ended());
        collection.inspect(|it| it.touch()).cloned()
    }

    /// Starts to hold a resource unless it is held already.
    pub(crate) async fn acquire(
        &self,
        own: &Resource,
        describe: impl FnOnce() -> k8s_serve::Resource,
        mut is_eager: bool,
    ) -> Result<Result<Arc<Collection>, Unheld>, Refusal> {
        if let Some(unheld) = self.extensions.unheld(own).await {
            return Ok(Err(unheld));
        }
        let mut held = self.held.lock().await;
        if let Some(known) = held.collections.get(own).cloned() {
            if !known.has_ended() {
                known.touch();
                return Ok(Ok(known));
            }
            // The informer was stopped elsewhere, or has failed.
            is_eager |= known.is_eager;
            held.remove(&known);
        }
        let total: usize = held.collections.values().map(|it| it.bytes()).sum();
        let room = self.options.max_bytes.saturating_sub(total);
        if let Some(rest) = held.unheld.get(own).filter(|it| !it.is_over(room)) {
            return Ok(Err(rest.unheld.clone()));
        }
        if held.collections.len() >= self.options.max_collections {
            return Ok(Err(Unheld::TooMany));
        }
        if room == 0 {
            return Ok(Err(Unheld::TooLarge));
        }
        let definition = Definition::new(self.factory.client().clone(), describe());
        let mut options = InformerOptions::new();
        if let Some(namespace) = self.options.namespace.as_ref().filter(|_| own.namespaced) {
            options = options.namespace(namespace);
        }
        if self.options.keep_managed_fields {
            options = options.keep_managed_fields();
        }
        let (informer, is_made) = self.informer(own, options)?;
        let stored = Stored::of(own);
        let history = History::new(self.options.log_bytes, held.floor(&stored));
        let collection =
            Collection::new(own.clone(), definition, informer, history, is_eager, is_made)?;
        let collection = Arc::new(collection);
        held.collections.insert(own.clone(), Arc::clone(&collection));
        // The collection has it now, until it turns out to be of another history.
        held.floors.remove(&stored);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|it| it.strong_count() > 0);
        known.push(Arc::downgrade(&collection));
        Ok(Ok(collection))
    }

    /// The informer of a resource, and whether it was made now: others are the program's.
    fn informer(
        &self,
        own: &Resource,
        options: InformerOptions<Object>,
    ) -> Result<(SharedInformer<Object>, bool), Error> {
        let before = self.factory.statuses();
        let informer = self.factory.informer_as::<Object>(own.clone(), options)?;
        let of = informer.status();
        let count = |statuses: &[Status]| {
            let same =
                statuses.iter().filter(|it| (&it.resource, &it.scope) == (&of.resource, &of.scope));
            same.filter(|it| !matches!(it.state, InformerState::Stopped { .. })).count()
        };
        let is_made = count(&self.factory.statuses()) > count(&before);
        Ok((informer, is_made))
    }

    /// Waits for the first list, but not for long.
    pub(crate) async fn ready(&self, collection: &Arc<Collection>) -> Result<(), Unready> {
        let informer = &collection.informer;
        let synced = match informer.has_synced() {
            true => informer.synced().await,
            false => tokio::select! {
                synced = informer.synced_within(self.options.sync_timeout) => synced,
                // Waiting would not help.
                failure = refused(informer) => {
                    return Err(self.give_up(collection, Unheld::Refused(failure)).await);
                }
            },
        };
        match synced {
            Ok(_) => {}
            Err(error @ Error::NotSynced(_)) => {
                return Err(match informer.status().state.cause() {
                    Some(_) => Unready::Refusal(Refusal::unavailable(error.to_string())),
                    None => Unready::Listing,
                });
            }
            Err(error) => return Err(Unready::Refusal(error.into())),
        }
        if let InformerState::Unavailable { absent: ABSENT_FOR_GOOD.., cause, .. } =
            collection.lister().state()
        {
            let name = collection.own.group_resource();
            let message = format!("the server no longer has {name}: {cause}");
            return Err(Unready::Refusal(Refusal::not_found(message)));
        }
        if collection.history.is_unordered() {
            return Err(self.give_up(collection, Unheld::Unordered).await);
        }
        // An extension server may have taken the group over since the list began.
        if let Some(unheld) = self.extensions.unheld_now(&collection.own) {
            return Err(self.give_up(collection, unheld).await);
        }
        collection.catch_up(REFRESH_DEADLINE);
        Ok(())
    }

    /// Lets a collection go that cannot be held.
    async fn give_up(&self, collection: &Arc<Collection>, unheld: Unheld) -> Unready {
        let mut held = self.held.lock().await;
        let is_held =
            held.collections.get(&collection.own).is_some_and(|it| Arc::ptr_eq(it, collection));
        if is_held {
            let resource = &collection.own;
            tracing::info!(%resource, "it is not held, requests for it are passed on: {unheld}");
            held.remove(collection);
            if unheld.rests() {
                held.unheld.insert(resource.clone(), Rest::new(unheld.clone()));
            }
            let stopping = self.tell_to_stop(collection);
            // An informer of the program goes on, its readers here must not.
            collection.history.end();
            drop(held);
            self.stopped(stopping).await;
        }
        Unready::Forward(unheld)
    }

    /// Tells the informer of a collection to stop, unless it is the program's. The next request
    /// makes a new one.
    fn tell_to_stop(&self, collection: &Collection) -> Option<SharedInformer<Object>> {
        collection.owns_informer.then(|| {
            // The factory forgets it at the first poll.
            let _ = self.factory.stop(&collection.informer).now_or_never();
            collection.informer.clone()
        })
    }

    /// Waits until informers that were told to stop have ended.
    async fn stopped(&self, informers: impl IntoIterator<Item = SharedInformer<Object>>) {
        let informers = Vec::from_iter(informers);
        join_all(informers.iter().map(|it| self.factory.stop(it))).await;
    }

    /// Lets go of what nobody asked for long enough, and of what does not fit; lists what nothing
    /// was heard of.
    pub(crate) async fn sweep(&self, now: Instant) {
        for collection in self.now() {
            if let Some(unheld) = self.extensions.unheld_now(&collection.own) {
                self.give_up(&collection, unheld).await;
            }
        }
        let mut stopping = Vec::new();
        // Locked until they are told to stop, so that no request gets an informer that is about to.
        let mut held = self.held.lock().await;
        held.unheld.retain(|_, rest| !rest.is_forgotten());
        for collection in held.collections.values() {
            collection.sweep_pages(self.options.snapshot_lifetime);
            self.refresh_if_silent(collection);
        }
        let mut unused: Vec<Arc<Collection>> = held
            .collections
            .values()
            .filter(|it| !it.is_eager && Arc::strong_count(it) == 1)
            .cloned()
            .collect();
        unused.sort_by_key(|it| it.idle_since());
        let mut total: usize = held.collections.values().map(|it| it.bytes()).sum();
        for collection in unused {
            let idle_for = now.saturating_duration_since(collection.idle_since());
            let is_idle =
                !self.options.idle_timeout.is_zero() && idle_for >= self.options.idle_timeout;
            let is_too_much = total > self.options.max_bytes;
            if !is_idle && !is_too_much {
                continue;
            }
            let bytes = collection.bytes();
            total = total.saturating_sub(bytes);
            let resource = &collection.own;
            held.remove(&collection);
            if is_too_much {
                tracing::warn!(%resource, "too much is held: letting it go; raise --max-memory to keep it");
                let rest = Rest::too_large(bytes, held.unheld.get(resource));
                held.unheld.insert(resource.clone(), rest);
            } else {
                tracing::info!(%resource, "nobody asked for it for a while: stopping its informer");
            }
            stopping.extend(self.tell_to_stop(&collection));
        }
        drop(held);
        self.stopped(stopping).await;
    }

    /// Lists a collection of which no sign of life has come: where a server sends no bookmarks, a
    /// quiet collection cannot be told from a dead watch.
    fn refresh_if_silent(&self, collection: &Arc<Collection>) {
        let Some(staleness) = collection.history.staleness() else { return };
        let max = self.options.max_staleness.max(Options::MIN_STALENESS);
        let has_bookmarks = collection.informer.status().counters.bookmarks > 0;
        let limit = if has_bookmarks { BOOKMARK_OVERDUE.min(max) } else { max * 2 / 3 };
        if staleness >= limit {
            collection.refresh(REFRESH_DEADLINE);
        }
    }

    /// What the endpoint's account was refused.
    pub(crate) async fn refused(&self) -> Vec<Resource> {
        let held = self.held.lock().await;
        let is_refused = |rest: &Rest| matches!(rest.unheld, Unheld::Refused(_));
        held.unheld.iter().filter(|it| is_refused(it.1)).map(|it| it.0.clone()).collect()
    }

    /// What is held, without waiting.
    pub(crate) fn now(&self) -> Vec<Arc<Collection>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter_map(Weak::upgrade).collect()
    }

    /// What cannot be held, and why.
    pub(crate) async fn unheld(&self) -> Vec<(Resource, String)> {
        let held = self.held.lock().await;
        let unheld = held.unheld.iter().filter(|(_, rest)| !rest.is_forgotten());
        unheld.map(|(resource, rest)| (resource.clone(), rest.unheld.to_string())).collect()
    }

    pub(crate) async fn shutdown(&self) {
        self.held.lock().await.collections.clear();
        self.factory.shutdown().await;
    }
}

/// Resolves when the first list of `informer` is refused in a way that trying again does not
/// change.
pub(crate) async fn refused<T: Send + Sync + 'static>(informer: &SharedInformer<T>) -> Failure {
    let mut changes = informer.status_changes();
    while let Some(status) = changes.next().await {
        let cause = status.state.cause().filter(|_| !status.has_synced);
        if let Some(cause) =
            cause.filter(|cause| cause.code.is_some_and(|code| FINAL.contains(&code)))
        {
            return cause.clone();
        }
    }
    std::future::pending().await
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::UnknownResource(unknown) => unknown.into(),
            error @ Error::NothingDecodes { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
            }
            other => Self::unavailable(other.to_string()),
        }
    }
}
