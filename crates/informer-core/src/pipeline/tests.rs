//! The pipeline under random histories: every registration's view is checked after every step.

mod cases;
mod histories;
mod publications;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;
use crate::{ResourceVersion, Uid, UpdateReason};

const NAMES: u8 = 12;

#[derive(Debug)]
struct Obj {
    uid: u64,
    version: u64,
}

#[derive(Debug, Clone)]
enum Step {
    Upsert(u8),
    Recreate(u8),
    Delete(u8, bool),
    /// Changes that nobody saw, then a relist.
    Relist(Vec<(u8, bool)>),
    Resync,
    Register {
        capacity: usize,
        resync: bool,
    },
    Remove(usize),
    Pop(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..NAMES).prop_map(Step::Upsert),
        3 => (0..NAMES).prop_map(Step::Recreate),
        6 => (0..NAMES, any::<bool>()).prop_map(|(name, seen)| Step::Delete(name, seen)),
        2 => prop::collection::vec((0..NAMES, any::<bool>()), 0..8).prop_map(Step::Relist),
        2 => Just(Step::Resync),
        2 => (1usize..6, any::<bool>()).prop_map(|(capacity, resync)| Step::Register { capacity, resync }),
        1 => (0usize..4).prop_map(Step::Remove),
        10 => (0usize..4, 1usize..5).prop_map(|(who, max)| Step::Pop(who, max)),
    ];
    prop::collection::vec(step, 0..200)
}

/// A reader, with what it has been told so far.
struct Reader {
    id: RegistrationId,
    queue: RegistrationQueue<Obj>,
    capacity: usize,
    view: BTreeMap<ObjectKey, Arc<Obj>>,
    resyncs: bool,
    /// It was told of something that does not belong to the initial set.
    goes_on: bool,
}

impl Reader {
    fn pop(&mut self, max: usize, store: &Snapshot<Obj>) -> usize {
        let batch = self.queue.lock().take(max).to_vec();
        assert!(batch.len() <= max);
        let count = batch.len();
        let initial = batch.first().is_some_and(Event::is_initial);
        for event in batch {
            assert_eq!(event.is_initial(), initial, "a batch mixes initial events with others");
            self.told(event, store);
        }
        if initial && !self.queue.lock().has_synced() {
            self.queue.lock().handled();
        }
        count
    }

    fn told(&mut self, event: Event<Obj>, store: &Snapshot<Obj>) {
        let newest = store.get(event.key()).map_or(u64::MAX, |record| record.object.version);
        assert!(event.object().version <= newest, "G2: the store is behind {event:?}");
        match event {
            Event::Added { key, object, initial } => {
                assert!(!initial || !self.goes_on, "G17: initial after one that is not");
                self.goes_on |= !initial;
                assert!(self.view.insert(key, object).is_none(), "G3: added twice");
            }
            Event::Updated { key, old, new, reason } => {
                self.goes_on = true;
                let given =
                    self.view.insert(key, Arc::clone(&new)).expect("G3: updated before added");
                assert!(Arc::ptr_eq(&given, &old), "G3: old is not what was last given");
                assert_eq!(old.uid, new.uid, "G5");
                assert_eq!(reason == UpdateReason::Resync, Arc::ptr_eq(&old, &new), "G7, G8");
                assert!(reason == UpdateReason::Change || self.resyncs, "G8: resync not asked for");
                assert!(old.version <= new.version, "G4");
            }
            Event::Deleted(Deleted { key, old, last, final_state }) => {
                self.goes_on = true;
                let given = self.view.remove(&key).expect("G3: deleted before added");
                assert!(
                    Arc::ptr_eq(&given, &old),
                    "G3: old of a delete is not what was last given"
                );
                assert_eq!(old.uid, last.uid, "G5");
                assert!(final_state == FinalState::Known || old.version <= last.version, "G6");
            }
        }
    }
}

struct World {
    pipeline: Pipeline<Obj>,
    server: BTreeMap<u8, (u64, u64)>,
    counter: u64,
    readers: Vec<Reader>,
    now: Duration,
}

fn key(name: u8) -> ObjectKey {
    ObjectKey::namespaced(if name.is_multiple_of(2) { "a" } else { "b" }, &name.to_string())
}

