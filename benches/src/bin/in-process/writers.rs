//! One thread writes, ten list without pause.
//!
//! *Apart*: the writer has a core of its own, and the readers share another. Else eleven threads share two cores, and it is
//! the kernel that says how much of them the writer gets.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use informer_benches::{HEAP, cpu};
use informer_core::Item;
use informer_core::store::{Reader, Store};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::figures::print;
use crate::objects::{Small, items, updated};

const READERS: usize = 10;

/// Writes of one measurement.
const WRITES: usize = 16_384;

/// What readers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Nothing; there are none.
    Nothing,
    /// Iterate over a snapshot.
    Iterating,
    /// Collect what they list, as `Lister::list` does.
    Collecting,
    /// The same with a store of their own, in which nobody writes: what is theirs of a writer's time is then the machine's.
    IteratingAnother,
    CollectingAnother,
}

const ALL: [Reading; 5] = [
    Reading::Nothing,
    Reading::Iterating,
    Reading::Collecting,
    Reading::IteratingAnother,
    Reading::CollectingAnother,
];

pub(crate) fn measure(quick: bool) -> Result<()> {
    HEAP.stop();
    for objects in [10_000, 160_000] {
        let items = items(objects);
        let updates = [updated(&items, 2), updated(&items, 3)];
        let [mut store, another] = [filled(items), filled(self::items(objects))];
        for batch in [1, 16] {
            for reading in ALL {
                let writes = if quick { WRITES / 8 } else { WRITES };
                let written = beside(&reading.of(&store, &another), reading, None, || {
                    write(&mut store, [&updates[0][..writes / 2], &updates[1][..writes / 2]], batch)
                });
                let name = format!("writers.{objects}.batch-{batch}.{reading:?}").to_lowercase();
                print(&format!("{name}.cpu-us"), written.cpu_us);
                print(&format!("{name}.per-second"), written.per_second);
            }
        }
        let times = if quick { 2 } else { 20 };
        for reading in ALL {
            let reader = reading.of(&store, &another);
            let written = apart(&mut store, &updates, &reader, reading, times)?;
            let name = format!("writers.{objects}.apart.{reading:?}").to_lowercase();
            print(&format!("{name}.cpu-us"), written.cpu_us);
            print(&format!("{name}.per-second"), written.per_second);
        }
    }
    Ok(())
}

impl Reading {
    /// A reader of the store that is read.
    fn of(self, store: &Store<Small>, another: &Store<Small>) -> Reader<Small> {
        match self {
            Self::Nothing | Self::Iterating | Self::Collecting => store.reader(),
            Self::IteratingAnother | Self::CollectingAnother => another.reader(),
        }
    }
}

fn filled(items: Vec<Item<Small>>) -> Store<Small> {
    let mut store = Store::new();
    for item in items {
        store.upsert(item);
    }
    store.publish();
    store
}

/// Writes one by one beside readers on another core.
fn apart(
    store: &mut Store<Small>,
    updates: &[Vec<Item<Small>>; 2],
    reader: &Reader<Small>,
    reading: Reading,
    times: usize,
) -> Result<Written> {
    let own = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| own.is_set(*core)).map(|core| {
        let mut set = CpuSet::new();
        set.set(core);
        set
    });
    let (first, second) = cores.next().zip(cores.next()).context("this takes two cores")?;
    sched_setaffinity(None, &first)?;
    let written: Vec<Written> = beside(reader, reading, Some(&second), || {
        // Through all objects, as client-go's does.
        let parts = updates[0].chunks_exact(WRITES / 2).zip(updates[1].chunks_exact(WRITES / 2));
        parts.cycle().take(times).map(|(there, back)| write(store, [there, back], 1)).collect()
    });
    sched_setaffinity(None, &own)?;
    let mean = |of: fn(&Written) -> f64| written.iter().map(of).sum::<f64>() / times as f64;
    // The times that writes took are what has a mean.
    let seconds = mean(|written| 1.0 / written.per_second);
    Ok(Written { cpu_us: mean(|written| written.cpu_us), per_second: 1.0 / seconds })
}

struct Written {
    cpu_us: f64,
    per_second: f64,
}

/// The same writes each time, there and back.
fn write(store: &mut Store<Small>, updates: [&[Item<Small>]; 2], batch: usize) -> Written {
    let writes = updates[0].len() + updates[1].len();
    let began = Instant::now();
    let mut spent = Duration::ZERO;
    for updates in updates {
        let updates: Vec<Item<Small>> = updates.to_vec();
        let mut updates = updates.into_iter().peekable();
        spent += cpu::spent(|| {
            while updates.peek().is_some() {
                for item in updates.by_ref().take(batch) {
                    store.upsert(item);
                }
                store.publish();
            }
        })
        .0;
    }
    let per_second = writes as f64 / began.elapsed().as_secs_f64();
    Written { cpu_us: cpu::micros_each(spent, writes), per_second }
}

/// Does `work` while readers read, on a core of theirs if there is one.
fn beside<O>(reader: &Reader<Small>, reading: Reading, core: Option<&CpuSet>, work: impl FnOnce() -> O) -> O {
    let readers = if reading == Reading::Nothing { 0 } else { READERS };
    let (stop, begun) = (AtomicBool::new(false), Barrier::new(readers + 1));
    thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                if let Some(core) = core {
                    sched_setaffinity(None, core).expect("the core is there");
                }
                begun.wait();
                while !stop.load(Ordering::Relaxed) {
                    read(reader, reading);
                }
            });
        }
        begun.wait();
        let done = work();
        stop.store(true, Ordering::Relaxed);
        done
    })
}

fn read(reader: &Reader<Small>, reading: Reading) {
    let snapshot = reader.snapshot();
    match reading {
        Reading::Nothing => {}
        Reading::Iterating | Reading::IteratingAnother => {
            _ = black_box(snapshot.iter().map(|entry| entry.object().value).sum::<u64>())
        }
        Reading::Collecting | Reading::CollectingAnother => {
            let all: Vec<Arc<Small>> = snapshot.iter().map(|entry| Arc::clone(entry.object())).collect();
            black_box(all);
        }
    }
}
