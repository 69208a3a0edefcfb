//! What an object takes with its key, UID and entry, and what an index takes of each: requested
//! bytes.

use std::time::Duration;

use anyhow::Result;
use informer::IndexValues;
use informer_benches::HEAP;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::print;
use crate::server::{Small, serve};

const OBJECTS: usize = 10_000;

pub(crate) fn measure() -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // What the first informer of a process sets up stays.
    runtime.block_on(serve(&runtime, 100).synced(&runtime)?.stop());
    let server = serve(&runtime, OBJECTS);
    let settled = || {
        // What a list leaves to be done.
        runtime.block_on(async { sleep(Duration::from_millis(100)).await });
        HEAP.live()
    };
    let before = settled();
    let informer = server.synced(&runtime)?;
    let listed = settled();
    let unique = |_: &Small, values: &mut IndexValues| values.push("some-value".to_owned());
    runtime.block_on(informer.add_index("constant", unique))?;
    let indexed = settled();
    print("store.entry.bytes", (listed - before) as f64 / OBJECTS as f64);
    print("store.index.bytes", (indexed - listed) as f64 / OBJECTS as f64);
    Ok(())
}
