//! How the cost of an object grows with the number of them.
//!
//! A thousand objects lie in the cache, a million do not, whatever holds them. What grows with the store is seen where the
//! stores of one size have a million objects together, and are worked on in turn.

use std::hint::black_box;
use std::time::Duration;

use informer_benches::{HEAP, cpu};
use informer_core::store::Reader;
use informer_core::{Delta, Item, Pipeline};

use crate::figures::print;
use crate::objects::{Small, items, list, synced, updated};

/// Updates that are published together.
const BATCH: usize = 64;

/// Updates of a million objects, at least.
const UPDATES: usize = 200_000;

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
                    pipeline.apply(Duration::ZERO, updates.by_ref().take(BATCH));
                }
            })
            .0
        });
        print(&format!("growth.{objects}.update-ns"), update);
    }
    if !quick {
        SIZES.into_iter().for_each(together_a_million);
    }
}

fn together_a_million(objects: usize) {
    let all = SIZES[SIZES.len() - 1];
    let stores = all / objects;
    let items: Vec<Vec<Item<Small>>> = (0..stores).map(|_| items(objects)).collect();
    let lists: Vec<Vec<Delta<Small>>> = items.iter().map(|items| listed(items)).collect();
    let (spent, mut pipelines) = cpu::spent(|| lists.into_iter().map(filled).collect::<Vec<_>>());
    let name = format!("growth.many-of-{objects}");
    print(&format!("{name}.fill-ns"), 1000.0 * cpu::micros_each(spent, all));
    let readers: Vec<_> = pipelines.iter().map(|pipeline| pipeline.store().reader()).collect();
    let (spent, values) = cpu::spent(|| {
        let list =
            |reader: &Reader<Small>| reader.snapshot().iter().map(|entry| entry.object().value).sum::<u64>();
        readers.iter().map(list).sum::<u64>()
    });
    black_box(values);
    print(&format!("{name}.list-ns"), 1000.0 * cpu::micros_each(spent, all));
    let of_each = (UPDATES / stores).next_multiple_of(BATCH);
    let updates =
        |items: &Vec<Item<Small>>| updated(items, 2).into_iter().take(of_each).map(Delta::Updated).collect();
    let updates: Vec<Vec<Delta<Small>>> = items.iter().map(updates).collect();
    let mut updates: Vec<_> = updates.into_iter().map(Vec::into_iter).collect();
    let (spent, ()) = cpu::spent(|| {
        for _ in 0..of_each / BATCH {
            for (pipeline, updates) in pipelines.iter_mut().zip(&mut updates) {
                pipeline.apply(Duration::ZERO, updates.take(BATCH));
            }
        }
    });
    print(&format!("{name}.update-ns"), 1000.0 * cpu::micros_each(spent, stores * of_each));
}

fn listed(items: &[Item<Small>]) -> Vec<Delta<Small>> {
    items.iter().cloned().map(Delta::Listed).collect()
}

fn filled(listed: Vec<Delta<Small>>) -> Pipeline<Small> {
    let mut pipeline = Pipeline::new();
    list(&mut pipeline, listed.into_iter());
    pipeline
}

fn fill(items: &[Item<Small>]) -> Duration {
    let listed = listed(items);
    let (spent, pipeline) = cpu::spent(|| filled(listed));
    assert_eq!(pipeline.store().len(), items.len());
    spent
}

/// Nanoseconds per object.
fn average(rounds: usize, objects: usize, mut round: impl FnMut() -> Duration) -> f64 {
    let spent: Duration = (0..rounds).map(|_| round()).sum();
    1000.0 * cpu::micros_each(spent, rounds * objects)
}
