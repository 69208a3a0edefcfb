//! What the reconciles of each key wrote, and whether the stores have caught up with it.
//!
//! [`OwnWrites`] is the memory of one controller. A write [begins](OwnWrites::begin) before it is
//! sent and is [answered](OwnWrites::answered) once; from then on [`check`](OwnWrites::check) says
//! what the informers of the written resource do not show yet. A write of unknown outcome is
//! [settled](OwnWrites::settled) by reading the object, or by a [refresh](OwnWrites::refreshed) of
//! the informers.
//!
//! Caught up is about the version of a *store*, never about that of an object: a write that changes
//! nothing is answered with an old version, later writes replace it, and the object may be gone.
//! Versions are compared only with those of stores of the same resource.

mod needs;
mod remembered;
mod requirement;
#[cfg(test)]
mod tests;
mod types;

use std::collections::BTreeMap;
use std::fmt;

pub use self::types::{
    Answer, Found, History, InformerId, Missing, Selection, Ticket, Unsettled, Verb, Views, Write,
    Written,
};

use self::remembered::{Remembered, State, is_refreshed, is_there};
use self::requirement::{Need, Progress};
use crate::ObjectKey;

/// How many remembered writes there are at least before the first [sweep](OwnWrites::sweep).
const FIRST_SWEEP: usize = 64;

/// The writes of one controller that its informers may not show yet; `R` identifies a resource.
///
/// Deterministic: it does no I/O and has no clock. What the informers show is asked through
/// [`Views`].
///
/// # Examples
/// ```
/// use informer_core::own_writes::*;
/// use informer_core::{ObjectKey, ResourceVersion, Uid};
///
/// struct At(ResourceVersion);
/// impl Views for At {
///     fn history(&self, _: InformerId) -> Option<History> { Some(History::default()) }
///     fn includes_namespace(&self, _: InformerId, _: &str) -> bool { true }
///     fn has_reached(&self, _: InformerId, version: &ResourceVersion) -> bool { self.0.has_reached(version) }
///     fn held(&self, _: InformerId, _: &ObjectKey) -> Option<(Uid, ResourceVersion)> { None }
///     fn undecodable(&self, _: InformerId, _: &ObjectKey) -> Option<String> { None }
/// }
///
/// let mut writes = OwnWrites::new();
/// writes.follow("pods");
/// let (set, pod) = (ObjectKey::namespaced("shop", "web"), ObjectKey::namespaced("shop", "web-0"));
///
/// let write = Write { resource: "pods", verb: Verb::Create, namespace: "shop".into(), name: None, uid: None };
/// let ticket = writes.begin(set.clone(), write, &At(6.into()));
/// let written = Written { key: pod, uid: "a".into(), version: 7.into(), is_gone: false };
/// writes.answered(ticket, Answer::Object(written), |_| Selection::Selected, &At(6.into()));
///
/// assert_eq!(writes.check(&set, &At(6.into())).len(), 1, "the store does not show the write");
/// assert!(writes.check(&set, &At(8.into())).is_empty());
/// assert_eq!(writes.remembered(), 0);
/// ```
pub struct OwnWrites<R> {
    /// The resource of each informer, and the number of its last refresh.
    informers: Vec<(R, u64)>,
    keys: BTreeMap<ObjectKey, Vec<Remembered<R>>>,
    /// Numbers writes, answers and refreshes in the order in which they happened.
    clock: u64,
    remembered: usize,
    sweep_at: usize,
}

