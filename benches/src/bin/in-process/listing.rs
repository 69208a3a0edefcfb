//! Listing everything in key order, beside the map that a program would write itself: a lock around a hash map, in
//! whatever order.

use std::hint::black_box;
use std::sync::Arc;

use hashbrown::HashMap;
use informer_benches::{HEAP, cpu};
use informer_core::ObjectKey;
use parking_lot::RwLock;

use crate::figures::print;
use crate::objects::{Small, items, synced};

pub(crate) fn measure(quick: bool) {
    HEAP.stop();
    for objects in [10_000, 100_000] {
        let items = items(objects);
        let reader = synced(&items).store().reader();
        let map: HashMap<ObjectKey, Arc<Small>> =
            items.into_iter().map(|item| (item.key, item.record.object)).collect();
        let map = RwLock::new(map);
        let visited = if quick { 1_000_000 } else { 10_000_000 };
        let measure = |name: &str, list: &dyn Fn() -> u64| {
            black_box(list());
            let (spent, ()) = cpu::spent(|| (0..visited / objects).for_each(|_| _ = black_box(list())));
            print(&format!("listing.{objects}.{name}.ns"), 1000.0 * cpu::micros_each(spent, visited));
        };
        measure("ours.iterate", &|| reader.snapshot().iter().map(|entry| entry.object().value).sum());
        measure("map.iterate", &|| map.read().values().map(|object| object.value).sum());
        measure("ours.keys", &|| reader.snapshot().iter().map(|entry| entry.key.byte_len() as u64).sum());
        measure("ours.collect", &|| {
            let all: Vec<Arc<Small>> =
                reader.snapshot().iter().map(|entry| Arc::clone(entry.object())).collect();
            all.len() as u64
        });
        measure("map.collect", &|| {
            let all: Vec<Arc<Small>> = map.read().values().cloned().collect();
            all.len() as u64
        });
    }
}
