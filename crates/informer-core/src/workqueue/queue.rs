//! The queue's state machine.

use std::collections::VecDeque;
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

use super::delays::Delays;
use super::limiter::RateLimiter;
use super::metrics::{Histogram, Metrics};

/// A queue of items to work on (client-go's `workqueue`, with delays and rate limits). Items are keys: small, cheap
/// to clone, equal if they stand for the same work.
///
/// - Handed out in the order in which they were added; an item that waits already is not added again.
/// - An item is never handed out twice at a time: added again while a worker has it, it comes again, once, after
///   [`done`](Self::done).
/// - An item added for later comes when its time has come; if it is added so again, at the earlier of both times.
///
/// Time is an argument: how long ago some fixed moment was. It must not go back.
pub struct Queue<K> {
    ready: VecDeque<K>,
    /// When each item of `ready` was added.
    added: HashMap<K, Duration>,
    processing: HashMap<K, InWork>,
    /// How many items of `processing` were added again.
    again: usize,
    delays: Delays<K>,
    limiter: Box<dyn RateLimiter<K>>,
    is_shutting_down: bool,
    counted: Counted,
}

/// An item that a worker has.
struct InWork {
    since: Duration,
    /// When it was added again.
    again: Option<Duration>,
}

#[derive(Default)]
struct Counted {
    adds: u64,
    retries: u64,
    queue_duration: Histogram,
    work_duration: Histogram,
}

impl<K: Hash + Eq + Clone + 'static> Queue<K> {
    /// An empty queue, whose [`add_rate_limited`](Self::add_rate_limited) asks `limiter`.
    #[must_use]
    pub fn new(limiter: impl RateLimiter<K>) -> Self {
        Self {
            ready: VecDeque::new(),
            added: HashMap::new(),
            processing: HashMap::new(),
            again: 0,
            delays: Delays::new(),
            limiter: Box::new(limiter),
            is_shutting_down: false,
            counted: Counted::default(),
        }
    }

    /// Adds an item, unless it waits to be handed out already, or the queue is shutting down.
    pub fn add(&mut self, now: Duration, item: K) {
        if self.is_shutting_down || self.added.contains_key(&item) {
            return;
        }
        if let Some(in_work) = self.processing.get_mut(&item) {
            if in_work.again.is_none() {
                in_work.again = Some(now);
                self.again += 1;
                self.counted.adds += 1;
            }
            return;
        }
        self.counted.adds += 1;
        self.push(now, item);
    }

    /// Adds an item once `delay` has passed. One that waits for its time already keeps the earlier time.
    pub fn add_after(&mut self, now: Duration, item: K, delay: Duration) {
        if self.is_shutting_down {
            return;
        }
        self.counted.retries += 1;
        if delay.is_zero() {
            self.add(now, item);
        } else {
            self.delays.insert(item, now.saturating_add(delay));
        }
    }

    /// Adds an item once the rate limiter says that it may come.
    pub fn add_rate_limited(&mut self, now: Duration, item: K) {
        let delay = self.limiter.when(now, &item);
        self.add_after(now, item, delay);
    }

    /// Makes the rate limiter forget an item's failures. The item must be [`done`](Self::done) nevertheless.
    pub fn forget(&mut self, item: &K) {
        self.limiter.forget(item);
    }

    /// How often the rate limiter was asked about an item since it forgot it.
    #[must_use]
    pub fn num_requeues(&self, item: &K) -> u32 {
        self.limiter.num_requeues(item)
    }

    /// Adds the items whose time has come, in the order of their times.
    pub fn advance(&mut self, now: Duration) {
        while let Some(item) = self.delays.pop_due(now) {
            self.add(now, item);
        }
    }

    /// When the next item that waits for its time may be added.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.delays.next()
    }

    /// Hands out the next item (client-go's `Get`). It must be given back with [`done`](Self::done).
    pub fn take(&mut self, now: Duration) -> Option<K> {
        let item = self.ready.pop_front()?;
        if let Some(added) = self.added.remove(&item) {
            self.counted.queue_duration.observe(now.saturating_sub(added));
        }
        self.processing.insert(item.clone(), InWork { since: now, again: None });
        Some(item)
    }

    /// Says that the work on an item has ended. If it was added again meanwhile, it is to be handed out again, also
    /// when the queue is shutting down. Does nothing for an item that nobody has.
    pub fn done(&mut self, now: Duration, item: &K) {
        let Some((item, in_work)) = self.processing.remove_entry(item) else { return };
        self.counted.work_duration.observe(now.saturating_sub(in_work.since));
        if let Some(added) = in_work.again {
            self.again -= 1;
            self.push(added, item);
        }
    }

    /// How many items wait to be handed out; those not counted that wait for their time, or for `done`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether no item waits to be handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// How many items wait for their time.
    #[must_use]
    pub fn delayed(&self) -> usize {
        self.delays.len()
    }

    /// Refuses what is added from now on, and drops what waits for its time. What was added before is still handed
    /// out.
    pub fn shut_down(&mut self) {
        self.is_shutting_down = true;
        self.delays.clear();
    }

    /// Whether [`shut_down`](Self::shut_down) was called.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.is_shutting_down
    }

    /// Whether nothing will be handed out any more. Stays so.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_shutting_down && self.ready.is_empty() && self.again == 0
    }

    /// Whether nothing will be handed out any more, and nobody has an item. Stays so.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_over() && self.processing.is_empty()
    }

    /// The queue's figures.
    #[must_use]
    pub fn metrics(&self, now: Duration) -> Metrics {
        let in_work = || self.processing.values().map(|in_work| now.saturating_sub(in_work.since));
        Metrics {
            depth: self.ready.len() + self.again,
            adds: self.counted.adds,
            retries: self.counted.retries,
            queue_duration: self.counted.queue_duration.clone(),
            work_duration: self.counted.work_duration.clone(),
            unfinished_work: in_work().fold(Duration::ZERO, Duration::saturating_add),
            longest_running_processor: in_work().max().unwrap_or_default(),
        }
    }

    fn push(&mut self, added: Duration, item: K) {
        self.added.insert(item.clone(), added);
        self.ready.push_back(item);
    }
}

/// Without the items.
impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("ready", &self.ready.len())
            .field("processing", &self.processing.len())
            .field("is_shutting_down", &self.is_shutting_down)
            .finish_non_exhaustive()
    }
}
