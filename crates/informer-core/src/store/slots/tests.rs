use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A value that knows how many there are of it.
#[derive(Debug, Clone, PartialEq)]
struct Value(Arc<u32>);

// SAFETY: an `Arc`.
#[expect(unsafe_code, reason = "see `Counted`")]
unsafe impl Counted for Value {}

#[derive(Debug, Clone)]
enum Step {
    Add(u32),
    Change(usize, u32),
    /// Writes what is there already.
    Rewrite(usize),
    Remove(usize),
    /// Publishes, and keeps what was published before, or lets it go, before or after the account is settled.
    Publish(Kept, bool),
    /// Lets go of something kept.
    Drop(usize),
}

#[derive(Debug, Clone, Copy)]
enum Kept {
    Not,
    UntilSettled,
    Longer,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let kept = prop_oneof![Just(Kept::Not), Just(Kept::UntilSettled), Just(Kept::Longer)];
    let step = prop_oneof![
        8 => any::<u32>().prop_map(Step::Add),
        4 => (any::<usize>(), any::<u32>()).prop_map(|(at, value)| Step::Change(at, value)),
        1 => any::<usize>().prop_map(Step::Rewrite),
        6 => any::<usize>().prop_map(Step::Remove),
        3 => (kept, any::<bool>()).prop_map(|(kept, settle)| Step::Publish(kept, settle)),
        1 => any::<usize>().prop_map(Step::Drop),
    ];
    prop::collection::vec(step, 0..most)
}

type Model = BTreeMap<Slot, Value>;

fn assert_same(slots: &Slots<Value>, model: &Model) {
    let mut cursor = slots.cursor();
    let most = model.keys().next_back().map_or(0, |slot| slot + 20);
    for slot in 0..most {
        assert_eq!(slots.get(slot), model.get(&slot));
        assert_eq!(cursor.get(slot), model.get(&slot));
    }
    assert_eq!(slots.get(Slot::MAX), None);
    for first in (0..most).step_by(97) {
        let several = [Some(first), Some(most - 1 - first), None, Some(first / 2), Some(Slot::MAX)];
        assert_eq!(slots.get_each(several), several.map(|slot| model.get(&slot?)));
    }
}

/// Publishes `slots` as the store does.
fn publish(
    slots: &mut Slots<Value>,
    published: &mut Slots<Value>,
    kept: Kept,
    settle: bool,
) -> Option<Slots<Value>> {
    let before = std::mem::replace(published, slots.share());
    let before = match kept {
        Kept::Not => None,
        Kept::UntilSettled | Kept::Longer => Some(before),
    };
    if settle {
        slots.settle();
    }
    before.filter(|_| matches!(kept, Kept::Longer))
}

/// Takes the steps, and looks at each state that is kept when it goes, and at how many of each value there are in the end.
fn run(steps: Vec<Step>) {
    let (mut slots, mut numbers, mut model) = (Slots::new(), Numbers::default(), Model::new());
    let (mut published, mut at_publication) = (slots.share(), Model::new());
    let mut kept: Vec<(Slots<Value>, Model)> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    let used = |model: &Model, at: usize| model.keys().nth(at % model.len().max(1)).copied();
    for step in steps {
        let mut new = |number| {
            values.push(Value(Arc::new(number)));
            values[values.len() - 1].clone()
        };
        match step {
            Step::Add(number) => {
                let (slot, value) = (numbers.take(), new(number));
                assert_eq!(
                    Some(slot),
                    (0..).find(|slot| !model.contains_key(slot)),
                    "the lowest that is free"
                );
                assert_eq!(slots.set(slot, Some(value.clone())), model.insert(slot, value));
            }
            Step::Change(at, number) => {
                let Some(slot) = used(&model, at) else { continue };
                let value = new(number);
                assert_eq!(slots.set(slot, Some(value.clone())), model.insert(slot, value));
            }
            Step::Rewrite(at) => {
                let Some(slot) = used(&model, at) else { continue };
                let value = model[&slot].clone();
                assert_eq!(slots.set(slot, Some(value.clone())), Some(value));
            }
            Step::Remove(at) => {
                let Some(slot) = used(&model, at) else { continue };
                assert_eq!(slots.set(slot, None), model.remove(&slot));
                numbers.give_back(slot);
            }
            Step::Publish(keep, settle) => {
                let before = publish(&mut slots, &mut published, keep, settle);
                let before_that = std::mem::replace(&mut at_publication, model.clone());
                kept.extend(before.map(|before| (before, before_that)));
            }
            Step::Drop(at) if !kept.is_empty() => {
                let (slots, model) = kept.swap_remove(at % kept.len());
                assert_same(&slots, &model);
            }
            Step::Drop(_) => {}
        }
    }
    assert_same(&slots, &model);
    drop((slots, model));
    kept.push((published, at_publication));
    for (slots, model) in kept {
        assert_same(&slots, &model);
    }
    assert!(
        values.iter().all(|value| Arc::strong_count(&value.0) == 1),
        "each is counted as often as it is there"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 6 } else { 192 }, failure_persistence: None, ..<_>::default() })]
    #[test]
    fn g10_equals_a_naive_model_in_every_state_that_is_kept(steps in steps(if cfg!(miri) { 150 } else { 1500 })) {
        run(steps);
    }
}

