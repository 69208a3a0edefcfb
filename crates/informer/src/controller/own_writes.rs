//! The writes of a controller's reconciles, and when its informers have caught up with them.

mod request;
mod settle;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::select_all;
use http::StatusCode;
use informer_core::own_writes::{self as remembered, InformerId, Missing, Unsettled};
use kube::Client;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::{NotCaughtUp, NotShown, WriteError};
use super::exchange::{Conflict, GroupResource, is_unknown, status_of};
use super::followed::Stores;
use super::gate::Gate;
use super::writer::Writer;
use crate::{ObjectKey, SharedInformer};

type Writes = remembered::OwnWrites<GroupResource>;

/// What the reconciles of one controller wrote, and its informers.
pub(crate) struct OwnWrites {
    client: Client,
    memory: Mutex<Memory>,
    /// Changes whenever a write is answered or forgotten.
    changed: watch::Sender<()>,
    /// The controller has ended.
    ended: CancellationToken,
    waits: AtomicU64,
    timeouts: AtomicU64,
    refreshes: AtomicU64,
    reads: AtomicU64,
}

#[derive(Default)]
struct Memory {
    writes: Writes,
    stores: Stores,
    /// Of keys whose reconciles met conflicts.
    conflicts: BTreeMap<ObjectKey, Conflicts>,
    /// The refreshes that are not complete, of all keys: a list may take longer than a wait.
    refreshes: Vec<Refresh>,
}

/// The conflicts of one key.
#[derive(Default)]
struct Conflicts {
    /// The last write of its last reconcile, if that was answered with 409.
    last: Option<Conflict>,
    /// How many reconciles in a row have ended with one.
    in_a_row: u32,
}

/// A refresh that was requested.
struct Refresh {
    informer: InformerId,
    /// Its number in the memory of writes, and that of the informer.
    number: u64,
    of_informer: u64,
}

impl Memory {
    fn parts(&mut self) -> (&mut Writes, &Stores) {
        (&mut self.writes, &self.stores)
    }

    /// Notes whether the last write of `key` was answered with 409.
    fn note_conflict(&mut self, key: &ObjectKey, conflict: Option<Conflict>) {
        match conflict {
            Some(_) => self.conflicts.entry(key.clone()).or_default().last = conflict,
            None => {
                if let Some(conflicts) = self.conflicts.get_mut(key) {
                    conflicts.last = None;
                }
            }
        }
    }

    /// Notes which refreshes have become complete.
    fn note_refreshes(&mut self) {
        let Self { writes, stores, refreshes, .. } = self;
        refreshes.retain(|it| {
            let is_complete = stores.get(it.informer).refreshes() >= it.of_informer;
            if is_complete {
                writes.refreshed(it.informer, it.number);
            }
            !is_complete
        });
    }

    /// Requests the refreshes that `of` needs, and returns how many.
    fn request_refreshes(&mut self, of: Of<'_>) -> u64 {
        let Self { writes, stores, refreshes, .. } = self;
        let mut requested = 0;
        for key in keys(writes, of) {
            for (informer, since) in writes.refreshes(&key, stores) {
                if refreshes.iter().any(|it| it.informer == informer && it.number > since) {
                    continue;
                }
                let number = writes.request_refresh();
                let of_informer = stores.get(informer).request_refresh();
                refreshes.push(Refresh { informer, number, of_informer });
                requested += 1;
            }
        }
        requested
    }
}

/// Whose writes are waited for.
#[derive(Clone, Copy)]
enum Of<'a> {
    Key(&'a ObjectKey),
    All,
}

/// How a controller's memory of own writes is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OwnWritesMetrics {
    /// Reconciles that had to wait until their informers showed an earlier write.
    pub waits: u64,
    /// Waits that ended at their deadline.
    pub timeouts: u64,
    /// Writes that are remembered now.
    pub remembered: usize,
    /// Refreshes of informers, because of writes whose outcome is unknown.
    pub refreshes: u64,
    /// Reads of single objects, because of writes whose outcome is unknown.
    pub reads: u64,
}

impl OwnWrites {
    /// An empty memory of writes through `client`.
    pub(crate) fn new(client: Client) -> Arc<Self> {
        Arc::new(Self {
            client,
            memory: Mutex::default(),
            changed: watch::Sender::new(()),
            ended: CancellationToken::new(),
            waits: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
            refreshes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        })
    }

