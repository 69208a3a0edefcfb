//! What one registration was given, checked event by event.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use informer::{
    Event, FinalState, Lister, ObjectKey, ResourceVersion, Snapshot, Uid, UpdateReason,
};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Collection, Identified, Identity};
use crate::helpers::{differences, hold_clock};

/// How many faults are kept in words; one is enough to fail.
const KEPT_FAULTS: usize = 20;

/// How many events are kept in words, the oldest of them.
const KEPT_NOTES: usize = 4096;

/// How many deleted objects are remembered, so that a long test does not take ever more memory.
const REMEMBERED: usize = 50_000;

/// The objects that one registration was given, and what was wrong with that. Every event is
/// checked:
///
/// - G2: the store, if it is known ([`reading`](Self::reading)), shows that state or a later one.
/// - G3: histories are `Added (Updated)* Deleted`, repeated; `old` of updates and deletes is the
///   very object that was given last; what was deleted does not come back in an older state.
/// - G4: states of an object come in the order of their versions, and one call at a time.
/// - G5: another UID is a delete and an add.
/// - G8: a resync only where one was asked for ([`resyncing`](Self::resyncing)), and without a
///   change.
/// - G17: the initial set comes before all else.
pub struct History<T> {
    name: String,
    inner: Mutex<Inner<T>>,
    store: Mutex<Option<Lister<T>>>,
    /// A call is under way.
    entered: AtomicBool,
    /// The digest of what the registration holds and the number of events, after every event.
    progress: watch::Sender<(u64, usize)>,
}

struct Inner<T> {
    resyncs: bool,
    goes_back: bool,
    held: HashMap<ObjectKey, Held<T>>,
    /// The version that each deleted object had, by UID.
    gone: HashMap<String, String>,
    /// The UIDs that a key has had; its number in the notes is its place here.
    identities: HashMap<ObjectKey, Vec<String>>,
    digest: u64,
    counts: Counts,
    notes: Vec<String>,
    faults: Vec<String>,
}

/// The last state that the registration was given.
struct Held<T> {
    object: Arc<T>,
    uid: String,
    version: String,
}

/// How many events of each kind there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Adds, those of the initial set among them.
    pub added: usize,
    /// Adds of the initial set.
    pub initial: usize,
    /// Updates with a change.
    pub updated: usize,
    /// Updates of a resync.
    pub resynced: usize,
    /// Deletes, those with an unknown final state among them.
    pub deleted: usize,
    /// Deletes with an unknown final state.
    pub unknown: usize,
}

