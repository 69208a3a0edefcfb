//! A relist in which nothing has changed, after the watch's version has expired.

use anyhow::{Context, Result, ensure};
use informer::Event;
use tokio::runtime::Builder;
use tokio::sync::mpsc::unbounded_channel;

use crate::print;
use crate::server::{Small, expired, frame, serve};

const OBJECTS: usize = 20_000;

pub(crate) fn measure() -> Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let server = serve(&runtime, OBJECTS);
    let informer = server.synced(&runtime)?;
    let (called, mut calls) = unbounded_channel();
    let _entered = runtime.enter();
    let registration = informer.add_handler(|handlers| {
        handlers.on_event(move |event: &Event<Small>| {
            if !event.is_initial() {
                // The receiver is gone only when the measurement has failed.
                _ = called.send(matches!(event, Event::Deleted { .. }));
            }
        })
    })?;
    runtime.block_on(registration.synced())?;
    server.watch.send(expired())?;
    runtime.block_on(informer.wait_for(20))?;
    let unchanged = informer.status().counters.unchanged;
    ensure!(unchanged == OBJECTS as u64, "{unchanged} objects were listed again");
    // Behind all that the relist may have had to say.
    server.watch.send(frame("DELETED", 0, OBJECTS, 30).into())?;
    let mut count = 0;
    while !runtime.block_on(calls.recv()).context("the handler is gone")? {
        count += 1;
    }
    print("relist.calls", f64::from(count));
    runtime.block_on(informer.stop());
    Ok(())
}