    /// Adds an informer of the controller, which is waited for after each later write to its
    /// resource. There may be several of one resource.
    pub(crate) fn follow<T: Send + Sync + 'static>(&self, informer: &SharedInformer<T>) {
        let mut memory = self.memory();
        memory.writes.follow(GroupResource::from(informer.resource()));
        memory.stores.0.push(Arc::new(informer.clone()));
    }

    /// Waits until every informer shows what reconciles of `key` wrote. Ready at the first poll if
    /// they do already.
    ///
    /// # Errors
    /// [`NotCaughtUp`] at the deadline; at once if all that is missing cannot be decoded.
    ///
    /// # Cancel safety
    /// Dropping the future forgets nothing.
    pub(crate) async fn caught_up(
        &self,
        key: &ObjectKey,
        deadline: Duration,
    ) -> Result<(), NotCaughtUp> {
        self.catch_up_within(Of::Key(key), deadline).await
    }

    /// [`caught_up`](Self::caught_up), for the writes of all keys.
    pub(crate) async fn all_caught_up(&self, deadline: Duration) -> Result<(), NotCaughtUp> {
        self.catch_up_within(Of::All, deadline).await
    }

    /// Drops all that is remembered. Answers that are still to come are ignored.
    pub(crate) fn forget_all(&self) {
        let mut memory = self.memory();
        memory.writes.forget_all();
        memory.conflicts.clear();
        drop(memory);
        self.changed.send_replace(());
    }

    /// The writer of reconciles of `key`; each write through it asks `gate` first.
    pub(crate) fn writer(self: &Arc<Self>, key: ObjectKey, gate: Gate) -> Writer {
        Writer::new(Arc::clone(self), key, gate)
    }

    /// To be cancelled when the controller has ended: requests that reconciles have left behind end
    /// then.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    pub(crate) fn metrics(&self) -> OwnWritesMetrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        OwnWritesMetrics {
            waits: read(&self.waits),
            timeouts: read(&self.timeouts),
            remembered: self.memory().writes.remembered(),
            refreshes: read(&self.refreshes),
            reads: read(&self.reads),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    async fn catch_up_within(&self, of: Of<'_>, deadline: Duration) -> Result<(), NotCaughtUp> {
        let caught_up = tokio::time::timeout(deadline, self.catch_up(of, deadline / 2)).await;
        if let Ok(caught_up) = caught_up {
            return caught_up;
        }
        self.timeouts.fetch_add(1, Ordering::Relaxed);
        self.check(of)
    }

    async fn catch_up(&self, of: Of<'_>, read_deadline: Duration) -> Result<(), NotCaughtUp> {
        let mut changed = self.changed.subscribe();
        let mut reached: Vec<_> = self.memory().stores.0.iter().map(|it| it.reached()).collect();
        let (mut has_waited, mut unreadable) = (false, 0);
        loop {
            changed.mark_unchanged();
            reached.iter_mut().for_each(watch::Receiver::mark_unchanged);
            let Err(missing) = self.check(of) else { return Ok(()) };
            // As long as more is to come, that may be a state that can be decoded.
            let is_hopeless = |it: &NotShown| matches!(it, NotShown::Undecodable { .. });
            if missing.missing.iter().all(is_hopeless) {
                return Err(missing);
            }
            if !std::mem::replace(&mut has_waited, true) {
                self.waits.fetch_add(1, Ordering::Relaxed);
            }
            let unsettled = self.unsettled(of);
            // Another attempt at what could not be read is left to the next wait.
            if unsettled.len() > unreadable {
                unreadable = self.settle_by_reads(unsettled, read_deadline).await;
                continue;
            }
            let requested = self.memory().request_refreshes(of);
            self.refreshes.fetch_add(requested, Ordering::Relaxed);
            let stores = reached.iter_mut().map(|it| Box::pin(it.changed()));
            let any_store = async {
                match reached_any(stores).await {
                    Some(()) => {}
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = any_store => {}
                _ = changed.changed() => {}
            }
        }
    }

    /// What is not shown now.
    fn check(&self, of: Of<'_>) -> Result<(), NotCaughtUp> {
        let mut memory = self.memory();
        memory.note_refreshes();
        let (writes, stores) = memory.parts();
        let missing: Vec<Missing<GroupResource>> =
            keys(writes, of).iter().flat_map(|key| writes.check(key, stores)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(NotCaughtUp { missing: missing.into_iter().map(|it| not_shown(it, stores)).collect() })
    }

    fn unsettled(&self, of: Of<'_>) -> Vec<Unsettled<GroupResource>> {
        let memory = self.memory();
        let writes = &memory.writes;
        keys(writes, of).iter().flat_map(|key| writes.unsettled(key)).collect()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // No foreign code runs under it.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a request that was answered with a code other than 2xx.
pub(super) fn answered(operation: String, code: StatusCode, body: &[u8]) -> WriteError {
    let status = Box::new(status_of(code, body));
    match is_unknown(code) {
        true => {
            let cause = format!("{} ({code})", status.message);
            WriteError::Unknown { operation, cause, status: Some(status) }
        }
        false => WriteError::Refused { operation, status },
    }
}

fn keys(writes: &Writes, of: Of<'_>) -> Vec<ObjectKey> {
    match of {
        Of::Key(key) => vec![key.clone()],
        Of::All => writes.keys(),
    }
}

/// The first of several that changes; `None` if there are none.
async fn reached_any<F>(changes: impl Iterator<Item = F>) -> Option<()>
where
    F: Future<Output = Result<(), watch::error::RecvError>> + Unpin,
{
    let changes: Vec<F> = changes.collect();
    if changes.is_empty() {
        return None;
    }
    // Its sender lives as long as the informer, which is followed.
    _ = select_all(changes).await;
    Some(())
}

fn not_shown(missing: Missing<GroupResource>, stores: &Stores) -> NotShown {
    match missing {
        Missing::InFlight { resource, name } => {
            NotShown::InFlight { resource: resource.to_string(), name }
        }
        Missing::Unsettled { resource, name } => {
            NotShown::Unsettled { resource: resource.to_string(), name }
        }
        Missing::Version { informer, key, version } => {
            let informer = stores.get(informer);
            let reached = informer.version().unwrap_or_default();
            NotShown::Version { key, wanted: version, reached, informer: informer.missing() }
        }
        Missing::Delete { informer, key, uid } => {
            NotShown::Delete { key, uid, informer: stores.get(informer).missing() }
        }
        Missing::Refresh { informer } => {
            NotShown::Refresh { informer: stores.get(informer).missing() }
        }
        Missing::Undecodable { informer, key, version, cause } => {
            let informer = stores.get(informer).missing();
            NotShown::Undecodable { key, version, cause, informer }
        }
    }
}

impl fmt::Debug for OwnWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnWrites").field("writes", &self.memory().writes).finish_non_exhaustive()
    }
}
