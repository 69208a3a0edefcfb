//! What an entry of the store takes beyond its object and the text of its key. UID and version count as the object's.
//!
//! Requested bytes, over a store that shares keys and objects with a list that was there before.

use informer_benches::HEAP;
use informer_core::store::{Index, Store};
use informer_core::{Item, ResourceVersion, Uid};

use crate::figures::print;
use crate::objects::{Small, items, synced};

pub(crate) fn measure(quick: bool) {
    let sizes: &[usize] = if quick { &[10_000, 100_000] } else { &[10_000, 100_000, 1_000_000] };
    for &objects in sizes {
        sized(objects);
    }
}

pub(crate) fn sized(objects: usize) {
    let items = items(objects);
    let figure = |name: &str, taken: usize| {
        print(&format!("memory.{objects}.{name}.bytes"), taken as f64 / objects as f64 - of_the_object());
    };
    let (taken, pipeline) = growth_of(|| synced(&items));
    figure("listed", taken);
    drop(pipeline);
    let (taken, store) = growth_of(|| one_by_one(&items));
    figure("one-by-one", taken);
    drop(store);
    let (taken, pipeline) = growth_of(|| {
        let mut pipeline = synced(&items);
        let unique =
            Index::new("unique", |object: &Small, values| values.push(format!("object-{:07}", object.value)));
        pipeline.add_index(&unique).expect("it is the only one");
        pipeline
    });
    figure("unique-index", taken);
    drop(pipeline);
}

/// UID and version are kept in the entry.
fn of_the_object() -> f64 {
    (size_of::<Uid>() + size_of::<ResourceVersion>()) as f64
}

/// Objects that come in an order of their own fill their leaves less.
fn one_by_one(items: &[Item<Small>]) -> Store<Small> {
    let mut store = Store::new();
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|at| (*at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
    for at in order {
        store.upsert(items[at].clone());
    }
    store.publish();
    store
}

fn growth_of<O>(build: impl FnOnce() -> O) -> (usize, O) {
    let before = HEAP.live();
    let built = build();
    (HEAP.live() - before, built)
}

/// What an entry of a first list takes.
pub(crate) fn of_entry(items: &[Item<Small>]) -> f64 {
    growth_of(|| synced(items)).0 as f64 / items.len() as f64 - of_the_object()
}
