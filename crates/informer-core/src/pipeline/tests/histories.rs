//! Random histories with broken-off lists, objects that cannot be decoded, replaced histories of
//! the server, resources that go away, and indexes and observers that come late: after every step
//! the published snapshot is compared with a model, every registration's view with the rules, and
//! what observers made of the publications with the snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::publications::Mirror;
use super::*;
use crate::store::{Index, Snapshot};
use crate::{ResourceVersion, Uid};

const NAMES: u8 = 10;

/// One state of an object. The version may go back when the server's history is replaced, the stamp
/// never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    uid: u64,
    version: u64,
    stamp: u64,
}

#[derive(Debug, Clone)]
enum Step {
    Write {
        name: u8,
        recreate: bool,
        decodable: bool,
    },
    Delete(u8),
    /// A DELETED of an object whose successor is here already.
    OldNews(u8),
    Bookmark,
    Relist(Relist),
    Clear,
    AddIndex(u64),
    Resync,
    Register(usize, bool),
    Observe,
    Pop(usize, usize),
}

#[derive(Debug, Clone)]
struct Relist {
    /// Writes (or deletes) that nobody saw.
    unseen: Vec<(u8, Unseen)>,
    /// Deltas of a list before, which breaks off after so many; whether it says so.
    broken_off: Option<(usize, bool)>,
    /// The server's history is replaced.
    history_changed: bool,
    /// Objects that the list has twice, the second time in the newest state.
    twice: BTreeSet<u8>,
    /// How many deltas are applied at a time, with resyncs and readers in between.
    chunk: usize,
    /// A late registration in the middle of the list.
    register: bool,
}

#[derive(Debug, Clone, Copy)]
enum Unseen {
    Write,
    Undecodable,
    Recreate,
    RecreateUndecodable,
    Delete,
}

