//! Checks that what one handler is given is a legal history (G3), and gates that make handlers slow.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use informer::{Event, ObjectKey, ResourceVersion, UpdateReason};
use informer_tests::helpers::differences;
use kube::ResourceExt;
use tokio::sync::watch;
use tokio::time::timeout;

/// How many faults are kept in words; one is enough to fail.
const KEPT_FAULTS: usize = 20;

/// The objects that one registration was given, and what was wrong with that.
pub(crate) struct History<T> {
    name: &'static str,
    inner: Mutex<Inner<T>>,
    /// The digest of what the registration holds, after every event.
    digest: watch::Sender<u64>,
}

struct Inner<T> {
    held: HashMap<ObjectKey, Held<T>>,
    gone: HashSet<String>,
    digest: u64,
    counts: Counts,
    faults: Vec<String>,
}

/// The last state that the registration was given.
struct Held<T> {
    object: Arc<T>,
    uid: String,
    version: String,
}

/// How many events of each kind there were.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) added: usize,
    pub(crate) initial: usize,
    pub(crate) updated: usize,
    pub(crate) resynced: usize,
    pub(crate) deleted: usize,
}

impl<T: ResourceExt> History<T> {
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        let inner = Inner {
            held: HashMap::new(),
            gone: HashSet::new(),
            digest: 0,
            counts: Counts::default(),
            faults: Vec::new(),
        };
        Arc::new(Self { name, inner: Mutex::new(inner), digest: watch::Sender::new(0) })
    }

    pub(crate) fn record(&self, event: &Event<T>) {
        let mut inner = self.lock();
        if let Err(fault) = inner.record(event)
            && inner.faults.len() < KEPT_FAULTS
        {
            inner.faults.push(format!("{fault:#}"));
        }
        let digest = inner.digest;
        drop(inner);
        self.digest.send_replace(digest);
    }

    /// Waits until the registration was given exactly `expected`, by a history that is legal.
    pub(crate) async fn reaches(
        &self,
        expected: &BTreeMap<String, (String, String)>,
        deadline: Duration,
    ) -> anyhow::Result<()> {
        let entries = expected.iter().map(|(key, (uid, version))| hash(key, uid, version));
        let wanted = entries.fold(0, u64::wrapping_add);
        let mut digest = self.digest.subscribe();
        // What it yields locks the digest, which `record` writes under its own lock: not to be kept.
        let reached = timeout(deadline, digest.wait_for(|digest| *digest == wanted)).await.is_ok();
        let (given, faults, counts) = {
            let inner = self.lock();
            (inner.collection(), inner.faults.join("\n"), inner.counts)
        };
        ensure!(faults.is_empty(), "{} was given an illegal history ({counts:?}):\n{faults}", self.name);
        if given == *expected {
            return Ok(());
        }
        let late = if reached { "but it has the same digest" } else { "not within the deadline" };
        bail!(
            "what {} was given is not the collection, {late}:\n{}",
            self.name,
            differences(&given, expected)
        )
    }

    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ResourceExt> Inner<T> {
    /// Applies the event in any case, so that one fault does not draw others after it.
    fn record(&mut self, event: &Event<T>) -> anyhow::Result<()> {
        let key = event.key();
        let object = event.object();
        let uid = object.uid().with_context(|| format!("{key} has no UID"))?;
        let version = object.resource_version().with_context(|| format!("{key} has no version"))?;
        let before = self.held.remove(key);
        if let Some(Held { uid, version, .. }) = &before {
            self.digest = self.digest.wrapping_sub(hash(&key.to_string(), uid, version));
        }
        let verdict = self.judge(event, before.as_ref(), &uid, &version);
        if matches!(event, Event::Deleted(_)) {
            self.gone.insert(uid);
        } else {
            self.digest = self.digest.wrapping_add(hash(&key.to_string(), &uid, &version));
            self.held.insert(key.clone(), Held { object: Arc::clone(object), uid, version });
        }
        let before = before
            .map_or_else(|| "nothing".to_owned(), |Held { uid, version, .. }| format!("{uid} at {version}"));
        verdict.with_context(|| format!("{event:?} after {before}"))
    }

    fn judge(
        &mut self,
        event: &Event<T>,
        before: Option<&Held<T>>,
        uid: &str,
        version: &str,
    ) -> anyhow::Result<()> {
        let (key, object) = (event.key(), event.object());
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        ensure!(key.namespace() == namespace && key.name() == name, "the object is {namespace}/{name}");
        let is_later = |before: &Held<T>| compare(&before.version, version).is_lt();
        match event {
            Event::Added { initial, .. } => {
                self.counts.added += 1;
                self.counts.initial += usize::from(*initial);
                ensure!(before.is_none(), "added twice");
                ensure!(!self.gone.contains(uid), "{uid} at {version} is back from the dead");
            }
            Event::Updated { old, new, reason, .. } => {
                match reason {
                    UpdateReason::Change => self.counts.updated += 1,
                    UpdateReason::Resync => self.counts.resynced += 1,
                }
                let before = before.context("an update of what was not added")?;
                ensure!(Arc::ptr_eq(old, &before.object), "`old` is not the object given last");
                ensure!(before.uid == uid, "an update to another UID, {uid}");
                match reason {
                    UpdateReason::Resync => ensure!(Arc::ptr_eq(old, new), "a resync with a change"),
                    UpdateReason::Change => {
                        ensure!(is_later(before), "an update to {version}, which is no later")
                    }
                }
            }
            Event::Deleted(_) => {
                self.counts.deleted += 1;
                let before = before.context("a delete of what was not added")?;
                ensure!(before.uid == uid, "a delete of another UID, {uid}");
                ensure!(
                    !compare(&before.version, version).is_gt(),
                    "the last state, {version}, is an older one"
                );
            }
        }
        Ok(())
    }

    fn collection(&self) -> BTreeMap<String, (String, String)> {
        let entry =
            |(key, held): (&ObjectKey, &Held<T>)| (key.to_string(), (held.uid.clone(), held.version.clone()));
        self.held.iter().map(entry).collect()
    }
}

/// Closed, it stops the handlers that want to pass.
#[derive(Default)]
pub(crate) struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

/// Opens the gate when dropped: a handler that waits would keep a failed test from ending.
pub(crate) struct GateKeeper(pub(crate) Arc<Gate>);

impl Gate {
    pub(crate) fn pass(&self) {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(closed, |closed| *closed).unwrap_or_else(PoisonError::into_inner));
    }
}

impl GateKeeper {
    pub(crate) fn close(&self) {
        self.set(true);
    }

    pub(crate) fn open(&self) {
        self.set(false);
    }

    fn set(&self, closed: bool) {
        *self.0.closed.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.0.opened.notify_all();
    }
}

impl Drop for GateKeeper {
    fn drop(&mut self) {
        self.open();
    }
}

fn compare(left: &str, right: &str) -> std::cmp::Ordering {
    let order = ResourceVersion::new(left).compare(&ResourceVersion::new(right));
    order.unwrap_or(std::cmp::Ordering::Equal)
}

fn hash(key: &str, uid: &str, version: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, uid, version).hash(&mut hasher);
    hasher.finish()
}
