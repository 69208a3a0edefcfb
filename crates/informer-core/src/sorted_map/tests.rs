use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

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

/// Texts of two bytes, which begin alike as far as a hundred of them do.
impl SearchKey for u16 {
    fn common_prefix(&self, other: &Self) -> usize {
        let [own, other] = [self, other].map(|key| [(key / 100) as u8, (key % 100) as u8]);
        own.iter().zip(other).take_while(|(own, other)| *own == other).count()
    }

    fn head(&self, at: usize) -> u64 {
        head_of(&[(self / 100) as u8, (self % 100) as u8], at)
    }
}

/// Says whether all keys in and below each row begin alike as far as it says, and what is looked at has the right head.
fn has_true_heads<K: SearchKey + Clone, V>(node: &Node<K, V>) -> bool {
    fn of_row<E: Keyed>(row: &Row<E>, looked_at: &[E]) -> bool {
        let Some((lowest, highest)) = row.first().and_then(E::lowest).zip(row.last().and_then(E::highest))
        else {
            return row.is_empty();
        };
        let is_alike = |key: &E::Key| {
            lowest == highest || lowest.common_prefix(key).min(key.common_prefix(highest)) >= row.prefix()
        };
        is_alike(highest)
            && looked_at
                .iter()
                .all(|item| is_alike(item.key()) && item.head() == item.key().head(row.prefix()) & E::HEAD)
    }
    match node {
        Node::Leaf(entries) => of_row(entries, entries),
        Node::Branch(children) => {
            of_row(children, &children[1..]) && children.iter().all(|child| has_true_heads(&child.node))
        }
    }
}

fn assert_same(map: &SortedMap<u16, u32>, model: &BTreeMap<u16, u32>) {
    assert!(has_true_heads(&map.root));
    assert_eq!(map.len(), model.len());
    assert!(map.iter().eq(model.iter()));
    for key in (0..900).step_by(37) {
        assert_eq!(map.get(&key), model.get(&key));
        assert!(map.seek(|candidate| candidate.cmp(&key)).eq(model.range(key..)));
        // Many keys may be equal to what is looked for: the keys of a namespace, of an indexed value.
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
        snapshots.push((map, model));
        for pair in snapshots.windows(2) {
            assert_differences(&pair[0], &pair[1]);
        }
        let (first, last) = (snapshots.first().unwrap(), snapshots.last().unwrap());
        assert_differences(first, last);
        assert_differences(last, first);
    }
}

type Both = (SortedMap<u16, u32>, BTreeMap<u16, u32>);

fn assert_differences((old_map, old): &Both, (new_map, new): &Both) {
    let keys: BTreeSet<u16> = old.keys().chain(new.keys()).copied().collect();
    for (after, wanted) in [(None, false), (Some(450), false), (None, true), (Some(450), true)] {
        let told = new_map.differences(old_map, after.as_ref(), |value| wanted && value % 2 == 0);
        let told: Vec<_> = told.map(|(key, was, is)| (*key, was.copied(), is.copied())).collect();
        assert!(told.is_sorted());
        assert!(
            told.iter().all(|(key, was, is)| *was == old.get(key).copied() && *is == new.get(key).copied())
        );
        let told: BTreeSet<u16> = told.into_iter().map(|(key, ..)| key).collect();
        let due = |key: &&u16| {
            let is = new.get(*key);
            old.get(*key) != is || wanted && is.is_some_and(|value| value % 2 == 0)
        };
        let mut due = keys.iter().filter(|key| after.is_none_or(|after| **key > after)).filter(due);
        assert!(due.all(|key| told.contains(key)));
    }
}

/// Looks for `keys` with a compare that counts, each where the one before ended.
fn looked_for(map: &SortedMap<u32, u32>, mut near: Place, keys: impl Iterator<Item = u32>) -> usize {
    let count = Cell::new(0);
    for key in keys {
        let compare = |candidate: &u32| {
            count.set(count.get() + 1);
            candidate.cmp(&key)
        };
        let (found, next) = map.find_near(near, compare, |at| key.head(at));
        assert_eq!(found, map.find(|candidate| candidate.cmp(&key)));
        near = next;
    }
    count.get()
}

#[test]
fn keys_in_order_are_found_by_one_comparison_each() {
    let mut map = SortedMap::new();
    for key in 0..40_000u32 {
        map.insert(2 * key, key);
    }
    let descent = 20;
    assert!(looked_for(&map, Place::NONE, (0..80_000).step_by(2)) <= 40_000 + descent);
    // One that is not there costs a search, and the next one is found again where it should be.
    let with_a_gap = (0..1_000).filter(|key| key % 2 == 0 || *key == 501);
    assert!(looked_for(&map, Place::NONE, with_a_gap) <= 500 + 3 * descent);
    assert_eq!(
        map.find_near(Place::NONE, |candidate| candidate.cmp(&99_999), |at| 99_999u32.head(at)).0,
        None
    );
}