fn relists() -> impl Strategy<Value = Relist> {
    let kinds = [
        Unseen::Write,
        Unseen::Undecodable,
        Unseen::Recreate,
        Unseen::RecreateUndecodable,
        Unseen::Delete,
    ];
    let unseen = prop::collection::vec((0..NAMES, prop::sample::select(kinds.to_vec())), 0..6);
    let broken_off = prop::option::weighted(0.4, (0usize..8, any::<bool>()));
    let twice = prop::collection::btree_set(0..NAMES, 0..3);
    (unseen, broken_off, prop::bool::weighted(0.25), twice, 1usize..20, any::<bool>()).prop_map(
        |(unseen, broken_off, history_changed, twice, chunk, register)| Relist {
            unseen,
            broken_off,
            history_changed,
            twice,
            chunk,
            register,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write = (0..NAMES, prop::bool::weighted(0.2), prop::bool::weighted(0.8))
        .prop_map(|(name, recreate, decodable)| Step::Write { name, recreate, decodable });
    let step = prop_oneof![
        14 => write,
        5 => (0..NAMES).prop_map(Step::Delete),
        1 => (0..NAMES).prop_map(Step::OldNews),
        1 => Just(Step::Bookmark),
        4 => relists().prop_map(Step::Relist),
        1 => Just(Step::Clear),
        1 => (2u64..5).prop_map(Step::AddIndex),
        2 => Just(Step::Resync),
        2 => (1usize..5, any::<bool>()).prop_map(|(capacity, resync)| Step::Register(capacity, resync)),
        1 => Just(Step::Observe),
        10 => (0usize..5, 1usize..5).prop_map(|(who, max)| Step::Pop(who, max)),
    ];
    prop::collection::vec(step, 0..120)
}

struct Reader {
    queue: RegistrationQueue<State>,
    view: BTreeMap<ObjectKey, Arc<State>>,
    resyncs: bool,
    synced: bool,
    /// It was told of something that does not belong to the initial set.
    goes_on: bool,
}

impl Reader {
    fn pop(&mut self, max: usize, store: &Snapshot<State>) -> usize {
        let mut queue = self.queue.lock();
        let batch = queue.take(max).to_vec();
        self.synced |= queue.has_synced();
        drop(queue);
        let count = batch.len();
        for event in batch {
            self.told(event, store);
        }
        count
    }

    fn told(&mut self, event: Event<State>, store: &Snapshot<State>) {
        let newest = store.get(event.key()).map_or(u64::MAX, |record| record.object.stamp);
        assert!(event.object().stamp <= newest, "G2: the store is behind {event:?}");
        assert!(
            !event.is_initial() || !self.goes_on,
            "G17: {event:?} after one that is not initial"
        );
        self.goes_on |= !event.is_initial();
        match event {
            Event::Added { key, object, initial } => {
                assert!(!initial || !self.synced, "G19: {key} is initial although all was synced");
                assert!(self.view.insert(key, object).is_none(), "G3: added twice");
            }
            Event::Updated { key, old, new, reason } => {
                let given =
                    self.view.insert(key, Arc::clone(&new)).expect("G3: updated before added");
                assert!(Arc::ptr_eq(&given, &old), "G3: old is not what was last given");
                assert_eq!(old.uid, new.uid, "G5");
                assert_eq!(reason == UpdateReason::Resync, Arc::ptr_eq(&old, &new), "G7, G8");
                assert!(reason == UpdateReason::Change || self.resyncs, "G8: resync not asked for");
                assert!(old.stamp <= new.stamp, "G4");
            }
            Event::Deleted(Deleted { key, old, last, final_state }) => {
                let given = self.view.remove(&key).expect("G3: deleted before added");
                assert!(
                    Arc::ptr_eq(&given, &old),
                    "G3: old of a delete is not what was last given"
                );
                assert_eq!(old.uid, last.uid, "G5");
                assert!(final_state == FinalState::Known || old.stamp <= last.stamp, "G6");
            }
        }
    }
}

struct World {
    pipeline: Pipeline<State>,
    /// What the server has, and whether it can be decoded.
    server: BTreeMap<u8, (State, bool)>,
    /// What the store has to have.
    expected: BTreeMap<u8, State>,
    version: u64,
    stamp: u64,
    epoch: u64,
    indexes: Vec<(u64, Index<State>)>,
    readers: Vec<Reader>,
    mirrors: Vec<Mirror<State>>,
    now: Duration,
}

fn key(name: u8) -> ObjectKey {
    ObjectKey::namespaced(["a", "b", "c"][usize::from(name % 3)], &name.to_string())
}

fn item(name: u8, state: State) -> Item<State> {
    Item::new(key(name), Uid::new(&state.uid.to_string()), state.version.into(), state)
}

impl World {
    fn new() -> Self {
        Self {
            pipeline: Pipeline::new(),
            server: BTreeMap::new(),
            expected: BTreeMap::new(),
            version: 10,
            stamp: 0,
            epoch: 0,
            indexes: Vec::new(),
            readers: Vec::new(),
            mirrors: Vec::new(),
            now: Duration::ZERO,
        }
    }

    fn apply(&mut self, deltas: impl IntoIterator<Item = Delta<State>>) {
        let faults = self.pipeline.apply(self.now, deltas);
        assert_eq!(faults, []);
        assert_eq!(self.pipeline.take_observer_faults(), []);
    }

    /// Writes on the server, seen by nobody.
    fn write(&mut self, name: u8, recreate: bool, decodable: bool) -> State {
        self.version += 1;
        self.stamp += 1;
        let (version, stamp) = (self.version, self.stamp);
        let same = self.server.get(&name).filter(|_| !recreate);
        let uid = same.map_or(stamp, |(state, _)| state.uid);
        let state = State { uid, version, stamp };
        self.server.insert(name, (state, decodable));
        state
    }

    fn step(&mut self, step: Step) {
        self.now += Duration::from_secs(1);
        match step {
            Step::Write { name, recreate, decodable: true } => {
                let state = self.write(name, recreate, true);
                self.expected.insert(name, state);
                self.apply([Delta::Updated(item(name, state))]);
            }
            Step::Write { name, recreate, decodable: false } => {
                let state = self.write(name, recreate, false);
                let version = ResourceVersion::from(state.version);
                let delta = match self.expected.get(&name).filter(|held| held.uid != state.uid) {
                    Some(_) => {
                        let tombstone =
                            Tombstone { key: key(name), uid: "".into(), version, last: None };
                        Delta::Deleted(tombstone)
                    }
                    None => Delta::Bookmark(version),
                };
                self.expected.retain(|other, held| *other != name || held.uid == state.uid);
                self.apply([delta]);
            }
            Step::Delete(name) => {
                let Some((state, decodable)) = self.server.remove(&name) else { return };
                self.version += 1;
                self.expected.remove(&name);
                self.apply([self.tombstone(name, state, decodable)]);
            }
            Step::OldNews(name) => {
                let (uid, stamp) = (u64::MAX, self.stamp);
                self.version += 1;
                self.apply([self.tombstone(
                    name,
                    State { uid, version: self.version, stamp },
                    true,
                )]);
            }
            Step::Bookmark => {
                self.version += 1;
                // A bookmark without a version says nothing.
                self.apply([
                    Delta::Bookmark(self.version.into()),
                    Delta::Bookmark(ResourceVersion::unset()),
                ]);
            }
            Step::Relist(relist) => self.relist(&relist),
            Step::Clear => {
                self.server.clear();
                self.expected.clear();
                self.apply([Delta::Cleared { refreshes: 0 }]);
            }
            Step::AddIndex(modulus) => self.add_index(modulus),
            Step::Resync => {
                self.now += Duration::from_secs(100);
                self.apply([Delta::Sync]);
            }
            Step::Register(capacity, resync) => self.register(capacity, resync),
            Step::Observe => self.mirrors.push(Mirror::of(&mut self.pipeline)),
            Step::Pop(who, max) => {
                let snapshot = self.pipeline.reader().snapshot();
                if let Some(reader) = self.readers.get_mut(who) {
                    reader.pop(max, &snapshot);
                }
            }
        }
    }

    fn tombstone(&self, name: u8, state: State, decodable: bool) -> Delta<State> {
        let last = decodable.then(|| Arc::new(State { version: self.version, ..state }));
        let uid = Uid::new(&state.uid.to_string());
        Delta::Deleted(Tombstone { key: key(name), uid, version: self.version.into(), last })
    }

    fn relist(&mut self, relist: &Relist) {
        if let Some((count, says_so)) = relist.broken_off {
            let (mut deltas, _) = self.list(&relist.twice, relist.history_changed);
            deltas.truncate(count + 1);
            deltas.extend(says_so.then_some(Delta::ReplaceAbandoned));
            self.apply(deltas);
            self.check();
            assert_eq!(self.pipeline.replacement.is_none(), says_so);
        }
        for (name, unseen) in &relist.unseen {
            match unseen {
                Unseen::Write => _ = self.write(*name, false, true),
                Unseen::Undecodable => _ = self.write(*name, false, false),
                Unseen::Recreate => _ = self.write(*name, true, true),
                Unseen::RecreateUndecodable => _ = self.write(*name, true, false),
                Unseen::Delete => _ = self.server.remove(name),
            }
        }
        if relist.history_changed {
            self.restore();
        }
        let (mut deltas, listed) = self.list(&relist.twice, relist.history_changed);
        self.version += 1;
        let (version, history_changed) = (self.version.into(), relist.history_changed);
        deltas.push(Delta::ReplaceFinished { version, history_changed, refreshes: None });
        let before = self.pipeline.reader().snapshot();
        let mut deltas = deltas.into_iter().peekable();
        while deltas.peek().is_some() {
            let chunk: Vec<_> = deltas.by_ref().take(relist.chunk).collect();
            if deltas.peek().is_none() {
                self.epoch += u64::from(history_changed);
                self.expected = listed.clone();
            }
            self.apply(chunk);
            self.check();
            self.step(Step::Resync);
            self.step(Step::Pop(0, 2));
            if relist.register && self.readers.len() < 8 {
                self.register(2, true);
            }
        }
        assert!(self.pipeline.replacement.is_none());
        self.check_kept(&before, history_changed);
    }

    /// An etcd restored: some objects are back in a state of the same or a lower version, which
    /// nobody knows.
    fn restore(&mut self) {
        self.version = self.version / 2 + 1;
        for (state, decodable) in self.server.values_mut() {
            self.stamp += 1;
            state.stamp = self.stamp;
            state.version = state.version.min(self.version);
            *decodable = true;
        }
    }

    /// The deltas of a list of what the server has, and what the store holds after it.
    fn list(
        &mut self,
        twice: &BTreeSet<u8>,
        distrust: bool,
    ) -> (Vec<Delta<State>>, BTreeMap<u8, State>) {
        let mut deltas = vec![Delta::ReplaceStarted { distrust }];
        let mut listed = BTreeMap::new();
        let names: Vec<u8> = self.server.keys().copied().collect();
        for name in names {
            let held = self.expected.get(&name).copied();
            if twice.contains(&name) {
                let (state, decodable) = self.server[&name];
                deltas.push(Delta::Listed(item(name, state)));
                listed.insert(name, state);
                if name % 4 == 0 {
                    // Deleted before the list was complete.
                    self.server.remove(&name);
                    listed.remove(&name);
                    deltas.push(Delta::Unlisted(key(name)));
                    continue;
                }
                let state = self.write(name, false, decodable);
                if decodable {
                    deltas.push(Delta::Listed(item(name, state)));
                    listed.insert(name, state);
                } else if held.is_some_and(|held| held.uid == state.uid) {
                    deltas.push(Delta::Kept(key(name)));
                }
                continue;
            }
            let (state, decodable) = self.server[&name];
            match held {
                Some(held) if held == state && !distrust => {
                    deltas.push(Delta::Kept(key(name)));
                    listed.insert(name, state);
                }
                Some(held) if !decodable && held.uid == state.uid => {
                    deltas.push(Delta::Kept(key(name)));
                    listed.insert(name, held);
                }
                _ if decodable => {
                    deltas.push(Delta::Listed(item(name, state)));
                    listed.insert(name, state);
                }
                _ => {}
            }
        }
        (deltas, listed)
    }

    fn register(&mut self, capacity: usize, resyncs: bool) {
        let period = resyncs.then_some(Duration::from_secs(50));
        let (_, queue) = self.pipeline.register(self.now, capacity, period, || {});
        self.readers.push(Reader {
            queue,
            view: BTreeMap::new(),
            resyncs,
            synced: false,
            goes_on: false,
        });
    }

    fn add_index(&mut self, modulus: u64) {
        if self.indexes.iter().any(|(other, _)| *other == modulus) {
            return;
        }
        let index = Index::new(&format!("by {modulus}"), move |state: &State, values| {
            values.push(format!("stamp {}", state.stamp % modulus));
            values.extend(state.uid.is_multiple_of(modulus).then_some("uid"));
        });
        self.pipeline.build_index(&index, usize::MAX).expect("its name is new");
        self.indexes.push((modulus, index));
    }

    /// G1, G5 and G9 of the published snapshot, and G11 of its indexes.
    fn check(&self) {
        let snapshot = self.pipeline.reader().snapshot();
        let expected: BTreeMap<_, _> =
            self.expected.iter().map(|(name, state)| (key(*name), *state)).collect();
        assert!(snapshot.iter().map(|entry| (entry.key, &**entry.object())).eq(&expected), "G1");
        assert_eq!(snapshot.len(), expected.len());
        for entry in snapshot.iter() {
            assert_eq!(entry.record.version, entry.object().version.into(), "G7");
            assert_eq!(entry.record.uid, Uid::new(&entry.object().uid.to_string()));
        }
        assert_eq!(snapshot.epoch(), self.epoch, "G14");
        assert!(!self.pipeline.has_synced() || !snapshot.version().is_unset(), "G14");
        for mirror in &self.mirrors {
            mirror.check(&snapshot, self.pipeline.has_synced());
        }
        for (modulus, index) in &self.indexes {
            let filed = |of: &dyn Fn(&State) -> bool| -> Vec<&ObjectKey> {
                expected.iter().filter(|(_, state)| of(state)).map(|(key, _)| key).collect()
            };
            let mut values = Vec::new();
            let mut hits = |value: &str, of: &dyn Fn(&State) -> bool| {
                let hits: Vec<_> =
                    snapshot.by_index(index, value).unwrap().map(|hit| hit.key.clone()).collect();
                assert!(hits.iter().eq(filed(of)), "G11: {value}");
                values.extend((!hits.is_empty()).then(|| value.to_owned()));
            };
            for rest in 0..*modulus {
                hits(&format!("stamp {rest}"), &|state| state.stamp % modulus == rest);
            }
            hits("uid", &|state| state.uid.is_multiple_of(*modulus));
            let listed = snapshot.index_values(index).unwrap();
            assert!(
                listed.iter().map(|value| &**value).eq(values.iter().map(String::as_str)),
                "G11"
            );
        }
    }

    /// G7: what did not change kept its allocation; after a change of history what was listed did
    /// not.
    fn check_kept(&self, before: &Snapshot<State>, history_changed: bool) {
        for entry in self.pipeline.reader().snapshot().iter() {
            let Some(old) = before.get(entry.key) else { continue };
            let same = *old.object == **entry.object();
            assert_eq!(same, Arc::ptr_eq(&old.object, entry.object()), "G7, G26: {}", entry.key);
            assert!(!(same && history_changed), "G26");
        }
    }

    fn drain(&mut self) {
        let snapshot = self.pipeline.reader().snapshot();
        for reader in &mut self.readers {
            while reader.pop(3, &snapshot) > 0 {}
            let queue = reader.queue.lock();
            assert!(queue.has_synced(), "G19");
            assert!(queue.is_empty());
            let view = reader.view.iter().map(|(key, object)| (key, Arc::as_ptr(object)));
            let store = snapshot.iter().map(|entry| (entry.key, Arc::as_ptr(entry.object())));
            assert!(view.eq(store), "G16: final state");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn g01_faulty_histories_end_in_the_store_and_its_indexes(steps in steps(), registered in any::<bool>()) {
        let mut world = World::new();
        world.step(Step::Observe);
        if registered {
            world.register(2, true);
        }
        world.relist(&Relist {
            unseen: vec![(1, Unseen::Write), (2, Unseen::Undecodable), (3, Unseen::Write)],
            broken_off: Some((1, true)),
            history_changed: false,
            twice: BTreeSet::new(),
            chunk: 2,
            register: false,
        });
        for step in steps {
            world.step(step);
            world.check();
        }
        world.drain();
    }
}