impl<R: Eq + Clone> OwnWrites<R> {
    /// A memory without informers, which waits for nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            informers: Vec::new(),
            keys: BTreeMap::new(),
            clock: 0,
            remembered: 0,
            sweep_at: FIRST_SWEEP,
        }
    }

    /// Adds an informer of a resource, of which there may be several. It is waited for by writes
    /// that begin from now on.
    pub fn follow(&mut self, resource: R) -> InformerId {
        self.informers.push((resource, 0));
        InformerId(self.informers.len() - 1)
    }

    /// Remembers a write before it is sent, with the UID of its object: the one given, or that of the
    /// newest state that a store has under the name. Until it is answered, `key` has not caught up.
    #[must_use = "a ticket that is not answered keeps its key waiting"]
    pub fn begin(&mut self, key: ObjectKey, mut write: Write<R>, views: &impl Views) -> Ticket {
        let number = self.tick();
        let of_resource =
            self.informers.iter().enumerate().filter(|(_, it)| it.0 == write.resource);
        let informers: Vec<(InformerId, History)> = of_resource
            .map(|(at, _)| InformerId(at))
            .filter(|informer| views.includes_namespace(*informer, &write.namespace))
            .filter_map(|informer| Some((informer, views.history(informer)?)))
            .collect();
        let held = write.object().filter(|_| write.verb != Verb::Create).and_then(|object| {
            let held = informers.iter().filter_map(|(informer, _)| views.held(*informer, &object));
            let of_object = held.filter(|(uid, _)| write.uid.as_ref().is_none_or(|own| own == uid));
            of_object.reduce(|last, it| if last.1.has_reached(&it.1) { last } else { it })
        });
        let (uid, shown) = held.unzip();
        write.uid = write.uid.or(uid);
        if !informers.is_empty() {
            let state = State::InFlight;
            let remembered = Remembered { number, write, informers, shown, state };
            self.keys.entry(key.clone()).or_default().push(remembered);
            self.remembered += 1;
        }
        Ticket { key, number }
    }

    /// What became of a write. `selects` says whether an informer's selectors select the object of
    /// the answer.
    pub fn answered(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        selects: impl Fn(InformerId) -> Selection,
        views: &impl Views,
    ) {
        let Ticket { key, number } = ticket;
        let now = self.tick();
        let Some(mut remembered) = self.take(&key, number) else { return };
        remembered.state = match answer {
            Answer::NotWritten => return,
            Answer::Unknown => State::Unsettled { since: now },
            Answer::Object(written) => {
                remembered.write.uid = Some(written.uid.clone());
                remembered.write.name = Some(written.key.name().to_owned());
                self.requirements(&remembered, written, now, selects, views)
            }
            Answer::NotFound if remembered.write.uid.is_none() => return,
            Answer::NotFound => self.deleted(&remembered, None, now, views),
            Answer::Deleted { uid } => self.deleted(&remembered, uid, now, views),
        };
        self.put(key, remembered);
    }

    /// What informers do not show yet of the writes of `key`; empty if it has caught up. Writes
    /// that are shown are forgotten; those that selectors exclude, once the store has reached their
    /// version.
    pub fn check(&mut self, key: &ObjectKey, views: &impl Views) -> Vec<Missing<R>> {
        let Some(writes) = self.keys.get_mut(key) else { return Vec::new() };
        let (before, mut missing) = (writes.len(), Vec::new());
        writes.retain_mut(|remembered| remembered.check(&self.informers, views, &mut missing));
        self.remembered -= before - writes.len();
        if writes.is_empty() {
            self.keys.remove(key);
        }
        missing
    }

    /// The keys that have writes which are remembered.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.keys.keys().cloned().collect()
    }

    /// Forgets what is shown, for keys that are not asked for again, where that has become due:
    /// after as many writes as there were left by the sweep before.
    pub fn sweep(&mut self, views: &impl Views) {
        if self.remembered < self.sweep_at {
            return;
        }
        for key in self.keys() {
            self.check(&key, views);
        }
        self.sweep_at = (2 * self.remembered).max(FIRST_SWEEP);
    }

    /// The writes of `key` whose outcome is unknown and that a read of the object by its name can
    /// settle. Those of a create whose name the server chooses are not among them.
    #[must_use]
    pub fn unsettled(&self, key: &ObjectKey) -> Vec<Unsettled<R>> {
        let writes = self.keys.get(key).into_iter().flatten();
        let unsettled = writes.filter_map(|remembered| {
            let State::Unsettled { .. } = remembered.state else { return None };
            let Write { resource, namespace, name, .. } = &remembered.write;
            Some(Unsettled {
                ticket: Ticket { key: key.clone(), number: remembered.number },
                resource: resource.clone(),
                namespace: namespace.clone(),
                name: name.clone()?,
            })
        });
        unsettled.collect()
    }

    /// What a read of the object by its name has found, which began after the outcome of the write
    /// was known to be unknown. A ticket that was not answered may be settled as well: what is
    /// found is then waited for as if it had been written.
    pub fn settled(
        &mut self,
        ticket: Ticket,
        found: Found,
        selects: impl Fn(InformerId) -> Selection,
        views: &impl Views,
    ) {
        let Ticket { key, number } = ticket;
        let now = self.tick();
        let Some(mut remembered) = self.take(&key, number) else { return };
        let uid = remembered.write.uid.clone();
        remembered.state = match found {
            Found::Object(written) => {
                let replaced = uid.filter(|uid| *uid != written.uid);
                let state = self.requirements(&remembered, written, now, selects, views);
                match (state, replaced) {
                    (State::Answered(mut requirements), Some(uid)) => {
                        requirements.extend(self.absences(&remembered, &uid, now, views));
                        State::Answered(requirements)
                    }
                    (State::Unsettled { since }, _) => {
                        // Another read would tell no more.
                        remembered.write.name = None;
                        State::Unsettled { since }
                    }
                    (state, _) => state,
                }
            }
            Found::Absent => match (uid, remembered.write.verb) {
                (Some(uid), _) => State::Answered(self.absences(&remembered, &uid, now, views)),
                (None, Verb::Create) => return,
                // Nothing says which object a store must not hold any more.
                (None, Verb::Change | Verb::Delete) => {
                    remembered.write.name = None;
                    State::Unsettled { since: now }
                }
            },
        };
        self.put(key, remembered);
    }

    /// The informers that must be refreshed before `key` has caught up, unless its unsettled writes
    /// are settled; with the number that the refresh must exceed.
    #[must_use]
    pub fn refreshes(&self, key: &ObjectKey, views: &impl Views) -> BTreeMap<InformerId, u64> {
        let mut wanted = BTreeMap::new();
        let mut want = |informer: InformerId, since: u64| {
            let last: &mut u64 = wanted.entry(informer).or_default();
            *last = since.max(*last);
        };
        for remembered in self.keys.get(key).into_iter().flatten() {
            match &remembered.state {
                State::InFlight => {}
                State::Unsettled { since } => {
                    for (informer, history) in &remembered.informers {
                        if !is_refreshed(*informer, *since, &self.informers)
                            && is_there(*informer, *history, views)
                        {
                            want(*informer, *since);
                        }
                    }
                }
                State::Answered(requirements) => {
                    for it in requirements.iter().filter(|it| it.need == Need::Refresh) {
                        if let Progress::Missing(_) = it.progress(&self.informers, views) {
                            want(it.informer, it.since);
                        }
                    }
                }
            }
        }
        wanted
    }

    /// Numbers a refresh that is about to be requested: it shows every write that was answered or
    /// given up before.
    #[must_use]
    pub fn request_refresh(&mut self) -> u64 {
        self.tick()
    }

    /// The list of a refresh is in the informer's store; `requested` is its number.
    pub fn refreshed(&mut self, informer: InformerId, requested: u64) {
        if let Some((_, last)) = self.informers.get_mut(informer.0) {
            *last = (*last).max(requested);
        }
    }

    /// Forgets all writes. Answers to those in flight are ignored.
    pub fn forget_all(&mut self) {
        self.keys.clear();
        self.remembered = 0;
        self.sweep_at = FIRST_SWEEP;
    }

    /// How many writes are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.remembered
    }

    /// The resource of an informer.
    ///
    /// # Panics
    /// For an informer of another memory.
    #[must_use]
    pub fn resource(&self, informer: InformerId) -> &R {
        &self.informers[informer.0].0
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn take(&mut self, key: &ObjectKey, number: u64) -> Option<Remembered<R>> {
        let writes = self.keys.get_mut(key)?;
        let at = writes.iter().position(|it| it.number == number)?;
        let taken = writes.remove(at);
        self.remembered -= 1;
        if writes.is_empty() {
            self.keys.remove(key);
        }
        Some(taken)
    }

    fn put(&mut self, key: ObjectKey, remembered: Remembered<R>) {
        if matches!(&remembered.state, State::Answered(requirements) if requirements.is_empty()) {
            return;
        }
        self.keys.entry(key).or_default().push(remembered);
        self.remembered += 1;
    }
}

impl<R: Eq + Clone> Default for OwnWrites<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> fmt::Debug for OwnWrites<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnWrites")
            .field("informers", &self.informers.len())
            .field("keys", &self.keys.len())
            .field("remembered", &self.remembered)
            .finish_non_exhaustive()
    }
}