fn item(name: u8, (uid, version): (u64, u64)) -> Item<Obj> {
    Item::new(key(name), Uid::new(&uid.to_string()), version.into(), Obj { uid, version })
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            pipeline: Pipeline::new(),
            server: BTreeMap::new(),
            counter: 0,
            readers: Vec::new(),
            now: Duration::ZERO,
        };
        world.register(3, true);
        world.relist(&[]);
        world
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn apply(&mut self, deltas: Vec<Delta<Obj>>) {
        self.pipeline.apply(self.now, deltas);
    }

    fn step(&mut self, step: Step) {
        self.now += Duration::from_secs(1);
        match step {
            Step::Upsert(name) => {
                let version = self.next();
                let uid = self.server.get(&name).map_or(version, |(uid, _)| *uid);
                self.server.insert(name, (uid, version));
                self.apply(vec![Delta::Updated(item(name, (uid, version)))]);
            }
            Step::Recreate(name) => {
                let version = self.next();
                self.server.insert(name, (version, version));
                self.apply(vec![Delta::Added(item(name, (version, version)))]);
            }
            Step::Delete(name, decodable) => {
                let version = self.next();
                let Some((uid, _)) = self.server.remove(&name) else { return };
                let last = decodable.then(|| Arc::new(Obj { uid, version }));
                let tombstone = Tombstone {
                    key: key(name),
                    uid: Uid::new(&uid.to_string()),
                    version: version.into(),
                    last,
                };
                self.apply(vec![Delta::Deleted(tombstone)]);
            }
            Step::Relist(unseen) => self.relist(&unseen),
            Step::Resync => {
                self.now += Duration::from_secs(100);
                self.apply(vec![Delta::Sync]);
            }
            Step::Register { capacity, resync } => self.register(capacity, resync),
            Step::Remove(who) if who < self.readers.len() => {
                let reader = self.readers.remove(who);
                assert!(self.pipeline.unregister(reader.id));
                assert!(reader.queue.lock().is_over(), "G18");
            }
            Step::Pop(who, max) => {
                let snapshot = self.pipeline.reader().snapshot();
                if let Some(reader) = self.readers.get_mut(who) {
                    reader.pop(max, &snapshot);
                }
            }
            Step::Remove(_) => {}
        }
    }

    fn relist(&mut self, unseen: &[(u8, bool)]) {
        for (name, deleted) in unseen {
            let version = self.next();
            if *deleted {
                self.server.remove(name);
            } else {
                self.server.insert(*name, (version, version));
            }
        }
        let mut deltas = vec![Delta::ReplaceStarted { distrust: false }];
        for (name, state) in &self.server {
            let same = self
                .pipeline
                .store
                .get(&key(*name))
                .is_some_and(|held| (held.object.uid, held.object.version) == *state);
            deltas.push(if same {
                Delta::Kept(key(*name))
            } else {
                Delta::Listed(item(*name, *state))
            });
        }
        let version = self.next().into();
        deltas.push(Delta::ReplaceFinished { version, history_changed: false, refreshes: None });
        self.apply(deltas);
    }

    fn register(&mut self, capacity: usize, resync: bool) {
        let period = resync.then_some(Duration::from_secs(50));
        let (id, queue) = self.pipeline.register(self.now, capacity, period, || {});
        self.readers.push(Reader {
            id,
            queue,
            capacity,
            view: BTreeMap::new(),
            resyncs: resync,
            goes_on: false,
        });
    }

    fn check(&self) {
        let store: BTreeMap<u8, (u64, u64)> = (0..NAMES)
            .filter_map(|name| Some((name, self.pipeline.store.get(&key(name))?)))
            .map(|(name, held)| (name, (held.object.uid, held.object.version)))
            .collect();
        assert_eq!(store, self.server, "G1");
        for reader in &self.readers {
            let depth = reader.queue.lock().depth();
            assert!(depth <= reader.capacity + 3 * usize::from(NAMES), "G16: {depth} events wait");
        }
    }

    fn drain(&mut self) {
        let snapshot = self.pipeline.reader().snapshot();
        for reader in &mut self.readers {
            while reader.pop(3, &snapshot) > 0 {}
            assert!(reader.queue.lock().has_synced(), "G19");
            assert!(reader.queue.lock().is_empty());
            let view = reader.view.iter().map(|(key, object)| (key, object.version));
            assert!(
                view.eq(snapshot.iter().map(|entry| (entry.key, entry.object().version))),
                "G16: final state"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn g03_every_registration_sees_a_legal_history_that_ends_in_the_store(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
            world.check();
        }
        world.drain();
    }
}

/// The events that one registration is given, in words.
fn told(queue: &RegistrationQueue<Obj>) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let batch = queue.lock().take(64).to_vec();
        if batch.is_empty() {
            return all;
        }
        all.extend(batch.iter().map(|event| format!("{event:?}")));
    }
}

