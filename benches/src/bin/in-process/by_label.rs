//! Listing by an indexed label: a hundred objects of many, by value and through a selector.
//!
//! Ten thousand objects lie in the cache, a million do not. What grows with the store and not with what lies in memory is
//! seen where many stores of ten thousand have a million objects together.

use std::hint::black_box;
use std::sync::Arc;

use informer::{HasLabels, Selection};
use informer_benches::{HEAP, cpu};
use informer_core::Pipeline;
use informer_core::selector::LabelSelector;
use informer_core::store::Index;

use crate::figures::print;
use crate::objects::{PER_APP, Small, items, synced};

/// The most objects, in one store or in many.
const ALL: usize = 1_000_000;

const ROUNDS: usize = 2_000;

pub(crate) fn measure(quick: bool) {
    HEAP.stop();
    let sizes: &[usize] = if quick { &[10_000, 100_000] } else { &[10_000, 100_000, ALL] };
    for &objects in sizes {
        Stores::of(1, objects).measure(&format!("by-label.{objects}"));
    }
    if !quick {
        for objects in [10_000, 100_000] {
            Stores::of(ALL / objects, objects).measure(&format!("by-label.many-of-{objects}"));
        }
    }
}

/// Stores that are asked in turn.
struct Stores {
    by_app: Index<Small>,
    pipelines: Vec<Pipeline<Small>>,
    /// What is looked for. Far from each other, so that each one comes from where it lies in memory; nothing twice in a million.
    apps: Vec<String>,
}

impl Stores {
    fn of(count: usize, objects: usize) -> Self {
        let by_app = Index::label("app", |object: &Small, key| object.label(key));
        let filled = |_| {
            let mut pipeline = synced(&items(objects));
            pipeline.add_index(&by_app).expect("it is the only one");
            pipeline
        };
        let app = |round| format!("app-{}", round / count * 7919 % (objects / PER_APP));
        let pipelines = (0..count).map(filled).collect();
        Self { pipelines, apps: (0..ROUNDS).map(app).collect(), by_app }
    }

    fn measure(&self, name: &str) {
        let readers: Vec<_> = self.pipelines.iter().map(|pipeline| pipeline.store().reader()).collect();
        let lookups = || readers.iter().cycle().zip(&self.apps);
        let (spent, ()) = cpu::spent(|| {
            for (reader, app) in lookups() {
                let snapshot = reader.snapshot();
                let hits = snapshot.by_index(&self.by_app, app).expect("the index is there");
                let all: Vec<Arc<Small>> = hits.map(|entry| Arc::clone(entry.object())).collect();
                assert_eq!(black_box(all).len(), PER_APP);
            }
        });
        print(&format!("{name}.index.us"), cpu::micros_each(spent, ROUNDS));
        let (spent, ()) = cpu::spent(|| {
            for (reader, app) in lookups() {
                let selector: LabelSelector = format!("app={app}").parse().expect("a selector");
                let selection = Selection::new(reader.snapshot(), None, selector);
                let all: Vec<Arc<Small>> = selection.iter().cloned().collect();
                assert_eq!(black_box(all).len(), PER_APP);
            }
        });
        print(&format!("{name}.selector.us"), cpu::micros_each(spent, ROUNDS));
    }
}
