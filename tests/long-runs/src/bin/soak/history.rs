//! Checks that what one handler is given is a legal history (G3), in memory that does not grow,
//! since it is measured with the informers: of a name the last object's UID and version are kept,
//! not those of all that ever had it, as `informer_tests::observe` does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, ensure};
use informer::{Event, Lister, ObjectKey, ResourceVersion, Snapshot, UpdateReason};
use serde::{Deserialize, Serialize};

use crate::collection::{Digest, Objects};

/// How many faults are kept in words; one is enough to fail.
const KEPT_FAULTS: usize = 20;

/// UID and version of an object.
pub(crate) type Identity<T> = fn(&T) -> [&str; 2];

/// What was wrong, in words.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<Vec<String>>);

/// The objects that one registration was given.
pub(crate) struct History<T> {
    name: &'static str,
    identity: Identity<T>,
    /// Whether objects come back as they were, because a label brings them into the selection
    /// again.
    selects: bool,
    /// The store that must know what the handler is told (G2).
    store: Lister<T>,
    faults: Arc<Faults>,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    held: HashMap<ObjectKey, Held<T>>,
    gone: HashMap<ObjectKey, [Box<str>; 2]>,
    digest: Digest,
    counts: Counts,
}

/// The last state that the registration was given.
struct Held<T> {
    object: Arc<T>,
    uid: Box<str>,
    version: Box<str>,
}

/// How many events of each kind there were.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) added: u64,
    pub(crate) initial: u64,
    pub(crate) updated: u64,
    pub(crate) resynced: u64,
    pub(crate) deleted: u64,
}

impl Faults {
    pub(crate) fn add(&self, fault: String) {
        let mut faults = self.lock();
        if faults.len() < KEPT_FAULTS {
            faults.push(fault);
        }
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> History<T> {
    pub(crate) fn new(
        name: &'static str,
        identity: Identity<T>,
        selects: bool,
        store: Lister<T>,
        faults: &Arc<Faults>,
    ) -> Arc<Self> {
        let inner = Inner {
            held: HashMap::new(),
            gone: HashMap::new(),
            digest: Digest::default(),
            counts: Counts::default(),
        };
        let faults = Arc::clone(faults);
        Arc::new(Self { name, identity, selects, store, faults, inner: Mutex::new(inner) })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Takes an event; one that is illegal is taken too, so that it does not draw other faults
    /// after it.
    pub(crate) fn record(&self, event: &Event<T>) {
        let mut inner = self.lock();
        let [uid, version] = (self.identity)(event.object());
        let (uid, version): (Box<str>, Box<str>) = (uid.into(), version.into());
        let key = event.key();
        let before = inner.held.remove(key);
        let text = key.to_string();
        if let Some(Held { uid, version, .. }) = &before {
            inner.digest.remove(&text, uid, version);
        }
        inner.counts.count(event);
        let verdict = inner
            .judge(event, before.as_ref(), &uid, &version, self.selects)
            .and_then(|()| self.is_in_store(&self.store.snapshot(), event, &version));
        if let Err(fault) = verdict {
            let before = before.map_or_else(
                || "nothing".to_owned(),
                |Held { uid, version, .. }| format!("{uid} at {version}"),
            );
            self.faults.add(format!("{} was given {event:?} after {before}: {fault:#}", self.name));
        }
        if matches!(event, Event::Deleted(_)) {
            inner.gone.insert(key.clone(), [uid, version]);
        } else {
            inner.gone.remove(key);
            inner.digest.add(&text, &uid, &version);
            inner
                .held
                .insert(key.clone(), Held { object: Arc::clone(event.object()), uid, version });
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        self.lock().digest
    }

    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts
    }

    pub(crate) fn objects(&self) -> Objects {
        let inner = self.lock();
        let entry = |(key, held): (&ObjectKey, &Held<T>)| {
            (key.to_string(), (held.uid.to_string(), held.version.to_string()))
        };
        inner.held.iter().map(entry).collect()
    }

    /// The store has what the event tells of, or something later (G2).
    fn is_in_store(
        &self,
        store: &Snapshot<T>,
        event: &Event<T>,
        version: &str,
    ) -> anyhow::Result<()> {
        let Some(record) = store.get(event.key()) else { return Ok(()) };
        let kept = record.version.to_string();
        match event {
            Event::Deleted(_) => {
                let [uid, _] = (self.identity)(event.object());
                ensure!(
                    record.uid.to_string() != uid || self.selects && is_later(version, &kept),
                    "the store still has it, at {kept}"
                );
            }
            _ => ensure!(!is_later(&kept, version), "the store has it at {kept}, which is older"),
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Inner<T> {
    fn judge(
        &self,
        event: &Event<T>,
        before: Option<&Held<T>>,
        uid: &str,
        version: &str,
        selects: bool,
    ) -> anyhow::Result<()> {
        ensure!(!uid.is_empty() && !version.is_empty(), "no UID or no version");
        match event {
            Event::Added { .. } => {
                ensure!(before.is_none(), "added twice");
                if let Some([gone, last]) = self.gone.get(event.key()) {
                    ensure!(selects || **gone != *uid, "{uid} at {version} is back from the dead");
                    ensure!(is_later(last, version), "added at {version}, gone at {last}");
                }
            }
            Event::Updated { old, new, reason, .. } => {
                let before = before.context("an update of what was not added")?;
                ensure!(Arc::ptr_eq(old, &before.object), "`old` is not the object given last");
                ensure!(*before.uid == *uid, "an update to another UID, {uid}");
                match reason {
                    UpdateReason::Resync => {
                        ensure!(Arc::ptr_eq(old, new), "a resync with a change")
                    }
                    UpdateReason::Change => {
                        ensure!(
                            is_later(&before.version, version),
                            "an update to {version}, which is no later"
                        );
                    }
                }
            }
            Event::Deleted(deleted) => {
                let before = before.context("a delete of what was not added")?;
                let same = Arc::ptr_eq(&deleted.old, &before.object);
                ensure!(same, "`old` of a delete is not the object given last");
                ensure!(*before.uid == *uid, "a delete of another UID, {uid}");
                ensure!(
                    !is_later(version, &before.version),
                    "the last state, {version}, is an older one"
                );
            }
        }
        Ok(())
    }
}

impl Counts {
    /// Events of all kinds.
    pub(crate) fn all(&self) -> u64 {
        self.added + self.updated + self.resynced + self.deleted
    }

    pub(crate) fn sum(self, other: Self) -> Self {
        Self {
            added: self.added + other.added,
            initial: self.initial + other.initial,
            updated: self.updated + other.updated,
            resynced: self.resynced + other.resynced,
            deleted: self.deleted + other.deleted,
        }
    }

    fn count<T>(&mut self, event: &Event<T>) {
        match event {
            Event::Added { initial, .. } => {
                self.added += 1;
                self.initial += u64::from(*initial);
            }
            Event::Updated { reason: UpdateReason::Change, .. } => self.updated += 1,
            Event::Updated { reason: UpdateReason::Resync, .. } => self.resynced += 1,
            Event::Deleted(_) => self.deleted += 1,
        }
    }
}

/// Whether `right` is a later version than `left`.
fn is_later(left: &str, right: &str) -> bool {
    ResourceVersion::from(left)
        .compare(&ResourceVersion::from(right))
        .is_some_and(std::cmp::Ordering::is_lt)
}