fn listed(pipeline: &mut Pipeline<Obj>, items: Vec<Item<Obj>>, version: u64) {
    let mut deltas = vec![Delta::ReplaceStarted { distrust: false }];
    deltas.extend(items.into_iter().map(Delta::Listed));
    deltas.push(Delta::ReplaceFinished {
        version: version.into(),
        history_changed: false,
        refreshes: None,
    });
    pipeline.apply(Duration::ZERO, deltas);
}

#[test]
fn g05_recreate_is_delete_then_add() {
    let mut pipeline = Pipeline::new();
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    listed(&mut pipeline, vec![item(0, (1, 1))], 1);
    assert_eq!(told(&queue), ["Added(a/0, initial)"]);
    listed(&mut pipeline, vec![item(0, (2, 5))], 5);
    pipeline.apply(Duration::ZERO, [Delta::Updated(item(0, (3, 6)))]);
    assert_eq!(
        told(&queue),
        [
            "Deleted(a/0, final state Unknown)",
            "Added(a/0)",
            "Deleted(a/0, final state Unknown)",
            "Added(a/0)"
        ]
    );
}

#[test]
fn g06_a_missed_delete_is_delivered_with_the_last_known_state() {
    let mut pipeline = Pipeline::new();
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    listed(&mut pipeline, vec![item(0, (1, 1)), item(1, (2, 2))], 2);
    assert_eq!(told(&queue).len(), 2);
    listed(&mut pipeline, vec![item(1, (2, 2))], 9);
    assert_eq!(told(&queue), ["Deleted(a/0, final state Unknown)"]);
}

#[test]
fn g07_an_unchanged_relist_delivers_nothing() {
    let mut pipeline = Pipeline::new();
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    listed(&mut pipeline, vec![item(0, (1, 1))], 2);
    told(&queue);
    listed(&mut pipeline, vec![item(0, (1, 1))], 9);
    assert_eq!(told(&queue), [""; 0]);
    assert_eq!(*pipeline.reader().snapshot().version(), ResourceVersion::from(9));
}

#[test]
fn g09_nothing_of_a_list_is_seen_before_its_end() {
    let mut pipeline = Pipeline::new();
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    pipeline.apply(
        Duration::ZERO,
        [Delta::ReplaceStarted { distrust: false }, Delta::Listed(item(0, (1, 1)))],
    );
    assert!(pipeline.reader().snapshot().is_empty() && !pipeline.has_synced());
    assert_eq!(told(&queue), [""; 0]);
    pipeline.apply(Duration::ZERO, [Delta::ReplaceAbandoned]);
    listed(&mut pipeline, vec![item(1, (2, 2))], 2);
    assert_eq!(told(&queue), ["Added(b/1, initial)"]);
}

#[test]
fn g09_changes_before_the_first_list_are_delivered_with_it() {
    let mut pipeline = Pipeline::new();
    let (_, queue) = pipeline.register(Duration::ZERO, 8, None, || {});
    pipeline.apply(Duration::ZERO, [Delta::Added(item(1, (1, 1)))]);
    assert_eq!(told(&queue), Vec::<String>::new());
    listed(&mut pipeline, vec![item(1, (1, 1)), item(2, (2, 2))], 2);
    assert_eq!(told(&queue).len(), 2);
}

