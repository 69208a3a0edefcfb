use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::ObjectKey;

#[derive(Debug, Clone)]
enum Step {
    Insert(u16, u32),
    Remove(u16),
    Snapshot,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u16..900, any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
        5 => (0u16..900).prop_map(Step::Remove),
        1 => Just(Step::Snapshot),
    ];
    prop::collection::vec(step, 0..3000)
}

fn assert_same(map: &SortedMap<u16, u32>, model: &BTreeMap<u16, u32>) {
    assert_eq!(map.len(), model.len());
    assert!(map.iter().eq(model.iter()));
    for key in (0..900).step_by(37) {
        assert_eq!(map.get(&key), model.get(&key));
        assert!(map.seek(|candidate| candidate.cmp(&key)).eq(model.range(key..)));
        // Many keys may be equal to what is looked for: the keys of a namespace, of an indexed
        // value.
        let hundred = key / 100;
        let from_hundred = map.seek(|candidate| (candidate / 100).cmp(&hundred));
        assert!(from_hundred.eq(model.range(hundred * 100..)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn g10_behaves_as_a_btreemap_and_snapshots_never_change(steps in steps()) {
        let (mut map, mut model, mut snapshots) = (SortedMap::new(), BTreeMap::new(), Vec::new());
        for step in steps {
            match step {
                Step::Insert(key, value) => prop_assert_eq!(map.insert(key, value), model.insert(key, value)),
                Step::Remove(key) => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                Step::Snapshot => snapshots.push((map.clone(), model.clone())),
            }
        }
        assert_same(&map, &model);
        for (map, model) in &snapshots {
            assert_same(map, model);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn texts_of_any_kind_are_found(
        keys in prop::collection::vec(("(|a|a-b|team-[a-c])", "(|a|web|deploy)-[a-c0-1]{0,6}"), 0..400),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..100),
    ) {
        let keys: Vec<ObjectKey> = keys.iter().map(|(space, name)| ObjectKey::namespaced(space, name)).collect();
        let (mut map, mut model) = (SortedMap::new(), BTreeMap::new());
        for (at, key) in keys.iter().enumerate() {
            prop_assert_eq!(map.insert(key.clone(), at), model.insert(key.clone(), at));
        }
        for at in gone.iter().filter(|_| !keys.is_empty()) {
            let key = at.get(&keys);
            prop_assert_eq!(map.remove(key), model.remove(key));
        }
        for key in &keys {
            prop_assert_eq!(map.get(key), model.get(key));
        }
    }
}

#[test]
fn entries_in_key_order_fill_their_leaves() {
    let mut map = SortedMap::new();
    for key in 0..10_000u32 {
        map.insert(key, ());
    }
    let Node::Branch(children) = &*map.root else { panic!("10,000 entries need a branch") };
    assert!(children.len() <= 10_000 / (WIDTH * WIDTH) + 1, "{} children", children.len());
    assert_eq!(map.len(), 10_000);
    for key in 0..10_000u32 {
        assert_eq!(map.remove(&key), Some(()));
    }
    assert!(map.len() == 0 && map.iter().next().is_none());
}
