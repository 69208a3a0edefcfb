//! Updates through a whole informer: from the frame that a connection has split off, until the handler has returned.
//!
//! The loop is closed: when the handler was given all events of a batch, it lets go the next one. *Idle*: a task lets go
//! one event after a pause, in which everything has gone to sleep; the pauses' own time is taken off. *Stream*: the events
//! are taken from [`SharedInformer::events`] by a task of the runtime, instead of by a handler on a thread of the library's.
//! *One thread*: by a stream, in a runtime of tokio's `current_thread` flavour.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::StreamExt;
use informer::source::WatchFrame;
use informer::{Event, InformerOptions, SharedInformer};
use informer_benches::{HEAP, cpu};
use informer_core::wire::ObjectHead;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use crate::figures::print;
use crate::memory_source::{Feed, MemorySource};
use crate::objects::{Small, in_key_order, modified, resource, wire_object};

const OBJECTS: usize = 10_000;

/// Between single events, tokio's shortest.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) fn measure(quick: bool) -> Result<()> {
    let events = if quick { 32_000 } else { 192_000 };
    // (events in a batch, handlers, events)
    let cases = [
        (64, 1, events),
        (1, 1, events / 4),
        (64, 100, events / 12),
        (256, 1, events),
        (256, 100, events / 12),
    ];
    let streams = [(64, events), (1, events / 4)];
    let by_stream = [("stream", Consumers::Stream), ("one-thread", Consumers::StreamOnOneThread)];
    for (batch, handlers, _) in cases {
        let counted = Loop { batch, consumers: Consumers::Handlers(handlers), events: 8_192 }.run()?;
        print(&format!("informer.{batch}.handlers-{handlers}.allocations"), counted.allocations);
    }
    for (batch, _) in streams {
        let counted = Loop { batch, consumers: Consumers::Stream, events: 8_192 }.run()?;
        print(&format!("informer.{batch}.stream.allocations"), counted.allocations);
    }
    HEAP.stop();
    for (batch, handlers, events) in cases {
        let timed = Loop { batch, consumers: Consumers::Handlers(handlers), events }.run()?;
        print(&format!("informer.{batch}.handlers-{handlers}.cpu-us"), timed.cpu_us);
    }
    let singles = if quick { 1_000 } else { 5_000 };
    print("informer.idle.cpu-us", idle(singles, Consumers::Handlers(1))?);
    for (name, consumers) in by_stream {
        for (batch, events) in streams {
            let timed = Loop { batch, consumers, events }.run()?;
            print(&format!("informer.{batch}.{name}.cpu-us"), timed.cpu_us);
        }
        print(&format!("informer.idle.{name}.cpu-us"), idle(singles, consumers)?);
    }
    print("informer.head.cpu-us", head()?);
    Ok(())
}

/// Allocations of an event, in batches of 64 and alone.
pub(crate) fn allocations(batch: usize) -> Result<f64> {
    Ok(Loop { batch, consumers: Consumers::Handlers(1), events: 8_192 }.run()?.allocations)
}

struct Loop {
    batch: usize,
    consumers: Consumers,
    events: usize,
}

/// Who is given the events.
#[derive(Clone, Copy)]
enum Consumers {
    Handlers(usize),
    /// One stream, in a task of the runtime.
    Stream,
    StreamOnOneThread,
}

impl Consumers {
    fn count(self) -> usize {
        match self {
            Self::Handlers(count) => count,
            Self::Stream | Self::StreamOnOneThread => 1,
        }
    }

    /// What `#[tokio::main]` makes, with threads and without.
    fn runtime(self) -> Result<Runtime> {
        let mut builder = match self {
            Self::Handlers(_) | Self::Stream => Builder::new_multi_thread(),
            Self::StreamOnOneThread => Builder::new_current_thread(),
        };
        Ok(builder.enable_all().build()?)
    }

    /// Has each of them call what `handle` makes, for every update, from here on.
    fn attach<H: FnMut() + Send + 'static>(
        self,
        runtime: &Runtime,
        informer: &SharedInformer<Small>,
        handle: impl Fn() -> H,
    ) -> Result<()> {
        let _entered = runtime.enter();
        let mut registrations = Vec::new();
        for _ in 0..self.count() {
            let mut handle = handle();
            let mut given = move |event: &Event<Small>| {
                if matches!(event, Event::Updated { .. }) {
                    handle();
                }
            };
            registrations.push(match self {
                Self::Handlers(_) => informer.add_handler(|handlers| handlers.on_event(given))?,
                Self::Stream | Self::StreamOnOneThread => {
                    let mut events = informer.events()?;
                    let registration = events.registration();
                    runtime.spawn(async move {
                        while let Some(event) = events.next().await {
                            given(&event);
                        }
                    });
                    registration
                }
            });
        }
        registrations.iter().try_for_each(|registration| runtime.block_on(registration.synced()))?;
        Ok(())
    }
}

