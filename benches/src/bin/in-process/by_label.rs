//! Listing by an indexed label: a hundred objects of many, by value and through a selector.

use std::hint::black_box;
use std::sync::Arc;

use informer::{HasLabels, Selection};
use informer_benches::{HEAP, cpu};
use informer_core::selector::LabelSelector;
use informer_core::store::Index;

use crate::figures::print;
use crate::objects::{PER_APP, Small, items, synced};

pub(crate) fn measure(quick: bool) {
    HEAP.stop();
    let sizes: &[usize] = if quick { &[10_000, 100_000] } else { &[10_000, 100_000, 1_000_000] };
    for &objects in sizes {
        let mut pipeline = synced(&items(objects));
        let by_app = Index::label("app", |object: &Small, key| object.label(key));
        pipeline.add_index(&by_app).expect("it is the only one");
        let reader = pipeline.store().reader();
        let rounds = 2_000;
        // Far from each other, so that each one comes from where it lies in memory.
        let apps: Vec<String> =
            (0..rounds).map(|round| format!("app-{}", round * 7919 % (objects / PER_APP))).collect();
        let (spent, ()) = cpu::spent(|| {
            for app in &apps {
                let snapshot = reader.snapshot();
                let hits = snapshot.by_index(&by_app, app).expect("the index is there");
                let all: Vec<Arc<Small>> = hits.map(|entry| Arc::clone(entry.object())).collect();
                assert_eq!(black_box(all).len(), PER_APP);
            }
        });
        print(&format!("by-label.{objects}.index.us"), cpu::micros_each(spent, rounds));
        let (spent, ()) = cpu::spent(|| {
            for app in &apps {
                let selector: LabelSelector = format!("app={app}").parse().expect("a selector");
                let selection = Selection::new(reader.snapshot(), None, selector);
                let all: Vec<Arc<Small>> = selection.iter().cloned().collect();
                assert_eq!(black_box(all).len(), PER_APP);
            }
        });
        print(&format!("by-label.{objects}.selector.us"), cpu::micros_each(spent, rounds));
    }
}
