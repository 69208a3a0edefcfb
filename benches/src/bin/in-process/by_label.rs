//! Listing a hundred objects of a million by a label that has an index.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Result, ensure};
use informer::{HasLabels, Index};
use informer_benches::{HEAP, cpu};
use tokio::runtime::Builder;

use crate::print;
use crate::server::{PER_APP, Small, serve};

const OBJECTS: usize = 1_000_000;

const ROUNDS: usize = 2_000;

pub(crate) fn measure(quick: bool) -> Result<()> {
    HEAP.stop();
    let objects = if quick { OBJECTS / 100 } else { OBJECTS };
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let server = serve(&runtime, objects);
    let informer = server.synced(&runtime)?;
    let by_app = Index::label("app", |object: &Small, key| object.label(key));
    runtime.block_on(informer.add_ready_index(&by_app))?;
    let lister = runtime.block_on(informer.synced())?;
    // Far from each other, so that each comes from where it lies in memory.
    let apps: Vec<String> =
        (0..ROUNDS).map(|round| format!("app={}", app(round, objects))).collect();
    let (spent, found) = cpu::spent(|| -> Result<usize> {
        let mut found = 0;
        for app in &apps {
            let all: Vec<Arc<Small>> = lister.select(app)?.iter().cloned().collect();
            found += black_box(all).len();
        }
        Ok(found)
    });
    ensure!(found? == ROUNDS * PER_APP, "the index is wrong");
    print("by-label.us", cpu::micros_each(spent, ROUNDS));
    Ok(())
}

fn app(round: usize, objects: usize) -> String {
    format!("app-{}", round * 7919 % (objects / PER_APP))
}