impl<T: Identified> History<T> {
    /// An empty history; `name` tells it from others in errors.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Arc<Self> {
        let inner = Inner {
            resyncs: false,
            goes_back: false,
            held: HashMap::new(),
            gone: HashMap::new(),
            identities: HashMap::new(),
            digest: 0,
            counts: Counts::default(),
            notes: Vec::new(),
            faults: Vec::new(),
        };
        Arc::new(Self {
            name: name.into(),
            inner: Mutex::new(inner),
            store: Mutex::new(None),
            entered: AtomicBool::new(false),
            progress: watch::Sender::new((0, 0)),
        })
    }

    /// The registration asks for resyncs.
    #[must_use]
    pub fn resyncing(self: Arc<Self>) -> Arc<Self> {
        self.lock().resyncs = true;
        self
    }

    /// The store to check G2 with. The lister keeps a standalone informer running until
    /// [`forget_store`](Self::forget_store).
    #[must_use]
    pub fn reading(self: Arc<Self>, store: Lister<T>) -> Arc<Self> {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
        self
    }

    /// The server's history is about to be replaced: from now on versions may go back, and what was
    /// deleted may return.
    pub fn expect_older_versions(&self) {
        self.lock().goes_back = true;
    }

    /// G2 is not checked any more.
    pub fn forget_store(&self) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Takes note of an event, and of what is wrong with it.
    pub fn record(&self, event: &Event<T>) {
        let alone = !self.entered.swap(true, atomic::Ordering::AcqRel);
        let store = self
            .store
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(Lister::snapshot);
        let mut inner = self.lock();
        let mut faults = inner.record(event, store.as_ref());
        if !alone {
            faults.push(format!("{event:?} came while another call was under way"));
        }
        let room = KEPT_FAULTS.saturating_sub(inner.faults.len());
        inner.faults.extend(faults.into_iter().take(room));
        let progress = (inner.digest, inner.counts.events());
        drop(inner);
        self.entered.store(false, atomic::Ordering::Release);
        self.progress.send_replace(progress);
    }

    /// Waits until the registration was given exactly `expected`, by a history that is legal.
    ///
    /// # Errors
    ///
    /// When that does not come true within `deadline`, or anything was wrong with the history.
    pub async fn reaches(&self, expected: &Collection, deadline: Duration) -> anyhow::Result<()> {
        let entries = expected.iter().map(|(key, (uid, version))| hash(key, uid, version));
        let wanted = entries.fold(0, u64::wrapping_add);
        let mut progress = self.progress.subscribe();
        let equal = async {
            // A history may come by the same collection twice, and have gone on before this looks
            // at it.
            while progress.wait_for(|progress| progress.0 == wanted).await.is_ok() {
                if self.lock().collection() == *expected || progress.changed().await.is_err() {
                    return;
                }
            }
        };
        let held = hold_clock();
        _ = timeout(deadline, equal).await;
        drop(held);
        self.is_legal()?;
        let given = self.lock().collection();
        if given == *expected {
            return Ok(());
        }
        bail!(
            "what {} was given is not the collection:\n{}",
            self.name,
            differences(&given, expected)
        )
    }

    /// Waits until the history of one object is `expected`, as [`text_of`](Self::text_of) writes
    /// it.
    ///
    /// # Errors
    ///
    /// When that does not come true within `deadline`.
    pub async fn tells(
        &self,
        name: &str,
        expected: &str,
        deadline: Duration,
    ) -> anyhow::Result<()> {
        let mut progress = self.progress.subscribe();
        let told =
            async { while self.text_of(name) != expected && progress.changed().await.is_ok() {} };
        let held = hold_clock();
        _ = timeout(deadline, told).await;
        drop(held);
        match self.text_of(name) {
            text if text == expected => Ok(()),
            text => bail!("{} was told {text:?} of {name}, not {expected:?}", self.name),
        }
    }

    /// Waits until at least so many events came.
    ///
    /// # Errors
    ///
    /// When that does not come true within `deadline`.
    pub async fn receives(&self, events: usize, deadline: Duration) -> anyhow::Result<()> {
        let mut progress = self.progress.subscribe();
        let came =
            timeout(deadline, progress.wait_for(|progress| progress.1 >= events)).await.map(drop);
        came.with_context(|| {
            format!("{} was given less than {events} events: {}", self.name, self.text())
        })
    }

    /// Waits until an event of a resync came.
    pub async fn resyncs(&self) {
        let _held = hold_clock();
        let mut progress = self.progress.subscribe();
        while self.counts().resynced == 0 && progress.changed().await.is_ok() {}
    }

    /// Whether nothing was wrong so far.
    ///
    /// # Errors
    ///
    /// What was wrong.
    pub fn is_legal(&self) -> anyhow::Result<()> {
        let inner = self.lock();
        let (faults, counts) = (inner.faults.join("\n"), inner.counts);
        ensure!(
            faults.is_empty(),
            "{} was given an illegal history ({counts:?}):\n{faults}",
            self.name
        );
        Ok(())
    }

    /// How many events came.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// What the registration holds now.
    #[must_use]
    pub fn collection(&self) -> Collection {
        self.lock().collection()
    }

    /// The events, oldest first, at most 4096, as words: `*` an add of the initial set, `+` another
    /// add, `~` an update, `@` a resync, `-` a delete, then the name without its namespace, and
    /// which object of that name it is. A delete with an unknown final state ends with `?`. So a
    /// replaced Pod reads `+a#1 -a#1? +a#2`.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.lock().notes.clone()
    }

    /// [`notes`](Self::notes) in one line, to compare a whole history with.
    #[must_use]
    pub fn text(&self) -> String {
        self.lock().notes.join(" ")
    }

    /// The notes of the object named `name`, in one line.
    #[must_use]
    pub fn text_of(&self, name: &str) -> String {
        let of = |note: &&String| note[1..].split('#').next() == Some(name);
        self.lock().notes.iter().filter(of).map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The notes from the `from`th on, sorted: what happened, where the order across objects means
    /// nothing.
    #[must_use]
    pub fn sorted_from(&self, from: usize) -> String {
        let mut notes = self.lock().notes.get(from..).unwrap_or_default().to_vec();
        notes.sort_unstable();
        notes.join(" ")
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// All of them.
    #[must_use]
    pub fn events(&self) -> usize {
        self.added + self.updated + self.resynced + self.deleted
    }
}

impl<T: Identified> Inner<T> {
    /// Applies the event in any case, so that one fault does not draw others after it.
    fn record(&mut self, event: &Event<T>, store: Option<&Snapshot<T>>) -> Vec<String> {
        let (key, object) = (event.key(), event.object());
        let identity = object.identity();
        if identity.uid.is_empty() || identity.version.is_empty() {
            return vec![format!("{event:?} has no UID or no version")];
        }
        let before = self.held.remove(key);
        if let Some(Held { uid, version, .. }) = &before {
            self.digest = self.digest.wrapping_sub(hash(&key.to_string(), uid, version));
        }
        let verdict = self.judge(event, before.as_ref(), &identity);
        let (uid, version) = (identity.uid.into_owned(), identity.version.into_owned());
        let shown = store.map_or(Ok(()), |store| shows(store, event, &uid, &version));
        self.note(event, &uid);
        if matches!(event, Event::Deleted(_)) {
            if self.gone.len() >= REMEMBERED {
                self.gone.clear();
            }
            self.gone.insert(uid, version);
        } else {
            self.digest = self.digest.wrapping_add(hash(&key.to_string(), &uid, &version));
            self.held.insert(key.clone(), Held { object: Arc::clone(object), uid, version });
        }
        let before = before.map_or_else(
            || "nothing".to_owned(),
            |Held { uid, version, .. }| format!("{uid} at {version}"),
        );
        let fault = |error: anyhow::Error| format!("{event:?} after {before}: {error:#}");
        [verdict, shown].into_iter().filter_map(|result| result.err().map(fault)).collect()
    }

    fn judge(
        &mut self,
        event: &Event<T>,
        before: Option<&Held<T>>,
        identity: &Identity<'_>,
    ) -> anyhow::Result<()> {
        let key = event.key();
        let Identity { namespace, name, uid, version } = identity;
        match event {
            Event::Added { initial, .. } => {
                self.counts.added += 1;
                self.counts.initial += usize::from(*initial);
            }
            Event::Updated { reason: UpdateReason::Change, .. } => self.counts.updated += 1,
            Event::Updated { reason: UpdateReason::Resync, .. } => self.counts.resynced += 1,
            Event::Deleted(deleted) => {
                self.counts.deleted += 1;
                self.counts.unknown += usize::from(deleted.final_state == FinalState::Unknown);
            }
        }
        ensure!(
            key.namespace() == &**namespace && key.name() == &**name,
            "the object is {namespace}/{name}"
        );
        match event {
            Event::Added { initial, .. } => {
                ensure!(before.is_none(), "G3: added twice");
                let begins = self.counts.events() == self.counts.initial;
                ensure!(begins || !initial, "G17: initial, after an event that is not");
                if let Some(end) = self.gone.get(&**uid) {
                    let later = !compare(end, version).is_gt() || self.goes_back;
                    ensure!(later, "G3: {uid} at {version} is back from the dead");
                }
            }
            Event::Updated { old, new, reason, .. } => {
                let before = before.context("G3: an update of what was not added")?;
                ensure!(Arc::ptr_eq(old, &before.object), "G3: `old` is not the object given last");
                ensure!(before.uid == **uid, "G5: an update to another UID, {uid}");
                match reason {
                    UpdateReason::Resync => {
                        ensure!(self.resyncs, "G8: a resync that nobody asked for");
                        ensure!(Arc::ptr_eq(old, new), "G8: a resync with a change");
                    }
                    UpdateReason::Change => {
                        let later = compare(&before.version, version).is_lt() || self.goes_back;
                        ensure!(later, "G4, G7: an update to {version}, which is no later");
                    }
                }
            }
            Event::Deleted(deleted) => {
                let before = before.context("G3: a delete of what was not added")?;
                let same = Arc::ptr_eq(&deleted.old, &before.object);
                ensure!(same, "G3: `old` of a delete is not the object given last");
                ensure!(before.uid == **uid, "G5: a delete of another UID, {uid}");
                let newest = !compare(&before.version, version).is_gt() || self.goes_back;
                ensure!(newest, "G4, G6: the last state, {version}, is an older one");
            }
        }
        Ok(())
    }

    fn note(&mut self, event: &Event<T>, uid: &str) {
        if self.notes.len() >= KEPT_NOTES {
            return;
        }
        let identities = self.identities.entry(event.key().clone()).or_default();
        let number = identities.iter().position(|known| known == uid).unwrap_or_else(|| {
            identities.push(uid.to_owned());
            identities.len() - 1
        });
        let (sign, end) = match event {
            Event::Added { initial: true, .. } => ('*', ""),
            Event::Added { .. } => ('+', ""),
            Event::Updated { reason: UpdateReason::Change, .. } => ('~', ""),
            Event::Updated { reason: UpdateReason::Resync, .. } => ('@', ""),
            Event::Deleted(deleted) if deleted.final_state == FinalState::Unknown => ('-', "?"),
            Event::Deleted(_) => ('-', ""),
        };
        self.notes.push(format!("{sign}{}#{}{end}", event.key().name(), number + 1));
    }

    fn collection(&self) -> Collection {
        let entry = |(key, held): (&ObjectKey, &Held<T>)| {
            (key.to_string(), (held.uid.clone(), held.version.clone()))
        };
        self.held.iter().map(entry).collect()
    }
}

/// G2: the store shows the state that the event tells of, or a later one.
fn shows<T>(store: &Snapshot<T>, event: &Event<T>, uid: &str, version: &str) -> anyhow::Result<()> {
    if store.epoch() > 0 {
        // The server's history was replaced: versions do not compare with those of before.
        return Ok(());
    }
    let wanted = ResourceVersion::from(version);
    let at = store.version();
    ensure!(!compare_versions(at, &wanted).is_lt(), "G2: the store is at {at}, before {version}");
    let held = store.get(event.key());
    match (event, held) {
        (Event::Deleted(_), Some(held)) if held.uid == Uid::from(uid) => {
            // It may have come back, where a selector lets it out and in.
            let later = compare_versions(&held.version, &wanted).is_gt();
            ensure!(later, "G2: the store still holds {uid} at {}", held.version);
        }
        (Event::Deleted(_), _) => {}
        (_, Some(held)) => {
            let earlier = compare_versions(&held.version, &wanted).is_lt();
            ensure!(!earlier, "G2: the store holds {} at {}", held.uid, held.version);
        }
        (_, None) => {
            let later = compare_versions(at, &wanted).is_gt();
            ensure!(later, "G2: the store at {at} does not hold {uid} at {version}");
        }
    }
    Ok(())
}

fn compare(left: &str, right: &str) -> Ordering {
    compare_versions(&ResourceVersion::from(left), &ResourceVersion::from(right))
}

fn compare_versions(left: &ResourceVersion, right: &ResourceVersion) -> Ordering {
    left.compare(right).unwrap_or(Ordering::Equal)
}

fn hash(key: &str, uid: &str, version: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, uid, version).hash(&mut hasher);
    hasher.finish()
}

impl<T> fmt::Debug for History<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("name", &self.name).finish_non_exhaustive()
    }
}
