//! Updates through the core, on one thread: applied to the store, put into each registration's queue, taken out and given
//! to a handler that counts. The objects are there before, as the decoder leaves them.

use std::time::Duration;

use informer_benches::{HEAP, cpu};
use informer_core::fan_out::SharedQueue;
use informer_core::{Delta, Item, Pipeline};

use crate::figures::print;
use crate::objects::{Small, items, synced, updated};

const OBJECTS: usize = 10_000;

/// Events that a registration takes from its queue at a time, as the informer's callbacks do.
const TAKEN: usize = 64;

pub(crate) fn measure(quick: bool) {
    let cases = [(64, 1), (1, 1), (64, 100), (256, 1), (256, 100)];
    allocations();
    HEAP.stop();
    for (batch, registrations) in cases {
        let mut case = Case::new(registrations);
        let rounds = if quick { 2 } else { 40 / registrations.min(10) };
        case.run(batch, 2);
        case.spent = Duration::ZERO;
        let events = case.run(batch, rounds);
        let micros = cpu::micros_each(case.spent, events);
        print(&format!("core.{batch}.registrations-{registrations}.cpu-us"), micros);
    }
}

/// Allocations of an event, in batches of 64 and alone.
pub(crate) fn allocations() {
    for batch in [64, 1] {
        let mut case = Case::new(1);
        case.run(batch, 1);
        let before = HEAP.calls();
        let events = case.run(batch, 1);
        let allocations = (HEAP.calls() - before - case.prepared) as f64 / events as f64;
        print(&format!("core.{batch}.allocations"), allocations);
    }
}

struct Case {
    items: Vec<Item<Small>>,
    pipeline: Pipeline<Small>,
    queues: Vec<SharedQueue<Small>>,
    version: u64,
    spent: Duration,
    /// Allocations of what is there before.
    prepared: usize,
}

impl Case {
    fn new(registrations: usize) -> Self {
        let items = items(OBJECTS);
        let mut pipeline = synced(&items);
        let register = |_| pipeline.register(Duration::ZERO, 1024, None, || {}).1;
        let queues: Vec<SharedQueue<Small>> = (0..registrations).map(register).collect();
        let mut case = Self { items, pipeline, queues, version: 1, spent: Duration::ZERO, prepared: 0 };
        for at in 0..case.queues.len() {
            while case.take(at) > 0 {}
        }
        case
    }

    /// Updates all objects, so often; how many events each registration was given.
    fn run(&mut self, batch: usize, rounds: usize) -> usize {
        let mut given = 0;
        self.prepared = 0;
        for _ in 0..rounds {
            let before = HEAP.calls();
            self.version += 1;
            let updates = updated(&self.items, self.version);
            let mut updates = updates.into_iter().map(Delta::Updated);
            let mut batches: Vec<Vec<Delta<Small>>> = Vec::new();
            while batches.last().is_none_or(|last| last.len() == batch) {
                batches.push(updates.by_ref().take(batch).collect());
            }
            self.prepared += HEAP.calls() - before;
            let (spent, of_all) = cpu::spent(|| {
                let mut of_all = 0;
                for batch in batches {
                    self.pipeline.apply(Duration::ZERO, batch);
                    for at in 0..self.queues.len() {
                        while self.queues[at].lock().depth() > 0 {
                            of_all += self.take(at);
                        }
                    }
                }
                of_all
            });
            self.spent += spent;
            given += of_all / self.queues.len();
        }
        assert_eq!(given, rounds * OBJECTS, "every update is an event");
        given
    }

    /// Takes what a callback thread takes at a time, and handles it.
    fn take(&mut self, at: usize) -> usize {
        let taken = self.queues[at].lock().take(TAKEN);
        for event in taken.iter() {
            std::hint::black_box(event.object().value);
        }
        taken.len()
    }
}
