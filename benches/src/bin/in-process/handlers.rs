//! Updates from the watch's bytes until a hundred handlers have returned.
//!
//! The loop is closed: when all handlers were given all events of a batch, the server sends the
//! next one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use informer::Event;
use informer_benches::{HEAP, cpu};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::print;
use crate::server::{Small, frame, serve};

const OBJECTS: usize = 10_000;

pub(crate) fn measure(quick: bool) -> Result<()> {
    HEAP.stop();
    let events = if quick { 3_200 } else { 16_000 };
    for (batch, events) in [(64, events), (1, events / 8)] {
        let spent = Loop { batch, handlers: 100, events }.run()?;
        print(&format!("handlers.{batch}.us"), spent.cpu_us);
    }
    Ok(())
}

/// Allocations of an event with one handler, in batches of 64 and alone.
pub(crate) fn count_allocations() -> Result<()> {
    for batch in [64, 1] {
        let spent = Loop { batch, handlers: 1, events: 8_192 }.run()?;
        print(&format!("allocations.{batch}"), spent.allocations);
    }
    Ok(())
}

struct Loop {
    batch: usize,
    handlers: usize,
    events: usize,
}

/// Each event's part.
struct Spent {
    cpu_us: f64,
    allocations: f64,
}

/// When a measurement begins and ends, as handlers see it.
struct Course {
    batches: Vec<Bytes>,
    watch: UnboundedSender<Bytes>,
    /// Batches before the measurement.
    warm: usize,
    handlers: usize,
    /// Handlers that have still to finish the batch.
    working: AtomicUsize,
    done: AtomicUsize,
    began: OnceLock<(Duration, usize)>,
    ended: UnboundedSender<(Duration, usize)>,
}

impl Course {
    /// A handler has returned from the last event of a batch.
    fn finished_batch(&self) {
        if self.working.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        self.working.store(self.handlers, Ordering::Release);
        let done = self.done.fetch_add(1, Ordering::AcqRel) + 1;
        let now = || (cpu::of_process(), HEAP.calls());
        if done == self.warm {
            _ = self.began.set(now());
        }
        match done == self.batches.len() {
            true => _ = self.ended.send(now()),
            false => self.send(done),
        }
    }

    /// Sends a batch. The watch is gone only when the measurement has failed.
    fn send(&self, batch: usize) {
        _ = self.watch.send(self.batches[batch].clone());
    }
}

impl Loop {
    fn run(&self) -> Result<Spent> {
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let server = serve(&runtime, OBJECTS);
        let informer = server.synced(&runtime)?;
        let measured = self.events / self.batch;
        let warm = measured / 8 + 1;
        let (ended, mut end) = unbounded_channel();
        let course = Arc::new(Course {
            batches: (0..measured + warm).map(|number| self.batch(number)).collect(),
            watch: server.watch,
            warm,
            handlers: self.handlers,
            working: AtomicUsize::new(self.handlers),
            done: AtomicUsize::new(0),
            began: OnceLock::new(),
            ended,
        });
        let _entered = runtime.enter();
        for _ in 0..self.handlers {
            let (course, batch, mut seen) = (Arc::clone(&course), self.batch, 0);
            let registration = informer.add_handler(|handlers| {
                handlers.on_event(move |event: &Event<Small>| {
                    seen += usize::from(matches!(event, Event::Updated { .. }));
                    if seen == batch {
                        seen = 0;
                        course.finished_batch();
                    }
                })
            })?;
            runtime.block_on(registration.synced())?;
        }
        course.send(0);
        let ended = runtime.block_on(end.recv()).context("it did not end")?;
        let began = course.began.get().context("it did not begin")?;
        runtime.block_on(informer.stop());
        let events = measured * self.batch;
        Ok(Spent {
            cpu_us: cpu::micros_each(ended.0 - began.0, events),
            allocations: (ended.1 - began.1) as f64 / events as f64,
        })
    }

    /// Updates of all objects in turn, neighbours far from each other in the store.
    fn batch(&self, number: usize) -> Bytes {
        let events = number * self.batch..(number + 1) * self.batch;
        let frame = |event| frame("MODIFIED", event * 7919 % OBJECTS, OBJECTS, 100 + event);
        events.map(frame).collect::<String>().into()
    }
}
