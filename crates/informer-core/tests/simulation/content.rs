//! What the store shows: G2, G4, G6, G7, G9 to G11, G14, G20, against the server's own history.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use informer_core::store::{Index, IndexFault, Reader, Snapshot};
use informer_core::{Deleted, Event, FinalState, ObjectKey, ResourceVersion, Uid};

use crate::driver::{Delivered, Delivery, Obj, What};
use crate::server::{Good, State};
use crate::world::World;

/// What is known of the published store.
pub(crate) struct Content {
    pub(crate) reader: Reader<Obj>,
    before: Snapshot<Obj>,
    epoch: u64,
    /// The oldest lineage that the store can be of.
    lineage: usize,
    /// The resource was removed, and no list came since.
    pub(crate) cleared: bool,
    pub(crate) synced: bool,
    pub(crate) indexes: Vec<Index<Obj>>,
    kept: Vec<(Snapshot<Obj>, Stamps)>,
    /// The last good state of each name that was handed in, and those of the list that is coming
    /// in.
    good: LastGood,
    listed: LastGood,
    pub(crate) spy: Arc<Mutex<Spy>>,
}

/// The keys and states of a snapshot.
type Stamps = Vec<(ObjectKey, u64)>;

/// UID and stamp by key.
type LastGood = BTreeMap<ObjectKey, (Uid, u64)>;

/// A handler that runs at once wherever it is woken, and sees what the store shows at that moment.
#[derive(Default)]
pub(crate) struct Spy {
    view: BTreeMap<ObjectKey, Arc<Obj>>,
    events: Vec<Event<Obj>>,
    wrong: Option<String>,
    /// What the store showed when the first list was in it.
    first: Option<Snapshot<Obj>>,
}

/// What a batch of deltas has in it.
#[derive(Default)]
struct Batch {
    replaced: bool,
    tombstones: Vec<(ObjectKey, Uid, Arc<Obj>)>,
}

impl Content {
    pub(crate) fn new(reader: Reader<Obj>) -> Self {
        Self {
            before: reader.snapshot(),
            reader,
            epoch: 0,
            lineage: 0,
            cleared: false,
            synced: false,
            indexes: Vec::new(),
            kept: Vec::new(),
            good: LastGood::new(),
            listed: LastGood::new(),
            spy: Arc::default(),
        }
    }

    pub(crate) fn keep(&mut self) {
        let snapshot = self.reader.snapshot();
        let content = contents(&snapshot);
        self.kept.push((snapshot, content));
        if self.kept.len() > 4 {
            self.kept.remove(0);
        }
    }

    /// Snapshots do not change (G10).
    pub(crate) fn check_kept(&self) {
        for (snapshot, content) in &self.kept {
            assert!(contents(snapshot) == *content, "G10: a snapshot has changed");
        }
    }
}

impl Spy {
    /// Takes all events and compares what they come to with what the store shows (G2).
    pub(crate) fn woken(&mut self, events: Vec<Event<Obj>>, snapshot: &Snapshot<Obj>) {
        for event in &events {
            let key = event.key().clone();
            match event {
                Event::Added { object, .. } => _ = self.view.insert(key, Arc::clone(object)),
                Event::Updated { new, .. } => _ = self.view.insert(key, Arc::clone(new)),
                Event::Deleted(_) => _ = self.view.remove(&key),
            }
        }
        self.events.extend(events);
        if self.first.is_none() && !snapshot.version().is_unset() {
            self.first = Some(snapshot.clone());
        }
        if self.wrong.is_none() && !self.agrees(snapshot) {
            let (told, shown) = (self.view.keys(), contents(snapshot));
            self.wrong = Some(format!("G2: told of {told:?}, and the store shows {shown:?}"));
        }
    }

    fn agrees(&self, snapshot: &Snapshot<Obj>) -> bool {
        self.view.len() == snapshot.len()
            && snapshot.iter().zip(&self.view).all(|(entry, (key, object))| {
                entry.key == key && Arc::ptr_eq(entry.object(), object)
            })
    }
}