#[test]
fn g10_states_are_let_go_by_other_threads_while_the_writer_goes_on() {
    let (values, rounds) = if cfg!(miri) { (150, 20) } else { (1000, 2000) };
    let counted: Vec<Value> = (0..values).map(|number| Value(Arc::new(number))).collect();
    let mut slots = Slots::new();
    for (slot, value) in (0..).zip(&counted) {
        slots.set(slot, Some(value.clone()));
    }
    std::thread::scope(|scope| {
        let (states, reader) = std::sync::mpsc::sync_channel::<Slots<Value>>(2);
        scope.spawn(move || {
            let mut held = None;
            for state in reader {
                assert_eq!((0..values).filter(|slot| state.get(*slot).is_some()).count(), values as usize);
                // The one before goes while the writer settles.
                held = Some(state);
            }
            drop(held);
        });
        let mut published = slots.share();
        for round in 0..rounds {
            for step in 0..5 {
                let slot = (round * 37 + step * 11) % values;
                let value = counted[((slot + round) % values) as usize].clone();
                assert!(slots.set(slot, Some(value)).is_some());
            }
            let before = std::mem::replace(&mut published, slots.share());
            if round % 3 != 0 {
                states.send(before).expect("the reader goes on");
            }
            slots.settle();
        }
        drop((states, published));
    });
    let held = (0..values).map(|slot| slots.get(slot).expect("all places are taken"));
    let mut times = vec![1; values as usize];
    held.for_each(|value| times[*value.0 as usize] += 1);
    let counts: Vec<usize> = counted.iter().map(|value| Arc::strong_count(&value.0)).collect();
    assert_eq!(counts, times);
}

#[test]
fn what_is_empty_again_holds_nothing() {
    let (mut slots, mut numbers) = (Slots::new(), Numbers::default());
    let values: Vec<Value> =
        (0..if cfg!(miri) { 300 } else { 5_000 }).map(|number| Value(Arc::new(number))).collect();
    let taken: Vec<Slot> = values.iter().map(|_| numbers.take()).collect();
    for (slot, value) in taken.iter().zip(&values) {
        slots.set(*slot, Some(value.clone()));
    }
    drop(slots.share());
    for (slot, value) in taken.iter().zip(&values) {
        assert_eq!(slots.set(*slot, None).as_ref(), Some(value));
        assert_eq!(slots.set(*slot, None), None, "it is gone");
        numbers.give_back(*slot);
    }
    slots.settle();
    assert!(matches!(slots.root, Node::Empty));
    assert!(values.iter().all(|value| Arc::strong_count(&value.0) == 1));
    assert_eq!((numbers.freed.capacity(), numbers.take()), (0, 0));
}

#[test]
fn what_is_shared_can_be_written_and_goes_in_any_order() {
    for settles in [[false, false], [true, false], [false, true], [true, true]] {
        let values: Vec<Value> = (0..40).map(|number| Value(Arc::new(number))).collect();
        let mut slots = Slots::new();
        for (slot, value) in (0..40).zip(&values) {
            slots.set(slot, Some(value.clone()));
        }
        let published = slots.share();
        slots.set(3, Some(values[4].clone()));
        // A share of what is not settled, which is written itself, and so is the one that it came from.
        let mut other = slots.share();
        assert_eq!(other.set(5, None).as_ref(), Some(&values[5]));
        assert_eq!(slots.set(6, None).as_ref(), Some(&values[6]));
        if settles[0] {
            other.settle();
        }
        if settles[1] {
            slots.settle();
        }
        drop(slots);
        drop(published);
        assert_eq!((other.get(3), other.get(5), other.get(6)), (Some(&values[4]), None, Some(&values[6])));
        drop(other);
        assert!(values.iter().all(|value| Arc::strong_count(&value.0) == 1));
    }
}
