//! Relists of 165,000 objects of which none has changed: through the core, and through a whole informer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use informer::source::{Failure, FailureKind, WireObject};
use informer::{Event, InformerOptions, SharedInformer};
use informer_benches::{HEAP, cpu};
use informer_core::Delta;
use informer_core::store::Reader;
use informer_core::wire::ObjectHead;
use tokio::runtime::Builder;

use crate::figures::print;
use crate::memory_source::{Feed, MemorySource};
use crate::objects::{Small, in_key_order, items, list, resource, synced, wire_object};

const OBJECTS: usize = 165_000;

/// Snapshots timed together, for the clock takes longer than one.
const SNAPSHOTS: usize = 100;

pub(crate) fn measure(quick: bool) -> Result<()> {
    HEAP.stop();
    let objects = if quick { OBJECTS / 10 } else { OBJECTS };
    through_core(objects);
    through_informer(objects)
}

/// The store's and the queue's part: each key looked up, then kept.
fn through_core(objects: usize) {
    let items = items(objects);
    let mut pipeline = synced(&items);
    let (_, queue) = pipeline.register(Duration::ZERO, 1024, None, || {});
    let mut events = Vec::new();
    while queue.lock().depth() > 0 || !queue.lock().has_synced() {
        events.clear();
        queue.lock().pop_batch(1024, &mut events);
    }
    let ((spent, given), snapshots) = beside_snapshots(&pipeline.store().reader(), || {
        let mut spent = Duration::ZERO;
        for _ in 0..5 {
            spent += cpu::spent(|| {
                let kept: Vec<Delta<Small>> = items
                    .iter()
                    .filter_map(|item| {
                        let (key, held) = pipeline.store().find(item.key.namespace(), item.key.name())?;
                        held.is_state(&item.record.uid, &item.record.version)
                            .then(|| Delta::Kept(key.clone()))
                    })
                    .collect();
                list(&mut pipeline, kept.into_iter());
            })
            .0;
        }
        (spent, queue.lock().depth())
    });
    print("relist.core.us-per-object", cpu::micros_each(spent, 5 * objects));
    print("relist.core.events", given as f64);
    snapshots.print("core");
}

/// Whole relists, after the watch's version has expired.
fn through_informer(objects: usize) -> Result<()> {
    let relists = 3;
    let wire = in_key_order(objects).map(|at| wire_object(at, 1)).collect::<Result<Vec<_>>>()?;
    let (heads, _) =
        cpu::spent(|| wire.iter().filter(|object| ObjectHead::of(object.wire()).is_ok()).count());
    let heads = cpu::micros_each(heads, objects);
    let expired = || Err(Failure::new(FailureKind::Expired, "too old"));
    let feed = Feed::new((0..relists).map(|_| expired()));
    let lists: Vec<Vec<WireObject>> = (0..=relists).map(|_| wire.clone()).collect();
    let source = MemorySource::new(lists, &feed);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let _entered = runtime.enter();
    let options = InformerOptions::new().streaming_lists(false).page_size(None);
    let informer = SharedInformer::<Small>::new(source, resource(), options);
    let events = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&events);
    let registration = informer.add_handler(move |handlers| {
        handlers.on_event(move |event: &Event<Small>| {
            counted.fetch_add(usize::from(!event.is_initial()), Ordering::Relaxed);
        })
    })?;
    informer.start();
    let lister = runtime.block_on(informer.synced())?;
    runtime.block_on(registration.synced())?;
    ensure!(lister.len() == objects, "{} objects", lister.len());
    let mut spent = Duration::ZERO;
    for relist in 1..=relists as u64 {
        let before = cpu::of_process();
        feed.let_go();
        runtime.block_on(informer.wait_for(10 * (relist + 1)))?;
        spent += cpu::of_process() - before;
    }
    ensure!(informer.status().counters.unchanged >= (relists * objects) as u64, "the objects were not kept");
    let each = cpu::micros_each(spent, relists * objects);
    print("relist.informer.us-per-object", each);
    print("relist.informer.beyond-heads.us-per-object", each - heads);
    print("relist.informer.events", events.load(Ordering::Relaxed) as f64);
    runtime.block_on(informer.stop());
    Ok(())
}

/// What a snapshot takes.
struct Snapshots {
    micros: Vec<f64>,
}

impl Snapshots {
    fn print(mut self, of: &str) {
        self.micros.sort_by(f64::total_cmp);
        let at = |share: f64| self.micros[((self.micros.len() - 1) as f64 * share) as usize];
        print(&format!("relist.{of}.snapshot-us"), at(0.5));
        print(&format!("relist.{of}.snapshot-slowest-us"), at(1.0));
    }
}

/// Does `work` while another thread takes snapshots.
fn beside_snapshots<O>(reader: &Reader<Small>, work: impl FnOnce() -> O) -> (O, Snapshots) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let mut micros = Vec::new();
            while !stop.load(Ordering::Relaxed) || micros.is_empty() {
                let (spent, ()) = cpu::spent(|| {
                    (0..SNAPSHOTS).for_each(|_| assert!(!std::hint::black_box(reader.snapshot()).is_empty()));
                });
                micros.push(cpu::micros_each(spent, SNAPSHOTS));
            }
            micros
        });
        let done = work();
        stop.store(true, Ordering::Relaxed);
        (done, Snapshots { micros: taking.join().expect("snapshots do not panic") })
    })
}
