//! How the cost of an object grows with the number of them.

use std::hint::black_box;
use std::time::Duration;

use informer_benches::{HEAP, cpu};
use informer_core::{Delta, Item};

use crate::figures::print;
use crate::objects::{Small, items, list, synced, updated};

/// How many objects there are.
pub(crate) const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

pub(crate) fn measure(quick: bool) {
    let sizes = if quick { &SIZES[..3] } else { &SIZES[..] };
    for &objects in sizes {
        let items = items(objects);
        print(&format!("growth.{objects}.memory-bytes"), crate::memory::of_entry(&items));
    }
    HEAP.stop();
    for &objects in sizes {
        let items = items(objects);
        let rounds = (if quick { 100_000 } else { 1_000_000 } / objects).max(1);
        let fill = average(rounds, objects, || fill(&items));
        print(&format!("growth.{objects}.fill-ns"), fill);
        let reader = synced(&items).store().reader();
        let list = average(3 * rounds, objects, || {
            cpu::spent(|| black_box(reader.snapshot().iter().map(|entry| entry.object().value).sum::<u64>()))
                .0
        });
        print(&format!("growth.{objects}.list-ns"), list);
        let mut pipeline = synced(&items);
        let mut version = 1;
        let update = average(rounds, objects, || {
            version += 1;
            let mut updates = updated(&items, version).into_iter().map(Delta::Updated).peekable();
            cpu::spent(|| {
                while updates.peek().is_some() {
                    pipeline.apply(Duration::ZERO, updates.by_ref().take(64));
                }
            })
            .0
        });
        print(&format!("growth.{objects}.update-ns"), update);
    }
}

fn fill(items: &[Item<Small>]) -> Duration {
    let listed: Vec<Delta<Small>> = items.iter().cloned().map(Delta::Listed).collect();
    let (spent, pipeline) = cpu::spent(|| {
        let mut pipeline = informer_core::Pipeline::new();
        list(&mut pipeline, listed.into_iter());
        pipeline
    });
    assert_eq!(pipeline.store().len(), items.len());
    spent
}

/// Nanoseconds per object.
fn average(rounds: usize, objects: usize, mut round: impl FnMut() -> Duration) -> f64 {
    let spent: Duration = (0..rounds).map(|_| round()).sum();
    1000.0 * cpu::micros_each(spent, rounds * objects)
}
