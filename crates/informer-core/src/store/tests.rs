use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::Uid;

struct Obj {
    tags: Vec<u8>,
}

fn item(name: u8, uid: u8, version: u64, tags: Vec<u8>) -> Item<Obj> {
    let key = ObjectKey::namespaced(&format!("ns{}", name % 3), &format!("n{name}"));
    Item::new(key, Uid::new(&uid.to_string()), version.into(), Obj { tags })
}

fn by_tag() -> Index<Obj> {
    Index::new("tag", |object: &Obj, values| {
        assert!(object.tags.first() != Some(&9), "nine is not indexable");
        values.extend(object.tags.iter().map(u8::to_string));
    })
}

fn names<'a>(entries: impl Iterator<Item = Entry<'a, Obj>>) -> Vec<String> {
    entries.map(|entry| entry.key.to_string()).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Upsert(u8, u8, Vec<u8>),
    Remove(u8),
    Replace(Vec<(u8, u8, Vec<u8>)>),
    Publish,
    AddIndex,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let tags = || prop::collection::vec(0u8..6, 0..3);
    let step = prop_oneof![
        8 => (0u8..30, 0u8..2, tags()).prop_map(|(n, u, t)| Step::Upsert(n, u, t)),
        4 => (0u8..30).prop_map(Step::Remove),
        1 => prop::collection::vec((0u8..30, 0u8..2, tags()), 0..20).prop_map(Step::Replace),
        2 => Just(Step::Publish),
        1 => Just(Step::AddIndex),
    ];
    prop::collection::vec(step, 0..120)
}

type Model = BTreeMap<ObjectKey, Vec<u8>>;

