//! From the events of informers to keys.

use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use informer_core::{Event, ObjectKey};

use super::own_writes::OwnWrites;
use super::predicate::Predicate;
use super::shared::Shared;
use crate::error::Missing;
use crate::handler::HandlerOptions;
use crate::workqueue::{each_state, owner_key, priority_of};
use crate::{Error, HasMetadata, Resource, SharedInformer, Status, indexes};

/// An informer of a controller, whatever it holds.
pub(super) trait Source: Send + Sync {
    fn start(&self);
    /// Adds the indexes that the controller needs.
    fn prepare(&self) -> BoxFuture<'_, Result<(), Error>>;
    /// Waits for the first list; for one at the newest version, so that what another process wrote
    /// before this one began is not done again.
    fn synced(&self) -> BoxFuture<'_, Result<(), Error>>;
    fn is_synced(&self) -> bool;
    fn refresh(&self) -> BoxFuture<'_, Result<(), Error>>;
    fn status(&self) -> Status;
    /// What is to be said while it has not synced.
    fn missing(&self) -> Missing;
    /// Adds keys to the controller's queue while it is polled; ends when the informer does.
    fn feed(&self, controller: &Arc<Shared>) -> Result<BoxStream<'static, ()>, Error>;
    fn stopped(&self) -> Error;
    /// Has own writes wait for this informer.
    fn follow(&self, own_writes: &OwnWrites);
}

/// An informer, and whose reconcile its events ask for.
pub(super) struct Watch<T> {
    informer: SharedInformer<T>,
    filter: Option<Predicate<T>>,
    keys: Arc<ToKeys<T>>,
    is_indexed_by_controller: Option<fn() -> crate::Index<T>>,
    added_at: &'static Location<'static>,
}

type ToKeys<T> = dyn Fn(&Event<T>, &mut dyn FnMut(ObjectKey)) + Send + Sync;

impl<T: Send + Sync + 'static> Watch<T> {
    /// The objects themselves.
    pub(super) fn objects(
        informer: &SharedInformer<T>,
        filter: Option<Predicate<T>>,
        added_at: &'static Location<'static>,
    ) -> Self {
        Self { added_at, ..Self::new(informer, filter, |event, add| add(event.key().clone())) }
    }

    /// The owners that control them.
    #[track_caller]
    pub(super) fn owners(
        informer: &SharedInformer<T>,
        filter: Option<Predicate<T>>,
        owner: Resource,
    ) -> Self
    where
        T: HasMetadata,
    {
        let keys = move |event: &Event<T>, add: &mut dyn FnMut(ObjectKey)| {
            each_state(event, |object| {
                owner_key(object, event.key(), &owner).into_iter().for_each(&mut *add);
            });
        };
        let index = Some(indexes::by_controller_uid as fn() -> _);
        Self { is_indexed_by_controller: index, ..Self::new(informer, filter, keys) }
    }

    /// What `map` says.
    #[track_caller]
    pub(super) fn mapped<I: IntoIterator<Item = ObjectKey>>(
        informer: &SharedInformer<T>,
        filter: Option<Predicate<T>>,
        map: impl Fn(&T) -> I + Send + Sync + 'static,
    ) -> Self {
        Self::new(informer, filter, move |event, add| {
            // A panic on one state does not hide what the other asks for.
            let mut panicked = None;
            each_state(event, |object| {
                let mapped = AssertUnwindSafe(|| map(object).into_iter().for_each(&mut *add));
                panicked = catch_unwind(mapped).err().or_else(|| panicked.take());
            });
            if let Some(panicked) = panicked {
                resume_unwind(panicked);
            }
        })
    }

    #[track_caller]
    fn new(
        informer: &SharedInformer<T>,
        filter: Option<Predicate<T>>,
        keys: impl Fn(&Event<T>, &mut dyn FnMut(ObjectKey)) + Send + Sync + 'static,
    ) -> Self {
        Self {
            informer: informer.clone(),
            filter,
            keys: Arc::new(keys),
            is_indexed_by_controller: None,
            added_at: Location::caller(),
        }
    }
}

impl<T: Send + Sync + 'static> Source for Watch<T> {
    fn start(&self) {
        self.informer.start();
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async {
            match self.is_indexed_by_controller {
                Some(index) => self.informer.add_ready_index(&index()).await,
                None => Ok(()),
            }
        })
    }

    fn synced(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async {
            // One that had synced before may lag behind what an earlier run of a controller wrote.
            let was_synced = self.informer.has_synced();
            self.informer.synced().await?;
            if was_synced || self.informer.needs_refresh() {
                self.informer.refresh().await?;
            }
            Ok(())
        })
    }

    fn refresh(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.informer.refresh())
    }

    fn is_synced(&self) -> bool {
        let has_synced = self.informer.shared.reached.borrow().has_synced;
        has_synced && !self.informer.needs_refresh()
    }

    fn status(&self) -> Status {
        self.informer.status()
    }

    fn missing(&self) -> Missing {
        self.informer.shared.missing(None)
    }

    fn feed(&self, controller: &Arc<Shared>) -> Result<BoxStream<'static, ()>, Error> {
        let options = HandlerOptions::new().name(format!("controller {}", controller.name()));
        let events = self.informer.events_with(&options)?;
        let (filter, keys) = (self.filter.clone(), Arc::clone(&self.keys));
        let (controller, added_at) = (Arc::clone(controller), self.added_at);
        Ok(Box::pin(events.map(move |event| {
            let priority = priority_of(&event);
            // Filters and maps must not share state that a panic can break.
            let guarded = |call: &mut dyn FnMut() -> bool| match catch_unwind(AssertUnwindSafe(call)) {
                Ok(answer) => answer,
                Err(_) => {
                    controller.meter.mapping_panicked();
                    tracing::warn!(controller = controller.name(), key = %event.key(), "a filter or map panicked on an event (added at {added_at})");
                    true
                }
            };
            if filter.as_ref().is_none_or(|filter| guarded(&mut || filter.passes(&event))) {
                guarded(&mut || {
                    keys(&event, &mut |key| controller.queue().add_with_priority(key, priority));
                    true
                });
            }
        })))
    }

    fn stopped(&self) -> Error {
        self.informer.shared.stopped()
    }

    fn follow(&self, own_writes: &OwnWrites) {
        own_writes.follow(&self.informer);
    }
}
