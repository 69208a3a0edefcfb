use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Add,
    Change(usize),
    Remove(usize),
    Snapshot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => Just(Step::Add),
        4 => any::<usize>().prop_map(Step::Change),
        6 => any::<usize>().prop_map(Step::Remove),
        1 => Just(Step::Snapshot),
    ];
    prop::collection::vec(step, 0..1500)
}

/// The version of each record, by slot.
type Model = BTreeMap<Slot, u64>;

fn record(version: u64) -> Record<u64> {
    Record { uid: "u".into(), version: version.into(), object: Arc::new(version) }
}

fn assert_same(records: &Records<u64>, model: &Model) {
    let most = model.keys().next_back().map_or(0, |slot| slot + 20);
    for slot in (0..most).chain([Slot::MAX]) {
        assert_eq!(records.get(slot).map(|record| *record.object), model.get(&slot).copied());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]
    #[test]
    fn g10_records_equal_a_naive_model_and_snapshots_never_change(steps in steps()) {
        let (mut records, mut slots, mut model) = (Records::new(), FreeSlots::default(), Model::new());
        let mut snapshots: Vec<(Records<u64>, Model)> = Vec::new();
        for (version, step) in (0..).zip(steps) {
            let used = |at: usize| model.keys().nth(at % model.len().max(1)).copied();
            match step {
                Step::Add => {
                    let slot = slots.take();
                    prop_assert_eq!(Some(slot), (0..).find(|slot| !model.contains_key(slot)), "the lowest free");
                    prop_assert!(records.set(slot, record(version)).is_none());
                    model.insert(slot, version);
                }
                Step::Change(at) => {
                    let Some(slot) = used(at) else { continue };
                    let old = records.set(slot, record(version)).map(|old| *old.object);
                    prop_assert_eq!(old, model.insert(slot, version));
                }
                Step::Remove(at) => {
                    let Some(slot) = used(at) else { continue };
                    prop_assert_eq!(records.take(slot).map(|old| *old.object), model.remove(&slot));
                    prop_assert!(records.take(slot).is_none());
                    slots.give_back(slot);
                }
                Step::Snapshot => snapshots.push((records.clone(), model.clone())),
            }
        }
        assert_same(&records, &model);
        for (records, model) in &snapshots {
            assert_same(records, model);
        }
    }
}

#[test]
fn records_that_are_all_taken_leave_nothing_behind() {
    let (mut records, mut slots) = (Records::new(), FreeSlots::default());
    let taken: Vec<Slot> = (0..5_000).map(|_| slots.take()).collect();
    for slot in &taken {
        records.set(*slot, record(u64::from(*slot)));
    }
    for slot in taken {
        assert!(records.take(slot).is_some());
        slots.give_back(slot);
    }
    assert!(records.root.is_empty());
    assert_eq!((records.height, slots.freed.capacity(), slots.take()), (0, 0, 0));
}