#[test]
fn g17_a_late_registration_gets_the_store_then_what_follows() {
    let mut pipeline = Pipeline::new();
    listed(&mut pipeline, vec![item(0, (1, 1)), item(2, (2, 2))], 2);
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    pipeline
        .apply(Duration::ZERO, [Delta::Updated(item(2, (2, 3))), Delta::Added(item(4, (4, 4)))]);
    assert_eq!(told(&queue), ["Added(a/0, initial)", "Added(a/2, initial)", "Added(a/4)"]);
}

#[test]
fn g17_nothing_comes_before_the_last_of_the_initial_set_that_does_not_belong_to_it() {
    let mut pipeline = Pipeline::new();
    listed(
        &mut pipeline,
        vec![item(0, (1, 1)), item(2, (2, 2)), item(4, (3, 3)), item(6, (4, 4))],
        4,
    );
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    let batch = queue.lock().take(1).to_vec();
    assert_eq!(format!("{batch:?}"), "[Added(a/0, initial)]");
    // One that was given, one that was not and changes, one that goes, and one that goes and comes
    // back.
    let gone = |name, uid: &str, version: u64| {
        Delta::Deleted(Tombstone {
            key: key(name),
            uid: Uid::new(uid),
            version: version.into(),
            last: None,
        })
    };
    let deltas = [
        Delta::Updated(item(0, (1, 5))),
        Delta::Updated(item(4, (3, 6))),
        gone(2, "2", 7),
        gone(6, "4", 8),
        Delta::Added(item(6, (9, 9))),
    ];
    pipeline.apply(Duration::ZERO, deltas);
    assert_eq!(queue.lock().depth(), 3);
    assert_eq!(queue.lock().take(10).len(), 1);
    assert!(!queue.lock().has_synced(), "it is being handled");
    assert_eq!(told(&queue), ["Updated(a/0, Change)", "Added(a/6)"]);
    assert!(queue.lock().has_synced());
}

#[test]
fn g19_synced_means_that_the_handler_returned() {
    let mut pipeline = Pipeline::new();
    listed(&mut pipeline, vec![item(0, (1, 1))], 1);
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    let batch = queue.lock().take(10).to_vec();
    assert_eq!(batch.len(), 1);
    assert!(!queue.lock().has_synced(), "given is not handled");
    queue.lock().handled();
    assert!(queue.lock().has_synced());
}

#[test]
fn g19_an_unread_initial_object_that_changes_twice_stays_initial() {
    let mut pipeline = Pipeline::new();
    listed(&mut pipeline, vec![item(0, (1, 1)), item(2, (2, 2))], 2);
    let (_, queue) = pipeline.register(Duration::ZERO, 1, None, || {});
    for version in 3..9 {
        pipeline.apply(
            Duration::ZERO,
            [Delta::Updated(item(
                if version % 2 == 0 { 0 } else { 2 },
                (version % 2 + 1, version),
            ))],
        );
    }
    assert_eq!(queue.lock().depth(), 2);
    assert_eq!(told(&queue), ["Added(a/0, initial)", "Added(a/2, initial)"]);
    assert!(queue.lock().has_synced());
}

#[test]
fn g19_an_initial_object_that_vanished_counts_as_handled() {
    let mut pipeline = Pipeline::new();
    listed(&mut pipeline, vec![item(0, (1, 1))], 1);
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    let gone = Tombstone { key: key(0), uid: Uid::new("1"), version: 2.into(), last: None };
    pipeline.apply(Duration::ZERO, [Delta::Deleted(gone)]);
    assert_eq!(told(&queue), [""; 0]);
    assert!(queue.lock().has_synced());
}

#[test]
fn g08_resync_skips_keys_with_a_change_pending_and_never_piles_up() {
    let mut pipeline = Pipeline::new();
    let (_, queue) = pipeline.register(Duration::ZERO, 10, Some(Duration::from_secs(5)), || {});
    listed(&mut pipeline, vec![item(0, (1, 1)), item(2, (2, 2))], 2);
    told(&queue);
    assert_eq!(pipeline.next_resync(), Some(Duration::from_secs(5)));
    pipeline.apply(Duration::from_secs(5), [Delta::Updated(item(0, (1, 3))), Delta::Sync]);
    pipeline.apply(Duration::from_secs(10), [Delta::Sync]);
    assert_eq!(told(&queue), ["Updated(a/2, Resync)", "Updated(a/0, Change)"]);
}