impl World {
    /// Has the store take what is queued, and checks what it makes of it.
    pub(crate) fn deliver(&mut self) {
        self.ingest.deliver(self.now);
        let Delivery { deltas, faults } = std::mem::take(&mut self.ingest.sink.delivery);
        let mut batch = Batch::default();
        let mut first = false;
        for Delivered { shown, what } in deltas {
            self.trace(|| format!("    {shown}"));
            match what {
                What::Changed(key, uid, stamp) => _ = self.content.good.insert(key, (uid, stamp)),
                What::Listed(key, uid, stamp) => _ = self.content.listed.insert(key, (uid, stamp)),
                What::ReplaceStarted => self.content.listed.clear(),
                What::ReplaceFinished { history_changed } => {
                    self.content.good.append(&mut self.content.listed);
                    self.content.epoch += u64::from(history_changed);
                    first |= !self.content.synced;
                    (self.content.cleared, self.content.synced, batch.replaced) =
                        (false, true, true);
                }
                What::Cleared => (self.content.cleared, batch.replaced) = (true, true),
                What::Deleted(key, uid, Some(last)) => batch.tombstones.push((key, uid, last)),
                What::Deleted(_, _, None) => self.cover("undecodable object deleted"),
                What::Undecodable => self.cover("undecodable object watched"),
                What::Unlisted => self.cover("deleted while listed"),
                What::Other => {}
            }
        }
        self.check_faults(&faults);
        if first {
            let spy = self.content.spy.lock().unwrap_or_else(PoisonError::into_inner).first.clone();
            let snapshot = spy.expect("G19: nobody was told of the first list");
            self.check_first(&snapshot);
            let now = self.now;
            self.handlers.iter_mut().for_each(|handler| handler.begin(now, &snapshot));
        }
        self.check_store(&batch);
        self.check_refreshes();
    }

    /// Nothing is never taken for synced (G20).
    fn check_first(&self, snapshot: &Snapshot<Obj>) {
        let listed = self.server.lineage().at(number(snapshot.version()));
        let all: Vec<&State> = listed.into_iter().flatten().flatten().collect();
        let hopeless = !all.is_empty() && all.iter().all(|state| state.good != Good::Yes);
        assert!(
            !hopeless || !snapshot.is_empty() || self.open_streaming,
            "G20: synced with nothing"
        );
    }

    fn check_store(&mut self, batch: &Batch) {
        let snapshot = self.content.reader.snapshot();
        assert_eq!(
            self.ingest.sink.pipeline.has_synced(),
            self.content.synced,
            "G19, G20: the store's sync"
        );
        assert_eq!(snapshot.epoch(), self.content.epoch, "G14: the epoch");
        let before = std::mem::replace(&mut self.content.before, snapshot.clone());
        let same_epoch = before.epoch() == snapshot.epoch();
        if same_epoch && !before.version().is_unset() {
            let order = snapshot.version().compare(before.version());
            assert!(
                order.is_some_and(Ordering::is_ge),
                "G14: {} after {}",
                snapshot.version(),
                before.version()
            );
        }
        self.check_content(&before, &snapshot);
        if same_epoch {
            check_kept_objects(&before, &snapshot);
        }
        self.check_indexes(&snapshot);
        self.check_spy(batch, &before, &snapshot);
        self.handlers.iter_mut().for_each(|handler| handler.published(&snapshot));
        if self.ingest.queued() == 0 && !self.content.cleared && !self.staging {
            assert_eq!(snapshot.version(), self.ingest.last_sync_resource_version(), "G14");
        }
    }