proptest! {
    #[test]
    fn a_place_that_is_wrong_changes_nothing(
        (count, gone) in (0u32..3_000, 0u32..3_000),
        places in prop::collection::vec(any::<u64>(), 8),
        keys in prop::collection::vec(0u32..3_000, 40),
    ) {
        let mut map = SortedMap::new();
        (0..count).for_each(|key| _ = map.insert(key, key));
        let half = count / 2;
        let (_, before) = map.find_near(Place::NONE, |candidate| candidate.cmp(&half), |at| half.head(at));
        (0..gone).for_each(|key| _ = map.remove(&(key * 7 % 3_000)));
        looked_for(&map, before, keys.iter().copied());
        for bits in places {
            // As they would be for a tree of one to ten levels.
            for level in 0..=10 {
                let place = bits & ((1 << (6 * level)) - 1) | 1 << (6 * level);
                looked_for(&map, Place::from_bits(place), keys.iter().copied());
            }
            for length in 0..64 {
                looked_for(&map, Place::from_bits(bits >> length), keys.iter().copied());
            }
        }
    }
}

thread_local! {
    static COMPARED: Cell<usize> = const { Cell::new(0) };
}

/// A key that counts how often it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counting(u32);

impl Ord for Counting {
    fn cmp(&self, other: &Self) -> Ordering {
        COMPARED.set(COMPARED.get() + 1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Counting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl SearchKey for Counting {
    fn common_prefix(&self, other: &Self) -> usize {
        self.0.common_prefix(&other.0)
    }

    fn head(&self, at: usize) -> u64 {
        self.0.head(at)
    }
}

#[test]
fn a_key_is_found_by_looking_at_few() {
    let mut map = SortedMap::new();
    let keys: Vec<u32> = (0..30_000u32).map(|at| at * 7919 % 30_000 * 50).collect();
    keys.iter().for_each(|key| _ = map.insert(Counting(*key), *key));
    COMPARED.set(0);
    for key in &keys {
        assert_eq!(map.get(&Counting(*key)), Some(key));
    }
    // A search without heads compares as often as 30,000 can be halved, fifteen times.
    assert!(COMPARED.get() <= 4 * keys.len(), "{} comparisons", COMPARED.get());
    assert!(keys.iter().all(|key| map.get(&Counting(key + 1)).is_none()));
}

#[test]
fn keys_that_begin_otherwise_than_the_separators_are_found() {
    let mut map = SortedMap::new();
    // The first leaf and the last have keys that begin otherwise than all separators do.
    let separate = 0x0200_0000u32..0x0200_0060;
    separate.clone().for_each(|key| _ = map.insert(key, key));
    let beyond = (0x0100_0000..0x0100_0008).chain(0x0300_0000..0x0300_0008);
    beyond.clone().for_each(|key| _ = map.insert(key, key));
    assert!(has_true_heads(&map.root));
    assert!(separate.chain(beyond).all(|key| map.get(&key) == Some(&key)));
}

/// Names as workloads have them, of many lengths and in many namespaces.
fn names(count: usize) -> Vec<ObjectKey> {
    let name = |at: usize| {
        let of = ["web", "payments-api", "job", "cache"][at % 4];
        ObjectKey::namespaced(&format!("team-{}", at % 7), &format!("{of}-{}", at * 7919 % count))
    };
    (0..count).map(name).collect()
}

#[test]
fn names_of_many_lengths_are_found_by_looking_at_few() {
    for count in [40, 1_200, 20_000] {
        for in_order in [false, true] {
            let mut names = names(count);
            if in_order {
                names.sort_unstable();
            }
            let mut map = SortedMap::new();
            names.iter().for_each(|name| _ = map.insert(name.clone(), ()));
            let compared = Cell::new(0);
            for name in &names {
                let compare = |candidate: &ObjectKey| {
                    compared.set(compared.get() + 1);
                    candidate.cmp(name)
                };
                assert!(map.find_by_head(compare, |at| name.head(at)).is_some());
            }
            let (by_heads, without) = (compared.take() / count, count.ilog2() as usize);
            assert!(by_heads <= without / 2, "{by_heads} of {without} for {count}, {in_order}");
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
        prop_assert!(has_true_heads(&map.root));
        for key in &keys {
            prop_assert_eq!(map.get(key), model.get(key));
        }
    }
}

#[test]
fn entries_in_key_order_are_compared_once_for_each_level() {
    let mut map = SortedMap::new();
    for key in 0..30_000 {
        map.insert(Counting(key), ());
    }
    assert!(COMPARED.get() <= 3 * 30_000, "{} comparisons", COMPARED.get());
}

#[test]
fn differences_of_maps_that_share_their_structure_visit_little() {
    let mut map = SortedMap::new();
    for key in 0..10_000u32 {
        map.insert(key, key);
    }
    let before = map.clone();
    map.insert(4_321, 0);
    map.remove(&7_777);
    map.insert(20_000, 0);
    let told: Vec<_> = map.differences(&before, None, |_| false).collect();
    assert!(told.len() <= 3 * WIDTH, "{} entries", told.len());
    let changed = told.iter().filter(|(_, old, new)| old != new);
    assert!(changed.map(|(key, ..)| **key).eq([4_321, 7_777, 20_000]));
    assert_eq!(map.differences(&map.clone(), None, |_| false).count(), 0);
    let wanted = map.clone();
    assert!(map.differences(&wanted, None, |value| *value == 5_000).map(|(key, ..)| *key).eq([5_000]));
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
    assert!(map.is_empty() && map.iter().next().is_none());
}
