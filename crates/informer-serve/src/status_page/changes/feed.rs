//! The changes of one collection, from the version that a reader has.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use informer::Resource;
use k8s_serve::Status;
use k8s_serve::watch_cache::{Ended, Interest, Selected, WatchCache, Watcher};

use super::No;
use crate::access::{Attributes, Permission};
use crate::backend::Use;
use crate::collection::Collection;
use crate::object::Cached;
use crate::per_user::Lasting;
use crate::refusal::Refusal;
use crate::status_page::query::ChangesQuery;

/// One of the watches of which a stream consists.
pub(super) struct Feed {
    pub(super) resource: Resource,
    /// What the review of this watch asked.
    pub(super) reviewed: Attributes,
    collection: Arc<Collection>,
    interest: Arc<Interest>,
    watcher: Watcher<Cached>,
    /// The version up to which all changes were sent; `None` in the middle of a batch.
    told: Option<u64>,
    /// Resolves when the permission is lost, if there is one.
    lost: Option<BoxFuture<'static, Box<Status>>>,
    _in_use: Arc<Use>,
    _counted: Option<Lasting>,
}

/// The permission to read a feed.
pub(super) struct Held {
    pub(super) reviewed: Attributes,
    pub(super) permission: Option<Permission>,
    pub(super) counted: Option<Lasting>,
}

/// Why a feed wakes its stream.
pub(super) struct Waits<'a> {
    /// There may be something to take.
    pub(super) ready: BoxFuture<'a, ()>,
    /// The permission is lost.
    pub(super) lost: Option<BoxFuture<'a, (Resource, Box<Status>)>>,
}

/// Gap and past changes of a feed that was just opened.
pub(super) struct Told {
    pub(super) resource: Resource,
    /// Whether changes before these are missing.
    pub(super) has_gap: bool,
    pub(super) changes: Vec<Event>,
}

/// A change, and its event type for the reader's selection.
pub(super) type Event = Selected<Cached>;

/// The result of one read of a feed.
pub(super) enum Taken {
    Changes(Vec<Event>),
    /// Changes were missed.
    Gap,
    /// Nothing more comes.
    End,
}

impl Feed {
    /// Resumes from the reader's version, or else begins with the last changes.
    pub(super) async fn open(
        collection: Arc<Collection>,
        namespace: Option<String>,
        query: &ChangesQuery,
        held: Held,
    ) -> Result<(Self, Told), No> {
        let definition = collection.definition.resource().await;
        let interest = Interest::of_query(&definition, namespace.as_deref(), &query.selectors());
        let interest =
            interest.map_err(|status| No::Refusal(Refusal::bad_request(status.message)))?;
        let resource = collection.own.clone();
        let watch_cache = &collection.history.watch_cache;
        let after = query.after.get(&resource.to_string()).copied();
        let from = after.and_then(|after| Some((after, watch_cache.watch(after, &interest).ok()?)));
        let has_gap = after.is_some() && from.is_none();
        let (told, watcher, changes) = match from {
            Some((after, watcher)) => (after, watcher, Vec::new()),
            None => {
                let last = if has_gap { 0 } else { query.last };
                let (version, changes) = watch_cache.last_changes(&interest, last);
                (version, now(watch_cache, version, &interest)?, changes)
            }
        };
        let feed = Self {
            resource: resource.clone(),
            reviewed: held.reviewed,
            lost: held.permission.map(|it| it.lost().boxed()),
            _in_use: Use::of(Arc::clone(&collection)),
            collection,
            interest,
            watcher,
            told: Some(told),
            _counted: held.counted,
        };
        Ok((feed, Told { resource, has_gap, changes }))
    }

    /// What to wait for.
    pub(super) fn waits(&mut self) -> Waits<'_> {
        let Self { resource, watcher, lost, .. } = self;
        let lost = lost.as_mut();
        Waits {
            ready: watcher.ready().boxed(),
            lost: lost.map(|it| it.map(|status| (resource.clone(), status)).boxed()),
        }
    }

    /// Whether there is more at once than the last [`take`](Self::take) returned.
    pub(super) fn has_more(&self) -> bool {
        self.watcher.has_more()
    }

    /// What there is.
    pub(super) fn take(&mut self) -> Taken {
        match self.watcher.take() {
            Ok(events) => Taken::Changes(events.changes),
            Err(Ended::Expired(_)) => {
                let watch_cache = &self.collection.history.watch_cache;
                let Ok(watcher) = now(watch_cache, watch_cache.version(), &self.interest) else {
                    return Taken::End;
                };
                self.watcher = watcher;
                self.told = None;
                Taken::Gap
            }
            Err(Ended::Closed) => Taken::End,
        }
    }

    /// The version from which a reader of everything so far resumes.
    pub(super) fn progress(&mut self) -> Option<u64> {
        self.told = self.watcher.progress().or(self.told);
        self.told
    }
}

/// A watcher from the newest version on. Retried: the log may drop that version meanwhile.
fn now(
    watch_cache: &WatchCache<Cached>,
    version: u64,
    interest: &Arc<Interest>,
) -> Result<Watcher<Cached>, No> {
    let watcher = watch_cache.watch(version, interest);
    let watcher = watcher.or_else(|expired| watch_cache.watch(expired.current, interest));
    watcher.map_err(|_| No::Refusal(Refusal::unavailable("the changes come too fast")))
}