fn assert_same(snapshot: &Snapshot<Obj>, model: &Model, index: Option<&Index<Obj>>) {
    assert!(snapshot.iter().map(|e| e.key).eq(model.keys()));
    for ns in ["ns0", "ns1", "ns2", "ns"] {
        let expected = model.keys().filter(|key| key.namespace() == ns);
        assert!(snapshot.namespace(ns).map(|e| e.key).eq(expected));
    }
    let Some(index) = index else { return };
    let mut values = BTreeSet::new();
    for tag in 0u8..6 {
        let value = tag.to_string();
        let expected: Vec<_> =
            model.iter().filter(|(_, tags)| tags.contains(&tag)).map(|(key, _)| key).collect();
        if !expected.is_empty() {
            values.insert(value.clone());
        }
        assert!(snapshot.by_index(index, &value).unwrap().map(|e| e.key).eq(expected.clone()));
        for ns in ["", "ns", "ns0", "ns1", "ns2", "ns3"] {
            let expected = expected.iter().copied().filter(|key| key.namespace() == ns);
            assert!(snapshot.by_index_in(index, &value, ns).unwrap().map(|e| e.key).eq(expected));
        }
        let is_its_own =
            |e: Entry<'_, Obj>| Arc::ptr_eq(e.object(), &snapshot.get(e.key).unwrap().object);
        assert!(snapshot.by_index(index, &value).unwrap().all(is_its_own));
    }
    let listed: Vec<_> =
        snapshot.index_values(index).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(listed, values.into_iter().collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn g11_indexes_and_namespaces_equal_a_naive_model_in_every_snapshot(steps in steps()) {
        let mut store = Store::new();
        let (reader, index) = (store.reader(), by_tag());
        let (mut model, mut published, mut indexed) = (Model::new(), Model::new(), false);
        let mut kept = Vec::new();
        for (version, step) in steps.into_iter().enumerate() {
            match step {
                Step::Upsert(name, uid, tags) => {
                    let item = item(name, uid, version as u64, tags.clone());
                    model.insert(item.key.clone(), tags);
                    store.upsert(item);
                }
                Step::Remove(name) => {
                    let key = item(name, 0, 0, vec![]).key;
                    prop_assert_eq!(store.remove(&key).is_some(), model.remove(&key).is_some());
                }
                Step::Replace(objects) => {
                    let mut list = Replacement::new();
                    model.clear();
                    for (name, uid, tags) in objects {
                        let item = item(name, uid, version as u64, tags.clone());
                        model.insert(item.key.clone(), tags);
                        list.insert(item);
                    }
                    store.replace(list, (version as u64).into(), false, |_, _| {});
                    published = model.clone();
                }
                Step::Publish => {
                    store.publish();
                    published = model.clone();
                }
                Step::AddIndex => {
                    store.add_index(&index).unwrap();
                    store.publish();
                    indexed = true;
                    published = model.clone();
                }
            }
            assert_same(&reader.snapshot(), &published, indexed.then_some(&index));
            kept.push((reader.snapshot(), published.clone(), indexed));
        }
        for (snapshot, model, indexed) in kept {
            assert_same(&snapshot, &model, indexed.then_some(&index));
        }
    }
}

/// What happens to the building of an index between two writes.
#[derive(Debug, Clone, Copy)]
enum Pace {
    Rest,
    Build(usize),
    Abandon,
}

fn paces() -> impl Strategy<Value = Vec<Pace>> {
    let pace = prop_oneof![
        8 => Just(Pace::Rest),
        8 => Just(Pace::Build(1)),
        4 => Just(Pace::Build(5)),
        1 => Just(Pace::Abandon),
    ];
    prop::collection::vec(pace, 120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn g11_an_index_built_beside_the_writer_equals_a_naive_model(steps in steps(), paces in paces()) {
        let mut store = Store::new();
        let (reader, index) = (store.reader(), by_tag());
        let mut model = Model::new();
        for (at, (step, pace)) in steps.into_iter().zip(paces).enumerate() {
            match step {
                Step::Upsert(name, uid, tags) => {
                    let item = item(name, uid, at as u64, tags.clone());
                    model.insert(item.key.clone(), tags);
                    store.upsert(item);
                }
                Step::Remove(name) => {
                    let key = item(name, 0, 0, vec![]).key;
                    store.remove(&key);
                    model.remove(&key);
                }
                Step::Replace(objects) => {
                    let mut list = Replacement::new();
                    model.clear();
                    for (name, uid, tags) in objects {
                        let item = item(name, uid, at as u64, tags.clone());
                        model.insert(item.key.clone(), tags);
                        list.insert(item);
                    }
                    store.replace(list, (at as u64).into(), false, |_, _| {});
                }
                Step::Publish | Step::AddIndex => _ = store.publish(),
            }
            match pace {
                Pace::Rest => {}
                Pace::Abandon => store.abandon_index(&index),
                Pace::Build(objects) => {
                    let is_complete = store.build_index(&index, objects).unwrap();
                    prop_assert_eq!(is_complete, reader.snapshot().by_index(&index, "").is_ok());
                    if is_complete {
                        store.publish();
                        assert_same(&reader.snapshot(), &model, Some(&index));
                    }
                }
            }
        }
        store.add_index(&index).unwrap();
        store.publish();
        assert_same(&reader.snapshot(), &model, Some(&index));
        store.upsert(item(31, 0, 1000, vec![5]));
        model.insert(item(31, 0, 0, vec![]).key, vec![5]);
        store.publish();
        assert_same(&reader.snapshot(), &model, Some(&index));
    }
}

#[test]
fn g11_of_two_indexes_of_one_name_the_second_is_refused_while_the_first_is_built() {
    let mut store = Store::new();
    store.upsert(item(1, 1, 1, vec![1]));
    store.upsert(item(2, 1, 2, vec![1]));
    let (first, second) = (by_tag(), by_tag());
    assert_eq!(store.build_index(&first, 1), Ok(false));
    assert_eq!(store.build_index(&second, 1), Err(IndexError::Duplicate { name: "tag".into() }));
    assert_eq!(store.build_index(&first, 1), Ok(true));
    assert_eq!(store.build_index(&first, 1), Ok(true), "it is there");
    assert_eq!(store.reader().snapshot().by_index(&first, "1").unwrap().count(), 2);
}

#[test]
fn g11_an_abandoned_index_leaves_its_name() {
    let mut store = Store::new();
    store.upsert(item(1, 1, 1, vec![1]));
    store.upsert(item(2, 1, 2, vec![1]));
    let (first, second) = (by_tag(), by_tag());
    assert_eq!(store.build_index(&first, 1), Ok(false));
    store.abandon_index(&first);
    store.add_index(&second).unwrap();
    assert_eq!(store.reader().snapshot().by_index(&second, "1").unwrap().count(), 2);
    store.abandon_index(&second);
    assert!(store.reader().snapshot().by_index(&second, "1").is_ok(), "a complete index stays");
}

#[test]
fn g11_an_older_snapshot_has_no_newer_index() {
    let mut store = Store::new();
    store.upsert(item(1, 1, 1, vec![1]));
    store.publish();
    let (old, index) = (store.reader().snapshot(), by_tag());
    store.add_index(&index).unwrap();
    assert_eq!(old.by_index(&index, "1").err(), Some(IndexError::Missing { name: "tag".into() }));
    assert_eq!(names(store.reader().snapshot().by_index(&index, "1").unwrap()), ["ns1/n1"]);
}

#[test]
fn g11_a_panicking_index_function_leaves_its_object_out_of_that_index_only() {
    let mut store = Store::new();
    let index = by_tag();
    store.add_index(&index).unwrap();
    store.upsert(item(1, 1, 1, vec![9]));
    store.upsert(item(2, 1, 2, vec![1]));
    store.publish();
    let snapshot = store.reader().snapshot();
    assert_eq!(snapshot.len(), 2);
    assert_eq!(names(snapshot.by_index(&index, "1").unwrap()), ["ns2/n2"]);
    let faults = store.take_faults();
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    assert_eq!((fault.index.as_str(), fault.key.to_string().as_str()), ("tag", "ns1/n1"));
    store.upsert(item(1, 1, 3, vec![1]));
    store.publish();
    assert_eq!(
        names(store.reader().snapshot().by_index(&index, "1").unwrap()),
        ["ns1/n1", "ns2/n2"]
    );
}

#[test]
fn g11_objects_move_with_their_values() {
    let mut store = Store::new();
    let index = by_tag();
    store.add_index(&index).unwrap();
    let found = |store: &mut Store<Obj>, value: &str| {
        store.publish();
        let snapshot = store.reader().snapshot();
        names(snapshot.by_index(&index, value).unwrap()).join(" ")
    };
    let values = |store: &Store<Obj>| {
        let values = store.reader().snapshot().index_values(&index).unwrap();
        values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    for (name, tags) in [(0, vec![1, 2]), (3, vec![2, 3]), (6, vec![3])] {
        store.upsert(item(name, name, 1, tags));
    }
    assert_eq!(
        ["1", "2", "3"].map(|value| found(&mut store, value)),
        ["ns0/n0", "ns0/n0 ns0/n3", "ns0/n3 ns0/n6"]
    );
    store.remove(&item(3, 3, 1, vec![]).key);
    assert_eq!(
        ["1", "2", "3"].map(|value| found(&mut store, value)),
        ["ns0/n0", "ns0/n0", "ns0/n6"]
    );
    store.upsert(item(6, 6, 2, vec![1]));
    assert_eq!(
        ["1", "2", "3"].map(|value| found(&mut store, value)),
        ["ns0/n0 ns0/n6", "ns0/n0", ""]
    );
    assert_eq!(values(&store), "1 2", "a value that nothing has any more is not listed");
    store.remove(&item(0, 0, 1, vec![]).key);
    assert_eq!(found(&mut store, "1"), "ns0/n6", "the other one stays");
}

#[test]
fn g11_one_name_is_one_index() {
    let mut store = Store::new();
    let index = by_tag();
    store.add_index(&index).unwrap();
    store.add_index(&index).unwrap();
    assert_eq!(store.add_index(&by_tag()), Err(IndexError::Duplicate { name: "tag".into() }));
    let mut other = Store::new();
    other.add_index(&index).unwrap();
    other.upsert(item(1, 1, 1, vec![1]));
    other.publish();
    store.publish();
    assert_eq!(store.reader().snapshot().by_index(&index, "1").unwrap().count(), 0);
}

#[test]
fn g07_an_object_with_equal_uid_and_version_keeps_its_allocation() {
    let mut store = Store::new();
    store.upsert(item(1, 1, 7, vec![1]));
    let before = Arc::clone(&store.get(&item(1, 1, 7, vec![]).key).unwrap().object);
    assert!(matches!(store.upsert(item(1, 1, 7, vec![2])), Change::Unchanged));
    let mut list = Replacement::new();
    list.insert(item(1, 1, 7, vec![3]));
    store.replace(list, 9.into(), false, |_, change| {
        assert!(matches!(change, ReplaceChange::Written(Change::Unchanged, _)));
    });
    assert!(Arc::ptr_eq(&before, &store.get(&item(1, 1, 7, vec![]).key).unwrap().object));
}

#[test]
fn g05_another_uid_under_the_same_name_is_another_object() {
    let mut store = Store::new();
    store.upsert(item(1, 1, 7, vec![1]));
    assert!(matches!(store.upsert(item(1, 2, 7, vec![1])), Change::Recreated { .. }));
}

#[test]
fn after_resumes_behind_a_key_that_may_be_gone() {
    let mut store = Store::new();
    for name in [0, 3, 6] {
        store.upsert(item(name, 1, 1, vec![]));
    }
    store.publish();
    let snapshot = store.reader().snapshot();
    assert_eq!(names(snapshot.after(&ObjectKey::namespaced("ns0", "n3"))), ["ns0/n6"]);
    assert_eq!(names(snapshot.after(&ObjectKey::namespaced("ns0", "n1"))), ["ns0/n3", "ns0/n6"]);
}

#[test]
fn g11_a_value_that_many_objects_share_finds_them_all() {
    let mut store = Store::new();
    let index = Index::new("parity", |object: &Obj, values| {
        values.push(if object.tags[0].is_multiple_of(2) { "even" } else { "odd" })
    });
    store.add_index(&index).unwrap();
    for number in 0..5_000_u32 {
        let key = ObjectKey::namespaced("ns", &format!("n{number:05}"));
        let object = Obj { tags: vec![(number % 256) as u8] };
        store.upsert(Item::new(key, Uid::new("u"), u64::from(number + 1).into(), object));
    }
    store.publish();
    let snapshot = store.reader().snapshot();
    assert_eq!(snapshot.by_index(&index, "even").unwrap().count(), 2_500);
    assert_eq!(snapshot.by_index(&index, "odd").unwrap().count(), 2_500);
    assert_eq!(snapshot.like(&index, &["even", "odd"]).unwrap().len(), 5_000);
    assert_eq!(snapshot.index_values(&index).unwrap().len(), 2);
    assert_eq!(snapshot.namespace("ns").count(), 5_000);
}