    /// The store shows the server's collection at the version that it stands for, in one of its
    /// histories (G9).
    fn check_content(&mut self, before: &Snapshot<Obj>, snapshot: &Snapshot<Obj>) {
        if !self.content.synced || self.content.cleared {
            assert!(snapshot.is_empty(), "G9, G32: there are objects");
            return;
        }
        let version = number(snapshot.version());
        let mut why = format!("{version} was never a version");
        for (lineage, history) in self.server.lineages.iter().enumerate().skip(self.content.lineage)
        {
            let Some(collection) = history.at(version) else { continue };
            let wrong = (0..crate::server::NAMES).find_map(|name| {
                let wrong =
                    self.compare(name, collection[usize::from(name)], before, snapshot).err()?;
                // What a later page had of it.
                let mut later =
                    (version + 1..=self.ledger.pages_until).filter_map(|later| history.at(later));
                let is_later = |all: &crate::server::Collection| {
                    self.compare(name, all[usize::from(name)], before, snapshot).is_ok()
                };
                (!later.any(is_later)).then_some(wrong)
            });
            let Some(wrong) = wrong else {
                self.content.lineage = lineage;
                return;
            };
            why = wrong;
        }
        panic!("G9: at {version}: {why}");
    }

    fn compare(
        &self,
        name: u8,
        state: Option<State>,
        before: &Snapshot<Obj>,
        snapshot: &Snapshot<Obj>,
    ) -> Result<(), String> {
        let key = crate::server::key(name);
        let held = snapshot.get(&key);
        match (state, held) {
            (None, None) => Ok(()),
            (Some(state), Some(held)) if state.good == Good::Yes => {
                let same = held.object.stamp == state.stamp
                    && held.uid == state.uid()
                    && held.version == ResourceVersion::from(state.version);
                if same { Ok(()) } else { Err(format!("{key} is {held:?}, and was {state:?}")) }
            }
            // A list that has it does not say so: what it lacks is gone. Of a streaming list it may
            // have had an older state before.
            (Some(state), None) if state.good == Good::Nameless => Ok(()),
            (Some(state), Some(held))
                if state.good == Good::Nameless && held.uid != state.uid() =>
            {
                Err(format!("G30: {key} is {held:?}, and nobody can know"))
            }
            // What the store holds stays, if it is the same object (G30).
            (Some(state), Some(held)) if held.uid == state.uid() => {
                let last = self.content.good.get(&key);
                let is_last = last == Some(&(held.uid.clone(), held.object.stamp));
                if is_last { Ok(()) } else { Err(format!("G30: {key} is {held:?}, not {last:?}")) }
            }
            (Some(state), None) if state.good != Good::Yes => {
                let lost = before.get(&key).is_some_and(|held| held.uid == state.uid());
                if lost { Err(format!("G30: {key} is lost, for {state:?}")) } else { Ok(()) }
            }
            (state, held) => Err(format!("{key} is {held:?}, and was {state:?}")),
        }
    }

    fn check_faults(&mut self, faults: &[IndexFault]) {
        for fault in faults {
            assert_eq!(fault.index, "fragile", "G11");
            // Neither the text of the panic nor anything else of the object (G34).
            assert!(!format!("{fault:?}").contains(SECRET), "G34: {fault:?}");
            self.cover("index function panicked");
        }
    }

    /// Every index is what its function gives over the objects (G11).
    pub(crate) fn check_indexes(&self, snapshot: &Snapshot<Obj>) {
        for index in &self.content.indexes {
            let mut expected: BTreeSet<(String, &ObjectKey)> = BTreeSet::new();
            for entry in snapshot.iter() {
                for value in index_values(index.name(), entry.object()).unwrap_or_default() {
                    expected.insert((value, entry.key));
                }
            }
            let values = snapshot.index_values(index).expect("G11: the snapshot has the index");
            let found: Vec<(String, ObjectKey)> = values
                .iter()
                .flat_map(|value| {
                    let hits =
                        snapshot.by_index(index, value).expect("G11: the snapshot has the index");
                    hits.map(|entry| (value.to_string(), entry.key.clone())).collect::<Vec<_>>()
                })
                .collect();
            let same = found.len() == expected.len()
                && found
                    .iter()
                    .zip(&expected)
                    .all(|((value, key), (wanted, of))| value == wanted && key == *of);
            assert!(same, "G11: {} has {found:?}, not {expected:?}", index.name());
        }
    }