/// Each event's part.
struct Spent {
    cpu_us: f64,
    allocations: f64,
}

/// When a measurement begins and ends, as handlers see it.
struct Course {
    feed: Arc<Feed>,
    batch: usize,
    /// Batches before the measurement, and all.
    warm: usize,
    all: usize,
    /// Handlers that have still to finish the batch.
    working: AtomicUsize,
    handlers: usize,
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
        match done == self.all {
            true => _ = self.ended.send(now()),
            false => self.feed.let_go(),
        }
    }
}

impl Loop {
    fn run(&self) -> Result<Spent> {
        let batches = self.events / self.batch;
        let warm = batches / 8 + 1;
        let feed = feed(self.batch, batches + warm)?;
        let (ended, mut end) = unbounded_channel();
        let course = Arc::new(Course {
            feed: Arc::clone(&feed),
            batch: self.batch,
            warm,
            all: batches + warm,
            working: AtomicUsize::new(self.consumers.count()),
            handlers: self.consumers.count(),
            done: AtomicUsize::new(0),
            began: OnceLock::new(),
            ended,
        });
        let runtime = self.consumers.runtime()?;
        let informer = informer(&runtime, &feed)?;
        self.consumers.attach(&runtime, &informer, || {
            let course = Arc::clone(&course);
            let mut seen = 0;
            move || {
                seen += 1;
                if seen % course.batch == 0 {
                    course.finished_batch();
                }
            }
        })?;
        feed.let_go();
        let ended = runtime.block_on(end.recv()).context("it did not end")?;
        let began = course.began.get().context("it did not begin")?;
        runtime.block_on(informer.stop());
        let events = batches * self.batch;
        Ok(Spent {
            cpu_us: cpu::micros_each(ended.0 - began.0, events),
            allocations: (ended.1 - began.1) as f64 / events as f64,
        })
    }
}

/// A single event that wakes everybody, without what the pauses take. It is let go by a task, as an event that comes from a
/// connection is.
fn idle(events: usize, consumers: Consumers) -> Result<f64> {
    let feed = feed(1, events)?;
    let runtime = consumers.runtime()?;
    let informer = informer(&runtime, &feed)?;
    let (handled, mut wait) = unbounded_channel();
    consumers.attach(&runtime, &informer, || {
        let handled = handled.clone();
        move || _ = handled.send(())
    })?;
    let course = runtime.spawn(async move {
        let mut spent = [Duration::ZERO; 2];
        for (at, with_events) in [false, true].into_iter().enumerate() {
            let before = cpu::of_process();
            for _ in 0..events {
                sleep(PAUSE).await;
                if with_events {
                    feed.let_go();
                    wait.recv().await.context("the handler is gone")?;
                }
            }
            spent[at] = cpu::of_process() - before;
        }
        anyhow::Ok(spent)
    });
    let spent = runtime.block_on(course)??;
    runtime.block_on(informer.stop());
    Ok(cpu::micros_each(spent[1].saturating_sub(spent[0]), events))
}

/// What reading key, UID and version of an object takes, which is a part of the above.
fn head() -> Result<f64> {
    let objects = in_key_order(OBJECTS).map(|at| wire_object(at, 1)).collect::<Result<Vec<_>>>()?;
    let (spent, lengths) = cpu::spent(|| {
        let mut lengths = 0;
        for object in objects.iter().cycle().take(20 * OBJECTS) {
            lengths += ObjectHead::of(object.wire()).map_or(0, |head| head.name.len());
        }
        lengths
    });
    std::hint::black_box(lengths);
    Ok(cpu::micros_each(spent, 20 * OBJECTS))
}

/// Updates of all objects in turn, neighbours far from each other in the store.
fn feed(batch: usize, batches: usize) -> Result<Arc<Feed>> {
    let update = |number: usize| modified(number * 7919 % OBJECTS, 100 + number);
    let chunk = |number: usize| -> Result<Vec<WatchFrame>> {
        (number * batch..(number + 1) * batch).map(update).collect()
    };
    let chunks = (0..batches).map(chunk).collect::<Result<Vec<_>>>()?;
    Ok(Feed::new(chunks.into_iter().map(Ok)))
}

/// One that has synced.
fn informer(runtime: &Runtime, feed: &Arc<Feed>) -> Result<SharedInformer<Small>> {
    let list = in_key_order(OBJECTS).map(|at| wire_object(at, 1)).collect::<Result<Vec<_>>>()?;
    let source = MemorySource::new([list], feed);
    let _entered = runtime.enter();
    let options = InformerOptions::new().streaming_lists(false).page_size(None);
    let informer = SharedInformer::<Small>::new(source, resource(), options);
    informer.start();
    let lister = runtime.block_on(informer.synced())?;
    anyhow::ensure!(lister.len() == OBJECTS, "{} objects", lister.len());
    Ok(informer)
}