#[test]
fn g26_after_a_history_change_equal_versions_are_not_trusted() {
    let mut pipeline = Pipeline::new();
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    listed(&mut pipeline, vec![item(0, (1, 7))], 9);
    told(&queue);
    let finished =
        Delta::ReplaceFinished { version: 8.into(), history_changed: true, refreshes: None };
    pipeline.apply(
        Duration::ZERO,
        [Delta::ReplaceStarted { distrust: true }, Delta::Listed(item(0, (1, 7))), finished],
    );
    assert_eq!(told(&queue), ["Updated(a/0, Change)"]);
    assert_eq!(pipeline.reader().snapshot().epoch(), 1);
}

#[test]
fn g30_a_list_keeps_the_last_good_state_it_had_itself() {
    let mut pipeline = Pipeline::new();
    listed(&mut pipeline, vec![item(0, (1, 1))], 1);
    // A streaming list sends version 5, then a state that cannot be decoded.
    let deltas = [
        Delta::ReplaceStarted { distrust: false },
        Delta::Kept(key(0)),
        Delta::Listed(item(0, (1, 5))),
        Delta::Kept(key(0)),
    ];
    pipeline.apply(Duration::ZERO, deltas);
    assert!(pipeline.replacement.is_some());
    let finished =
        Delta::ReplaceFinished { version: 9.into(), history_changed: false, refreshes: None };
    pipeline.apply(Duration::ZERO, [finished]);
    assert_eq!(pipeline.store.get(&key(0)).map(|held| held.object.version), Some(5));
}

#[test]
fn g14_a_bookmark_without_a_version_leaves_the_store_where_it_stood() {
    let mut pipeline = Pipeline::<Obj>::new();
    listed(&mut pipeline, Vec::new(), 9);
    pipeline.apply(Duration::ZERO, [Delta::Bookmark(ResourceVersion::unset())]);
    assert_eq!(*pipeline.reader().snapshot().version(), ResourceVersion::from(9));
}

#[test]
fn g02_whoever_is_woken_finds_the_store_there_already() {
    let mut pipeline = Pipeline::new();
    let (reader, wakes) = (pipeline.reader(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&wakes);
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, move || {
        let snapshot = reader.snapshot();
        seen.lock().unwrap().push((snapshot.version().to_string(), snapshot.len()));
    });
    listed(&mut pipeline, vec![item(0, (1, 1))], 2);
    pipeline.apply(Duration::ZERO, [Delta::Added(item(2, (3, 3)))]);
    listed(&mut pipeline, Vec::new(), 9);
    let expected = [("2", 1), ("3", 2), ("9", 0)].map(|(version, len)| (version.to_owned(), len));
    assert_eq!(*wakes.lock().unwrap(), expected);
    // The reader was slow: nothing is left of what came and went.
    assert_eq!(told(&queue), ["Added(a/2)", "Deleted(a/2, final state Unknown)"]);
}

#[test]
fn g32_a_list_that_was_under_way_when_the_resource_went_counts_for_nothing() {
    let mut pipeline = Pipeline::new();
    listed(&mut pipeline, vec![item(0, (1, 7))], 9);
    let deltas = [
        Delta::ReplaceStarted { distrust: false },
        Delta::Listed(item(2, (2, 8))),
        Delta::Cleared { refreshes: 0 },
    ];
    pipeline.apply(Duration::ZERO, deltas);
    assert!(pipeline.replacement.is_none());
    let finished =
        Delta::ReplaceFinished { version: 9.into(), history_changed: false, refreshes: None };
    pipeline.apply(Duration::ZERO, [finished]);
    assert!(pipeline.reader().snapshot().is_empty());
}

#[test]
fn g32_a_cleared_resource_deletes_everything() {
    let mut pipeline = Pipeline::new();
    let (_, queue) = pipeline.register(Duration::ZERO, 10, None, || {});
    listed(&mut pipeline, vec![item(0, (1, 7))], 9);
    told(&queue);
    pipeline.apply(Duration::ZERO, [Delta::Cleared { refreshes: 0 }]);
    assert_eq!(told(&queue), ["Deleted(a/0, final state Unknown)"]);
    assert!(pipeline.reader().snapshot().is_empty());
}