    /// What a prompt handler was told of this batch is what changed (G2, G4, G6, G7).
    fn check_spy(&mut self, batch: &Batch, before: &Snapshot<Obj>, snapshot: &Snapshot<Obj>) {
        let spy = Arc::clone(&self.content.spy);
        let mut spy = spy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wrong) = spy.wrong.take() {
            panic!("{wrong}");
        }
        assert!(
            spy.agrees(snapshot) || !self.content.synced,
            "G2: told of less than the store shows"
        );
        let events = std::mem::take(&mut spy.events);
        drop(spy);
        let mut known: Vec<&Arc<Obj>> = Vec::new();
        let mut last = 0;
        for event in &events {
            self.trace(|| format!("      {event:?}"));
            let version = self.server.version_of(event.object().stamp);
            if let Event::Deleted(Deleted { last: object, final_state, .. }) = event {
                if *final_state == FinalState::Known {
                    known.push(object);
                } else {
                    continue;
                }
            }
            assert!(batch.replaced || version >= last, "G4: {version} after {last}");
            last = version;
        }
        let told = |of: &Arc<Obj>| known.iter().any(|known| Arc::ptr_eq(known, of));
        for (key, uid, object) in &batch.tombstones {
            let was_there = before.get(key).is_some_and(|held| held.uid == *uid);
            assert!(
                !was_there || batch.replaced || told(object),
                "G6: the end of {key} is not told"
            );
        }
        let from_watch = |known: &&Arc<Obj>| {
            batch.tombstones.iter().any(|(_, _, object)| Arc::ptr_eq(object, known))
        };
        assert!(known.iter().all(from_watch), "G6: a final state that nobody saw");
    }
}

/// An object whose UID and version did not change keeps its allocation (G7).
fn check_kept_objects(before: &Snapshot<Obj>, snapshot: &Snapshot<Obj>) {
    for entry in snapshot.iter() {
        let Some(held) = before.get(entry.key) else { continue };
        let unchanged = held.uid == entry.record.uid && held.version == entry.record.version;
        assert!(
            !unchanged || Arc::ptr_eq(&held.object, entry.object()),
            "G7: {} is another",
            entry.key
        );
    }
}

/// The index of this number.
pub(crate) fn index(number: usize) -> Index<Obj> {
    let name = ["parity", "digits", "fragile"][number];
    Index::new(name, move |object: &Obj, values| match index_values(name, object) {
        Ok(of_object) => values.extend(of_object),
        Err(message) => std::panic::resume_unwind(Box::new(message)),
    })
}

/// What the index function that panics says of its object.
const SECRET: &str = "hunter2";

/// The values of an object in the index of this name; an error if its function panics.
fn index_values(name: &str, object: &Obj) -> Result<Vec<String>, &'static str> {
    let stamp = object.stamp;
    match name {
        "parity" => Ok(vec![(stamp % 2).to_string()]),
        "digits" => Ok(stamp.to_string().chars().map(String::from).collect()),
        _ if stamp.is_multiple_of(5) => Err(SECRET),
        _ => Ok((0..stamp % 3).map(|value| value.to_string()).collect()),
    }
}

fn contents(snapshot: &Snapshot<Obj>) -> Stamps {
    snapshot.iter().map(|entry| (entry.key.clone(), entry.object().stamp)).collect()
}

/// The number of a version that the server gave; 0 if there is none.
pub(crate) fn number(version: &ResourceVersion) -> u64 {
    if version.is_unset() {
        0
    } else {
        version.to_string().parse().expect("the server numbers versions")
    }
}
